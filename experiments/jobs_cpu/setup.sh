#!/bin/sh
# Makes virtual environments with what the jobs of this folder import, from PyPI,
# for a machine without a GPU. Prints the interpreter on stdout and everything else
# on stderr.
# usage: setup.sh [torch]
#   torch    only PyTorch, for train_fsdp.py (530 MB to download the first time,
#            shared with ../deepspeed_cpu)
#   nothing  also transformers 5.23.0, accelerate 1.15.0, TRL 1.16.0 and
#            Lightning 2.6.6 (45 s and 300 MB more)
#
# Exit code 77: PyPI cannot be reached; 1: any other error.
set -eu

here=$(cd "$(dirname "$0")/../deepspeed_cpu" && pwd)
. "$here/setup_common.sh"
jobs=$cache/jobs-1

# With --no-deps, because packages that depend on torch would bring CUDA's
# libraries.
make_jobs() {
  say "transformers, TRL and Lightning from PyPI into $jobs"
  ask_pypi
  rm -rf "$jobs"
  "$torch/bin/python" -m venv --without-pip "$jobs"
  site "$torch/bin/python" >"$(site "$jobs/bin/python")/torch.pth"
  for packages in "transformers==5.23.0 datasets==5.2.0 lightning-utilities jsonargparse[signatures]" \
    "--no-deps accelerate==1.15.0 trl==1.16.0 peft==0.21.2 lightning==2.6.6 torchmetrics==1.9.0"; do
    # shellcheck disable=SC2086  # the packages are words
    pip --python "$jobs/bin/python" install --quiet --no-warn-conflicts --timeout 60 $packages ||
      fail "pip could not install them: see above"
  done
  "$here/write_torchrun.sh" "$jobs"
  "$jobs/bin/python" -c 'import transformers, accelerate, trl, lightning' >&2 || fail "they do not load"
  touch "$jobs/complete"
}

lock_cache
"$here/setup_torch.sh" >/dev/null || exit $?
if [ "${1:-}" = torch ]; then
  echo "$torch/bin/python"
else
  [ -e "$jobs/complete" ] || make_jobs
  echo "$jobs/bin/python"
fi

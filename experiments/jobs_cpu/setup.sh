#!/bin/sh
# Makes virtual environments with what the jobs of this folder import, from PyPI,
# for a machine without a GPU. Prints the interpreter on stdout and everything else
# on stderr.
# usage: setup.sh [torch|llama-factory|axolotl|litgpt]
#   torch          only PyTorch, for train_fsdp.py (530 MB to download the first
#                  time, shared with ../deepspeed_cpu)
#   nothing        also transformers 5.23.0, accelerate 1.15.0, TRL 1.16.0, PEFT
#                  0.21.2 and Lightning 2.6.6 (45 s and 300 MB more)
#   llama-factory  LLaMA-Factory 0.9.5 with the versions that it asks for
#   axolotl        Axolotl 0.21.0 with its own; it needs Python 3.12 or newer, which
#                  PYTHON names before the first of these environments is made
#   litgpt         LitGPT 0.5.13
#
# What is left out of a framework's own list are packages that training on
# processors does not import: CUDA's libraries, Triton, web pages, clouds.
#
# Exit code 77: PyPI cannot be reached, or Python is too old; 1: any other error.
set -eu

here=$(cd "$(dirname "$0")/../deepspeed_cpu" && pwd)
. "$here/setup_common.sh"

# Packages that are installed with what they need, and after -- those without it,
# because they would bring CUDA's libraries or another torch.
packages_of() {
  case $1 in
    jobs) echo "transformers==5.23.0 datasets==5.2.0 lightning-utilities jsonargparse[signatures] -- accelerate==1.15.0 trl==1.16.0 peft==0.21.2 lightning==2.6.6 torchmetrics==1.9.0" ;;
    llama-factory) echo "transformers==5.6.0 datasets==4.0.0 omegaconf einops fire -- llamafactory==0.9.5 accelerate==1.11.0 peft==0.18.1 trl==0.24.0 torchaudio==2.11.1 torchvision==0.29.2" ;;
    axolotl) echo "transformers==5.20.1 datasets==5.0.1 pydantic==2.13.5 addict fire python-dotenv pillow colorama scipy art numba typer wandb posthog==6.7.11 fastcore -- axolotl==0.21.0 accelerate==1.15.0 peft==0.21.2 trl==1.14.1 axolotl-contribs-lgpl==0.0.7 axolotl-contribs-mit==0.0.6 evaluate==0.4.1 bitsandbytes==0.50.2 kernels==0.17.2" ;;
    litgpt) echo "jsonargparse[signatures]==4.41.0 requests lightning-utilities tokenizers safetensors huggingface-hub==1.3.7 -- litgpt==0.5.13 lightning==2.6.6 torchmetrics==1.9.0" ;;
    *) fail "$1: write torch, llama-factory, axolotl, litgpt or nothing" ;;
  esac
}

modules_of() {
  case $1 in
    jobs) echo "transformers, accelerate, trl, peft, lightning" ;;
    llama-factory) echo "llamafactory.train.tuner" ;;
    axolotl) echo "axolotl.cli.train, axolotl.train" ;;
    litgpt) echo "litgpt" ;;
  esac
}

# Axolotl wants GPUs: it asks whether two reach one another, and places the model of
# a rank on the GPU of its number. These two lines are all that is changed in a
# framework; the rest is its own settings (use_cpu, ACCELERATE_USE_CPU, no kernels of
# Triton), which the users' files here have.
let_axolotl_use_cpus() {
  sed -i 's/except AssertionError as exc:/except (AssertionError, RuntimeError) as exc:/' "$1/utils/environment.py"
  sed -i 's/cfg.device_map = {"": int(os.environ.get("LOCAL_RANK", 0))}/cfg.device_map = {"": "cpu"}/' \
    "$1/utils/config/__init__.py"
}

make_environment() {
  say "$1 from PyPI into $folder"
  ask_pypi
  rm -rf "$folder"
  "$torch/bin/python" -m venv --without-pip "$folder"
  site "$torch/bin/python" >"$(site "$folder/bin/python")/torch.pth"
  for part in "${packages%% -- *}" "--no-deps ${packages##* -- }"; do
    # shellcheck disable=SC2086  # the packages are words
    pip --python "$folder/bin/python" install --quiet --no-warn-conflicts --timeout 60 $part ||
      fail "pip could not install them: see above"
  done
  [ "$1" != axolotl ] || let_axolotl_use_cpus "$(site "$folder/bin/python")/axolotl"
  "$here/write_torchrun.sh" "$folder"
  AXOLOTL_DO_NOT_TRACK=1 "$folder/bin/python" -c "import $(modules_of "$1")" >&2 || fail "$1 does not load"
  touch "$folder/complete"
}

framework=${1:-jobs}
lock_cache
"$here/setup_torch.sh" >/dev/null || exit $?
if [ "$framework" = torch ]; then
  echo "$torch/bin/python"
  exit 0
fi
packages=$(packages_of "$framework")
if [ "$framework" = axolotl ] && ! "$torch/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 12))'; then
  say "axolotl needs Python 3.12 or newer: remove $torch, and name one by PYTHON"
  exit 77
fi
folder=$cache/jobs-2-$framework
[ -e "$folder/complete" ] || make_environment "$framework"
echo "$folder/bin/python"

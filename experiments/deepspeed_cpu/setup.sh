#!/bin/sh
# Makes a virtual environment with real DeepSpeed from PyPI for a machine
# without a GPU. Prints its interpreter on stdout and everything else on stderr.
# usage: setup.sh [VERSION]      (default 0.19.8; tried with 0.19.8, 0.17.6,
#                                 0.16.9, 0.14.4; Linux, x86-64)
#
# The environment is under ${XDG_CACHE_HOME:-~/.cache}/krigtune: torch-2.15.0 of
# setup_torch.sh (once: 530 MB to download, 1.6 GB on disk) and, beside it,
# deepspeed-VERSION, which uses that torch. A second run takes no time; an
# interrupted one starts again. It needs ${PYTHON:-python3} (3.10 or newer), gcc,
# nm and readelf. Exit code 77: PyPI cannot be reached, or the connection breaks
# while torch is downloaded; 1: any other error.
# torch; 1: any other trouble.
set -eu

version=${1:-0.19.8}
here=$(cd "$(dirname "$0")" && pwd)
. "$here/setup_common.sh"
deepspeed=$cache/deepspeed-$version

# DeepSpeed would build a shared-memory extension (50 to 80 s, at the first
# launch) that training with gloo never calls.
without_shm_op() {
  sed -i 's/^def build_shm_op():$/&\n    return None/' "$1/deepspeed/comm/torch.py"
}

make_deepspeed() {
  say "DeepSpeed $version from PyPI into $deepspeed"
  ask_pypi
  rm -rf "$deepspeed"
  "$torch/bin/python" -m venv --without-pip "$deepspeed"
  site "$torch/bin/python" >"$(site "$deepspeed/bin/python")/torch.pth"
  if ! DS_BUILD_OPS=0 DS_ACCELERATOR=cpu pip --python "$deepspeed/bin/python" install --quiet --timeout 60 \
    --no-deps --no-build-isolation "deepspeed==$version"; then
    rm -rf "$deepspeed"
    fail "pip could not install deepspeed $version: see above (is it a version that PyPI has?)"
  fi
  without_shm_op "$(site "$deepspeed/bin/python")"
  "$here/write_torchrun.sh" "$deepspeed"
  DS_ACCELERATOR=cpu "$deepspeed/bin/python" -c 'import deepspeed' >/dev/null || fail "deepspeed $version does not load"
  touch "$deepspeed/complete"
}

lock_cache
"$here/setup_torch.sh" >/dev/null || exit $?
[ -e "$deepspeed/complete" ] || make_deepspeed
echo "$deepspeed/bin/python"

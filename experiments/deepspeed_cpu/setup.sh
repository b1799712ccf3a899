#!/bin/sh
# A virtual environment with real DeepSpeed from PyPI for a machine without a GPU; prints its interpreter, all else goes
# to stderr.  usage: setup.sh [VERSION]      (default 0.19.8; tried with 0.19.8, 0.17.6, 0.16.9, 0.14.4; Linux, x86-64)
#
# Lies under ${XDG_CACHE_HOME:-~/.cache}/krigtune: torch-2.15.0 (once: 530 MB to download, 1.6 GB on disk) and
# deepspeed-VERSION beside it, which sees that torch.  Runs again in no time; an interrupted one begins again.
# Takes ${PYTHON:-python3} (3.10 or newer), gcc, nm, readelf.  Exit code 77: PyPI is out of reach, or breaks off within
# torch; 1: any other trouble.
set -eu

version=${1:-0.19.8}
torch_version=2.15.0
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-${HOME:?is not set: name a folder for downloads by XDG_CACHE_HOME}/.cache}/krigtune
torch=$cache/torch-$torch_version
deepspeed=$cache/deepspeed-$version

say() { echo "setup.sh: $*" >&2; }
fail() { say "$*"; exit 1; }
site() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
pip() { "$torch/bin/python" -m pip --disable-pip-version-check "$@" >&2; }
install() { pip install --quiet --no-warn-conflicts "$@"; }

# A small package fetched for nothing: whatever fails afterwards is not for want of a connection.
ask_pypi() {
  if ! pip download --quiet --timeout 20 --retries 1 --no-deps --dest "$cache/probe" hjson 2>/dev/null; then
    say "PyPI is out of reach, so there is no DeepSpeed: set PIP_INDEX_URL to a mirror or go without"
    exit 77
  fi
  rm -rf "$cache/probe"
}

# torch's wheel loads CUDA's libraries at import though nothing here calls them: empty ones instead of 3 GB of packages.
make_torch() {
  say "torch $torch_version and what DeepSpeed needs from PyPI into $torch: 530 MB to download, a minute"
  rm -rf "$torch"
  "${PYTHON:-python3}" -m venv "$torch" || fail "${PYTHON:-python3} makes no virtual environment: install python3-venv"
  ask_pypi
  install --no-deps "torch==$torch_version" || { say "torch did not come: 530 MB over this connection?"; exit 77; }
  install numpy typing_extensions filelock sympy networkx jinja2 fsspec setuptools==80.9.0 wheel hjson ninja \
    py-cpuinfo psutil pydantic msgpack tqdm einops packaging tabulate || fail "pip could not install DeepSpeed's needs"
  "$torch/bin/python" "$here/empty_cuda_libs.py" "$(site "$torch")/torch/lib" || fail "no empty CUDA libraries"
  "$torch/bin/python" -c 'import torch' >&2 || fail "torch $torch_version does not load"
  touch "$torch/complete"
}

# DeepSpeed's own build of a shared-memory extension (50-80 s, at the first launch) that training on gloo never calls.
without_shm_op() {
  sed -i 's/^def build_shm_op():$/&\n    return None/' "$1/deepspeed/comm/torch.py"
}

make_deepspeed() {
  say "DeepSpeed $version from PyPI into $deepspeed"
  ask_pypi
  rm -rf "$deepspeed"
  "$torch/bin/python" -m venv --without-pip "$deepspeed"
  site "$torch" >"$(site "$deepspeed")/torch.pth"
  if ! DS_BUILD_OPS=0 DS_ACCELERATOR=cpu pip --python "$deepspeed/bin/python" install --quiet --timeout 60 \
    --no-deps --no-build-isolation "deepspeed==$version"; then
    rm -rf "$deepspeed"
    fail "pip could not install deepspeed $version: see above (is it a version that PyPI has?)"
  fi
  without_shm_op "$(site "$deepspeed")"
  "$here/write_torchrun.sh" "$deepspeed"
  DS_ACCELERATOR=cpu "$deepspeed/bin/python" -c 'import deepspeed' >/dev/null || fail "deepspeed $version does not load"
  touch "$deepspeed/complete"
}

mkdir -p "$cache"
exec 9>"$cache/deepspeed.lock"
flock 9 # two at a time would install into one another
[ -e "$torch/complete" ] || make_torch
[ -e "$deepspeed/complete" ] || make_deepspeed
echo "$deepspeed/bin/python"

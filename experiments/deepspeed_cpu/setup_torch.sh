#!/bin/sh
# Makes a virtual environment with PyTorch from PyPI for a machine without a
# GPU. Prints its interpreter on stdout and everything else on stderr.
# usage: setup_torch.sh      (torch 2.15.0; 530 MB to download, 1.6 GB on disk;
#                             Linux, x86-64)
#
# The environment is ${XDG_CACHE_HOME:-~/.cache}/krigtune/torch-2.15.0. A second
# run takes no time; an interrupted one starts again. It needs ${PYTHON:-python3}
# (3.10 or newer), gcc, nm and readelf. Exit code 77: PyPI cannot be reached, or
# the connection breaks while torch is downloaded; 1: any other error.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/setup_common.sh"

# torch's wheel loads CUDA's libraries at import although nothing here calls
# them. Empty libraries replace 3 GB of packages.
make_torch() {
  say "torch $torch_version and what DeepSpeed needs from PyPI into $torch: 530 MB to download, a minute"
  rm -rf "$torch"
  "${PYTHON:-python3}" -m venv "$torch" || fail "${PYTHON:-python3} makes no virtual environment: install python3-venv"
  ask_pypi
  install --no-deps "torch==$torch_version" || { say "torch did not come: 530 MB over this connection?"; exit 77; }
  install numpy typing_extensions filelock sympy networkx jinja2 fsspec setuptools==80.9.0 wheel hjson ninja \
    py-cpuinfo psutil pydantic msgpack tqdm einops packaging tabulate || fail "pip could not install torch's and DeepSpeed's needs"
  "$torch/bin/python" "$here/empty_cuda_libs.py" "$(site "$torch/bin/python")/torch/lib" || fail "no empty CUDA libraries"
  "$torch/bin/python" -c 'import torch' >&2 || fail "torch $torch_version does not load"
  touch "$torch/complete"
}

lock_cache
[ -e "$torch/complete" ] || make_torch
echo "$torch/bin/python"

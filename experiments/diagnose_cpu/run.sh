#!/usr/bin/env bash
# Four steps that are made slow on purpose on two CPU ranks: the verdicts, and
# what following the advice gains. It takes three minutes.
# usage: experiments/diagnose_cpu/run.sh [OUT_FOLDER]
#        (default: runs/diagnose_cpu; needs mpirun and python3)
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-runs/diagnose_cpu}
command -v mpirun >/dev/null || { echo "mpirun is missing: apt-get install openmpi-bin" >&2; exit 3; }
[ -x build/release/bin/krigtune-bench ] || cmake --preset release
ninja -C build/release programs >&2
python3 experiments/diagnose_cpu/cases.py build/release/bin "$out"

#!/bin/sh
# Makes a virtual environment with Optuna, BoTorch and SMAC (2 GB) and runs them
# on the spaces of experiments/search.
# usage: experiments/peers/run.sh ROWS.csv [build folder] [options of peers.py]
#        (default build/release)
# It takes an hour on one core. PYTHON names an interpreter that has torch,
# botorch, optuna, greenlet and smac; without it, python.sh makes one. Existing
# rows are kept, so it may be stopped and started again.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
rows=${1:?usage: run.sh ROWS.csv [build folder] [options of peers.py]}
build=${2:-$here/../../build/release}
[ $# -ge 2 ] && shift
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

PYTHON=$("$here/../python.sh" "$build" torch botorch optuna greenlet smac)
"$here/../search/spaces.py" "$work"
OMP_NUM_THREADS=1 nice "$PYTHON" "$here/peers.py" "$work" "$rows" "$@"

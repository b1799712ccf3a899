#!/bin/sh
# Times the same fit and suggestion here, in BoTorch and in Optuna, with one thread
# each, and prints the table of ratios.
# usage: experiments/surrogate_peers/run.sh ROWS.csv [build folder]
#        (default build/release)
# PYTHON names an interpreter that has torch, botorch, optuna and greenlet; without
# it, python.sh makes one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
rows=${1:?usage: run.sh ROWS.csv [build folder]}
build=${2:-$here/../../build/release}
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT

cmake --build "$build" --target peers_krigtune >&2
PYTHON=$("$here/../python.sh" "$build" torch botorch optuna greenlet)

"$PYTHON" "$here/peers.py" data "$data"
echo tool,task,n,candidates,seconds,error >"$rows"
# They alternate, so that a slow minute of the machine affects all of them.
for turn in 1 2 3; do
  "$build/bin/peers_krigtune" "$data" 100 5 >>"$rows"
  "$PYTHON" "$here/peers.py" optuna "$data" 100 --repetitions 3 >>"$rows"
  "$PYTHON" "$here/peers.py" botorch "$data" 100 >>"$rows"
  "$build/bin/peers_krigtune" "$data" 1000 1 >>"$rows"
done
"$PYTHON" "$here/peers.py" optuna "$data" 1000 >>"$rows"
"$PYTHON" "$here/peers.py" botorch "$data" 1000 >>"$rows"
"$PYTHON" "$here/peers.py" table "$rows"

#!/bin/sh
# All searches of this experiment: run.sh BUILD_DIR PYTHON [SEEDS]; PYTHON has Optuna 5.0 and torch.
# Writes one CSV a strategy into the current folder; summarise.py makes the tables of them.
set -e
build=$1
python=$2
seeds=${3:-30}
here=$(dirname "$0")
sanity="$build/bin/surrogate_sanity $here/expected_values.csv"
$sanity ours.csv ours 1 "$seeds"
$sanity ours_impute.csv ours-impute 1 "$seeds" hartmann3_failing
$sanity random.csv random 1 "$seeds"
"$python" "$here/optuna_peer.py" optuna.csv --seeds "$seeds"

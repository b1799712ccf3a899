#!/bin/sh
# Runs all searches of this experiment and prints their table. Writes one CSV per
# strategy and final.csv into FOLDER.
# usage: experiments/surrogate_sanity/run.sh FOLDER [seeds] [build folder]
#        (default 30, build/release)
# PYTHON names an interpreter that has Optuna 5, torch and greenlet; without it,
# python.sh makes one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?usage: run.sh FOLDER [seeds] [build folder]}
seeds=${2:-30}
build=${3:-$here/../../build/release}

cmake --build "$build" --target surrogate_sanity >&2
PYTHON=$("$here/../python.sh" "$build" optuna torch scipy greenlet)
mkdir -p "$folder"
search() {
  "$build/bin/surrogate_sanity" "$here/expected_values.csv" "$folder/$1.csv" "$2" 1 "$seeds" ${3:+"$3"}
}
search ours ours
search ours_impute ours-impute hartmann3_failing
search random random
"$PYTHON" "$here/optuna_peer.py" "$folder/optuna.csv" --seeds "$seeds"
"$PYTHON" "$here/summarise.py" "$folder/final.csv" "$folder/ours.csv" "$folder/ours_impute.csv" "$folder/random.csv" \
  "$folder/optuna.csv"

#!/bin/sh
# Searches spaces about which nothing is known in advance: the two tables of GPU
# kernels, and functions, with Optimizer and with `krigtune tune`.
# usage: experiments/strangers/run.sh FOLDER [seeds] [build folder]
#        (default 10, build/release)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?usage: run.sh FOLDER [seeds] [build folder]}
seeds=${2:-10}
build=${3:-$here/../../build/release}

cmake --build "$build" --target krigtune surrogate_sanity >&2
python3 "$here/sessions.py" "$folder"
for table in gemm conv; do
  "$build/bin/krigtune" compare "$folder/$table.json" --strategies bayes --seeds "$seeds" --out "$folder/$table"
done
"$build/bin/surrogate_sanity" "$here/../surrogate_sanity/expected_values.csv" "$folder/functions.csv" ours 1 "$seeds" \
  branin hartmann6 ackley4 mixed_ackley mixed_bowls
python3 "$here/tuned_functions.py" "$build/bin/krigtune" "$folder/tuned" --seeds "$seeds"
python3 "$here/summarise.py" "$folder"

#!/bin/sh
# Runs experiments/strangers and, for comparison, Optuna's GPSampler, BoTorch and
# SMAC on the same tables and functions.
# usage: experiments/peers/strangers.sh FOLDER [seeds] [build folder]
#        (default 10, build/release)
# It takes two hours on one core, most of them for BoTorch. PYTHON names an
# interpreter as for run.sh. Existing results are not computed again.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?usage: strangers.sh FOLDER [seeds] [build folder]}
seeds=${2:-10}
build=${3:-$here/../../build/release}

PYTHON=$("$here/../python.sh" "$build" torch scipy botorch optuna greenlet smac)
"$here/../strangers/run.sh" "$folder" "$seeds" "$build"
export OMP_NUM_THREADS=1
nice "$PYTHON" "$here/peers.py" "$folder" "$folder/peers.csv" --trials 60 --seeds 0 --slow-seeds "$seeds" \
  --tools "Optuna GPSampler;BoTorch;BoTorch, P(success);SMAC"
[ -e "$folder/optuna.csv" ] || nice "$PYTHON" "$here/../surrogate_sanity/optuna_peer.py" "$folder/optuna.csv" --seeds "$seeds" \
  --problems branin hartmann6 ackley4 mixed_bowls mixed_ackley
nice "$PYTHON" "$here/functions.py" "$folder/functions_peers.csv" --seeds "$seeds"
python3 "$here/../strangers/summarise.py" "$folder"

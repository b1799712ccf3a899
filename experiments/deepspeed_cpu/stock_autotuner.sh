#!/bin/sh
# Runs DeepSpeed's own autotuner on the job of this folder: its config with all
# ZeRO stages and a fixed global batch.
# usage: stock_autotuner.sh FOLDER [VERSION [train.py's flags...]]
#
# FOLDER gets ds_config.json (its input), results/summary.txt,
# results/ds_config_optimal.json, results/cmd_optimal.txt, log.txt, wall_s.txt
# (seconds), launches.txt (training jobs started) and throughput.csv (its
# measurements). Prints a short version of these.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?usage: stock_autotuner.sh FOLDER [VERSION [flags of train.py...]]}
version=${2:-0.19.8}
[ $# -lt 2 ] && shift $# || shift 2
mkdir -p "$folder"
cd "$folder"

python=$("$here/setup.sh" "$version")
PATH=$(dirname "$python"):$PATH # it starts "deepspeed" by name
export PATH DS_ACCELERATOR=cpu OMP_NUM_THREADS=1 TORCHDYNAMO_DISABLE=1
export LOCAL_SIZE=2 # the number of "devices" of this machine

# It keeps the global batch only as max_train_batch_size, and fails at its first
# run if the config determines the batch completely. Without a limit it tries
# micro-batches up to a thousand.
"$python" - "$here/ds_config.json" >ds_config.json <<'PROGRAM'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    config = json.load(file)
batch = config.pop("train_batch_size")
del config["train_micro_batch_size_per_gpu"], config["gradient_accumulation_steps"]
config["zero_optimization"] = {"stage": "all"}
config["autotuning"] = {
    "enabled": True, "fast": True, "metric": "throughput", "start_profile_step": 3, "end_profile_step": 6,
    "max_train_batch_size": batch, "max_train_micro_batch_size_per_gpu": batch // 2, "num_tuning_micro_batch_sizes": 3,
    "exps_dir": "exps", "results_dir": "results", "overwrite": True}
json.dump(config, sys.stdout, indent=2)
PROGRAM

begin=$(date +%s)
deepspeed --autotuning tune --num_nodes 1 --num_gpus 2 --master_port "${MASTER_PORT:-29500}" \
  "$here/train.py" --deepspeed --deepspeed_config ds_config.json "$@" >log.txt 2>&1 ||
  { echo "stock_autotuner.sh: the autotuner failed, see $PWD/log.txt" >&2; exit 1; }
echo $(($(date +%s) - begin)) >wall_s.txt
find results -name cmd.txt | wc -l >launches.txt
for metrics in results/*/metrics.json; do
  throughput=$(sed 's/.*"throughput": *\([0-9.e+-]*\).*/\1/' "$metrics")
  echo "$(basename "$(dirname "$metrics")"),$throughput"
done >throughput.csv
echo "$(cat wall_s.txt) s, $(cat launches.txt) launches"
cat results/summary.txt
cat results/ds_config_optimal.json

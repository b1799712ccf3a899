#!/usr/bin/env bash
# Runs DeepSpeed's own autotuner and krigtune, one after the other, on the job
# of this folder. Then it measures the configuration of each, and the user's own,
# in the same way and alternately.
# usage: head_to_head.sh [--rounds N] FOLDER [KRIGTUNE]
#
# krigtune gets ds_config.json unchanged and no option; the autotuner gets what
# stock_autotuner.sh says. FOLDER gets stock/ (see there), krigtune/ (the run
# directory), tuners.csv (wall and CPU seconds, launches), steps.csv (every
# measured step), summary.md and machine.txt (with the load). Prints the summary.
# It takes 10 minutes on two idle cores.
set -euo pipefail

rounds=5
if [[ ${1:-} == --rounds ]]; then
  rounds=$2
  shift 2
fi
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -ge 1 ]] || { echo "usage: head_to_head.sh [--rounds N] FOLDER [KRIGTUNE]" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
krigtune=$(realpath "${2:-$here/../../build/release/bin/krigtune}")
[[ -x $krigtune ]] || { echo "head_to_head.sh: there is no $krigtune: scripts/quickstart builds it" >&2; exit 1; }
for old in stock krigtune; do
  [[ ! -e $folder/$old ]] || { echo "head_to_head.sh: $folder/$old is there: name another folder" >&2; exit 1; }
done

python=$("$here/setup.sh")
PATH=$(dirname "$python"):$PATH
export PATH DS_ACCELERATOR=cpu OMP_NUM_THREADS=1 TORCHDYNAMO_DISABLE=1 LOCAL_SIZE=2 PYTHONDONTWRITEBYTECODE=1
MASTER_PORT=${MASTER_PORT:-29500}
export MASTER_PORT
cd "$here"

note() {
  printf '%s  %-10s load %s\n' "$(date -u +%FT%TZ)" "$1" "$(cut -d' ' -f1-3 /proc/loadavg)" |
    tee -a "$folder/machine.txt"
}

# timed NAME COMMAND... writes real, user and system seconds to
# FOLDER/NAME.time.
timed() {
  local name=$1 TIMEFORMAT='%R %U %S'
  shift
  note "$name"
  { time "$@" >"$folder/$name.log" 2>&1; } 2>"$folder/$name.time" ||
    { echo "head_to_head.sh: $name failed, see $folder/$name.log" >&2; exit 1; }
}

printf '%s, %s cores, DeepSpeed %s\n' "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" "$(nproc --all)" \
  "$("$python" -c 'import importlib.metadata as m; print(m.version("deepspeed"))')" >"$folder/machine.txt"
timed stock ./stock_autotuner.sh "$folder/stock"
timed krigtune "$krigtune" tune --deepspeed ds_config.json --out "$folder/krigtune" -- \
  deepspeed --num_gpus 2 --master_port "$MASTER_PORT" train.py --deepspeed --deepspeed_config ds_config.json
{
  echo "tuner,wall_s,cpu_s,launches"
  for tuner in stock krigtune; do
    launches=$(find "$folder/$tuner"* -name cmd.txt | wc -l)
    awk -v tuner=$tuner -v launches="$launches" '{printf "%s,%.0f,%.0f,%d\n", tuner, $1, $2 + $3, launches}' \
      "$folder/$tuner.time"
  done
} >"$folder/tuners.csv"
timed measure "$python" measure_configs.py --rounds "$rounds" "$folder/steps.csv" own=ds_config.json \
  stock="$folder/stock/results/ds_config_optimal.json" krigtune="$folder/krigtune/ds_config_optimal.json"
note end
"$python" summarize_head_to_head.py "$folder" | tee "$folder/summary.md"

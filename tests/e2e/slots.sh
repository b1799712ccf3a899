#!/bin/sh
# Trials of one, two, four and eight GPUs beside each other, on a machine whose
# eight GPUs a fake nvidia-smi reports. No two of them ever have the same GPU, slot or
# port, and each is told its own.
# usage: slots.sh KRIGTUNE
set -eu
krigtune=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/held"
cat >"$work/bin/nvidia-smi" <<'S'
#!/bin/sh
for i in 0 1 2 3 4 5 6 7; do echo "$i, GPU-0000000$i, 00000000:0$i:00.0"; done
S
# A trial that reserves what it was given, and fails if another trial has it.
cat >"$work/trial.sh" <<'S'
#!/bin/sh
set -eu
held=$1 tp=$2 gpus=$3 slot=$4 port=$5 result=$6
[ "$CUDA_VISIBLE_DEVICES" = "$gpus" ] && [ "$MASTER_PORT" = "$port" ] || { echo "not its own place" >&2; exit 1; }
[ "$(echo "$gpus" | tr ',' '\n' | wc -l)" = "$tp" ] || { echo "$gpus are not $tp" >&2; exit 1; }
case $TRITON_CACHE_DIR in */slots/$slot/triton) ;; *) echo "cache $TRITON_CACHE_DIR" >&2; exit 1 ;; esac
for thing in $(echo "$gpus" | tr ',' '\n' | sed 's/^/gpu/') "slot$slot" "port$port"; do
  mkdir "$held/$thing" || { echo "$thing is held by another" >&2; exit 1; }
done
sleep 0.3
for thing in $(echo "$gpus" | tr ',' '\n' | sed 's/^/gpu/') "slot$slot" "port$port"; do rmdir "$held/$thing"; done
echo "{\"throughput\": $tp.5}" >"$result"
S
chmod +x "$work/bin/nvidia-smi" "$work/trial.sh"
cat >"$work/session.json" <<S
{"space": {"tp": [1, 2, 4, 8], "x": {"min": 1, "max": 6}},
 "objective": {"metric": "throughput", "direction": "maximize"},
 "runner": {"kind": "command",
            "argv": ["$work/trial.sh", "$work/held", "{tp}", "{gpus}", "{slot}", "{port}", "{result}", "{x}"]},
 "executor": {"kind": "local", "slots": 8, "gpus_per_trial": "tp"},
 "budget": {"trials": 16, "regret": 0, "least_gain": 0}}
S
unset CUDA_VISIBLE_DEVICES || true
PATH="$work/bin:$PATH" "$krigtune" tune "$work/session.json" --out "$work/run" --strategy random >"$work/out" 2>"$work/err" ||
  { cat "$work/err"; exit 1; }
"$krigtune" results "$work/run" --format csv >"$work/results.csv"
# The sixteen trials of the budget, the baseline in eight slots, and the best
# alone: all are ok, each with as many GPUs as it requested.
awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i; next }
         $column["status"] != "ok" { print "trial " $1 ": " $column["status"]; bad = 1 }
         { ++count[$column["strategy"]] }
         END { if (count["baseline"] + count["random"] != 16) { print count["random"] " drawn"; bad = 1 }
               if (count["together"] != 8) { print count["together"] " together"; bad = 1 }
               if (count["alone"] < 1 || count["alone"] > 3) { print count["alone"] " alone"; bad = 1 }
               exit bad }' "$work/run/trials.csv" ||
  { cat "$work"/run/trials/*/stderr.log; exit 1; }
grep -q 'slot 0, GPUs\? [0-7]' "$work/run/trials.csv"
grep -q 'slot [1-7], GPU' "$work/run/trials.csv" || { echo "no two trials ran side by side"; exit 1; }
grep -q '"where": "slot' "$work/run/trials/"*/exit.json
grep -q 'slot 0' "$work/results.csv"
echo "16 trials of 1 to 8 GPUs beside each other"

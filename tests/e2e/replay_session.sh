#!/bin/bash
# usage: replay_session.sh KRIGTUNE SOURCE_DIR
# A session over one space of a measured table. The same seed gives the same
# trials.csv twice, except for the columns with times, and predict has a row for every
# configuration of the space.
set -euo pipefail
krigtune=$1
session=$2/experiments/vtrain/session.json
table=$2/experiments/data/vtrain_single_node.csv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

# Removes the columns named in $1 (separated by spaces); no field in these files
# is quoted.
without() {
  awk -F, -v names="$1" 'NR == 1 { split(names, list, " "); for (i in list) drop[list[i]] = 1
                                   for (i = 1; i <= NF; ++i) keep[i] = !($i in drop) }
                         { line = ""; for (i = 1; i <= NF; ++i) if (keep[i]) line = line "," $i; print line }' "$2"
}

for name in first second; do
  "$krigtune" tune "$session" --out "$work/$name" --seed 3 --full-budget >"$work/$name.out" 2>"$work/$name.err"
  without "suggest_s wall_s started_at" "$work/$name/trials.csv" >"$work/$name.csv"
done
diff "$work/first.csv" "$work/second.csv" || fail "the same seed gave other trials"
[ "$(wc -l <"$work/first/trials.csv")" -eq 14 ] || fail "13 trials were expected"
grep -q '^best ' "$work/first.out" || fail "the summary does not name the best"

header='trial,status,reason,strategy,tensor_parallel,pipeline_parallel,micro_batch,value,value_sem,step_time_s'
header+=',peak_memory_bytes,predicted_value,predicted_memory_bytes,exposed_comm_s,suggest_s,wall_s,started_at,where'
header+=',metric_latency'
[ "$(head -1 "$work/first/trials.csv")" = "$header" ] || fail "header of trials.csv"

"$krigtune" predict "$work/first" >"$work/predict.out" || fail "predict"
header='tensor_parallel,pipeline_parallel,micro_batch,mean,stddev,lower_95,upper_95,expected_improvement'
header+=',log_expected_improvement,probability_feasible,predicted_memory_bytes,memory_feasible,observed,status,median,rank'
[ "$(head -1 "$work/first/predictions.csv")" = "$header" ] || fail "header of predictions.csv"
# The size of the space, counted in the table itself: n_gpus, global_batch, micro_batch, hidden, layers, tp, pp.
rows=$(awk -F, '$2 == 8 && $3 == 16 && $5 == 2048 && $7 == 24 { print $4, $9, $11 }' "$table" | sort -u | wc -l)
[ "$rows" -ge 12 ] || fail "the space has $rows configurations"
[ "$(tail -n +2 "$work/first/predictions.csv" | wc -l)" -eq "$rows" ] || fail "predict does not cover the space"
echo "13 trials twice the same; $rows configurations predicted"

#!/bin/bash
# usage: vector_units.sh KRIGTUNE KRIGTUNE_BENCH
# KRIGTUNE_VECTOR_UNIT applies to both programs and to the trials that tune starts.
# Each unit of this processor trains with the same loss within rounding. A unit that
# the processor lacks, or that does not exist, is refused in one line.
set -euo pipefail
export LC_ALL=C  # awk and sort: numbers with a point
krigtune=$1
bench=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; tail -n 5 "$work"/*.err >&2; exit 1; }
unset KRIGTUNE_VECTOR_UNIT

cat >"$work/job.json" <<'JSON'
{"workload": {"model": {"layers": 1, "hidden": 32, "heads": 2, "vocab": 64, "seq_len": 8}, "train_batch_size": 4},
 "cluster": {"gpus_per_node": 2}, "configuration": {"zero_stage": 2}}
JSON
cat >"$work/session.json" <<'JSON'
{"workload": {"model": {"layers": 1, "hidden": 32, "heads": 2, "vocab": 64, "seq_len": 8}, "train_batch_size": 4},
 "cluster": {"gpus_per_node": 2}, "space": {"zero_stage": [0, 1]}, "baseline": {"zero_stage": 0},
 "runner": {"kind": "bench", "warmup_s": 0.01, "measure_s": 0.05}, "budget": {"trials": 1}, "memory": {"limit_gib": 1}}
JSON
# value FILE KEY prints a number or a word of krigtune-bench's document.
value() { sed -n "s/^  \"$2\": \"\{0,1\}\([^\",]*\).*/\1/p" "$1"; }

refuses() { # UNIT REASON PROGRAM...
  local unit=$1 reason=$2 code=0
  shift 2
  KRIGTUNE_VECTOR_UNIT=$unit "$@" >"$work/refused.out" 2>"$work/refused.err" || code=$?
  [ "$code" -eq 2 ] || fail "$1 with the unit $unit ends with code $code, not 2"
  [ "$(wc -l <"$work/refused.err")" -eq 1 ] || fail "$1 with the unit $unit does not say so in one line"
  grep -q "KRIGTUNE_VECTOR_UNIT is '$unit', $reason" "$work/refused.err" || fail "$1 with the unit $unit: another reason"
}
refused() { # UNIT REASON
  refuses "$1" "$2" "$krigtune" doctor
  refuses "$1" "$2" "$bench" --config "$work/job.json" --steps 2
}
refused sse9 'which is not a vector unit'

tried=()
for unit in plain avx2 avx512; do
  if ! KRIGTUNE_VECTOR_UNIT=$unit "$krigtune" doctor >"$work/doctor.out" 2>"$work/doctor.err"; then
    [ $unit != plain ] || fail "every processor has the plain unit"
    refused $unit 'which this processor does not have'
    continue
  fi
  grep -q "vector unit $unit\$" "$work/doctor.out" || fail "doctor does not name the unit $unit"
  tried+=("$unit")
  KRIGTUNE_VECTOR_UNIT=$unit "$bench" --config "$work/job.json" --steps 5 --json >"$work/$unit.json" 2>"$work/$unit.err" ||
    fail "krigtune-bench with the unit $unit"
  [ "$(value "$work/$unit.json" vector_unit)" = $unit ] || fail "krigtune-bench does not compute with $unit"
done
for unit in "${tried[@]}"; do
  awk -v a="$(value "$work/plain.json" loss_last)" -v b="$(value "$work/$unit.json" loss_last)" \
    'BEGIN { exit !(a > 0 && b > 0 && (a - b) ^ 2 <= (1e-5 * a) ^ 2) }' || fail "the loss with $unit is another one"
done
"$bench" --config "$work/job.json" --steps 2 --json >"$work/best.json" 2>"$work/best.err" || fail "krigtune-bench"
[ "$(value "$work/best.json" vector_unit)" = "${tried[-1]}" ] || fail "${tried[-1]} is the best one, and was not taken"

KRIGTUNE_VECTOR_UNIT=plain "$krigtune" tune "$work/session.json" --out "$work/run" >"$work/tune.out" 2>"$work/tune.err" ||
  fail "tune with the plain unit"
[ "$(value "$(echo "$work"/run/trials/0000*/result.json)" vector_unit)" = plain ] || fail "a trial takes another unit"
echo "trained with ${tried[*]}"

#!/bin/bash
# usage: kill_resume.sh KRIGTUNE
# A session that is killed with -9 in the middle and started again loses no finished
# trial and repeats none.
set -euo pipefail
krigtune=$1
work=$(mktemp -d)
child=
cleanup() {
  if [ -n "$child" ]; then kill -9 "$child" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap cleanup EXIT
fail() { echo "FAILED: $*" >&2; cat "$work"/*.err >&2; exit 1; }

cat >"$work/session.json" <<'JSON'
{
  "workload": {"model": {"layers": 1, "hidden": 32, "heads": 2, "vocab": 64, "seq_len": 8}, "train_batch_size": 8},
  "cluster": {"gpus_per_node": 2},
  "space": {"zero_stage": [0, 1, 2, 3], "micro_batch": [1, 2, 4], "reduce_bucket_size": [2000, 8000], "overlap_comm": [true, false]},
  "baseline": {"zero_stage": 0, "micro_batch": 1},
  "memory": {"limit_gib": 1},
  "runner": {"kind": "bench", "warmup_s": 0.05, "measure_s": 0.2, "timeout_s": 60},
  "budget": {"trials": 9, "regret": 0, "least_gain": 0}
}
JSON

command=("$krigtune" tune "$work/session.json" --out "$work/run" --strategy random --seed 4)
# Prints the rows of closed trials that were not interrupted.
finished() { if [ -f "$work/run/trials.csv" ]; then awk -F, 'NR > 1 && $3 != "interrupted"' "$work/run/trials.csv"; fi; }

kills=0
for target in 2 5; do
  "${command[@]}" >"$work/tune.out" 2>"$work/tune.err" &
  child=$!
  for _ in $(seq 2400); do
    [ "$(finished | wc -l)" -ge "$target" ] && break
    kill -0 "$child" 2>/dev/null || fail "krigtune ended by itself"
    sleep 0.05
  done
  # In the middle of a trial, the journal has begun more trials (op_code 4) than
  # it has closed (op_code 6).
  for _ in $(seq 2400); do
    begun=$(grep -c '"op_code": *4' "$work/run/journal.log" || true)
    closed=$(grep -c '"op_code": *6' "$work/run/journal.log" || true)
    [ "$begun" -gt "$closed" ] && break
    sleep 0.01
  done
  kill -9 "$child"
  wait "$child" 2>/dev/null || true
  child=
  kills=$((kills + 1))
  finished >"$work/before.$target"
  [ "$(wc -l <"$work/before.$target")" -ge "$target" ] || fail "only $(wc -l <"$work/before.$target") trials before the kill"
done

"${command[@]}" >"$work/tune.out" 2>"$work/tune.err" || fail "the session did not end well"
finished >"$work/after"
[ "$(wc -l <"$work/after")" -eq 9 ] || fail "9 trials were expected, there are $(wc -l <"$work/after")"
for target in 2 5; do
  while read -r row; do
    grep -qxF -- "$row" "$work/after" || fail "lost: $row"
  done <"$work/before.$target"
done
# Columns 5 to 8 are the parameters.
repeated=$(cut -d, -f5-8 "$work/after" | sort | uniq -d)
[ -z "$repeated" ] || fail "repeated: $repeated"
[ "$(cut -d, -f1 "$work/after" | sort | uniq -d | wc -l)" -eq 0 ] || fail "a trial number stands twice"
echo "killed $kills times, 9 trials, none lost, none repeated"

#!/bin/bash
# usage: odd_files.sh KRIGTUNE KRIGTUNE_BENCH PART
#   PART bench: krigtune-bench with useless files and variables.
#   PART file_size_limit: a session that exceeds its limit of file size (ulimit -f)
#     exits with 3, keeps whole lines, leaves no lock, and can be continued.
#   PART fresh: of several `tune --fresh` at the same moment no two share a
#     directory.
set -uo pipefail
krigtune=$1
bench=$2
part=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; cat "$work"/*.err >&2; exit 1; }

# refused EXIT_CODE TEXT COMMAND...: the command exits with that code, prints
# the text in one line, and ends soon.
refused() {
  local code=$1 text=$2
  shift 2
  timeout 60 "$@" >"$work/out" 2>"$work/last.err" </dev/null
  local got=$?
  [ "$got" -eq "$code" ] || fail "exit code $got instead of $code: $*"
  grep -qF -- "$text" "$work/last.err" || fail "'$text' is not said by $*"
  [ "$(wc -l <"$work/last.err")" -eq 1 ] || fail "more than one line from $*"
}

part_bench() {
  mkfifo "$work/pipe"
  cat >"$work/c.json" <<'JSON'
{"workload": {"model": {"layers": 1, "hidden": 32, "heads": 2, "vocab": 64, "seq_len": 8}}, "cluster": {"gpus_per_node": 1},
 "memory": {"limit_gib": 1}, "configuration": {"zero_stage": 0, "micro_batch": 2}}
JSON
  local run=("$bench" --device cpu --config "$work/c.json" --json --steps 4)
  for path in "$work/pipe" /dev/zero "$work"; do refused 2 "cannot read '$path'" "$bench" --device cpu --config "$path" --json; done
  for limit in inf nan -1 0 1e300; do refused 2 "--memory-limit must be above 0" "${run[@]}" --memory-limit="$limit"; done
  for limit in inf nan -1; do refused 2 "--warmup-s must be a finite number" "${run[@]}" --warmup-s="$limit"; done
  for port in 99999999 0 x -1; do
    refused 2 "the variable MASTER_PORT is" env RANK=0 WORLD_SIZE=2 MASTER_PORT="$port" "${run[@]}"
  done
  refused 2 "the variable MASTER_PORT is" env RANK=1 WORLD_SIZE=2 MASTER_PORT=65536 "${run[@]}"
  refused 2 "WORLD_SIZE is 2000000000" env RANK=0 WORLD_SIZE=2000000000 "${run[@]}"
  refused 2 "RANK is 7, but WORLD_SIZE is 2" env RANK=7 WORLD_SIZE=2 "${run[@]}"
  refused 3 "cannot listen at" env RANK=0 WORLD_SIZE=2 MASTER_ADDR=192.0.2.1 "${run[@]}"
  refused 3 "cannot write '/dev/full': No space left on device" "${run[@]}" --heartbeat /dev/full
  # The measurement is printed anyway.
  refused 3 "cannot write '/dev/full': No space left on device" "${run[@]}" --trace /dev/full
  grep -q '"step_time_s": *[0-9.e-]*[1-9]' "$work/out" || fail "the measurement is lost with the trace"
  grep -q '"status": *"ok"' "$work/out" || fail "the measurement is lost with the trace"
  [ -c /dev/full ] || fail "/dev/full is not a device any more"
  "${run[@]}" --trace /dev/null >"$work/out" 2>"$work/last.err" || fail "a trace into /dev/null"
  [ -c /dev/null ] || fail "/dev/null is not a device any more"
  "${run[@]}" --heartbeat "$work/link" >"$work/out" 2>"$work/last.err" || fail "heartbeats into a file"
  ln -s "$work/c.json" "$work/planted"
  refused 3 "Too many levels of symbolic links" "${run[@]}" --heartbeat "$work/planted"
}

session() {
  cat >"$work/s.json" <<'JSON'
{"space": {"a": {"min": 1, "max": 400}}, "objective": {"metric": "v", "direction": "maximize"}, "baseline": null,
 "runner": {"kind": "command", "argv": ["./own", "{config}", "{result}"]}, "budget": {"trials": 40, "regret": 0, "least_gain": 0}}
JSON
  printf '#!/bin/bash\necho "{\\"v\\": 1.5}" >"$2"\n' >"$work/own"
  chmod +x "$work/own"
}

part_file_size_limit() {
  session
  local tune=("$krigtune" tune "$work/s.json" --out "$work/run" --strategy random --seed 3 --full-budget)
  (ulimit -f 12; exec "${tune[@]}") >"$work/out" 2>"$work/first.err"  # 12 KiB
  local code=$?
  [ "$code" -eq 3 ] || fail "exit code $code instead of 3"
  grep -q "File too large" "$work/first.err" || fail "the reason is not said"
  [ "$(tail -c 1 "$work/run/journal.log" | od -An -tx1)" = " 0a" ] || fail "the journal ends in the middle of a line"
  [ ! -L "$work/run/journal.log.lock" ] && [ ! -e "$work/run/journal.log.lock" ] || fail "a lock stays"
  local ends_before
  ends_before=$(grep -c '"op_code": *6' "$work/run/journal.log")
  [ "$ends_before" -ge 1 ] || fail "no trial was closed before the limit"
  "${tune[@]}" >"$work/out" 2>"$work/second.err" || fail "it does not go on"
  [ "$(awk -F, 'NR > 1 && $2 == "ok"' "$work/run/trials.csv" | wc -l)" -eq 40 ] || fail "not 40 trials are ok"
  # No closed trial is closed again.
  local closed
  closed=$(grep -o '"op_code": *6[^}]*"trial_id": *[0-9]*' "$work/run/journal.log" | grep -o '"trial_id": *[0-9]*' | sort | uniq -d | wc -l)
  [ "$closed" -eq 0 ] || fail "$closed trials are closed twice"
}

part_fresh() {
  session
  sed -i 's/"trials": 40/"trials": 3/' "$work/s.json"
  local tune=("$krigtune" tune "$work/s.json" --out "$work/run" --strategy random --full-budget)
  "${tune[@]}" >"$work/out" 2>"$work/last.err" || fail "the first run"
  local runs=1
  for round in $(seq 12); do
    local pids=()
    for i in 1 2 3; do
      "${tune[@]}" --fresh --seed "$round$i" >"$work/$i.out" 2>"$work/$i.err" &
      pids+=($!)
    done
    local ended=0
    for i in 0 1 2; do
      wait "${pids[$i]}"
      local code=$?
      if [ "$code" -eq 0 ]; then ended=$((ended + 1)); fi
      [ "$code" -eq 0 ] || [ "$code" -eq 2 ] || fail "exit code $code of --fresh beside another"
    done
    [ "$ended" -ge 1 ] || fail "nobody ran in round $round"
    runs=$((runs + ended))
  done
  # Each run that ended well has its own directory, with its trials and no
  # others.
  local directories=0
  for directory in "$work"/run "$work"/run.*; do
    local rows
    rows=$(awk -F, 'NR > 1 && $2 == "ok"' "$directory/trials.csv" 2>/dev/null | wc -l)
    [ "$(grep -c '"op_code": *0' "$directory/journal.log")" -le 1 ] || fail "$directory holds two studies"
    [ "$rows" -le 3 ] || fail "$directory holds $rows trials: of two runs"
    if [ "$rows" -eq 3 ]; then directories=$((directories + 1)); fi
  done
  [ "$directories" -eq "$runs" ] || fail "$runs runs ended well, and $directories directories hold one"
}

"part_$part"

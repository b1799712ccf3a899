#!/bin/bash
# usage: kill_random.sh KRIGTUNE [KILLS=20]
# Sessions whose trials run a user's program are killed with -9 at random moments.
# After each kill the same command is given again. No finished trial may be lost,
# changed or repeated, and no process may remain: the program of each trial starts
# another one in the background that would outlive all of them. When a session ends,
# the next one begins; the strategies alternate.
set -euo pipefail
export LC_ALL=C  # awk and sort: numbers with a point
krigtune=$1
kills=${2:-20}
budget=30
RANDOM=1

work=$(mktemp -d)
run=$work/run
child=
cleanup() {
  if [ -n "$child" ]; then kill -9 "$child" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap cleanup EXIT
fail() {
  echo "FAILED (session $session, after $killed kills): $*" >&2
  cat "$work/tune.err" >&2
  if [ -n "${KEEP:-}" ]; then cp -r "$work" "$KEEP"; fi
  exit 1
}

cat >"$work/session.json" <<JSON
{
  "space": {
    "x": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19],
    "y": {"min": 1, "max": 64, "scale": "log2"},
    "z": {"min": 1, "max": 4, "when": "y >= 8"}
  },
  "baseline": null,
  "objective": {"metric": "speed", "direction": "maximize"},
  "runner": {"kind": "command", "argv": ["/bin/sh", "$work/trial.sh", "{config}", "{result}", "$run"], "timeout_s": 60},
  "budget": {"trials": $budget, "regret": 0, "least_gain": 0}
}
JSON
# Some configurations fail, and some run out of memory. The sleepers have the
# name of the run in their environment, so that remaining ones can be found.
cat >"$work/trial.sh" <<'SH'
number() { awk -v name="\"$1\"" 'BEGIN { RS = "[{,}]"; FS = ":" } $1 ~ name { print $2 + 0 }' "$config"; }
config=$1 result=$2 KILL_RANDOM_RUN=$3
export KILL_RANDOM_RUN
sleep 1000 &
x=$(number x) y=$(number y)
sleep 0.03
[ "$x" -ne 7 ] || exit 3
if [ "$y" -eq 64 ]; then
  echo '{"status": "oom"}' >"$result"
else
  awk -v x="$x" -v y="$y" 'BEGIN { printf "{\"speed\": %.6f}\n", 100 - (x - 12) ^ 2 / 10 + log(y) }' >"$result"
fi
SH
# The pattern is in a file, so that the search does not find itself.
echo "$run" >"$work/pattern"

left_processes() { grep -lsaF -f "$work/pattern" /proc/[0-9]*/environ /proc/[0-9]*/cmdline || true; }
expect_no_process_left() {
  local _
  for _ in $(seq 100); do
    [ -n "$(left_processes)" ] || return 0
    sleep 0.05
  done
  local file
  for file in $(left_processes); do
    echo "$file: $(tr '\0' ' ' <"${file%/*}/cmdline")" >&2
  done
  fail "these processes are left"
}

# Prints the rows of closed trials that were not interrupted, up to started_at:
# columns of metrics appear with the first successful trial.
finished() {
  if [ -f "$run/trials.csv" ]; then awk -F, 'NR > 1 && $3 != "interrupted"' "$run/trials.csv" | cut -d, -f1-17; fi
}
journal_size() { stat -c %s "$run/journal.log" 2>/dev/null || echo 0; }
# Prints the journal's whole lines. The next append removes a torn one.
journal_lines() {
  [ -f "$run/journal.log" ] || return 0
  if [ "$(tail -c 1 "$run/journal.log" | wc -l)" -eq 1 ]; then cat "$run/journal.log"; else sed '$d' "$run/journal.log"; fi
}

# Everything that existed before must remain: every line of the journal, every
# row of trials.csv.
expect_all_kept() {
  local row
  journal_lines >"$work/journal.now"
  cmp -s -n "$(stat -c %s "$work/journal.before")" "$work/journal.before" "$work/journal.now" ||
    fail "the journal does not begin as it did"
  finished >"$work/rows.now"
  while read -r row; do
    grep -qxF -- "$row" "$work/rows.now" || fail "lost or changed: $row"
  done <"$work/rows.before"
  mv "$work/journal.now" "$work/journal.before"
  mv "$work/rows.now" "$work/rows.before"
}

expect_a_whole_session() {
  local begun closed repeated
  [ "$(wc -l <"$work/rows.before")" -eq "$budget" ] || fail "$budget trials were expected, not $(wc -l <"$work/rows.before")"
  begun=$(grep -c '"op_code":4,' "$run/journal.log")
  closed=$(sed -n 's/^{"op_code":6,.*"trial_id":\([0-9]*\),.*/\1/p' "$run/journal.log" | sort -n)
  [ "$closed" = "$(seq 0 $((begun - 1)))" ] || fail "not every trial is closed, once: $begun begun, closed: ${closed//$'\n'/ }"
  [ "$(wc -l <"$run/trials.csv")" -eq $((begun + 1)) ] || fail "trials.csv has not all of the $begun trials"
  repeated=$(cut -d, -f5-7 "$work/rows.before" | sort | uniq -d)
  [ -z "$repeated" ] || fail "measured twice: $repeated"
  if [ -L "$run/journal.log.lock" ]; then fail "a lock is left"; fi
  interrupted=$((interrupted + begun - budget))
  if ! /usr/bin/python3 -c 'import optuna' 2>/dev/null; then return; fi
  /usr/bin/python3 - "$run/journal.log" "$begun" <<'PY' || fail "Optuna reads something else"
import sys, warnings
warnings.simplefilter("ignore")
import optuna
try:
    from optuna.storages.journal import JournalFileBackend as JournalFile
except ImportError:
    from optuna.storages import JournalFileStorage as JournalFile
storage = optuna.storages.JournalStorage(JournalFile(sys.argv[1]))
trials = optuna.load_study(study_name="krigtune", storage=storage).trials
assert len(trials) == int(sys.argv[2]), len(trials)
assert all(trial.state.is_finished() for trial in trials)
PY
}

# Kills the running tuner: every second time at any moment after its start,
# otherwise after the journal has grown, so that a slow machine is also killed
# during trials. Returns false if the tuner has ended by itself.
kill_at_random() {
  local size_before=$1 _
  if [ $((RANDOM % 2)) -eq 0 ]; then
    for _ in $(seq 1000); do
      [ "$(journal_size)" -eq "$size_before" ] || break
      kill -0 "$child" 2>/dev/null || return 1
      sleep 0.01
    done
    [ "$(journal_size)" -ne "$size_before" ] || fail "nothing happens: does it wait for the lock of the dead one?"
  fi
  sleep "$(printf '0.%03d' $((RANDOM % 250)))"
  kill -9 "$child" 2>/dev/null
}

killed=0
session=0
interrupted=0
until [ "$killed" -eq "$kills" ] && [ "$session" -gt 0 ]; do
  session=$((session + 1))
  rm -rf "$run"
  : >"$work/journal.before"
  : >"$work/rows.before"
  strategy=random
  if [ $((session % 2)) -eq 0 ]; then strategy=bayes; fi
  command=("$krigtune" tune "$work/session.json" --out "$run" --strategy "$strategy" --seed "$session")
  while true; do
    size=$(journal_size)
    "${command[@]}" >"$work/tune.out" 2>"$work/tune.err" &
    child=$!
    was_killed=
    if [ "$killed" -lt "$kills" ] && kill_at_random "$size"; then was_killed=yes; fi
    code=0
    wait "$child" 2>/dev/null || code=$?
    child=
    expect_no_process_left
    expect_all_kept
    if [ "$code" -eq 137 ] && [ -n "$was_killed" ]; then
      killed=$((killed + 1))
      continue
    fi
    [ "$code" -eq 0 ] || fail "it ended with $code"
    break
  done
  expect_a_whole_session
done
echo "killed $killed times in $session sessions of $budget trials: none lost, none measured twice, $interrupted interrupted"

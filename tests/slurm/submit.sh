#!/bin/bash
# usage: submit.sh KRIGTUNE [KILLS=4]
# Tests trials as Slurm jobs of their own: a session, tuners that are killed with -9 and started again, Ctrl-C, two
# tuners.
set -euo pipefail
krigtune=$1
kills=${2:-4}
. "$(dirname "$0")/common.sh"
RANDOM=5

begin "doctor"
"$krigtune" doctor >"$work/doctor.out" || fail "doctor: exit code $?"
grep -q 'Slurm .*; gpu\* (4 of 4 nodes, gpu:h100:8, no time limit), low .*; no accounting$' "$work/doctor.out" ||
  fail "doctor: $(grep -A1 Slurm "$work/doctor.out")"
grep -q 'each trial is a job in the partition gpu' "$work/doctor.out" || fail "doctor does not say what would be done"

begin "a session"
write_session "$work/plain.json" 8 0.3
tune "$work/plain.json" "$work/plain"
[ $rc -eq 0 ] || fail "exit code $rc"
expect_whole "$work/plain" 8
grep -qr '"where": "n[1-4], job [0-9]' "$work/plain/trials" || fail "exit.json does not say where"

begin "tuners killed with -9"
# Kills the tuner at a random moment after its start, every other time after a job has begun to run. If a session ends
# before that, the next one begins.
killed=0
sessions=0
while [ $killed -lt "$kills" ]; do
  run=$work/killed$sessions
  [ -f "$run.json" ] || write_session "$run.json" 24 0.6 '"max_queued": 4'
  start_tune "$run.json" "$run"
  if [ $((killed % 2)) -eq 0 ]; then
    wait_for 20 eval 'some_job_is running || ! kill -0 $tuner'
  fi
  sleep "$(printf '%d.%03d' $((RANDOM % 2)) $((RANDOM % 1000)))"
  if kill -9 "$tuner" 2>/dev/null; then killed=$((killed + 1)); fi
  wait_tune
  if [ $rc -eq 0 ]; then # the session had ended
    expect_whole "$run" 24
    sessions=$((sessions + 1))
  fi
done
run=$work/killed$sessions
if [ -f "$run.json" ]; then
  tune "$run.json" "$run"
  [ $rc -eq 0 ] || fail "exit code $rc"
  expect_whole "$run" 24
  sessions=$((sessions + 1))
fi
echo "   $killed kills in $sessions sessions; run again as lost: $(cat "$work"/killed*.err | grep -c 'is run again' || true)"

begin "jobs end while nobody looks"
write_session "$work/alone.json" 8 1
start_tune "$work/alone.json" "$work/alone"
wait_for 20 some_job_is running
sleep 0.3
kill -9 "$tuner"
wait "$tuner" 2>/dev/null || true
tuner=
wait_for 20 no_job_is_left
tune "$work/alone.json" "$work/alone"
[ $rc -eq 0 ] || fail "exit code $rc"
expect_whole "$work/alone" 8

begin "SIGTERM ends the tuner and leaves the jobs"
write_session "$work/term.json" 6 2
start_tune "$work/term.json" "$work/term"
wait_for 20 eval '[ "$(jobs_in_state running)" -eq 6 ]'
kill -TERM "$tuner"
wait_tune
[ $rc -eq 130 ] || fail "exit code $rc, not 130"
grep -q 'submitted jobs continue, and this command collects their results: ' "$work/term.err" || fail "nobody said what goes on"
[ "$(jobs_in_state running)" -eq 6 ] || fail "jobs were ended"
tune "$work/term.json" "$work/term"
[ $rc -eq 0 ] || fail "exit code $rc"
expect_whole "$work/term" 6
[ "$(ls "$work/runs" | grep -c '^term\..*begun')" -eq 6 ] || fail "more trials were begun than there are"

begin "Ctrl-C takes back what waits, a second one ends what runs"
# Six jobs need 48 GPUs, and there are 32, so that the last two wait.
write_session "$work/stop.json" 20 30 '"max_queued": 6' '{"nodes": 1, "gpus_per_node": 8, "gpu": "h100-80gb"}'
start_tune "$work/stop.json" "$work/stop"
wait_for 20 eval '[ "$(jobs_in_state running)" -eq 4 ] && [ "$(jobs_in_state pending)" -eq 2 ]'
kill -INT "$tuner"
wait_for 20 eval '[ "$(jobs_in_state pending)" -eq 0 ]'
[ "$(jobs_in_state running)" -eq 4 ] || fail "the first Ctrl-C ended jobs that ran"
kill -INT "$tuner"
wait_tune
[ $rc -eq 130 ] || fail "exit code $rc, not 130"
wait_for 15 no_job_is_left

begin "two tuners: one directory, then two"
write_session "$work/first.json" 6 0.5
write_session "$work/second.json" 6 0.5
start_tune "$work/first.json" "$work/first"
wait_for 20 some_job_is running
cp "$work/first.out" "$work/saved.out"
rc=0
"$krigtune" tune "$work/first.json" --out "$work/first" --strategy random --seed 4 >"$work/refused.out" 2>"$work/refused.err" || rc=$?
[ $rc -eq 2 ] || fail "the second tuner of a directory: exit code $rc"
grep -q 'another krigtune tune is running there' "$work/refused.err" || fail "the second tuner was not told why"
first=$tuner
start_tune "$work/second.json" "$work/second"
wait_tune
[ $rc -eq 0 ] || fail "the second directory: exit code $rc"
tuner=$first
wait_tune
[ $rc -eq 0 ] || fail "the first directory: exit code $rc"
expect_whole "$work/first" 6
expect_whole "$work/second" 6
echo "all of it held"

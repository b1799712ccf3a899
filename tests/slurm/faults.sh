#!/bin/bash
# usage: faults.sh KRIGTUNE [PART...]
# Tests what a cluster does to jobs: refusals, limits, failed nodes, preemption,
# an administrator, a controller that restarts.
set -euo pipefail
krigtune=$1
. "$(dirname "$0")/common.sh"
fixture=$here/fixture.sh

shift

refuse() { # NAME SBATCH-KEYS WORDS...
  local name=$1 keys=$2 word
  shift 2
  write_session "$work/$name.json" 3 0.1 "\"sbatch\": {$keys}"
  tune "$work/$name.json" "$work/$name"
  [ $rc -eq 2 ] || fail "$name: exit code $rc, not 2"
  [ "$(grep -c '^krigtune: ' "$work/$name.err")" -eq 1 ] || fail "$name: not one line of complaint"
  for word in "$@"; do grep -qF -- "$word" "$work/$name.err" || fail "$name: no word of '$word'"; done
  [ ! -e "$work/$name/journal.log" ] || fail "$name: something was begun"
}

refusals() {
  begin "sbatch refuses"
  refuse partition '"partition": "nosuch"' "nvalid partition" 'sinfo -o %P'
  refuse gres '"gres": "gpu:9"' "node configuration is not available" 'sinfo -N'
  refuse constraint '"constraint": "nosuch"' "nvalid feature" '"constraint"'
  refuse limit '"partition": "short", "time": "10"' "time limit is invalid" '"time"'
  refuse account '"partition": "closed"' "nvalid account" '"account"'
  refuse option '"extra": ["--nonsense"]' "unrecognized option" '"extra"'
}

limits() {
  begin "the time limit of a trial, and Slurm's own"
  cat >"$work/behave" <<'SH'
[ "$x" -lt 10 ] || sleep 100
SH
  timeout_s=2 write_session "$work/slow.json" 5 0.2
  tune "$work/slow.json" "$work/slow" --keep-going
  [ $rc -eq 0 ] || fail "exit code $rc"
  grep -q 'failed (timeout)' "$work/slow.err" || fail "no trial ran into its limit: $(states "$work/slow")"
  wait_for 15 no_job_is_left
}

administrator() {
  begin "an administrator cancels a job"
  rm -f "$work/behave"
  write_session "$work/admin.json" 6 1.5
  start_tune "$work/admin.json" "$work/admin"
  wait_for 20 some_job_is running
  victim=$(squeue -h -t running -o %i | head -n 1)
  scancel "$victim"
  wait_tune
  [ $rc -eq 0 ] || fail "exit code $rc"
  expect_whole "$work/admin" 6
  grep -q "job $victim on n[1-4] (CANCELLED) was cancelled, not by krigtune" "$work/admin.err" || fail "nobody heard of it"
}

failed_node() {
  begin "a node fails, and returns"
  write_session "$work/node.json" 8 3
  start_tune "$work/node.json" "$work/node"
  wait_for 20 eval '[ -n "$(squeue -h -t running -w n1 -o %i)" ]'
  victim=$(squeue -h -t running -w n1 -o %i | head -n 1)
  "$fixture" kill-node 1
  wait_for 60 grep -q "job $victim .*n1.*: a node failed" "$work/node.err"
  "$fixture" start-node 1
  wait_tune
  [ $rc -eq 0 ] || fail "exit code $rc"
  expect_whole "$work/node" 8
  wait_for 20 eval 'scontrol -o show node n1 | grep -q "State=IDLE "'
}

drained_node() {
  begin "a node is drained"
  scontrol update NodeName=n2 State=DRAIN Reason=test
  write_session "$work/drain.json" 6 0.3
  tune "$work/drain.json" "$work/drain"
  [ $rc -eq 0 ] || fail "exit code $rc"
  expect_whole "$work/drain" 6
  ! grep -qr '"where": "n2,' "$work/drain/trials" || fail "a trial ran on the drained node"
  scontrol update NodeName=n2 State=RESUME
}

preemption() {
  begin "preemption"
  write_session "$work/low.json" 5 3 '"sbatch": {"partition": "low"}, "max_queued": 4' \
    '{"nodes": 1, "gpus_per_node": 8, "gpu": "h100-80gb"}'
  start_tune "$work/low.json" "$work/low"
  wait_for 20 eval '[ "$(jobs_in_state running)" -eq 4 ]'
  sbatch -p high -N 2 --gres=gpu:8 -J urgent -o /dev/null --wrap "sleep 2" >/dev/null
  wait_tune
  [ $rc -eq 0 ] || fail "exit code $rc"
  grep -q "preempted" "$work/low.err" || fail "nobody heard of the preemption"
  expect_whole "$work/low" 5
}

requeue() {
  begin "preemption, and Slurm runs the job again"
  write_session "$work/again.json" 4 2 '"sbatch": {"partition": "low", "extra": ["--requeue"]}, "max_queued": 4' \
    '{"nodes": 1, "gpus_per_node": 8, "gpu": "h100-80gb"}'
  start_tune "$work/again.json" "$work/again"
  wait_for 20 eval '[ "$(jobs_in_state running)" -eq 4 ]'
  sbatch -p high -N 1 --gres=gpu:8 -J urgent -o /dev/null --wrap "sleep 1" >/dev/null
  wait_for 20 eval 'squeue -h -t pending -o "%j %r" | grep -q "^krigtune.*BeginTime"'
  requeued=$(squeue -h -t pending -o "%i %j" | awk '/krigtune/ { print $1; exit }')
  scontrol update JobId="$requeued" StartTime=now # otherwise it waits for two minutes
  wait_tune
  [ $rc -eq 0 ] || fail "exit code $rc"
  expect_whole "$work/again" 4
}

controller() {
  begin "the controller restarts"
  write_session "$work/controller.json" 8 1
  start_tune "$work/controller.json" "$work/controller"
  wait_for 20 some_job_is running
  "$fixture" stop-controller
  sleep 4
  "$fixture" start-controller
  wait_tune
  [ $rc -eq 0 ] || fail "exit code $rc"
  wait_for 90 no_job_is_left
  expect_whole "$work/controller" 8
}

waiting() {
  begin "a job that never starts, and one that waits too long"
  write_session "$work/held.json" 3 0.1 '"sbatch": {"extra": ["--hold"]}'
  tune "$work/held.json" "$work/held"
  [ $rc -eq 3 ] || fail "held: exit code $rc"
  grep -q "can never start: JobHeldUser" "$work/held.err" || fail "held: nobody says why"
  write_session "$work/waits.json" 3 0.1 '"pending_limit_s": 2, "sbatch": {"extra": ["--begin=now+1hour"]}'
  tune "$work/waits.json" "$work/waits"
  [ $rc -eq 3 ] || fail "waits: exit code $rc"
  grep -q "waited for [0-9]* s and was cancelled: BeginTime" "$work/waits.err" || fail "waits: nobody says why"
  wait_for 15 no_job_is_left
}

if [ $# -eq 0 ]; then set -- refusals limits administrator failed_node drained_node preemption requeue controller waiting; fi
for one in "$@"; do "$one"; done
echo "all of it held"

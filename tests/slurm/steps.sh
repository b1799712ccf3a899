#!/bin/bash
# usage: steps.sh KRIGTUNE [PART...]
# Tests trials inside an allocation, as steps on its nodes; krigtune-bench over several nodes; krigtune as batch script.
set -euo pipefail
krigtune=$1
shift
. "$(dirname "$0")/common.sh"

# submit_tuner RUN SESSION SBATCH-OPTIONS... submits krigtune tune as the batch script of $job.
submit_tuner() {
  local run=$1 session=$2
  shift 2
  cat >"$run.sbatch" <<SH
#!/bin/bash
exec "$krigtune" tune "$session" --out "$run" --strategy random --seed 4 $tune_options
SH
  job=$(sbatch --parsable -J tuner -o "$run.err" "$@" "$run.sbatch")
}
tune_options=
ended_in_state() { [ "$(scontrol -o show job "$job" | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p')" = "$1" ]; }

side_by_side() {
  begin "eight halves of nodes side by side"
  write_session "$work/halves.json" 16 1 '' '{"nodes": 1, "gpus_per_node": 4, "gpu": "h100-80gb"}'
  submit_tuner "$work/halves" "$work/halves.json" -N 4 --ntasks-per-node=16 --gres=gpu:8
  wait_for 30 eval '[ "$(squeue -h -s -o %j | grep -c "^krigtune-")" -eq 8 ]'
  squeue -h -s -o '%j %N' | grep '^krigtune-' | awk '{ n[$2]++ } END { for (i in n) if (n[i] != 2) exit 1 }' ||
    fail "not two on each node"
  wait_for 60 ended_in_state COMPLETED
  expect_whole "$work/halves" 16
  grep -qr '"where": "n[1-4], step of job' "$work/halves/trials" || fail "exit.json does not say where"
  # No two trials had a GPU at the same time, so that each node ran trials on both halves.
  cut -d' ' -f3 "$work"/runs/halves.*.begun | sort | uniq -c | awk '{ print "   " $1 " trials on GPUs " $2 }'
  [ "$(cut -d' ' -f3 "$work"/runs/halves.*.begun | sort -u | wc -l)" -eq 2 ] || fail "not two halves"
}

large_and_small() {
  begin "trials of one, two and four nodes"
  cat >"$work/sizes.json" <<JSON
{
  "cluster": {"nodes": 4, "gpus_per_node": 8, "gpu": "h100-80gb", "network": "ib-ndr-400"},
  "space": {"nodes_used": [1, 2, 4], "x": [1, 2, 3, 4]},
  "baseline": null,
  "objective": {"metric": "speed", "direction": "maximize"},
  "runner": {"kind": "command", "argv": ["/bin/bash", "$work/sizes.sh", "{result}", "{nodes_used}", "{x}"], "timeout_s": 30},
  "executor": {"kind": "slurm", "launch": "node", "gpus_per_trial": "8 * nodes_used", "poll_s": 0.5, "patience_s": 3},
  "budget": {"trials": 12, "regret": 0, "least_gain": 0}
}
JSON
  cat >"$work/sizes.sh" <<'SH'
sleep 0.3
[ "$SLURM_PROCID" -ne 0 ] || echo "{\"speed\": $SLURM_STEP_NUM_NODES}" >"$1"
SH
  submit_tuner "$work/sizes" "$work/sizes.json" -N 4 --ntasks-per-node=16 --gres=gpu:8
  wait_for 60 ended_in_state COMPLETED
  [ "$(column "$work/sizes" status | grep -c '^ok$')" -eq 12 ] || fail "$(states "$work/sizes")"
  paste -d' ' <(column "$work/sizes" nodes_used) <(column "$work/sizes" value) |
    awk '$1 != $2 { bad = 1 } END { exit bad }' || fail "a trial had another number of nodes than it asked for"
}

bench() {
  begin "krigtune-bench over 2 and 4 nodes"
  local nodes
  for nodes in 2 4; do
    cat >"$work/bench$nodes.json" <<JSON
{
  "workload": {"model": {"layers": 1, "hidden": 32, "heads": 2, "vocab": 64, "seq_len": 8}, "train_batch_size": 16},
  "cluster": {"nodes": $nodes, "gpus_per_node": 2},
  "space": {"zero_stage": [0, 1, 2, 3], "micro_batch": [1, 2]},
  "baseline": {"zero_stage": 0, "micro_batch": 1},
  "memory": {"limit_gib": 1},
  "runner": {"kind": "bench", "warmup_s": 0.05, "measure_s": 0.2, "timeout_s": 60, "early_end": false},
  "executor": {"kind": "slurm", "poll_s": 0.5, "patience_s": 3, "max_queued": 1},
  "budget": {"trials": 3, "regret": 0, "least_gain": 0}
}
JSON
    tune "$work/bench$nodes.json" "$work/bench$nodes"
    [ $rc -eq 0 ] || fail "$nodes nodes, jobs: exit code $rc"
    [ "$(column "$work/bench$nodes" status | grep -c '^ok$')" -eq 3 ] || fail "$nodes nodes: $(states "$work/bench$nodes")"
    grep -qr "\"where\": \"n\[1-$nodes\], job" "$work/bench$nodes/trials" || fail "it did not run on $nodes nodes"
    submit_tuner "$work/inside$nodes" "$work/bench$nodes.json" -N "$nodes" --ntasks-per-node=4
    wait_for 60 ended_in_state COMPLETED
    [ "$(column "$work/inside$nodes" status | grep -c '^ok$')" -eq 3 ] || fail "steps: $(states "$work/inside$nodes")"
  done
}

requeued() {
  begin "the batch script is told to end, and runs again"
  write_session "$work/limit.json" 12 1 '"max_queued": 2'
  tune_options=--requeue
  submit_tuner "$work/limit" "$work/limit.json" -N 2 --ntasks-per-node=4 --requeue --open-mode=append
  tune_options=
  wait_for 30 eval '[ "$(column "$work/limit" status 2>/dev/null | grep -c "^ok$")" -ge 2 ]'
  scancel --batch --signal=USR1 "$job" # as --signal=B:USR1@60 does before the time limit
  wait_for 30 ended_in_state PENDING
  wait_for 10 grep -q "asking Slurm to requeue this job" "$work/limit.err"
  sleep 2 # until its first run has ended
  scontrol update JobId="$job" StartTime=now
  wait_for 90 ended_in_state COMPLETED
  expect_whole "$work/limit" 12
}

killed() {
  begin "a tuner in an allocation is killed with -9"
  write_session "$work/inner.json" 8 1
  job=$(sbatch --parsable -N 2 --ntasks-per-node=4 -J holder -o /dev/null --wrap "sleep 300")
  wait_for 20 ended_in_state RUNNING
  export SLURM_JOB_ID=$job SLURM_JOB_NODELIST='n[1-2]' SLURM_JOB_CPUS_PER_NODE='4(x2)'
  start_tune "$work/inner.json" "$work/inner"
  wait_for 20 eval '[ -n "$(squeue -h -s -o %j | grep krigtune-)" ]'
  sleep 0.5
  kill -9 "$tuner"
  wait "$tuner" 2>/dev/null || true
  tune "$work/inner.json" "$work/inner"
  [ $rc -eq 0 ] || fail "exit code $rc"
  unset SLURM_JOB_ID SLURM_JOB_NODELIST SLURM_JOB_CPUS_PER_NODE
  [ -z "$(squeue -h -s -o %j | grep krigtune-)" ] || fail "a step is left"
  scancel "$job"
  expect_whole "$work/inner" 8
}

if [ $# -eq 0 ]; then set -- side_by_side large_and_small bench requeued killed; fi
for one in "$@"; do "$one"; done
echo "all of it held"

#!/bin/bash
# usage: measure_rates.sh KRIGTUNE KRIGTUNE_BENCH MPI
#        (MPI: 1 if krigtune-bench was built with it)
# krigtune doctor --measure alone, with torchrun's and srun's variables and under
# mpirun: one process prints what all have measured. Then a session plans and tunes
# with the written file. Exit code 77: mpirun could not be tried, everything else
# passed.
set -uo pipefail
krigtune=$1
bench=$2
mpi=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export KRIGTUNE_CACHE=$work/cache PATH="$(dirname "$bench"):$PATH"
fail() { echo "FAILED: $*" >&2; tail -n 20 "$work"/*.err >&2; exit 1; }
source "$(dirname "$0")/bench.sh"
has_mpi "$mpi" || mpi=0
has() { grep -q -- "$2" "$1" || fail "$1 has no '$2'"; }

# Starts each rank with the variables that a launcher would set. The output of
# rank 0 goes to $work/out.0.
by_variables() { # RANKS torchrun|srun ARGUMENT...
  next_port
  local ranks=$1 launcher=$2 started=() rank pid
  shift 2
  for ((rank = ranks - 1; rank >= 0; --rank)); do
    local variables=(MASTER_ADDR=$loopback MASTER_PORT=$port)
    if [ "$launcher" = torchrun ]; then
      variables+=(RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=$ranks LOCAL_WORLD_SIZE=$ranks OMP_NUM_THREADS=1)
    else
      variables+=(SLURM_PROCID=$rank SLURM_LOCALID=$rank SLURM_STEP_NUM_TASKS=$ranks SLURM_NTASKS=$ranks)
    fi
    env "${variables[@]}" timeout 200 "$krigtune" doctor --measure "$@" >"$work/out.$rank" 2>"$work/$rank.err" &
    started+=($!)
  done
  for pid in "${started[@]}"; do wait "$pid" || fail "a process of $launcher ended with code $?"; done
  for ((rank = 1; rank < ranks; ++rank)); do
    [ ! -s "$work/out.$rank" ] && [ ! -s "$work/$rank.err" ] || fail "rank $rank of $launcher has said something"
  done
}

timeout 200 "$krigtune" doctor --measure --out "$work/hw.json" >"$work/alone" 2>"$work/alone.err" || fail "alone: code $?"
has "$work/alone" '# all-reduce within a node, 2 ranks'
has "$work/alone" 'hw.json is written'
[ ! -e "$work/hw.json.tmp" ] || fail "half a file is left"

by_variables 2 torchrun
has "$work/out.0" "2 ranks on 1 node, torchrun's variables"
has "$work/out.0" '# compared with what plan expects of this machine as it was measured earlier'

# Two nodes of two ranks, according to a session.
cat >"$work/nodes.json" <<JSON
{"workload": {"model": {"layers": 2, "hidden": 32, "heads": 2, "vocab": 64, "seq_len": 16}},
 "cluster": {"nodes": 2, "gpus_per_node": 2}, "space": {"zero_stage": [0, 1]}, "memory": {"limit_gib": 1}}
JSON
by_variables 4 srun --session "$work/nodes.json"
for scope in 'within a node, 2' 'between nodes, 2' 'among all ranks, 4'; do has "$work/out.0" "# all-gather $scope ranks"; done

if [ "$mpi" = 1 ]; then
  timeout 200 mpirun -np 2 "$krigtune" doctor --measure --json >"$work/mpi" 2>"$work/mpi.err" || fail "mpirun: code $?"
  has "$work/mpi" '"started_by": "mpirun"'
  [ "$(grep -c '"command": "doctor"' "$work/mpi")" = 1 ] || fail "several processes have spoken"
fi

# plan and tune can use the file.
cat >"$work/job.json" <<JSON
{"workload": {"model": {"layers": 2, "hidden": 32, "heads": 2, "vocab": 64, "seq_len": 16}, "train_batch_size": 4},
 "cluster": {"gpu": "local", "gpus_per_node": 2, "hardware": "hw.json"}, "space": {"zero_stage": [0, 1], "micro_batch": [1, 2]},
 "baseline": {"zero_stage": 0, "micro_batch": 1}, "memory": {"limit_gib": 1},
 "runner": {"kind": "bench", "warmup_s": 0.05, "measure_s": 0.2, "early_end": false}, "budget": {"trials": 2}}
JSON
rm -rf "$work/cache"
"$krigtune" plan "$work/job.json" >"$work/plan" 2>"$work/plan.err" || fail "plan: code $?"
has "$work/plan" 'Predicted best'
! grep -q 'measuring this machine' "$work/plan.err" || fail "plan has measured what the file says"
"$krigtune" tune "$work/job.json" --out "$work/run" >"$work/tune" 2>"$work/tune.err" || fail "tune: code $?"
has "$work/tune" '2 ok'

[ "$mpi" = 1 ] || { echo "no mpirun: skipped"; exit 77; }

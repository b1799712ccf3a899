#!/bin/bash
# usage: bench_processes.sh KRIGTUNE_BENCH MPI
#        (MPI: 1 if krigtune-bench was built with it)
# Ranks as threads, as processes connected by sockets (torchrun's variables,
# srun's) and under mpirun train the same bits in every ZeRO stage. Exit code 77:
# mpirun could not be tried, everything else passed.
set -uo pipefail
bench=$1
mpi=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; cat "$work"/*.err >&2; exit 1; }
source "$(dirname "$0")/bench.sh"
has_mpi "$mpi" || mpi=0

config() { # STAGE RANKS NODES
  cat >"$work/config.json" <<JSON
{"workload": {"model": {"layers": 2, "hidden": 32, "heads": 2, "vocab": 64, "seq_len": 16}},
 "cluster": {"nodes": $3, "gpus_per_node": $(($2 / $3))}, "memory": {"limit_gib": 1},
 "configuration": {"zero_stage": $1, "micro_batch": 2, "gradient_accumulation_steps": 2, "reduce_bucket_size": 3000}}
JSON
}
run=("$bench" --config "$work/config.json" --json --steps 4)
hash_of() { sed -n 's/.*"parameters_fnv1a64": "\(.*\)".*/\1/p' "$1"; }

# Starts each rank with the variables that a launcher would set. The output of
# rank 0 goes to $work/out.
by_variables() { # RANKS torchrun|srun
  next_port
  local started=() rank
  for ((rank = $1 - 1; rank >= 0; --rank)); do
    local variables=(MASTER_ADDR=$loopback MASTER_PORT=$port)
    if [ "$2" = torchrun ]; then
      variables+=(RANK=$rank LOCAL_RANK=$rank WORLD_SIZE="$1")
    else
      variables+=(SLURM_PROCID=$rank SLURM_LOCALID=$rank SLURM_STEP_NUM_TASKS="$1" SLURM_NTASKS="$1")
    fi
    env "${variables[@]}" timeout 60 "${run[@]}" >"$work/out.$rank" 2>"$work/$rank.err" &
    started+=($!)
  done
  local pid
  for pid in "${started[@]}"; do wait "$pid" || fail "a process of $2 ended with code $?"; done
  for ((rank = 1; rank < $1; ++rank)); do [ ! -s "$work/out.$rank" ] || fail "rank $rank has printed something"; done
}

for ranks in 2 4; do
  for stage in 0 1 2 3; do
    config $stage $ranks 1
    "${run[@]}" >"$work/threads" 2>"$work/threads.err" || fail "threads end with code $?"
    expected=$(hash_of "$work/threads")
    [ -n "$expected" ] || fail "threads have no hash"
    by_variables $ranks torchrun
    [ "$(hash_of "$work/out.0")" = "$expected" ] || fail "sockets differ in stage $stage on $ranks ranks"
    if [ "$mpi" = 1 ]; then
      timeout 60 mpirun -np $ranks "${run[@]}" >"$work/mpi" 2>"$work/mpi.err" || fail "mpirun ends with code $?"
      [ "$(hash_of "$work/mpi")" = "$expected" ] || fail "mpirun differs in stage $stage on $ranks ranks"
    fi
  done
done

# Two nodes of two ranks: several processes need no emulated network, one
# process does.
config 3 4 2
by_variables 4 srun
[ "$(hash_of "$work/out.0")" = "$expected" ] || fail "srun differs on two nodes"
"${run[@]}" >"$work/out" 2>"$work/nodes.err"
[ $? = 2 ] && grep -q '2 nodes' "$work/nodes.err" || fail "one process cannot be two nodes"

# The number of processes must equal the number of ranks.
RANK=0 WORLD_SIZE=1 "${run[@]}" --steps 1 >/dev/null 2>"$work/one.err"
[ $? = 2 ] || fail "one process of torchrun is alone"
config 0 4 1
next_port
(RANK=1 WORLD_SIZE=2 MASTER_PORT=$port timeout 60 "${run[@]}" >/dev/null 2>&1 &)
RANK=0 WORLD_SIZE=2 MASTER_PORT=$port timeout 60 "${run[@]}" >/dev/null 2>"$work/size.err"
[ $? = 2 ] && grep -q 'has started 2 processes, but the cluster has 4 ranks' "$work/size.err" || fail "2 are not 4"

[ "$mpi" = 1 ] || { echo "no mpirun: skipped"; exit 77; }

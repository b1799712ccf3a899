#!/bin/bash
# usage: bench_failures.sh KRIGTUNE KRIGTUNE_BENCH MPI
#        (MPI: 1 if krigtune-bench was built with it)
# A hang, an abort, a failed allocation and kill -9 in one rank, with ranks as
# threads, connected by sockets and under mpirun: the run ends soon, reports what
# happened, and leaves no process behind. Exit code 77: mpirun could not be tried.
set -uo pipefail
krigtune=$1
bench=$2
mpi=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; tail -n 5 "$work"/*.err >&2; exit 1; }
source "$(dirname "$0")/bench.sh"
ulimit -c 0
has_mpi "$mpi" || mpi=0
ways=(threads sockets)
[ "$mpi" = 0 ] || ways+=(mpirun)

config() { # HIDDEN
  cat >"$work/config.json" <<JSON
{"workload": {"model": {"layers": 1, "hidden": $1, "heads": 2, "vocab": 64, "seq_len": 8}},
 "cluster": {"gpus_per_node": 2}, "memory": {"limit_gib": 100}, "configuration": {"zero_stage": 2}}
JSON
}
run=("$bench" --config "$work/config.json" --json --warmup-s 0.1 --measure-s 1000 --hang-s 3)

# Sets `code` (of the launcher, or of rank 0) and `other` (of rank 1, with sockets).
start() { # threads|sockets|mpirun COMMAND_OF_RANK_1...
  local way=$1
  shift
  other=
  case $way in
    threads) timeout 60 "$@" >"$work/out" 2>"$work/run.err" ;;
    mpirun) timeout 60 mpirun -np 1 "${run[@]}" : -np 1 "$@" >"$work/out" 2>"$work/run.err" ;;
    sockets)
      next_port
      RANK=1 WORLD_SIZE=2 MASTER_PORT=$port timeout 60 "$@" >/dev/null 2>"$work/other.err" &
      RANK=0 WORLD_SIZE=2 MASTER_PORT=$port timeout 60 "${run[@]}" >"$work/out" 2>"$work/run.err"
      local first=$?
      wait $!
      other=$?
      return $first
      ;;
  esac
}
nobody_is_left() {
  local tries
  for ((tries = 0; tries < 50; ++tries)); do
    pgrep -f "$work/config.json" >/dev/null || return 0
    sleep 0.1
  done
  fail "$1 leaves processes behind"
}
expect() { # NAME CODE EXPECTED
  [ "$2" = "$3" ] || fail "$1 ends with code $2, not $3"
}

config 32
# The exit codes of rank 0 and rank 1. If they are separate processes, the other
# one only sees that a rank has gone.
while read -r fault alone rank0 rank1; do
  export KRIGTUNE_BENCH_FAULT=$fault:1:5
  for way in "${ways[@]}"; do
    start "$way" "${run[@]}" 2>/dev/null
    code=$?
    if [ "$way" = sockets ]; then
      expect "$fault with sockets, rank 0" $code "$rank0"
      expect "$fault with sockets, rank 1" "$other" "$rank1"
    else
      expect "$fault with $way" $code "$alone"
    fi
    nobody_is_left "$fault with $way"
  done
done <<'TABLE'
hang 12 12 12
abort 134 13 134
bad_alloc 11 11 11
kill 137 13 137
TABLE
unset KRIGTUNE_BENCH_FAULT

# A real failure of an allocation, in rank 1 if it has a process of its own.
config 2048
run[${#run[@]}-1]=30  # such an allocation takes time
for way in "${ways[@]}"; do
  start "$way" sh -c 'ulimit -v 400000; exec "$@"' sh "${run[@]}"
  expect "no memory with $way" $? 11
  grep -q '"reason": "allocation"' "$work/out" || fail "no memory with $way is reported as something else"
  nobody_is_left "no memory with $way"
done

# Through krigtune: the same failures as outcomes of trials.
trial() { # LAUNCHER STATUS REASON
  cat >"$work/session.json" <<JSON
{"workload": {"model": {"layers": 1, "hidden": 32, "heads": 2, "vocab": 64, "seq_len": 8}, "train_batch_size": 8},
 "cluster": {"gpus_per_node": 2}, "space": {"zero_stage": [0, 1, 2, 3]}, "baseline": {"zero_stage": 2},
 "memory": {"limit_gib": 1}, "budget": {"trials": 1},
 "runner": {"kind": "bench", "warmup_s": 0.1, "measure_s": 5, "timeout_s": 10, "launcher": "$1"}}
JSON
  rm -rf "$work/run"
  timeout 60 "$krigtune" tune "$work/session.json" --out "$work/run" >"$work/out" 2>"$work/tune.err"
  local row
  row=$(sed -n 2p "$work/run/trials.csv" | cut -d, -f2,3)
  [ "$row" = "$2,$3" ] || fail "$KRIGTUNE_BENCH_FAULT with $1 is the trial '$row', not '$2,$3'"
  ! pgrep -f "$work/run" >/dev/null || fail "the trial with $1 leaves processes behind"
}
for launcher in threads mpirun; do
  [ $launcher = threads ] || [ "$mpi" = 1 ] || continue
  KRIGTUNE_BENCH_FAULT=kill:1:5 trial $launcher failed crash
  KRIGTUNE_BENCH_FAULT=abort:1:5 trial $launcher failed crash
  KRIGTUNE_BENCH_FAULT=bad_alloc:1:5 trial $launcher oom ""
  KRIGTUNE_BENCH_FAULT=hang:1:5 trial $launcher failed timeout
done

[ "$mpi" = 1 ] || { echo "no mpirun: skipped"; exit 77; }

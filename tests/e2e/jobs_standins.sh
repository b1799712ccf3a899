#!/bin/bash
# usage: jobs_standins.sh KRIGTUNE SOURCE_DIR
# Megatron-LM and torchtitan, replaced by programs with the same flags, refusals and
# output (jobs/). They are tuned from the plain command to within 3 % of the best of
# all configurations of the space. Configurations that the job refuses are never
# asked for. The written command trains on with everything that its user specified.
set -euo pipefail
jobs=$2/tests/e2e/jobs
source "$2/tests/e2e/readme.sh"
enter_workshop "$1"
cp -r "$jobs" jobs
cd jobs
export PATH=$PWD:$PATH PYTHONDONTWRITEBYTECODE=1

megatron=(torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32
          --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 128
          --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --train-iters 30 --log-interval 10 --mock-data
          --tokenizer-type NullTokenizer --vocab-size 32000 --bf16 --lr 1e-4 --save checkpoints --save-interval 10)
torchtitan=(torchrun --nproc_per_node=8 --rdzv_backend c10d --rdzv_endpoint=localhost:0 --local-ranks-filter 0 --role rank
            --tee 3 -m torchtitan.train --module llama3 --config llama3_8b --training.local_batch_size 1
            --training.global_batch_size 64 --training.steps 30 activation_checkpoint:full)

# column NAME prints a column of trials.csv.
column() { awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == name) c = i; next } { print $c }' "$1"; }

# check NAME TRIALS REGEX COMMAND...: the command in cmd_optimal.txt must match
# REGEX. No stop rule ends the session, so that only the search decides.
check() {
  local name=$1 trials=$2 kept=$3 best found count running where
  shift 3
  krigtune tune --out "run_$name" --seed 1 --trials "$trials" --full-budget -- "$@" >out 2>err </dev/null || fail "krigtune tune of $name"
  if column "run_$name/trials.csv" status | grep -qvE '^(ok|bounded|oom)$'; then
    fail "$name: trials that neither ran nor ran out of memory: $(cut -d, -f1-12 "run_$name/trials.csv")"
  fi
  if [ -e checkpoints ] || [ -e outputs ]; then fail "$name: a trial has written a checkpoint where the user's run does"; fi
  read -r best found count running where < <(python3 optimum.py "$name" "run_$name") || fail "optimum of $name"
  awk -v a="$found" -v b="$best" 'BEGIN { exit !(a <= 1.03 * b && a >= 0.97 * b) }' ||
    fail "$name: $found ms; the best of $running that run (of $count) takes $best ms: $where"
  grep -qE -- "$kept" "run_$name/cmd_optimal.txt" || fail "$name: cmd_optimal.txt has lost what its user wrote: $kept"
  sh "run_$name/cmd_optimal.txt" >tuned.out 2>&1 || fail "$name: cmd_optimal.txt does not train: $(tail -3 tuned.out)"
  echo "$name: $found ms after $(column "run_$name/trials.csv" trial | wc -l) trials; the best of $running that run (of $count)" \
    "takes $best ms: $where"
}

# refuses CODE TEXT COMMAND...: the stand-in exits with 1, its rank with CODE,
# and it prints TEXT.
refuses() {
  local code=$1 text=$2 status=0
  shift 2
  "$@" >out 2>err </dev/null || status=$?
  if [ "$status" -ne 1 ] || ! grep -q "exitcode  : $code " err || ! cat out err | grep -qF -- "$text"; then
    fail "the stand-in does not refuse as it should ($code, $text): exit code $status of $*"
  fi
}

# The words of `megatron` and `torchtitan`, followed by others; the last value
# counts.
refuses 1 'Must use --overlap-param-gather with --overlap-grad-reduce' \
  env CUDA_DEVICE_MAX_CONNECTIONS=1 "${megatron[@]}" --use-distributed-optimizer --overlap-param-gather
refuses 1 'only supported with distributed optimizer' \
  env CUDA_DEVICE_MAX_CONNECTIONS=1 "${megatron[@]}" --overlap-grad-reduce --overlap-param-gather
refuses 1 'CUDA_DEVICE_MAX_CONNECTIONS to 1' env -u CUDA_DEVICE_MAX_CONNECTIONS "${megatron[@]}"
refuses 1 'is not divisible by micro batch size' env CUDA_DEVICE_MAX_CONNECTIONS=1 "${megatron[@]}" --micro-batch-size 3
refuses 1 'CUDA out of memory' "${megatron[@]}" --tensor-model-parallel-size 1 --pipeline-model-parallel-size 1
refuses 2 'unrecognized arguments: --recompute full' "${megatron[@]}" --recompute full
refuses 2 'Unrecognized options: --training.steps 3' "${torchtitan[@]}" --training.steps 3
refuses 1 'Set --training.disable_cuda_graphs' \
  "${torchtitan[@]:0:${#torchtitan[@]}-1}" --parallelism.pipeline_parallel_degree 2

check megatron 60 '--train-iters 30 .*--save checkpoints' "${megatron[@]}"
[ "$(cat checkpoints/latest_checkpointed_iteration.txt)" = 30 ] || fail "megatron: the tuned run has not saved its checkpoint"
rm -r checkpoints
check torchtitan 30 '--training.steps 30' "${torchtitan[@]}"
[ -d outputs/checkpoint ] || fail "torchtitan: the tuned run has not saved its checkpoint"

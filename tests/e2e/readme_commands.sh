#!/bin/bash
# usage: readme_commands.sh KRIGTUNE SOURCE_DIR
# Runs the commands of README.md unchanged. An arbitrary script and Megatron-LM are
# tuned for three trials, with stand-ins for torchrun. For the DeepSpeed job, which
# needs DeepSpeed, only the session is written (krigtune init). The output of plan is
# compared.
set -euo pipefail
source "$2/tests/e2e/readme.sh"
enter_workshop "$1"
readme=$2/README.md
export KRIGTUNE_TRIALS=3 PYTHONDONTWRITEBYTECODE=1

# line TEXT prints the line with it in the README's shell blocks.
line() {
  awk '/^```sh/ { inside = 1; next } /^```/ { inside = 0 } inside' "$readme" | grep -F -m 1 -- "$1" || fail "no line has '$1'"
}
: >out >err

# A script that prints its throughput, which grows with the micro-batch.
cat >bin/torchrun <<'SCRIPT'
#!/bin/bash
while [[ $1 != --mbs ]]; do shift; done
for step in {1..12}; do echo "step $step: $((1000 * $2)).5 tok/s"; done
SCRIPT
chmod +x bin/torchrun
touch train.py
sh -ec "$(line --metric)" >out 2>err </dev/null || fail "any script"
[ "$(tail -n +2 runs/train/trials.csv | wc -l)" -eq 3 ] || fail "any script: three trials were expected"

echo '{"train_batch_size": 32, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}' >ds_config.json
deepspeed=$(line --deepspeed_config)
sh -ec "${deepspeed/krigtune tune/krigtune init deepspeed.json}" >out 2>err </dev/null || fail "the DeepSpeed job"
grep -q '"zero_stage"' deepspeed.json || fail "the session of the DeepSpeed job does not vary its ZeRO stage"

cp "$2/tests/e2e/jobs/"* . 2>/dev/null || true
rm bin/torchrun
PATH=$PWD:$PATH
megatron=$(line pretrain_gpt.py)
sh -ec "${megatron/.../--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 \
  --max-position-embeddings 4096 --global-batch-size 128 --train-iters 30 --log-interval 10 --mock-data \
  --tokenizer-type NullTokenizer --vocab-size 32000 --bf16 --lr 1e-4}" >out 2>err </dev/null || fail "Megatron-LM"
[ "$(tail -n +2 runs/pretrain_gpt/trials.csv | wc -l)" -eq 3 ] || fail "Megatron-LM: three trials were expected"

cd "$2"
planned=$(awk '/^\$ krigtune plan/ { inside = 1; print; next } /^```/ { inside = 0 } inside' "$readme")
sh -ec "$(head -1 <<<"$planned" | sed 's/^\$ //')" >"$work/plan" 2>"$work/err" || fail "plan"
while IFS= read -r shown; do
  [ -z "$shown" ] || grep -qF -- "$shown" "$work/plan" || { echo "FAILED: plan does not print '$shown'" >&2; exit 1; }
done < <(tail -n +2 <<<"$planned")
echo "the README's commands run"

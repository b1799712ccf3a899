#!/bin/bash
# usage: jobs_strangers.sh KRIGTUNE SOURCE_DIR
# Runs the commands of experiments/strangers_jobs/README.md unchanged, each in a copy
# of its folder, and then again with --full-budget, so that no stop rule decides. The
# command that krigtune writes is within 5 % of the best configuration, which is
# found by running all of them.
set -euo pipefail
strangers=$2/experiments/strangers_jobs
source "$2/tests/e2e/readme.sh"
enter_workshop "$1"

# median FILE REGEX prints the median of the steps, without the first two.
median() {
  tr '\r' '\n' <"$1" | sed -nE "s/.*$2.*/\1/p" | tail -n +3 | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

# try REGEX COMMAND... prints a line "value command" for each one that runs.
try() {
  local regex=$1
  shift
  if "$@" >all.out 2>&1; then printf '%s %s\n' "$(median all.out "$regex")" "$*"; fi
}

all_of_table() {
  local batch workers layout
  for batch in 8 16 32 64 128 256; do
    for workers in 0 1 2 4 6 8 12; do
      for layout in nchw nhwc; do
        try "$1" ./train.py --batch-size $batch --workers $workers --layout $layout
      done
    done
  done
}

all_of_hydra() {
  local micro_batch prefetch compile
  for micro_batch in 1 2 4 8 16 32; do
    for prefetch in 1 2 4 8 16; do
      for compile in false true; do
        try "$1" ./train.py trainer.micro_batch=$micro_batch data.prefetch=$prefetch model.compile=$compile
      done
    done
  done
}

all_of_shell() {
  local batch threads amp
  for batch in 8 16 32 64 96 128; do
    for threads in 1 2 3 4 6 8; do
      for amp in off fp16 bf16; do
        try "$1" env BATCH=$batch THREADS=$threads AMP=$amp ./train.sh
      done
    done
  done
}

# check NAME BETTER REGEX: with BETTER, `sort` puts the best first.
check() {
  local name=$1 better=$2 regex=$3 best tuned
  cp -r "$strangers/$name" "$work/$name"
  cd "$work/$name"
  take_example "$strangers/README.md" "$name"
  [ "$(wc -l <"$name")" -eq 2 ] || fail "the command for $name does not stand in two lines"
  sh "./$name" >out 2>err </dev/null || fail "krigtune tune of $name"
  sed 's/ -- / --full-budget -- /' "$name" >go_on
  sh ./go_on >out 2>err </dev/null || fail "krigtune tune of $name with --full-budget"
  sh runs/*/cmd_optimal.txt >tuned.out 2>&1 || fail "cmd_optimal.txt of $name: $(cat runs/*/cmd_optimal.txt)"
  tuned=$(median tuned.out "$regex")
  "all_of_$name" "$regex" | sort "$better" >all.txt
  best=$(head -1 all.txt)
  awk -v a="$tuned" -v b="${best%% *}" 'BEGIN { r = a / b; exit !(r >= 0.95 && r <= 1 / 0.95) }' ||
    fail "$name: $tuned after $(($(wc -l <runs/*/trials.csv) - 1)) trials; the best is $best"
  echo "$name: $tuned by $(tail -1 runs/*/cmd_optimal.txt), $(($(wc -l <runs/*/trials.csv) - 1)) trials; of" \
    "$(wc -l <all.txt) that run the best is $best"
}

check table -gr '\| +([0-9.]+)$'
check hydra -g 'min_per_epoch=([0-9.]+)'
check shell -gr ' ([0-9.]+) img\/s'

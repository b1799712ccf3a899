#!/bin/bash
# usage: readme_python.sh KRIGTUNE SOURCE_DIR
# Runs the README's example of a user's program unchanged: ten lines of Python, its
# session, the commands.
set -euo pipefail
source "$2/tests/e2e/readme.sh"
enter_workshop "$1"
for name in own.py own.json own.sh; do take_example "$2/docs/own_program.md" $name; done
[ "$(wc -l <own.py)" -le 10 ] || { echo "FAILED: own.py has more than ten lines" >&2; exit 1; }

sh -e own.sh >out 2>err || fail "the example ends with $?"
trials=$(tail -n +2 runs/own/trials.csv | wc -l)
[ "$trials" -ge 5 ] && [ "$trials" -le 8 ] || fail "5 to 8 trials were expected, and $trials ran"
head -1 runs/own/trials.csv | grep -q '^trial,status,reason,strategy,micro_batch,recompute,value,' || fail "header"
sed -n 2p runs/own/trials.csv | grep -q '^0,ok,,baseline,1,false,' || fail "trial 0 is not the baseline"
grep -q "^trials     $trials: " out || fail "the summary"
# A configuration that cannot run is a result, too: micro-batches above 8
# without recomputation, above 16 with it.
awk -F, 'NR > 1 { fits = $5 <= ($6 == "true" ? 16 : 8); if (fits != ($2 == "ok") || (!fits && $2 != "oom")) exit 1 }' \
  runs/own/trials.csv || fail "ok and oom are not where they should be"
# The command in cmd_optimal.txt runs the best configuration again.
sh -e runs/own/cmd_optimal.txt || fail "cmd_optimal.txt"
grep -q throughput runs/own/result_optimal.json || fail "cmd_optimal.txt measured nothing"
echo "$trials trials of the README's program; its best configuration runs again"

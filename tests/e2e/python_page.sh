#!/bin/bash
# usage: python_page.sh KRIGTUNE SOURCE_DIR
# Runs the examples of docs/python.md as they are.
set -euo pipefail
source "$2/tests/e2e/readme.sh"
enter_workshop "$1"
export PYTHONPATH=$2/src/python KRIGTUNE_EXECUTABLE=$1 PYTHONDONTWRITEBYTECODE=1
for name in minimize study; do take_example "$2/docs/python.md" $name.py; done

for round in 1 2; do # the second one has nothing to do
  python3 minimize.py >out 2>err || fail "minimize.py ends with $?"
  [ "$(tail -n +2 runs/loss/trials.csv | wc -l)" -eq 25 ] || fail "25 trials"
done
grep -q "^Best(trial=.*'optimizer': 'adam'" out || fail "the best one"
awk -F, 'NR > 1 && ($6 == "128") != ($2 == "oom") { exit 1 }' runs/loss/trials.csv || fail "who runs out of memory"
python3 study.py >out 2>err || fail "study.py ends with $?"
grep -q "^{'x': .* 12$" out || fail "study.py prints something else"
grep -q '<html' report.html || fail "the report"
echo "the examples of docs/python.md run"

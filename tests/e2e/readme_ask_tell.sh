#!/bin/bash
# usage: readme_ask_tell.sh KRIGTUNE SOURCE_DIR
# Runs the documentation's loops with ask and tell unchanged, in shell and in Python.
set -euo pipefail
source "$2/tests/e2e/readme.sh"
enter_workshop "$1"
for name in sort.json sort.sh sort.py; do take_example "$2/docs/own_program.md" $name; done

sh -e sort.sh >out 2>err || fail "the example ends with $?"
[ "$(awk -F, 'NR > 1 && $2 == "ok"' runs/sort/trials.csv | wc -l)" -eq 12 ] || fail "12 ok trials were expected"
[ "$(awk -F, 'NR > 1 { print $5, $6 }' runs/sort/trials.csv | sort -u | wc -l)" -eq 12 ] || fail "one was asked twice"
[ "$(grep -c '^trial [0-9]*: ok, us ' err)" -eq 12 ] || fail "tell says a line for each"
# The first row of the results is the smallest value.
smallest=$(awk -F, 'NR > 1 { print $7 }' runs/sort/trials.csv | sort -n | head -1)
[ "$(awk -F, -v v="$smallest" 'NR > 1 && $7 == v { print $1 }' runs/sort/trials.csv | head -1)" = "$(awk '$1 ~ /^[0-9]+$/ { print $1; exit }' out)" ] ||
  fail "results does not begin with the fastest"

python3 sort.py >out 2>err || fail "the loop in Python ends with $?"
[ "$(awk -F, 'NR > 1 && $2 == "ok"' runs/python/trials.csv | wc -l)" -eq 12 ] || fail "Python: 12 ok trials were expected"
echo "12 trials of each loop of the documentation"

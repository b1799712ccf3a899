#!/bin/bash
# usage: howto.sh KRIGTUNE SOURCE
# What the guides of docs/howto show is what krigtune prints, where that follows from the page alone: the loop of ask and tell line by
# line, and of plans every line that is shown. The program that imitates noise is tuned with the options of its page.
set -euo pipefail
guides=$2/docs/howto
source "$2/tests/e2e/readme.sh"
enter_workshop "$1"
export COLUMNS=100
touch out err
# blocks PAGE LANGUAGE: the code blocks of this language ("": of none), each with a line of one control character behind it.
blocks() {
  awk -v fence="\`\`\`$2" '
    /^```/ { if (open && wanted) print "\001"; open = !open; wanted = open && $0 == fence; next }
    wanted' "$guides/$1"
}
first_block() { blocks "$1" "$2" | sed '/\x01/q' | sed '$d'; }

first_block ask_and_tell.md jsonc >sheet.json
[ -s sheet.json ] || fail "ask_and_tell.md has no session"
# The output of a command is what follows until the next one.
blocks ask_and_tell.md '' | sed '/\x01/d' >shown
grep '^\$ ' shown | sed 's/^\$ //' >commands
[ "$(wc -l <commands)" -ge 5 ] || fail "ask_and_tell.md shows too few commands"
while read -r line; do
  echo "\$ $line" >>printed
  sh -c "$line" >>printed 2>&1 || fail "$line"
done <commands
diff shown printed >out || fail "ask_and_tell.md shows something else than krigtune prints"

first_block too_large.md jsonc >big.json
krigtune plan big.json >plan 2>err || fail "plan of too_large.md"
blocks too_large.md '' | sed -n '/^Assumed/,/\x01/p; /^Space/,/\x01/p' | sed '/\x01/d' >shown
[ "$(wc -l <shown)" -ge 8 ] || fail "too_large.md shows too little of a plan"
while IFS= read -r line; do
  grep -qxF -- "$line" plan || fail "too_large.md: plan does not print '$line'"
done <shown

# Every line that the page shows of a plan of clusters is one that krigtune prints.
blocks which_machine.md '' | sed '/\x01/d' >shown
grep '^\$ ' shown | sed 's/^\$ krigtune //' >commands
[ "$(wc -l <commands)" -eq 4 ] || fail "which_machine.md does not plan four jobs"
while read -r line; do
  (cd "$2" && krigtune $line) >>plans 2>err || fail "krigtune $line"
done <commands
grep -v '^\$ \|^\.\.\.$\|^$' shown >lines
[ "$(wc -l <lines)" -ge 30 ] || fail "which_machine.md shows too little"
while IFS= read -r line; do
  grep -qxF -- "$line" plans || fail "which_machine.md: plan does not print '$line'"
done <lines

first_block noisy_trials.md python >noisy.py
krigtune tune --trials 3 --vary 'micro_batch=--mbs:1..16:log2' --vary 'workers=--workers:0,2,4,8' \
  --metric 'samples/s ([0-9.]+)' -- python3 noisy.py --mbs 1 --workers 0 >out 2>err || fail "noisy.py is not tuned"
grep -q '^trials     3: ' out || fail "noisy.py: not three trials"
echo "the guides show what krigtune prints"

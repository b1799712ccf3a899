#!/bin/bash
# usage: serve.sh KRIGTUNE SOURCE_DIR
# Sends the requests of docs/serve.md to the program and compares its answers with those of the page. Then a server is
# killed with -9 after each of several answers, and nothing that it has answered is lost.
set -euo pipefail
source "$2/tests/e2e/readme.sh"
enter_workshop "$1"
page=$2/docs/serve.md

take_example "$page" requests
take_example "$page" answers
touch out
krigtune serve --stdio <requests >given 2>err || fail "the server ends with $?"
[ ! -s err ] || fail "it says something on standard error"
# The first answer is shortened on the page.
sed 's/^\({"id":1,"result":{"protocol":1,\).*/\1...}}/' given >shown
diff answers shown >out || fail "the answers are not those of docs/serve.md"
[ "$(tail -n +2 runs/sort/trials.csv | cut -d, -f1,2 | tr '\n' ' ')" = "0,ok 1,oom " ] || fail "trials.csv at the end"

told=0
for round in $(seq 10); do
  coproc server { exec krigtune serve --stdio 2>err; }
  process=$server_PID
  exec 7<&"${server[0]}" 8>&"${server[1]}"
  call() { printf '%s\n' "$1" >&8; read -r answer <&7; [[ $answer != *'"error"'* ]] || fail "$answer"; }
  head -1 requests >&8
  read -r answer <&7
  [[ $answer == *"\"closed\":$((told + 2)),"* ]] || fail "round $round: $told trials more were told: $answer"
  call '{"id": 1, "method": "ask"}'
  trial=$(echo "$answer" | sed -n 's/.*"trial":\([0-9]*\).*/\1/p')
  call "{\"id\": 2, \"method\": \"tell\", \"params\": {\"trial\": $trial, \"value\": $((1000 + round))}}"
  told=$((told + 1))
  kill -9 "$process"
  wait "$process" 2>/dev/null || true
  exec 7<&- 8>&-
done
echo '{"id": 1, "method": "open", "params": {"directory": "runs/sort"}}
{"id": 2, "method": "trials"}' | krigtune serve --stdio >given
[ "$(tail -1 given | grep -o '"status":"ok"' | wc -l)" -eq $((told + 1)) ] || fail "a trial is lost"
echo "the answers of the page, and $told trials of servers that were killed"

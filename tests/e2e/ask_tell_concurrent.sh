#!/bin/bash
# usage: ask_tell_concurrent.sh KRIGTUNE
# Three shells ask and tell while a tune runs in the same directory. No
# configuration is measured twice, every trial is closed once, and the result files
# have all trials. The space has more configurations than all of them could ask for.
set -euo pipefail
krigtune=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $*" >&2; cat ./*.err >&2; exit 1; }

cat >trial.sh <<'SH'
#!/bin/sh
a=$(sed -n 's/.*"a": *\([0-9]*\).*/\1/p' "$1")
echo "{\"speed\": $((100 + a))}" >"$2"
SH
chmod +x trial.sh
cat >session.json <<'JSON'
{
  "space": {"a": {"min": 1, "max": 12}, "b": [1, 2, 3, 4, 5, 6, 7, 8]}, "baseline": null,
  "objective": {"metric": "speed", "direction": "maximize"},
  "runner": {"kind": "command", "argv": ["./trial.sh", "{config}", "{result}"], "timeout_s": 60},
  "budget": {"trials": 30, "regret": 0, "least_gain": 0}
}
JSON
common=(--strategy random --seed 3)

hand() { # NAME: asks and tells eight times
  local asked trial
  for _ in $(seq 8); do
    asked=$("$krigtune" ask run --session session.json "${common[@]}" 2>>"$1.err") || return 1
    trial=$(echo "$asked" | sed -n 's/.*"trial":\([0-9]*\).*/\1/p')
    "$krigtune" tell run --trial "$trial" --value "$((100 + trial))" 2>>"$1.err" || return 1
    echo "$trial" >>"$1.told"
  done
}

"$krigtune" ask run --session session.json "${common[@]}" >first.out 2>first.err || fail "the first ask"
"$krigtune" tune session.json --out run "${common[@]}" >tune.out 2>tune.err &
tune=$!
shells=()
for name in one two three; do
  hand $name &
  shells+=($!)
done
for shell in "${shells[@]}"; do wait "$shell" || fail "a shell could not go on"; done
wait $tune || fail "tune ends with $?"
"$krigtune" tell run --trial 0 --status oom 2>>first.err || fail "the first trial waited all the time"

told=$(cat ./*.told | wc -l)
[ "$told" -eq 24 ] || fail "24 trials were told, not $told"
[ -z "$(cat ./*.told | sort | uniq -d)" ] || fail "a trial was given to two shells"
rows=$(tail -n +2 run/trials.csv | wc -l)
[ "$rows" -ge 30 ] || fail "30 trials at least, there are $rows"
[ -z "$(tail -n +2 run/trials.csv | cut -d, -f1 | sort | uniq -d)" ] || fail "a trial number stands twice"
[ -z "$(tail -n +2 run/trials.csv | cut -d, -f5,6 | sort | uniq -d)" ] || fail "a configuration was measured twice"
for name in one two three; do
  while read -r trial; do
    awk -F, -v t="$trial" '$1 == t && $2 == "ok" && $7 == 100 + t { found = 1 } END { exit !found }' run/trials.csv ||
      fail "what was told of trial $trial is not in trials.csv"
  done <$name.told
done
echo "$rows trials of three shells and a tune, none twice, none lost"

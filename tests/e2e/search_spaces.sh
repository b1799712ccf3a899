#!/bin/bash
# usage: search_spaces.sh KRIGTUNE SOURCE_DIR [all]
# The sessions that experiments/search writes: krigtune accepts every variant, and each row of its table is a
# configuration of its space. Takes the smallest space of each set, or all of them. Then run.sh compares three of
# them, and --told has a line for each.
set -euo pipefail
krigtune=$(realpath "$1")
search=$2/experiments/search
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

"$search/spaces.py" "$work"
cd "$work"
# set, space and number of rows, so that the first line of a set is its smallest space
tail -n +2 spaces.csv | awk -F, '$3 == "physics" { print $1, $2, $5 }' | while read -r set space table; do
  echo "$set $space $(wc -l <"$table")"
done | sort -k1,1 -k3,3n >sizes
if [ "${3:-}" = all ]; then cp sizes chosen; else awk '!seen[$1]++' sizes >chosen; fi
[ "$(awk '!seen[$1]++' chosen | wc -l)" -eq 7 ] || fail "7 sets were expected: $(cat chosen)"

checked=0
while IFS=, read -r set space _ session table _; do
  grep -q "^$set $space " chosen || continue
  "$krigtune" plan "$session" --csv plan.csv >/dev/null 2>plan.err || fail "$session: $(cat plan.err)"
  # After the header, a line for each configuration.
  [ "$(wc -l <plan.csv)" -eq "$(wc -l <"$table")" ] ||
    fail "$session has $(wc -l <plan.csv) configurations and $table $(wc -l <"$table") rows"
  rm plan.csv
  checked=$((checked + 1))
done < <(tail -n +2 spaces.csv)
# 14 variants that every session has, and some that only some have
[ "$checked" -ge 98 ] || fail "only $checked sessions were checked"

mkdir -p build/bin && ln -s "$krigtune" build/bin/krigtune
"$search/run.sh" out --only '^worlds_known,deepseek.*,(physics|cluster_only|unknown_knob),' --seeds 1 --wrong-seeds 1 \
  --strategies bayes --jobs 2 build
"$search/summarise.py" out --told >told.md
for line in everything 'cluster only' 'unknown knob'; do
  grep -qE "^\| bayes: $line \| [0-9.]+ \([0-9.]+\), [0-9.]+ \|$" told.md || fail "no line for $line: $(cat told.md)"
done

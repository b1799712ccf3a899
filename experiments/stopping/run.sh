#!/bin/sh
# Sessions on the tables of experiments/search, told rightly, little and wrongly, ended by their own rules.
# usage: experiments/stopping/run.sh OUT [SEEDS] [build folder]     OUT/ends.csv (a row a session), OUT/summary.csv
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { sed -n '3p' "$0" >&2; exit 2; }
out=$1 seeds=${2:-1} build=${3:-$here/../../build/release}
"$here/../search/spaces.py" "$out"
# Of vtrain's forty small spaces all, told everything and no workload; of the others every column.
sessions=$(awk -F, 'NR > 1 && ($1 != "vtrain" || $3 == "physics" || $3 == "no_workload") { print $4 }' "$out/spaces.csv")
rm -rf "$out/parts" && mkdir "$out/parts"
# shellcheck disable=SC2016
(cd "$out" && echo "$sessions" | xargs -n 8 -P "$(nproc)" sh -c '"$0" "$@" >"$(mktemp parts/XXXXXX)"' \
  "$(realpath "$build/bin/stopping")" "$seeds")
first=$(find "$out/parts" -type f | head -1)
{ head -1 "$first"; find "$out/parts" -type f -exec tail -qn +2 {} + | sort; } >"$out/ends.csv"
"$here/summarise.py" "$out" | tee "$out/summary.csv"

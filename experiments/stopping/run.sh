#!/bin/sh
# Replays sessions that know everything, little or wrong things about the tables of experiments/search, until they end.
# usage: experiments/stopping/run.sh OUT [SEEDS] [build folder]     OUT/ends.csv (a row per session), OUT/summary.csv
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { sed -n '3p' "$0" >&2; exit 2; }
out=$1 seeds=${2:-1} build=${3:-$here/../../build/release}
"$here/../search/spaces.py" "$out"
# For the forty small spaces of vtrain, only the variants with everything and
# with no workload; for the others every variant.
sessions=$(awk -F, 'NR > 1 && ($1 != "vtrain" || $3 == "physics" || $3 == "no_workload") { print $4 }' "$out/spaces.csv")
rm -rf "$out/parts" && mkdir "$out/parts"
# shellcheck disable=SC2016
(cd "$out" && echo "$sessions" | xargs -n 8 -P "$(nproc)" sh -c '"$0" "$@" >"$(mktemp parts/XXXXXX)"' \
  "$(realpath "$build/bin/stopping")" "$seeds")
first=$(find "$out/parts" -type f | head -1)
{ head -1 "$first"; find "$out/parts" -type f -exec tail -qn +2 {} + | sort; } >"$out/ends.csv"
"$here/summarise.py" "$out" | tee "$out/summary.csv"

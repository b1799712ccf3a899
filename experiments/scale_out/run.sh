#!/bin/sh
# Replays the tables of experiments/search with 1, 2, 4 and 8 workers on a virtual clock, by bayes and at random.
# usage: experiments/scale_out/run.sh OUT [SEEDS] [build folder]     OUT/found.csv (a row per session), OUT/summary.csv
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { sed -n '3p' "$0" >&2; exit 2; }
out=$1 seeds=${2:-3} build=${3:-$here/../../build/release}
"$here/../search/spaces.py" "$out"
# All spaces: those that say nothing about the workload, and those that say
# everything.
sessions=$(awk -F, 'NR > 1 && ($3 == "physics" || $3 == "no_workload") { print $4 }' "$out/spaces.csv")
rm -rf "$out/parts" && mkdir "$out/parts"
# shellcheck disable=SC2016
(cd "$out" && echo "$sessions" | xargs -n 4 -P "$(nproc)" sh -c '"$0" "$@" >"$(mktemp parts/XXXXXX)"' \
  "$(realpath "$build/bin/scale_out")" "$seeds")
first=$(find "$out/parts" -type f | head -1)
{ head -1 "$first"; find "$out/parts" -type f -exec tail -qn +2 {} + | sort; } >"$out/found.csv"
"$here/summarise.py" "$out" | tee "$out/summary.csv"

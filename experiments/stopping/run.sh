#!/bin/sh
# Replays sessions that know everything, little or wrong things about the tables of experiments/search, until they end.
# usage: experiments/stopping/run.sh OUT [SEEDS] [build folder]     OUT/ends.csv (a row per session), OUT/summary.csv
# SUBSET=1: only the 102 sessions of the README's first table (physics, as_fsdp, half_model, cluster_only).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { sed -n '3p' "$0" >&2; exit 2; }
out=$1 seeds=${2:-1} build=${3:-$here/../../build/release}
"$here/../search/spaces.py" "$out"
# For the forty small spaces of vtrain, only the variants with everything and
# with no workload; for the others every variant. The subset has every eighth
# of the forty, and the simulated clusters with everything.
if [ -n "${SUBSET:-}" ]; then
  sessions=$(awk -F, 'NR > 1 && $1 == "vtrain" && $3 == "physics" { print $2 }' "$out/spaces.csv" | LC_ALL=C sort |
    awk 'NR % 8 == 1 { print }' | awk -F, 'NR == FNR { eighth[$1]; next }
      FNR == 1 || $3 !~ /^(physics|as_fsdp|half_model|cluster_only)$/ || $1 ~ /^worlds/ { next }
      $1 == "simulated" && $3 != "physics" || $1 == "vtrain" && !($2 in eighth) { next } { print $4 }' - "$out/spaces.csv")
else
  sessions=$(awk -F, 'NR > 1 && ($1 != "vtrain" || $3 == "physics" || $3 == "no_workload") { print $4 }' "$out/spaces.csv")
fi
rm -rf "$out/parts" && mkdir "$out/parts"
# shellcheck disable=SC2016
(cd "$out" && echo "$sessions" | xargs -n 8 -P "$(nproc)" sh -c '"$0" "$@" >"$(mktemp parts/XXXXXX)"' \
  "$(realpath "$build/bin/stopping")" "$seeds")
first=$(find "$out/parts" -type f | head -1)
{ head -1 "$first"; find "$out/parts" -type f -exec tail -qn +2 {} + | sort; } >"$out/ends.csv"
"$here/summarise.py" "$out" | tee "$out/summary.csv"

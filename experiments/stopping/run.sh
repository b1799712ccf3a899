#!/bin/sh
# Sessions on the tables of experiments/search, with physics and without, ended by their own rules.
# usage: experiments/stopping/run.sh OUT [SEEDS] [build folder]     OUT/ends.csv (a row a session), OUT/summary.txt
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { sed -n '3p' "$0" >&2; exit 2; }
out=$1 seeds=${2:-3} build=${3:-$here/../../build/release}
"$here/../search/spaces.py" "$out"
"$build/bin/stopping" "$seeds" "$out"/sessions/ultrascale_dev*_physics.json "$out"/sessions/ultrascale_dev*_no_workload.json \
  "$out"/sessions/vtrain*_physics.json "$out"/sessions/vtrain*_no_workload.json >"$out/ends.csv" 2>"$out/summary.txt"
cat "$out/summary.txt"

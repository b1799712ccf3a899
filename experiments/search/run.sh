#!/bin/sh
# Runs krigtune's strategies on every space: OUT/spaces.csv, OUT/runs/<set>_<space>_<variant>.csv (comparison.csv).
# usage: experiments/search/run.sh OUT [--only TEXT] [--seeds N]
#        [--strategies A,B] [--wrong-seeds N] [--worlds N] [build folder]
#   --only TEXT      only sessions whose name matches this extended regular
#                    expression: 'ultrascale_dev.*(physics|workload)'
#   --seeds N        seeds of each strategy (30)
#   --wrong-seeds N  seeds of bayes if its beliefs are wrong (5)
#   --worlds N       instead of all spaces, the simulated clusters in N other
#                    worlds each (needs measure_table)
#   --strategies     with right physics and with no workload
#                    (bayes,random,grid,stagewise); with wrong physics only bayes
# Existing results are not computed again: remove OUT/runs to start again.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
usage() { sed -n '3,4p' "$0" >&2; exit 2; }
[ $# -ge 1 ] || usage
out=$1; shift
only=. seeds=30 wrong_seeds=5 worlds=0 strategies=bayes,random,grid,stagewise build=$here/../../build/release
while [ $# -gt 0 ]; do
  case $1 in
    --only) only=$2; shift 2 ;;
    --seeds) seeds=$2; shift 2 ;;
    --wrong-seeds) wrong_seeds=$2; shift 2 ;;
    --strategies) strategies=$2; shift 2 ;;
    --worlds) worlds=$2; shift 2 ;;
    -*) usage ;;
    *) build=$1; shift ;;
  esac
done

if [ "$worlds" -gt 0 ]; then
  "$here/spaces.py" --worlds "$worlds" "$build/bin/measure_table" "$out"
else
  "$here/spaces.py" "$out"
fi
mkdir -p "$out/runs"
# Uses a file, because a command inside the loop must not read the loop's input.
tail -n +2 "$out/spaces.csv" | grep -E -- "$only" >"$out/todo.csv" || { echo "no session matches $only" >&2; exit 2; }
while IFS=, read -r _ _ variant session _; do
  name=$(basename "$session" .json)
  [ -e "$out/runs/$name.csv" ] && continue
  who=bayes n=$wrong_seeds
  case $variant in physics | no_workload) who=$strategies n=$seeds ;; esac
  "$build/bin/krigtune" compare "$out/$session" --strategies "$who" --seeds "$n" --quiet --out "$out/compare" \
    >"$out/compare.log" 2>&1 </dev/null || { cat "$out/compare.log" >&2; exit 1; }
  mv "$out/compare/comparison.csv" "$out/runs/$name.csv"
done <"$out/todo.csv"

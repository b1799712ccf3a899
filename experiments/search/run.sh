#!/bin/sh
# Runs krigtune's strategies on every space: OUT/spaces.csv, OUT/runs/<set>_<space>_<variant>.csv (comparison.csv).
# usage: experiments/search/run.sh OUT [--only TEXT] [--seeds N] [--strategies A,B] [--wrong-seeds N]
#        [--wrong-strategies A,B] [--jobs N] [--worlds N | --computed FOLDER] [build folder]
#   --only TEXT         only sessions whose name matches this extended regular
#                       expression: 'ultrascale_dev.*(physics|workload)'
#   --seeds N           seeds of each strategy (30)
#   --strategies        with right physics and with no workload
#                       (bayes,random,grid,stagewise)
#   --wrong-seeds N     seeds with every other variant (5)
#   --wrong-strategies  with every other variant (bayes)
#   --jobs N            how many sessions are compared at once (1)
#   --worlds N          instead of all spaces, the simulated clusters in N other
#                       worlds each (needs measure_table)
#   --computed FOLDER   instead of all spaces, the worlds of this folder
#                       (calculon_worlds.py)
# Existing results are not computed again: remove OUT/runs to start again. A session that krigtune refuses has no
# result; its message is printed, and the exit code is 1 at the end.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
usage() { sed -n '3,4p' "$0" >&2; exit 2; }
[ $# -ge 1 ] || usage
out=$1; shift
only=. seeds=30 wrong_seeds=5 worlds=0 computed='' jobs=1 build=$here/../../build/release
strategies=bayes,random,grid,stagewise wrong_strategies=bayes
while [ $# -gt 0 ]; do
  case $1 in
    --only) only=$2; shift 2 ;;
    --seeds) seeds=$2; shift 2 ;;
    --strategies) strategies=$2; shift 2 ;;
    --wrong-seeds) wrong_seeds=$2; shift 2 ;;
    --wrong-strategies) wrong_strategies=$2; shift 2 ;;
    --jobs) jobs=$2; shift 2 ;;
    --worlds) worlds=$2; shift 2 ;;
    --computed) computed=$2; shift 2 ;;
    -*) usage ;;
    *) build=$1; shift ;;
  esac
done

if [ -n "$computed" ]; then
  "$here/spaces.py" --computed "$computed" "$out"
elif [ "$worlds" -gt 0 ]; then
  "$here/spaces.py" --worlds "$worlds" "$build/bin/measure_table" "$out"
else
  "$here/spaces.py" "$out"
fi
mkdir -p "$out/runs"
tail -n +2 "$out/spaces.csv" | grep -E -- "$only" >"$out/chosen.csv" || { echo "no session matches $only" >&2; exit 2; }
while IFS=, read -r _ _ variant session _; do
  name=$(basename "$session" .json)
  [ -e "$out/runs/$name.csv" ] && continue
  case $variant in
    physics | no_workload) echo "$session $name $strategies $seeds" ;;
    *) echo "$session $name $wrong_strategies $wrong_seeds" ;;
  esac
done <"$out/chosen.csv" >"$out/todo"

# shellcheck disable=SC2016
OUT=$out KRIGTUNE=$build/bin/krigtune xargs -r -n 4 -P "$jobs" sh -c '
  folder=$OUT/compare/$1
  mkdir -p "$folder"
  if "$KRIGTUNE" compare "$OUT/$0" --strategies "$2" --seeds "$3" --quiet --out "$folder" >"$folder.log" 2>&1 </dev/null
  then mv "$folder/comparison.csv" "$OUT/runs/$1.csv"
  else echo "$1: $(tail -n 2 "$folder.log")" >&2; exit 1
  fi' <"$out/todo" || exit 1

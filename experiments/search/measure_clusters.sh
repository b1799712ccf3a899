#!/bin/sh
# Measures the six simulated clusters, every configuration once, into
# simulated/*.csv, and the same with frozen weights into simulated/adapters.
# usage: experiments/search/measure_clusters.sh [build folder]
# (default build/release; takes a minute)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../../build/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --build "$build" --target measure_table >&2
python3 "$here/spaces.py" --clusters "$work"
mkdir -p "$here/simulated/adapters"
for session in "$work"/*.json; do
  name=$(basename "$session" .json)
  "$build/bin/measure_table" "$session" >"$here/simulated/$name.csv"
  "$build/bin/measure_table" --adapters "$session" >"$here/simulated/adapters/$name.csv"
done

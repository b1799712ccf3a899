#!/bin/sh
# Measures the six simulated clusters, every configuration once, into
# simulated/*.csv. usage: experiments/search/measure_clusters.sh [build folder]
# (default build/release; takes a minute)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../../build/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --build "$build" --target measure_table >&2
python3 "$here/spaces.py" --clusters "$work"
mkdir -p "$here/simulated"
for session in "$work"/*.json; do
  "$build/bin/measure_table" "$session" >"$here/simulated/$(basename "$session" .json).csv"
done

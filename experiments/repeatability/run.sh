#!/bin/sh
# Five configurations, 20 runs of each, interleaved at random (about 5 minutes), and the table of how far runs are apart.
# The same command again goes on where TABLE.csv ends.
# usage: experiments/repeatability/run.sh TABLE.csv [repeats] [build folder]     (default 20, build/release)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
table=${1:?usage: run.sh TABLE.csv [repeats] [build folder]}
repeats=${2:-20}
build=${3:-$here/../../build/release}

cmake --build "$build" --target repeatability krigtune-bench >&2
"$build/bin/repeatability" run "$build/bin/krigtune-bench" "$table" --repeats "$repeats"
"$build/bin/repeatability" summary "$table"

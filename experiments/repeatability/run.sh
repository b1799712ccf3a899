#!/bin/sh
# Runs five configurations 20 times each, interleaved at random (about 5
# minutes), and prints the table of the differences between runs. The same command
# continues an interrupted TABLE.csv.
# usage: experiments/repeatability/run.sh TABLE.csv [repeats] [build folder]
#        (default 20, build/release)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
table=${1:?usage: run.sh TABLE.csv [repeats] [build folder]}
repeats=${2:-20}
build=${3:-$here/../../build/release}

cmake --build "$build" --target repeatability krigtune-bench >&2
"$build/bin/repeatability" run "$build/bin/krigtune-bench" "$table" --repeats "$repeats"
"$build/bin/repeatability" summary "$table"

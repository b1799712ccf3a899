#!/usr/bin/env bash
# consumer.sh PREFIX SOURCE BUILD CMAKE_ARGUMENT... -- PROGRAM ARGUMENT...:
# builds a project that knows only the installed krigtune in PREFIX, and runs
# its program in a folder of its own.
set -euo pipefail
prefix=$1 source=$2 build=$3
shift 3
arguments=()
while [[ $1 != -- ]]; do
  arguments+=("$1")
  shift
done
shift
rm -rf "$build"
cmake -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" "${arguments[@]}"
cmake --build "$build"
program=$build/$1
shift
"$program" "$@"

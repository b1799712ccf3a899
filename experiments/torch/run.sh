#!/usr/bin/env bash
# usage: experiments/torch/run.sh [--first] [OUT_FOLDER] [ROUNDS]
#        (default: runs/torch, 3 rounds)
# Trains 28 configurations with krigtune-bench and with PyTorch on 2 and 4 CPU
# ranks, and compares both with the predictions of krigtune plan: OUT/table.csv,
# summary.md, scatter.svg. It takes about 35 minutes on two cores; an interrupted
# run continues.
#   --first    give these runs priority over all other programs of a busy machine
#              (needs root); the others get a pause after each run
# It needs PyTorch, which it gets from PyPI. Exit codes: 0 done, 77 PyPI cannot be
# reached, 1 anything else.
set -euo pipefail
cd "$(dirname "$0")/../.."
first=()
slice=/proc/sys/kernel/sched_rr_timeslice_ms
if [ "${1:-}" = --first ]; then
  first=(--first)
  shift
  before=$(cat "$slice")
  trap 'echo "$before" >"$slice"' EXIT
  echo 3 >"$slice"
fi
out=${1:-runs/torch}
python=$(experiments/jobs_cpu/setup.sh torch)
[ -x build/release/bin/krigtune-bench ] || cmake --preset release
ninja -C build/release krigtune krigtune-bench >&2
mkdir -p "$out"
here=experiments/torch
for ranks in 2 4; do
  [ -s "$out/ranks_$ranks.json" ] ||
    "$python" "$here/ranks.py" "${first[@]}" $ranks build/release/bin/krigtune doctor --measure --out "$out/ranks_$ranks.json" >&2
  [ -s "$out/torch_$ranks.json" ] ||
    "$python" "$here/ranks.py" "${first[@]}" $ranks "$python" "$here/torch_rates.py" "$out/torch_$ranks.json" >&2
done
"$python" "$here/measure.py" "$out" "${first[@]}" --bench build/release/bin/krigtune-bench --python "$python" --rounds "${2:-3}"
"$python" "$here/summarize.py" "$out" --krigtune build/release/bin/krigtune

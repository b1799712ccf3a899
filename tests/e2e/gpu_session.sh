#!/usr/bin/env bash
# gpu_session.sh KRIGTUNE FAKE_DRIVER_DIR SESSION HAS_CUDA: if the driver
# reports an H100, a session whose GPU is "local" is planned with its memory and
# its rates; if the build cannot use it, with those of the CPU ranks.
set -euo pipefail
export LC_ALL=C  # awk and sort: numbers with a point
krigtune=$1 driver=$2 session=$3 has_cuda=$4

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed '/"limit_gib"/d' "$session" >"$work/session.json"

fail() {
  printf 'FAILED: %s\n' "$1"
  cat "$work/plan.txt"
  exit 1
}

FAKE_GPUS=1 LD_LIBRARY_PATH=$driver "$krigtune" plan "$work/session.json" --csv "$work/plan.csv" >"$work/plan.txt" 2>&1
usable=$(sed -n 's/.* fit into \([0-9.]*\) GiB a rank$/\1/p' "$work/plan.txt")
slowest=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "predicted_step_time_s") column = i }
                   NR > 1 && $column > slowest { slowest = $column } END { print slowest + 0 }' "$work/plan.csv")
printf 'usable %s GiB, slowest step %s s\n' "$usable" "$slowest"
if [[ $has_cuda == 1 ]]; then
  [[ $usable == 75.2 ]] || fail "not 95 % of the GPU's memory"
  awk -v s="$slowest" 'BEGIN { exit !(s > 0.01 && s < 5) }' || fail "not the steps of an H100"
else
  [[ $usable != 75.2 ]] || fail "the memory of a GPU that this build cannot use"
fi

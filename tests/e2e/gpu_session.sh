#!/usr/bin/env bash
# gpu_session.sh KRIGTUNE FAKE_DRIVER_DIR SESSION HAS_CUDA: if the driver
# reports an H100, a session whose GPU is "local" is planned with its memory and
# its rates; if the build cannot use it, with those of the CPU ranks. Rates that
# krigtune doctor --measure finds are measured once, and used in later plans.
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
here() { KRIGTUNE_CACHE=$work/cache FAKE_GPUS=1 LD_LIBRARY_PATH=$driver "$@"; }

plan() {
  here "$krigtune" plan "$work/session.json" --csv "$work/plan.csv" >"$work/plan.txt" 2>&1
  usable=$(sed -n 's/.* fit into \([0-9.]*\) GiB a rank$/\1/p' "$work/plan.txt")
  slowest=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "predicted_step_time_s") column = i }
                     NR > 1 && $column > slowest { slowest = $column } END { print slowest + 0 }' "$work/plan.csv")
  printf 'usable %s GiB, slowest step %s s\n' "$usable" "$slowest"
}

plan
if [[ $has_cuda == 1 ]]; then
  [[ $usable == 75.2 ]] || fail "not 95 % of the GPU's memory"
  awk -v s="$slowest" 'BEGIN { exit !(s > 0.01 && s < 5) }' || fail "not the steps of an H100"
else
  [[ $usable != 75.2 ]] || fail "the memory of a GPU that this build cannot use"
fi

[[ $has_cuda == 1 ]] || exit 0
# A GPU of a tenth of the H100's rate, of which 10 GiB are taken; the measuring program is a stand-in.
first=$slowest
mkdir "$work/bin"
cp "$krigtune" "$work/bin/krigtune"
cat >"$work/bin/krigtune-bench" <<'END'
#!/bin/sh
echo measured >>"$(dirname "$0")/calls"
cat <<'JSON'
{"device": "cuda", "processor": "NVIDIA H100 80GB HBM3", "memory_bytes": 85029158912, "taken_bytes": 10737418240,
 "hosts": ["a"], "nodes": [0], "copies": [], "collectives": [],
 "products": [{"precision": "bf16", "rows": 8192, "cols": 8192, "depth": 8192,
               "times": {"median_s": 0.017, "slowest_s": 0.017, "slowest_rank": 0}},
              {"precision": "bf16", "rows": 1024, "cols": 1024, "depth": 1024,
               "times": {"median_s": 0.00005, "slowest_s": 0.00005, "slowest_rank": 0}}]}
JSON
END
chmod +x "$work/bin/krigtune-bench"
doctor() { here "$work/bin/krigtune" doctor --measure "$@" >"$work/plan.txt" 2>&1 || fail "doctor $*"; }
calls() { wc -l <"$work/bin/calls"; }
doctor
doctor
[[ $(calls) == 1 ]] || fail "the same GPU was measured twice"
grep -q 'these are the rates of .*; --fresh measures again' "$work/plan.txt" || fail "nobody says that they are old"
doctor --fresh
[[ $(calls) == 2 ]] || fail "--fresh does not measure"
plan
[[ $usable == 68.9 ]] || fail "what is taken does not count"
awk -v s="$slowest" -v f="$first" 'BEGIN { exit !(s > 2 * f) }' || fail "not the measured rates"

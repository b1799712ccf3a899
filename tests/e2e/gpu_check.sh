#!/bin/bash
# usage: gpu_check.sh BIN SOURCE
# scripts/gpu-check in miniature on CPU ranks, with the programs of the folder BIN: every stage passes and every table has
# rows. With programs that fail, every stage is tried and reported.
set -uo pipefail
bin=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; cat "$work"/*.log >&2; exit 1; }

"$source/scripts/gpu-check" --rehearse "$bin" "$work/out" >"$work/good.log" 2>&1 || fail "the rehearsal ends with code $?"
[ "$(grep -c '^passed' "$work/good.log")" = 6 ] || fail "not all of six stages have passed"
for table in losses:81 kernels:30 attention:7 gemm:13 pacing:4 goals:5 trials:5; do
  file=$work/out/${table%:*}.csv
  [ "$(wc -l <"$file")" -ge "${table#*:}" ] || fail "$file has too few lines: $(cat "$file")"
  awk -F, 'NR == 1 {fields = NF} NF != fields {exit 1}' "$file" || fail "$file has rows of another length: $(cat "$file")"
done
for file in README.md hardware.txt best.json; do [ -s "$work/out/$file" ] || fail "there is no $file"; done

mkdir "$work/bin"
for program in krigtune krigtune-bench test_engine_cuda_kernels_on_cpu test_engine_gpu_rates_on_cpu; do
  ln -s "$(command -v false)" "$work/bin/$program"
done
"$source/scripts/gpu-check" --rehearse "$work/bin" "$work/bad" >"$work/bad.log" 2>&1
[ $? = 1 ] || fail "failing stages should end with code 1"
[ "$(grep -c '^FAILED' "$work/bad/README.md")" -ge 5 ] || fail "README.md does not say which stages failed"

"$source/scripts/gpu-check" --rehearse "$bin" >"$work/usage.log" 2>&1
[ $? = 2 ] || fail "--rehearse without a folder for the tables is bad usage"

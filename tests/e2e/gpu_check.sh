#!/bin/bash
# usage: gpu_check.sh BUILD SOURCE
# scripts/gpu-check --rehearse with the programs of the build folder BUILD. Every
# stage passes on the emulated GPU, and every table has rows. A stage that fails or
# hangs is reported, the others continue, and results of earlier runs stay.
set -uo pipefail
build=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; tail -n 30 "$work"/*.log "$work"/out/logs/*.log >&2; exit 1; }

bundle=$work/bundle
mkdir -p "$bundle"/rehearse/lib
put() { ln -f "$build/$1" "$bundle/rehearse/$2" 2>/dev/null || cp "$build/$1" "$bundle/rehearse/$2"; }
put bin/krigtune krigtune
put bin/krigtune-bench krigtune-bench
put bin/test_bench_cuda_on_cpu krigtune-bench-cuda
put bin/test_engine_gpu_rates_on_cpu gpu_rates
put bin/test_engine_cuda_kernels_on_cpu test_engine_cuda_kernels
put tests/fake_driver/libcuda.so.1 lib/libcuda.so.1
put tests/fake_nvml/libnvidia-ml.so.1 lib/libnvidia-ml.so.1
check() { "$source/scripts/gpu-check" --prebuilt "$bundle" --rehearse "$@"; }
rows() { grep -c "$1" "$work/out/summary.md"; }

GPU_CHECK_LIMIT_S=600 HOME=$work/home check --minutes 30 "$work/out" >"$work/good.log" 2>&1 || fail "the rehearsal ends with code $?"
[ "$(grep -c '^passed' "$work/good.log")" = 7 ] || fail "not all of seven stages have passed"
[ "$(rows FAIL)" = 0 ] || fail "a row of a good rehearsal has failed"
[ ! -e "$work/home" ] || fail "something was written outside OUT"
for table in losses:13 kernels:30 attention:7 gemm:13 pacing:4 goals:6 trials:5; do
  file=$work/out/${table%:*}.csv
  [ "$(wc -l <"$file")" -ge "${table#*:}" ] || fail "$file has too few lines: $(cat "$file")"
  awk -F, 'NR == 1 {fields = NF} NF != fields {exit 1}' "$file" || fail "$file has rows of another length: $(cat "$file")"
done
tar -xzf "$work/out/gpu-check.tar.gz" -C "$work/bundle" || fail "the archive cannot be unpacked"
for file in summary.md versions.txt losses.csv logs/tests.log stages/goals.csv best.json; do
  cmp "$work/bundle/$file" "$work/out/$file" || fail "the archive has another $file"
done

# Kernel tests that hang and rates that fail are reported, the next stage runs,
# and the goals of the first run stay.
printf '#!/bin/sh\nsleep 100\n' >"$work/hangs"
printf '#!/bin/sh\nexit 1\n' >"$work/fails"
chmod +x "$work/hangs" "$work/fails"
ln -sf "$work/hangs" "$bundle/rehearse/test_engine_cuda_kernels"
ln -sf "$work/fails" "$bundle/rehearse/gpu_rates"
GPU_CHECK_LIMIT_S=12 check --only tests,rates,memcheck "$work/out" >"$work/bad.log" 2>&1
[ $? = 1 ] || fail "failing stages should end with code 1"
grep -q '^\.\.\. .*tests, of 12 s' "$work/bad.log" || fail "no heartbeat"
grep -q '| tests | .*ended after its limit of 12 s' "$work/out/summary.md" || fail "the stage that hung is not in the summary"
grep -q '| rates | rates | code 1' "$work/out/summary.md" || fail "the stage that failed is not in the summary"
grep -q '^passed .*memcheck' "$work/bad.log" || fail "the stage after the one that failed was not run"
grep -q '^| goals | passed' "$work/out/summary.md" || fail "the results of the first run are gone"
! pgrep -f "$work/hangs" || fail "what hung still runs"

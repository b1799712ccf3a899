#!/bin/bash
# usage: gpu_check_scripts.sh SOURCE
# scripts/gpu-check and scripts/gpu-bundle without any program. Bad usage is
# refused in one line, missing libraries are named, and the summary of recorded
# (invented) results in golden/gpu_check equals the recorded summary. To write a
# new one: scripts/gpu-check --summary tests/golden/gpu_check.
set -uo pipefail
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; cat "$work"/log >&2; exit 1; }

# refused CODE TEXT ARGUMENT...
refused() {
  local code=$1 text=$2 got
  shift 2
  "$source/scripts/gpu-check" "$@" >"$work/log" 2>&1
  got=$?
  [ $got = "$code" ] || fail "gpu-check $* ends with code $got, not $code"
  [ "$(wc -l <"$work/log")" = 1 ] || fail "gpu-check $*: not one line"
  grep -qF -- "$text" "$work/log" || fail "gpu-check $*: not '$text'"
}
refused 2 "name a folder for the results"
refused 2 "--only: there is no stage 'rate'; stages are libraries tests" --only tests,rate "$work/out"
refused 2 "--only needs a value" --only
refused 2 "--quick: unknown option" --quick "$work/out"
refused 2 "is one folder too many" "$work/out" "$work/other"
refused 2 "--libraries: there is no folder '/nowhere'" --libraries "$work:/nowhere" "$work/out"
refused 2 "--minutes 0: a whole number" --minutes 0 "$work/out"
refused 2 "--prebuilt: there is no folder '/nowhere'" --prebuilt /nowhere "$work/out"
refused 2 "--prebuilt: there is no '$work/bin/krigtune-bench-cuda'; scripts/gpu-bundle DIR" --prebuilt "$work" "$work/out"
refused 2 "--rehearse needs --prebuilt DIR" --rehearse "$work/out"
refused 2 "has no results" --summary "$work"
for arguments in "" "--nothing" "a b" "$source/scripts"; do
  # shellcheck disable=SC2086  # one or two words
  "$source/scripts/gpu-bundle" $arguments >"$work/log" 2>&1
  [ $? = 2 ] || fail "gpu-bundle $arguments is bad usage"
done

# A bundle whose programs lack a library, on a machine without a GPU.
mkdir -p "$work/bundle/bin" "$work/path"
for program in krigtune krigtune-bench krigtune-bench-cuda gpu_rates test_engine_cuda_kernels; do
  printf '#!/bin/sh\necho "{\\"gpus\\":0,\\"reason\\":\\"cudaErrorNoDevice\\"}"\nexit 77\n' >"$work/bundle/bin/$program"
  chmod +x "$work/bundle/bin/$program"
done
# shellcheck disable=SC2016  # the other script's
printf '#!/bin/sh\n[ "$1" = --version ] || printf "\\tlibnlopt.so.0 => not found\\n"\n' >"$work/path/ldd"
chmod +x "$work/path/ldd"
PATH=$work/path:$PATH "$source/scripts/gpu-check" --prebuilt "$work/bundle" "$work/out" >"$work/log" 2>&1
[ $? = 3 ] || fail "a library that is missing ends with code 3"
grep -q 'krigtune-bench-cuda needs libnlopt.so.0' "$work/out/summary.md" || fail "the summary does not name the library"
[ -s "$work/out/gpu-check.tar.gz" ] || fail "there is no archive"
printf '#!/bin/sh\n' >"$work/path/ldd"
PATH=$work/path:$PATH "$source/scripts/gpu-check" --prebuilt "$work/bundle" "$work/out" >"$work/log" 2>&1
[ $? = 77 ] || fail "a machine without a GPU ends with code 77"
grep -q 'no GPU: cudaErrorNoDevice' "$work/log" || fail "it does not say why there is no GPU"

cp -r "$source/tests/golden/gpu_check" "$work/recorded" && rm "$work/recorded/summary.md"
"$source/scripts/gpu-check" --summary "$work/recorded" >"$work/log" 2>&1 || fail "no summary: code $?"
diff "$source/tests/golden/gpu_check/summary.md" "$work/recorded/summary.md" >"$work/log" || fail "another summary"

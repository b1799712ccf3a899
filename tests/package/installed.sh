#!/usr/bin/env bash
# installed.sh BUILD PREFIX installs the build into PREFIX and uses it like a
# user: programs that find each other, a session, manual pages that groff reads
# without a warning, and the schema.
set -euo pipefail
build=$1 prefix=$2
rm -rf "$prefix"
cmake --install "$build" --prefix "$prefix" >/dev/null
fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

# A single copied program would find the other one in the build.
[[ $("$prefix/bin/krigtune" --version) == "krigtune "* ]] || fail "krigtune --version says something else"
work=$prefix/session
mkdir "$work"
cd "$work"
cat >job.json <<'JSON'
{
  "workload": {"model": {"layers": 1, "hidden": 32, "heads": 2, "vocab": 64, "seq_len": 16}, "precision": "fp32",
               "train_batch_size": 4},
  "cluster": {"gpu": "local", "gpus_per_node": 2},
  "space": {"zero_stage": [0, 1], "micro_batch": [1, 2]},
  "baseline": {"zero_stage": 0, "micro_batch": 1},
  "runner": {"kind": "bench", "warmup_s": 0.05, "measure_s": 0.2}
}
JSON
"$prefix/bin/krigtune" tune job.json --out run --trials 2 --quiet >summary.txt || fail "tune failed: $(cat summary.txt)"
grep -q '"best_trial"\|"trial"' run/best.json || fail "no best.json"
grep -rqF "$prefix/bin/krigtune-bench" run || fail "the installed krigtune did not start the installed krigtune-bench"

for page in krigtune krigtune-tune krigtune-bench; do
  file=$prefix/share/man/man1/$page.1.gz
  [[ -s $file ]] || fail "no manual page $file"
  if command -v groff >/dev/null; then
    warnings=$(gzip -dc "$file" | groff -man -ww -Tutf8 2>&1 >/dev/null)
    [[ -z $warnings ]] || fail "$page.1: $warnings"
  fi
done
for file in share/bash-completion/completions/krigtune share/zsh/site-functions/_krigtune \
  share/fish/vendor_completions.d/krigtune.fish share/doc/krigtune/README.md share/doc/krigtune/docs/session.md; do
  [[ -s $prefix/$file ]] || fail "not installed: $file"
done
"$prefix/bin/krigtune" init --schema | cmp - "$prefix/share/krigtune/session.schema.json"

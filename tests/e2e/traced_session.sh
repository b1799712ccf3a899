#!/bin/bash
# usage: traced_session.sh KRIGTUNE KRIGTUNE_BENCH
# A session starts only krigtune-bench or the program that the session names: no shell
# and nothing else.
set -euo pipefail
krigtune=$1
bench=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
skip() { echo "SKIP: $*"; exit 77; }
command -v strace >/dev/null || skip "strace is not installed"
strace -qq -o /dev/null true 2>/dev/null || skip "strace may not trace here (ptrace)"

printf '#!/bin/bash\necho "{\\"v\\": 1.5}" >"$2"\n' >"$work/own"  # only builtins of the shell: it starts nothing itself
chmod +x "$work/own"
cat >"$work/command.json" <<JSON
{"space": {"a": ["x; touch $work/hacked", "\$(touch $work/hacked)", "\`touch $work/hacked\`", "|touch $work/hacked"]},
 "objective": {"metric": "v", "direction": "maximize"}, "baseline": null,
 "runner": {"kind": "command", "argv": ["./own", "{config}", "{result}", "{a}"]},
 "budget": {"trials": 4, "regret": 0, "least_gain": 0}}
JSON
cat >"$work/bench.json" <<'JSON'
{"workload": {"model": {"layers": 1, "hidden": 32, "heads": 2, "vocab": 64, "seq_len": 8}, "train_batch_size": 8},
 "cluster": {"gpus_per_node": 2, "gpu": "local"}, "space": {"zero_stage": [0, 1, 2, 3]}, "baseline": null,
 "memory": {"limit_gib": 1}, "runner": {"kind": "bench", "warmup_s": 0.05, "measure_s": 0.1, "timeout_s": 60},
 "budget": {"trials": 2, "regret": 0, "least_gain": 0}}
JSON

# traced SESSION PROGRAM: the executed programs, each counted once, are krigtune
# itself and PROGRAM (and the one that looks for GPUs).
traced() {
  local session=$1 program=$2
  strace -f -qq -e trace=execve,execveat -s 4096 -o "$work/trace" "$krigtune" tune "$work/$session" --out "$work/run.$session" \
    --full-budget >"$work/out" 2>"$work/err" || { cat "$work/err" >&2; fail "the session $session"; }
  sed -n 's/^[0-9]* *execve[a-z]*("\([^"]*\)".* = 0$/\1/p' "$work/trace" | sort | uniq -c >"$work/executed"
  # An interrupted call takes two lines; the first one begins it.
  sed -n 's/^[0-9]* *execve[a-z]*("\([^"]*\)".*<unfinished ...>$/\1/p' "$work/trace" >>"$work/executed"
  while read -r _ executed; do
    case $executed in
      "$krigtune" | "$program" | ./own | "$(dirname "$bench")"/krigtune-bench-cuda | */nvidia-smi) ;;
      "") ;;
      *) fail "$session executed '$executed'" ;;
    esac
  done <"$work/executed"
  grep -qF -- "$program" "$work/executed" || fail "$program was not seen: nothing was traced"
}

traced command.json ./own
traced bench.json "$bench"
[ ! -e "$work/hacked" ] || fail "a value of the space was executed"

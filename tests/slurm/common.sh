# shellcheck shell=bash disable=SC2154,SC2034  # the scripts that source this set krigtune and read rc
# Sourced by the tests of this folder, with KRIGTUNE in $krigtune: a Slurm on
# this machine for the test, a session whose trials are a small script, and what
# must be true after every session. Skips (77) with one line if Slurm is
# missing.
export LC_ALL=C
export PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for program in slurmctld slurmd sbatch srun squeue; do
  command -v $program >/dev/null || {
    echo "skipped: no $program (apt-get install --no-install-recommends slurmctld slurmd slurm-client slurm-wlm-basic-plugins)"
    exit 77
  }
done

work=$(mktemp -d)
export FX=$work/slurm
export BASE=$((10000 + $$ % 2000 * 8))
tuner=
cleanup() {
  if [ -n "$tuner" ]; then kill -9 "$tuner" 2>/dev/null || true; fi
  "$here/fixture.sh" down
  if [ -n "${KEEP:-}" ]; then cp -r "$work" "$KEEP"; fi
  rm -rf "$work"
}
trap cleanup EXIT
part="start of Slurm"
fail() {
  echo "FAILED ($part): $*" >&2
  tail -n 20 "$work"/*.err >&2
  sinfo -a -N -o '%N %t %E' >&2
  squeue -a -t all -o '%i|%j|%T|%r|%N|%M' 2>&1 | tail -n 12 >&2
  exit 1
}
begin() {
  part=$1
  echo "$(date +%T) $part"
}

"$here/fixture.sh" up >"$work/fixture.err" 2>&1 || fail "Slurm does not start"
export SLURM_CONF=$FX/slurm.conf

# write_session FILE TRIALS SECONDS [EXECUTOR-KEYS] [CLUSTER]: trials run
# trial.sh and take SECONDS.
write_session() {
  cat >"$1" <<JSON
{
  "cluster": ${5:-{\"nodes\": 1, \"gpus_per_node\": 1\}},
  "space": {"x": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19], "y": [1, 2, 3]},
  "baseline": null,
  "objective": {"metric": "speed", "direction": "maximize"},
  "runner": {"kind": "command", "argv": ["/bin/bash", "$work/trial.sh", "{config}", "{result}", "{dir}", "$3"],
             "timeout_s": ${timeout_s:-60}},
  "executor": {"kind": "slurm", "poll_s": 0.5, "patience_s": 3${4:+, $4}},
  "budget": {"trials": $2, "regret": 0, "least_gain": 0}
}
JSON
}
# Records in runs/DIRECTORY.begun and .done how often each trial began and
# ended. $work/behave may contain lines of bash that run in the middle.
cat >"$work/trial.sh" <<'SH'
config=$1 result=$2 name=$(basename "$3") run=$(basename "$(dirname "$(dirname "$3")")") seconds=$4
here=$(dirname "$0")
mkdir -p "$here/runs"
echo "$SLURM_JOB_ID ${SLURMD_NODENAME:-} ${CUDA_VISIBLE_DEVICES:-}" >>"$here/runs/$run.$name.begun"
number() { awk -v name="\"$1\"" 'BEGIN { RS = "[{,}]"; FS = ":" } $1 ~ name { print $2 + 0 }' "$config"; }
x=$(number x)
sleep "$seconds"
if [ -f "$here/behave" ]; then . "$here/behave"; fi
echo "{\"speed\": $((100 - (x - 12) * (x - 12)))}" >"$result.tmp"
mv "$result.tmp" "$result"
echo done >>"$here/runs/$run.$name.done"
SH

# tune SESSION RUN [OPTIONS...] runs to the end; the exit code is in $rc.
tune() {
  local session=$1 run=$2
  shift 2
  rc=0
  "$krigtune" tune "$session" --out "$run" --strategy random --seed 4 "$@" >"$run.out" 2>"$run.err" </dev/null || rc=$?
}
# Does the same in the background; its process is $tuner.
start_tune() {
  local session=$1 run=$2
  shift 2
  set -m # with job control: otherwise the shell ignores SIGINT in background jobs, and tune respects that
  "$krigtune" tune "$session" --out "$run" --strategy random --seed 4 "$@" >"$run.out" 2>"$run.err" </dev/null &
  set +m
  tuner=$!
}
wait_tune() {
  rc=0
  wait "$tuner" || rc=$?
  tuner=
}
# wait_for SECONDS COMMAND... waits until the command succeeds.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || fail "waited in vain for: $*"
    sleep 0.05
  done
}
jobs_in_state() { squeue -h -t "$1" -o '%i' | grep -c . || true; }
some_job_is() { [ "$(jobs_in_state "$1")" -gt 0 ]; }
column() { awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i; next } { print $c }' "$1/trials.csv"; }
states() { column "$1" status | sort | uniq -c | awk '{ printf "%s%s %s", (NR > 1 ? ", " : ""), $1, $2 }'; }
no_job_is_left() { [ -z "$(squeue -h -o %i)" ]; }

# expect_whole RUN OK checks that RUN has OK successful trials, that no trial
# ended twice, and that no job remains.
expect_whole() {
  local ok twice
  wait_for 15 no_job_is_left
  ok=$(column "$1" status | grep -c '^ok$' || true)
  [ "$ok" -eq "$2" ] || fail "$2 ok trials were expected in $1: $(states "$1")"
  twice=$(grep -c . "$work/runs/$(basename "$1")".*.done | awk -F: '$2 > 1 { print $1 }')
  [ -z "$twice" ] || fail "came to their ends twice: $twice"
}

#!/bin/bash
# Runs the job of scripts/quickstart as Slurm jobs, 1, 2 and 4 at a time. It uses a
# real Slurm on this machine (tests/slurm), with an emulated network so slow that
# trials mostly wait. Prints a row per session: the seconds until it ended, trials,
# the best value, and the seconds until the first trial within 5 % of the best of
# all sessions had ended.
# usage: slurm_slots.sh KRIGTUNE [SEEDS=2] [TRIALS=16] [LATENCY_US=1000]
#                       [BYTES_PER_S=5e7]
set -euo pipefail
krigtune=$(realpath "$1") seeds=${2:-2} trials=${3:-16} latency_us=${4:-1000} bytes_per_s=${5:-5e7}
repository=$(realpath "$(dirname "$0")/../..")
. "$repository/tests/slurm/common.sh"
sed "s/\"emulate_network\": {[^}]*}/\"emulate_network\": {\"latency_us\": $latency_us, \"bytes_per_s\": $bytes_per_s}/" \
  "$repository/experiments/quickstart/session.json" >"$work/quickstart.json"
for ((seed = 1; seed <= seeds; seed++)); do
  for jobs in 1 2 4; do
    run=$work/slots$jobs.$seed
    begun=$(date +%s.%N)
    "$krigtune" tune "$work/quickstart.json" --out "$run" --executor slurm --jobs "$jobs" --seed "$seed" --trials "$trials" \
      --full-budget --quiet >"$run.out" 2>"$run.err" </dev/null || fail "$jobs jobs: $(tail -n 3 "$run.err")"
    echo "$jobs $seed $begun $(date +%s.%N) $(cut -d' ' -f1 /proc/loadavg)" >>"$work/sessions"
    wait_for 15 no_job_is_left
  done
done
python3 - "$work" <<'PY'
import csv, datetime, pathlib, sys
work = pathlib.Path(sys.argv[1])
rows = []
for line in (work / "sessions").read_text().splitlines():
    jobs, seed, begun, ended, load = line.split()
    with open(work / f"slots{jobs}.{seed}" / "trials.csv", newline="") as file:
        rows.append((int(jobs), int(seed), float(begun), float(ended), load, list(csv.DictReader(file))))
value = lambda row: float(row["value"]) if row["status"] == "ok" else 0.0
top = max(value(row) for *_, trials in rows for row in trials)
# A job waits for less than a second here, so a trial ends as long after its beginning as it took.
end = lambda row: datetime.datetime.fromisoformat(row["started_at"]).timestamp() + float(row["wall_s"])
print("jobs,seed,seconds,trials,failed,best samples/s,seconds to 5 %,trials to 5 %,sum of trials' seconds,load at the end")
for jobs, seed, begun, ended, load, trials in sorted(rows, key=lambda row: row[:2]):
    by_end = sorted(trials, key=end)
    near = next((i for i, row in enumerate(by_end) if value(row) >= top / 1.05), None)
    found = ("", "") if near is None else (f"{end(by_end[near]) - begun:.1f}", near + 1)
    print(jobs, seed, f"{ended - begun:.1f}", len(trials), sum(row["status"] != "ok" for row in trials),
          f"{max(map(value, trials)):.1f}", *found, f"{sum(float(row['wall_s']) for row in trials):.1f}", load, sep=",")
PY

#!/usr/bin/env python3
"""How long `bayes` takes to propose the trial after 100 others: 10^4 configurations of 8 parameters, no workload.

usage: suggestion_latency.py KRIGTUNE OUT_DIR [--runs N] [--training]

Replays a smooth synthetic table with `krigtune tune --json`. Prints the minimum and the
median, over the runs, of the seconds of the last ten suggestions (wall time, as in
`suggest_s`, so the machine should be idle), and the processor time of a whole session.
With --training: of a training step with 6660 configurations, by what the session says of the job. The table is
what krigtune itself predicts for Llama 2 13B on 32 H100s, since only times are of interest: for one run of 41 trials
the first suggestion, the longest and the median of the last ten, processor time, and the largest memory.
Needs only the standard library.
"""
import argparse
import csv
import itertools
import json
import math
import os
import pathlib
import resource
import statistics
import subprocess

LEVELS = (5, 5, 5, 5, 2, 2, 2, 2)  # 10^4 configurations
NAMES = "abcdefgh"
TRIALS = 100


def speed(point):
    falls = sum((0.0125 * (i + 1)) * (x - 2 - i % 3) ** 2 for i, x in enumerate(point[:4]))
    crossed = 0.02 * point[0] * point[4] + 0.05 * abs(point[5] - point[6]) - 0.03 * point[7] * math.sin(point[1])
    return 100.0 * math.exp(-falls - crossed)


def session(out):
    with open(out / "table.csv", "w") as table:
        table.write(",".join(NAMES) + ",speed\n")
        for point in itertools.product(*(range(1, levels + 1) for levels in LEVELS)):
            table.write(",".join(map(str, point)) + f",{speed(point)!r}\n")
    path = out / "session.json"
    path.write_text(json.dumps({
        "space": {name: list(range(1, levels + 1)) for name, levels in zip(NAMES, LEVELS)}, "baseline": None,
        "objective": {"metric": "speed", "direction": "maximize"},
        "runner": {"kind": "replay", "table": "table.csv", "value": "speed"}, "budget": {"trials": TRIALS + 1}}))
    return path


TRAINING_SPACE = {
    "tensor_parallel": [1, 2, 4, 8], "pipeline_parallel": [1, 2, 4, 8], "micro_batch": [1, 2, 4, 8, 16],
    "activation_checkpointing": ["none", "selective", "full"], "zero_stage": [0, 1],
    "sequence_parallel": [False, True], "reduce_bucket_size": [5_000_000, 20_000_000, 50_000_000, 200_000_000,
                                                               500_000_000], "overlap_comm": [False, True]}
BATCH = 256
JOB = {"workload": {"model": {"preset": "llama-2-13b"}, "precision": "bf16", "framework": "megatron",
                    "train_batch_size": BATCH},
       "cluster": {"nodes": 4, "gpus_per_node": 8, "gpu": "h100-80gb", "interconnect": "nvlink4",
                   "network": "ib-ndr-400"}}


def write(path, **session):
    path.write_text(json.dumps({**session, "baseline": None, "objective": {"metric": "throughput"},
                                "budget": {"trials": 41}}))
    return path


def training_sessions(krigtune, out):
    """Returns one session for each way to describe the same job."""
    told = write(out / "plan.json", **JOB, space=TRAINING_SPACE, runner={"kind": "none"})
    subprocess.run([krigtune, "plan", told, "--csv", out / "plan.csv", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    others = dict(zip(TRAINING_SPACE, NAMES))
    with open(out / "plan.csv") as planned, open(out / "usual.csv", "w") as usual, open(out / "own.csv", "w") as own:
        usual.write(",".join(others) + ",status,throughput\n")
        own.write(",".join(others.values()) + ",status,throughput\n")
        for row in csv.DictReader(planned):
            fits = float(row["probability_fits"]) > 0.5
            cells = [row[name] for name in TRAINING_SPACE]
            cells += ["ok", str(BATCH / float(row["predicted_step_time_s"]))] if fits else ["oom", ""]
            for table in (usual, own):
                table.write(",".join(cells) + "\n")

    def replay(table):
        return {"kind": "replay", "table": table, "value": "throughput", "status": "status"}

    return {
        "everything": write(out / "everything.json", **JOB, space=TRAINING_SPACE, runner=replay("usual.csv")),
        "the cluster": write(out / "cluster.json", cluster=JOB["cluster"], space=TRAINING_SPACE,
                             runner=replay("usual.csv")),
        "nothing": write(out / "nothing.json", space=TRAINING_SPACE, runner=replay("usual.csv")),
        "nothing, with names of its own": write(
            out / "own.json", space={others[name]: values for name, values in TRAINING_SPACE.items()},
            runner=replay("own.csv"))}


def of_training(krigtune, out):
    print("told                            first s  longest s  last ten s  processor s  memory MiB")
    for told, path in training_sessions(krigtune, out).items():
        words = [krigtune, "tune", path, "--out", out / ("run_" + path.stem), "--full-budget", "--json", "--quiet", "--fresh"]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
            said = process.stdout.read()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"krigtune tune {path} ended with {process.returncode}")
        seconds = json.loads(said)["suggest_s"]
        print(f"{told:30}  {seconds[0]:7.2f}  {max(seconds):9.2f}  {statistics.median(seconds[-10:]):10.3f}  "
              f"{used.ru_utime:11.1f}  {used.ru_maxrss / 1024:10.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("krigtune")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--training", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.training:
        return of_training(options.krigtune, options.out)
    path, last = session(options.out), []
    for run in range(1, options.runs + 1):
        words = [options.krigtune, "tune", path, "--out", options.out / f"run{run}", "--seed", str(run), "--full-budget", "--json",
                 "--quiet", "--fresh"]
        said = subprocess.run(words, check=True, stdout=subprocess.PIPE)
        last += json.loads(said.stdout)["suggest_s"][-10:]
    processor_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime / options.runs
    print(f"a suggestion: least {min(last):.4f} s, median {statistics.median(last):.4f} s of {len(last)}; "
          f"a session of {TRIALS + 1} trials: {processor_s:.2f} s of processor time")


if __name__ == "__main__":
    main()

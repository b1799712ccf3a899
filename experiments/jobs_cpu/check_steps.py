"""usage: check_steps.py RUN

Compares the step times that krigtune.transformers.ReportStepsCallback reported in each trial of a run with the Trainer's own log, in
which train_runtime is the time since the training began. Exit code 1: a median differs by more than 15 %, or a trial has no value.
"""
import csv
import json
import pathlib
import re
import statistics
import sys

WARM_UP = 5


def main(run):
    rows = list(csv.DictReader(open(run / "trials.csv", newline="")))
    wrong = [] if len(rows) == 3 else [f"{len(rows)} trials"]
    for row in rows:
        folder = next((run / "trials").glob(f"{int(row['trial']):04d}*"))
        if row["status"] != "ok":
            wrong.append(f"trial {row['trial']}: {row['status']} {row['reason']}")
            continue
        reported = [step["step_time_s"] for step in map(json.loads, (folder / "steps.jsonl").open()) if "step_time_s" in step]
        marks = [float(text) for text in re.findall(r"'train_runtime': '?([0-9.eE+]+)", (folder / "stdout.log").read_text())]
        logged = [after - before for before, after in zip(marks, marks[1:])]
        ours, trainers = statistics.median(reported[WARM_UP:]), statistics.median(logged[WARM_UP - 1:])
        tokens = 64 * int(row["micro_batch"]) * 2 * 2  # of a sequence, sequences, micro-steps, ranks
        value = tokens / float(row["value"])
        print(f"micro-batch {row['micro_batch']}: {float(row['value']):.0f} tokens/s; a step takes {1e3 * value:.1f} ms by krigtune, "
              f"{1e3 * ours:.1f} ms by the callback, {1e3 * trainers:.1f} ms by the Trainer's log")
        if not max(abs(ours / trainers - 1), abs(value / ours - 1)) <= 0.15:
            wrong.append(f"trial {row['trial']}: the step times differ")
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))

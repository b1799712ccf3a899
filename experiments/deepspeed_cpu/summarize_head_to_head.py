"""Prints the tables of head_to_head.sh.  usage: summarize_head_to_head.py FOLDER      (tuners.csv, steps.csv, the configs)

The figure of a run is the median of its steps. Two configurations are compared
by the logarithms of the ratio of their figures in each round, with the exact
sign-flip test (Fisher 1935, "The Design of Experiments", section 21): the share
of the 2^n sign patterns whose sum is at least as large as the observed one, as
if a coin toss decided which of the two is slower in a round.
"""
import csv
import itertools
import json
import math
import statistics
import sys
from pathlib import Path


def rows(file):
    with open(file, encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def medians(folder):
    """Configuration -> milliseconds per step of each round."""
    steps = {}
    for row in rows(folder / "steps.csv"):
        steps.setdefault(row["configuration"], {}).setdefault(row["round"], []).append(1e3 * float(row["step_time_s"]))
    return {name: [statistics.median(times) for times in by_round.values()] for name, by_round in steps.items()}


def sign_flip_p(logs):
    """One-sided: the probability of a sum at least as large as this by chance."""
    seen = sum(logs)
    sums = [sum(sign * log for sign, log in zip(signs, logs)) for signs in itertools.product((1, -1), repeat=len(logs))]
    return sum(total >= seen - 1e-12 for total in sums) / len(sums)


def comparison(figures, name, other):
    logs = [math.log(a / b) for a, b in zip(figures[name], figures[other])]
    slower, faster = sign_flip_p(logs), sign_flip_p([-log for log in logs])
    verdict = ("slower beyond noise" if slower <= 0.05 else "faster beyond noise" if faster <= 0.05 else
               "not to be told apart")
    return (f"{name} against {other}: step time x {math.exp(statistics.median(logs)):.2f}, the median of {len(logs)} "
            f"rounds ({min(map(math.exp, logs)):.2f} to {max(map(math.exp, logs)):.2f}), slower in "
            f"{sum(log > 0 for log in logs)} of them; p = {slower:.2f} for slower, {faster:.2f} for faster: {verdict}")


def described(config):
    zero = config.get("zero_optimization", {})
    text = (f"stage {zero.get('stage', 0)}, {config['train_micro_batch_size_per_gpu']} x "
            f"{config['gradient_accumulation_steps']}")
    return ", ".join([text] + [f"{key} {str(value).lower()}" for key, value in zero.items() if key != "stage"])


def configs(folder):
    found = {"own": Path(__file__).resolve().parent / "ds_config.json",
             "stock": folder / "stock/results/ds_config_optimal.json",
             "krigtune": folder / "krigtune/ds_config_optimal.json"}
    return {name: json.loads(path.read_text()) for name, path in found.items()}


def main():
    folder = Path(sys.argv[1])
    figures, tuners = medians(folder), {row["tuner"]: row for row in rows(folder / "tuners.csv")}
    print("| | wall time | CPU time | launches | configuration | ms a step: median of the rounds | least | most |")
    print("|---|---:|---:|---:|---|---:|---:|---:|")
    for name, config in configs(folder).items():
        tuner, times = tuners.get(name), figures[name]
        cost = f"{tuner['wall_s']} s | {tuner['cpu_s']} s | {tuner['launches']}" if tuner else " | | "
        print(f"| {name} | {cost} | {described(config)} | {statistics.median(times):.0f} | {min(times):.0f} | "
              f"{max(times):.0f} |")
    print()
    for name, other in (("krigtune", "stock"), ("krigtune", "own"), ("stock", "own")):
        print(f"- {comparison(figures, name, other)}")
    ratio = float(tuners["krigtune"]["wall_s"]) / float(tuners["stock"]["wall_s"])
    print(f"- krigtune took {ratio:.2f} of the stock autotuner's wall time")


if __name__ == "__main__":
    main()

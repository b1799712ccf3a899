#!/usr/bin/env python3
"""usage: fronts.py KRIGTUNE OUT.csv [--problems zdt1,...,table] [--tools krigtune,limits,told,random,NSGA-II,TPE,GP,qNEHVI]
       [--seeds 5] [--trials 50]

The hypervolume of the front after each trial, as a share of that of the problem's whole front (problems.py; "table":
throughput and peak memory of experiments/data/worlds/gpt13b_32xa100.csv, above the slowest and the largest row that
ran). krigtune runs as `krigtune tune`; "limits" is the same with the reference point as the limits of the objectives, and
"told" with gpt13b.json, which says what the job is. The others run in this process: Optuna's samplers (GP is GPSampler,
which needs PyTorch), and BoTorch's qLogNoisyExpectedHypervolumeImprovement with a SingleTaskGP for each objective, after 5
Sobol points and with the reference point. Failed trials are Optuna's FAIL, and BoTorch is left out where trials fail.
A row per trial: problem,tool,seed,trial,share,failed,suggest_s,stop. "stop" is 1 at the trial before which krigtune's
own rule "little to gain" would have ended the session; rules are off here.
"""
import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import problems

HERE = pathlib.Path(__file__).resolve().parent
WORLD = HERE.parent / "data" / "worlds" / "gpt13b_32xa100.csv"
LEAST_GAIN = 0.003
LEAST_EVIDENCE = 6


class Table:
    """A measured table: throughput (negated) and peak of memory. Rows that did not run fail."""

    def __init__(self):
        with open(WORLD, encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.names = [n for n in rows[0] if n not in ("status", "step_time_s", "samples_per_s", "peak_memory_bytes")]
        self.space = {n: sorted({r[n] for r in rows}, key=lambda v: (len(v), v)) for n in self.names}
        self.values = {tuple(r[n] for n in self.names): (-float(r["samples_per_s"]), float(r["peak_memory_bytes"]))
                       if r["status"] == "ok" else None for r in rows}
        ran = [v for v in self.values.values() if v]
        self.reference = tuple(max(v[j] for v in ran) for j in range(2))
        self.largest = problems.hypervolume(ran, self.reference)

    def evaluate(self, config):
        found = self.values.get(tuple(config[n] for n in self.names))
        if found is None:
            raise problems.Failed()
        return {"f1": found[0], "f2": found[1]}


TABLE = Table()


def space_of(name):
    return TABLE.space if name == "table" else problems.PROBLEMS[name][0]


def evaluate(name, config):
    return tuple((TABLE.evaluate(config) if name == "table" else problems.evaluate(name, config)).values())


def reference_of(name):
    return TABLE.reference if name == "table" else problems.PROBLEMS[name][2]


def told_session(budget):
    """gpt13b.json, which says what the job is."""
    lines = (HERE / "gpt13b.json").read_text(encoding="utf-8").splitlines()
    told = json.loads("\n".join(line for line in lines if not line.strip().startswith("//")))
    told["runner"]["table"] = str(WORLD)
    return {**told, "budget": budget}


def session(name, trials, is_told, has_limits):
    budget = {"trials": trials, "regret": 0, "least_gain": 0}
    if is_told:
        return told_session(budget)
    if name == "table":
        return {"space": {n: [json.loads(v) if v[0].isdigit() or v in ("true", "false") else v for v in values]
                          for n, values in TABLE.space.items()},
                "baseline": None, "budget": budget,
                "objectives": [{"metric": "throughput"}, {"metric": "peak_memory_bytes", "direction": "minimize"}],
                "runner": {"kind": "replay", "table": str(WORLD), "value": "samples_per_s", "status": "status",
                           "metrics": {"peak_memory_bytes": "peak_memory_bytes"}}}
    space = {n: {"type": "real", "min": v[0], "max": v[1]} if isinstance(v, tuple) else v
             for n, v in space_of(name).items()}
    return {"space": space, "baseline": None, "budget": budget,
            "objectives": [{"metric": f"f{j + 1}", "direction": "minimize", **({"limit": limit} if has_limits else {})}
                           for j, limit in enumerate(reference_of(name))],
            "runner": {"kind": "command",
                       "argv": [sys.executable, str(HERE / "problems.py"), name, "{config}", "{result}"]}}


def run_krigtune(program, name, seed, trials, is_told=False, has_limits=False):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "session.json"
        file.write_text(json.dumps(session(name, trials, is_told, has_limits)))
        out = pathlib.Path(folder) / "run"
        subprocess.run([program, "tune", str(file), "--seed", str(seed), "--out", str(out), "-q"], check=True,
                       stdout=subprocess.DEVNULL)
        with open(out / "trials.csv", encoding="utf-8") as rows:
            table = list(csv.DictReader(rows))
        gains = expected_gains(out / "journal.log")
    fields = ("value", "peak_memory_bytes") if name == "table" else \
        tuple(f"metric_f{j + 1}" for j in range(len(reference_of(name))))
    results = []
    for row in table:
        values = None
        if row["status"] == "ok":
            values = tuple(float(row[f]) for f in fields)
            if name == "table":
                values = (-values[0], values[1])
        results.append((values, float(row["suggest_s"] or 0), gains.get(int(row["trial"]))))
    return results


def expected_gains(journal):
    """Trial -> the gain that was expected of it, from what the journal says when trials begin."""
    begins = [entry for entry in map(json.loads, journal.read_text().splitlines()) if entry["op_code"] == 4]
    return {number: entry["user_attrs"]["expected_gain"] for number, entry in enumerate(begins)
            if "expected_gain" in entry["user_attrs"]}


def run_optuna(make_sampler, name, seed, trials):
    import optuna
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space, results = space_of(name), []
    study = optuna.create_study(directions=["minimize"] * len(reference_of(name)), sampler=make_sampler(optuna, seed))
    for _ in range(trials):
        begun = time.perf_counter()
        trial = study.ask()
        config = {n: suggested(trial, n, v) for n, v in space.items()}
        seconds = time.perf_counter() - begun
        try:
            values = evaluate(name, config)
            study.tell(trial, values)
        except problems.Failed:
            values = None
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        results.append((values, seconds, None))
    return results


def suggested(trial, name, values):
    """Numbers in a list by their index, so that samplers know their order."""
    if isinstance(values, tuple):
        return trial.suggest_float(name, *values)
    if all(isinstance(v, int) or v.isdigit() for v in values):
        return values[trial.suggest_int(name, 0, len(values) - 1)]
    return trial.suggest_categorical(name, values)


OPTUNA = {
    "random": lambda optuna, seed: optuna.samplers.RandomSampler(seed=seed),
    "NSGA-II": lambda optuna, seed: optuna.samplers.NSGAIISampler(seed=seed, population_size=10),
    "TPE": lambda optuna, seed: optuna.samplers.TPESampler(seed=seed, multivariate=True),
    "GP": lambda optuna, seed: optuna.samplers.GPSampler(seed=seed),
}


def run_qnehvi(name, seed, trials):
    """Only for spaces of real numbers."""
    import torch
    from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.models.transforms import Standardize
    from botorch.optim import optimize_acqf
    from botorch.sampling import SobolQMCNormalSampler
    from botorch.utils.sampling import draw_sobol_samples
    from gpytorch.mlls import SumMarginalLogLikelihood
    torch.manual_seed(seed)
    names, reference = list(space_of(name)), reference_of(name)
    bounds = torch.tensor([[0.0] * len(names), [1.0] * len(names)], dtype=torch.double)
    first = draw_sobol_samples(bounds, n=5, q=1, seed=seed).squeeze(1)
    x, y, results = torch.empty(0, len(names), dtype=torch.double), [], []
    for number in range(trials):
        begun = time.perf_counter()
        if number < len(first):
            new = first[number]
        else:
            values = -torch.tensor(y, dtype=torch.double)
            models = [SingleTaskGP(x, values[:, j:j + 1], outcome_transform=Standardize(m=1)) for j in range(len(reference))]
            model = ModelListGP(*models)
            fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
            acquisition = qLogNoisyExpectedHypervolumeImprovement(
                model=model, ref_point=[-r for r in reference], X_baseline=x, prune_baseline=True,
                sampler=SobolQMCNormalSampler(torch.Size([64]), seed=seed))
            new = optimize_acqf(acquisition, bounds, q=1, num_restarts=4, raw_samples=128)[0][0].detach()
        seconds = time.perf_counter() - begun
        values = evaluate(name, dict(zip(names, new.tolist())))
        x, y = torch.cat([x, new[None]]), y + [values]
        results.append((values, seconds, None))
    return results


def shares(name, results):
    reference, whole = reference_of(name), TABLE.largest if name == "table" else problems.largest(name)
    found, now = [], 0.0
    for values, seconds, gain in results:
        if values is not None:
            found.append(values)
            now = problems.hypervolume(found, reference) / whole
        yield now, int(values is None), seconds, gain


def stop_of(results):
    """The trial before which the rule "little to gain" would have ended the session."""
    ran = 0
    for number, (values, _, gain) in enumerate(results):
        if ran >= LEAST_EVIDENCE and gain is not None and gain < LEAST_GAIN:
            return number
        ran += values is not None
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("krigtune")
    parser.add_argument("out")
    parser.add_argument("--problems", default="zdt1,zdt2,zdt3,dtlz2,mixed,table")
    parser.add_argument("--tools", default="krigtune,limits,told,random,NSGA-II,TPE,GP,qNEHVI")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=50)
    options = parser.parse_args()
    has_header = os.path.exists(options.out)
    with open(options.out, "a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not has_header:
            writer.writerow(["problem", "tool", "seed", "trial", "share", "failed", "suggest_s", "stop"])
        for name in options.problems.split(","):
            for tool in options.tools.split(","):
                for seed in range(1, options.seeds + 1):
                    if tool == "krigtune":
                        results = run_krigtune(options.krigtune, name, seed, options.trials)
                    elif tool == "limits":
                        if name == "table":
                            break
                        results = run_krigtune(options.krigtune, name, seed, options.trials, has_limits=True)
                    elif tool == "told":
                        if name != "table":
                            break
                        results = run_krigtune(options.krigtune, name, seed, options.trials, True)
                    elif tool == "qNEHVI":
                        if name in ("mixed", "table"):
                            break
                        results = run_qnehvi(name, seed, options.trials)
                    else:
                        results = run_optuna(OPTUNA[tool], name, seed, options.trials)
                    stop = stop_of(results)
                    for number, (share, failed, seconds, _) in enumerate(shares(name, results)):
                        writer.writerow([name, tool, seed, number, f"{share:.5f}", failed, f"{seconds:.4f}",
                                         int(number == stop)])
                    file.flush()
                    print(name, tool, seed, f"{share:.4f}", stop, flush=True)


if __name__ == "__main__":
    main()

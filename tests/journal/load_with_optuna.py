"""Loads a journal in Optuna and compares it with what the writer meant.

usage: load_with_optuna.py JOURNAL EXPECTED.json [--add]
--add: afterwards, asks and tells a trial through Optuna, as another worker would.
"""
import json
import sys

import optuna
from optuna.storages import JournalStorage

try:
    from optuna.storages.journal import JournalFileBackend as JournalFile
except ImportError:  # before 4.0
    from optuna.storages import JournalFileStorage as JournalFile


def check(what, got, wanted):
    # bool is an int in Python, but True must not equal 1 here.
    if got != wanted or type(got) is not type(wanted):
        sys.exit(f"{what}: Optuna has {got!r}, expected {wanted!r}")


def check_trial(trial, wanted):
    where = f"trial {wanted['number']}"
    check(f"{where} number", trial.number, wanted["number"])
    check(f"{where} state", trial.state.name, wanted["state"])
    check(f"{where} value", trial.value, wanted["value"])
    check(f"{where} start", trial.datetime_start.isoformat(timespec="microseconds"), wanted["datetime_start"])
    check(f"{where} complete", trial.datetime_complete is not None, wanted["state"] != "RUNNING")
    check(f"{where} system attributes", dict(trial.system_attrs), wanted["system_attrs"])
    for kind in ("params", "user_attrs"):
        got = dict(getattr(trial, kind))
        check(f"{where} names of {kind}", sorted(got), sorted(wanted[kind]))
        for name, value in wanted[kind].items():
            check(f"{where} {kind} {name}", got[name], value)
    for name, value in trial.params.items():
        distribution = trial.distributions[name]
        internal = distribution.to_internal_repr(value)
        check(f"{where} {name} lies in {distribution}", bool(distribution._contains(internal)), True)
        check(f"{where} distribution of {name}", type(distribution).__name__, wanted["distributions"][name])


def main():
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with open(sys.argv[2], encoding="utf-8") as file:
        wanted = json.load(file)
    study = optuna.load_study(study_name="krigtune", storage=JournalStorage(JournalFile(sys.argv[1])))
    check("direction", study.direction.name, wanted["direction"])
    check("metric", study._storage.get_study_system_attrs(study._study_id)["study:metric_names"], [wanted["metric"]])
    check("number of trials", len(study.trials), len(wanted["trials"]))
    for trial, expected in zip(study.trials, wanted["trials"]):
        check_trial(trial, expected)
    check("best value", study.best_value, wanted["best_value"])
    check("best trial", study.best_trial.number, wanted["best_trial"])
    if "--add" in sys.argv:
        trial = study.ask()
        check("asked", trial.number, len(wanted["trials"]))
        trial.suggest_categorical("zero_stage", [0, 1, 2, 3])
        study.tell(trial, 1.25)


main()

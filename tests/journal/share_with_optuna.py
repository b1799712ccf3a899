"""Asks and tells through Optuna, as a worker beside others that write to the journal.

usage: share_with_optuna.py ask JOURNAL COUNT   COUNT trials with the values 1000, 1001, ...
       share_with_optuna.py list JOURNAL OUT    writes [number, state, value, zero_stage, strategy] of all trials
"""
import json
import sys

import optuna
from optuna.storages import JournalStorage

try:
    from optuna.storages.journal import JournalFileBackend as JournalFile
except ImportError:  # before 4.0
    from optuna.storages import JournalFileStorage as JournalFile


def main():
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.load_study(study_name="krigtune", storage=JournalStorage(JournalFile(sys.argv[2])),
                              sampler=optuna.samplers.RandomSampler(seed=1))
    if sys.argv[1] == "ask":
        for i in range(int(sys.argv[3])):
            trial = study.ask()
            trial.suggest_categorical("zero_stage", [0, 1, 2, 3])
            study.tell(trial, 1000.0 + i)
        return
    rows = [[trial.number, trial.state.name, trial.value, trial.params.get("zero_stage"),
             trial.user_attrs.get("strategy", "")] for trial in study.trials]
    with open(sys.argv[3], "w", encoding="utf-8") as file:
        json.dump(rows, file)


main()

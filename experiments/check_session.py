"""Shared by the checks with real jobs (deepspeed_cpu/check.py, jobs_cpu/check.py): processes that can be found again, the
trials of a session, and what must be true after krigtune was killed and started again."""
import csv
import os
import shutil
import signal
import time
from pathlib import Path

MARK = "KRIGTUNE_TEST_CHECK"  # in the environment of everything that is started here
KEPT = {MARK, "KRIGTUNE_VECTOR_UNIT"}  # of the variables with this prefix; the others are options
DEADLINE_S = 600  # limit for everything that is waited for
CLEAN_S = 60  # until no process of a killed session runs; 0.2 s were observed


class Missed(Exception):
    """Something is not as expected."""


def expect(holds, expected, seen):
    if not holds:
        raise Missed(f"expected {expected}; seen: {seen}")


def wait_for(what, condition, limit_s=DEADLINE_S):
    begin = time.monotonic()
    while not condition():
        expect(time.monotonic() - begin < limit_s, f"{what} within {limit_s} s", "nothing of the kind")
        time.sleep(0.05)


def environment_of(process):
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


class Children:
    """All processes that a check starts, directly or indirectly, identified by a mark in their environment."""

    def __init__(self, **variables):
        self.mark = f"{os.getpid()}-{time.time_ns()}"
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("KRIGTUNE_") or name in KEPT}
        self.environment.update(variables, **{MARK: self.mark})

    def processes(self):
        mark = f"{MARK}={self.mark}".encode()
        return [entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and mark in environment_of(entry)]

    def end_all(self):
        for process in self.processes():
            try:
                os.kill(int(process.name), signal.SIGKILL)
            except ProcessLookupError:
                pass


def make_folder(folder):
    """Removes only what an earlier check has left behind."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("run*"):
        if (old / "journal.log").exists():
            shutil.rmtree(old)
    return folder


class Session:
    """The directory of a session: its present trials, and those that a killed krigtune left."""

    def __init__(self, run):
        self.run = run
        self.before, self.journal_before = [], b""

    def closed(self):
        """The rows of trials.csv."""
        try:
            with open(self.run / "trials.csv", encoding="utf-8", newline="") as file:
                return list(csv.DictReader(file))
        except FileNotFoundError:
            return []

    def kill(self, process, children):
        """Sends SIGKILL, and waits until no process of it runs. Returns the state in words."""
        before = self.closed()
        process.kill()
        process.wait()
        killed_s = time.monotonic()
        wait_for("no process of the killed session", lambda: not children.processes(), CLEAN_S)
        self.before, self.journal_before = before, (self.run / "journal.log").read_bytes()
        return f"{len(before)} trials closed; nothing of it ran {time.monotonic() - killed_s:.1f} s later"

    def expect_resumed(self, cut_trial):
        """Trials closed before the kill are unchanged; only the interrupted trial is asked again."""
        rows = self.closed()
        kept = [{key: row.get(key) for key in ("trial", "status", "value", "started_at")} for row in self.before]
        again = [{key: row.get(key) for key in kept[0]} for row in rows[:len(kept)]]
        expect(kept == again, "the trials that were closed before the kill as they were", f"{again} instead of {kept}")
        expect((self.run / "journal.log").read_bytes().startswith(self.journal_before),
               "a journal that only grows", "other beginnings")
        expect([int(row["trial"]) for row in rows] == list(range(len(rows))), "trials numbered 0, 1, 2, ...",
               [row["trial"] for row in rows])
        cut = [row["trial"] for row in rows if row["reason"] == "interrupted"]
        expect(cut == [str(cut_trial)], f"trial {cut_trial} interrupted and no other", f"interrupted: {cut}")
        expect(configuration_of(rows[cut_trial + 1]) == configuration_of(rows[cut_trial]),
               f"trial {cut_trial + 1} to ask again what was interrupted", rows[cut_trial + 1])
        expect_no_repetition(rows)
        return rows


def configuration_of(row):
    names = list(row)[list(row).index("strategy") + 1:list(row).index("value")]
    return tuple((name, row[name]) for name in names)


def expect_no_repetition(rows):
    """A repeated measurement is the strategy's own choice; the user's guesses and the baseline run once."""
    expect(rows[0]["strategy"] == "baseline", "the baseline first", rows[0]["strategy"])
    ran = [configuration_of(row) for row in rows
           if row["strategy"] in ("baseline", "try") and row["reason"] != "interrupted"]
    expect(len(ran) == len(set(ran)), "the baseline and each guess once", f"{len(ran)} of {len(set(ran))}")

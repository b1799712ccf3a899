"""Sessions of 30 trials that a fault hits, and checks of their run directories afterwards."""
import json
import os
import re
import shutil
import subprocess
import time

TRIALS = 30

# The value of a configuration is known, so that a wrong one is noticed.
TRIAL_PROGRAM = """#!/bin/sh
config=$(cat "$1")
x=${config##*'"x": '}; x=${x%%[!0-9]*}
y=${config##*'"y": '}; y=${y%%[!0-9]*}
[ -z "$LEAVE_A_PROCESS" ] || sleep 1000 &
echo "{\\"speed\\": $((100 + x * y))}" >"$2"
"""


def value_of(configuration):
    return 100 + configuration["x"] * configuration["y"]


class Failure(Exception):
    """A condition that a session must meet, and did not."""


class Session:
    """One run directory, and the command that tunes in it."""

    def __init__(self, krigtune, library, work, kind, jobs=1, leaves_processes=False):
        self.krigtune, self.library, self.work, self.kind, self.jobs = krigtune, library, work, kind, jobs
        self.run = os.path.join(work, "run")
        self.counters = os.path.join(work, "counters")
        self.file = os.path.join(work, "session.json")
        os.makedirs(work, exist_ok=True)
        if kind == "command":
            program = os.path.join(work, "trial.sh")
            with open(program, "w") as out:
                out.write(TRIAL_PROGRAM)
            runner = {"kind": "command", "argv": ["/bin/sh", program, "{config}", "{result}"], "timeout_s": 60}
            if leaves_processes:
                runner["env"] = {"LEAVE_A_PROCESS": "1"}
        else:
            table = os.path.join(work, "table.csv")
            with open(table, "w") as out:
                out.write("x,y,speed\n")
                for x in range(10):
                    for y in (1, 2, 4, 8, 16, 32, 64):
                        out.write("%d,%d,%d\n" % (x, y, value_of({"x": x, "y": y})))
            runner = {"kind": "replay", "table": table, "value": "speed"}
        session = {
            "space": {"x": list(range(10)), "y": [1, 2, 4, 8, 16, 32, 64]},
            "baseline": None,
            "objective": {"metric": "speed", "direction": "maximize"},
            "runner": runner,
            "budget": {"trials": TRIALS, "regret": 0, "least_gain": 0},
        }
        with open(self.file, "w") as out:
            json.dump(session, out)

    def fresh(self):
        shutil.rmtree(self.run, ignore_errors=True)
        with open(self.counters, "wb") as out:
            out.write(bytes(16))

    def tune(self, faults=None):
        """Run `tune` with the library's variables in `faults`; return its exit code, its output and its last line."""
        command = [self.krigtune, "tune", self.file, "--out", self.run, "--strategy", "random", "--seed", "1",
                   "--jobs", str(self.jobs)]
        environment = dict(os.environ, KRIGTUNE_CACHE=os.path.join(self.work, "cache"))
        if faults is not None:
            environment.update(LD_PRELOAD=self.library, FAULT_PROGRAM=self.krigtune,
                               FAULT_RUN=self.run, FAULT_COUNTERS=self.counters, **faults)
        try:
            done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        except subprocess.TimeoutExpired:
            raise Failure("tune has not ended after 300 s")
        said = done.stderr.decode() + done.stdout.decode()
        return done.returncode, said, "".join(done.stderr.decode().splitlines()[-1:])

    def counts(self):
        """Return the number of calls counted, and of calls that failed."""
        with open(self.counters, "rb") as counters:
            data = counters.read()
        return int.from_bytes(data[:8], "little"), int.from_bytes(data[8:], "little")

    def journal_bytes(self):
        try:
            with open(os.path.join(self.run, "journal.log"), "rb") as journal:
                return journal.read()
        except FileNotFoundError:
            return b""

    def stray_processes(self):
        found = []
        for process in os.listdir("/proc"):
            if not process.isdigit():
                continue
            try:
                with open("/proc/%s/cmdline" % process, "rb") as file:
                    command = file.read()
                with open("/proc/%s/environ" % process, "rb") as file:
                    environment = file.read()
            except OSError:
                continue
            if os.fsencode(self.run) + b"/" in command + environment:
                found.append("%s: %s" % (process, command.replace(b"\0", b" ").decode(errors="replace")))
        return found


def whole_lines(journal):
    return journal[: journal.rfind(b"\n") + 1]


def trials_in(journal):
    """Return the trials by number: configuration, outcome ("" while open) and value. Damaged lines are skipped."""
    trials = []
    for line in whole_lines(journal).splitlines():
        try:
            log = json.loads(line)
        except ValueError:
            continue
        operation = log.get("op_code")
        if operation == 4:
            configuration = json.loads(log["user_attrs"]["configuration"])
            trials.append({"configuration": configuration, "status": "", "reason": None, "value": None,
                           "strategy": log["user_attrs"].get("strategy")})
        elif operation in (6, 8) and log["trial_id"] < len(trials):
            trial = trials[log["trial_id"]]
            trial["reason"] = log.get("user_attr", {}).get("reason", trial["reason"])
            if operation == 6:
                trial.update(status={1: "ok", 2: "pruned", 3: "failed"}.get(log["state"], ""),
                             value=(log["values"] or [None])[0])
    return trials


def reported_in(said):
    """Return the values by trial of the rows that `tune` printed as trials ended."""
    return {int(number): float(value) for number, value in
            re.findall(r"^ *(\d+)\*? +(\d+) +\S+x ", said, re.MULTILINE)}


def was_never_run(trial):
    """Tell whether a trial was interrupted or could not be started, so that it counts for no budget."""
    return trial["status"] == "failed" and trial["reason"] in ("interrupted", "environment")


def check_reported(said, journal):
    """Require that each trial that was reported as ended is in the journal with that value."""
    trials = trials_in(journal)
    for number, value in reported_in(said).items():
        if number >= len(trials) or trials[number]["status"] != "ok" or trials[number]["value"] != value:
            there = trials[number] if number < len(trials) else "nothing"
            raise Failure("trial %d was reported with %g; the journal has %s" % (number, value, there))


def check_outcomes(journal, allowed=("interrupted",)):
    """Require that no trial counts as failed because of what happened to krigtune."""
    for number, trial in enumerate(trials_in(journal)):
        if trial["status"] == "failed" and trial["reason"] not in allowed:
            raise Failure("trial %d failed (%s), and its program did not" % (number, trial["reason"]))


def check_files(session, allow_leftovers=False):
    if allow_leftovers:
        return
    left = [os.path.join(folder, name) for folder, _, names in os.walk(session.run) for name in names
            if ".tmp" in name or ".lock" in name or name.endswith(".rename")]
    if left:
        raise Failure("left: %s" % ", ".join(left))


def check_no_process(session):
    for _ in range(100):
        left = session.stray_processes()
        if not left:
            return
        time.sleep(0.02)
    raise Failure("these processes are left: %s" % "; ".join(left))


def check_readable(session):
    done = subprocess.run([session.krigtune, "results", session.run, "--format", "csv"], capture_output=True)
    if done.returncode == 0:
        return
    begun = os.path.exists(os.path.join(session.run, "session.json"))
    if begun or trials_in(session.journal_bytes()):
        raise Failure("results ends with %d: %s" % (done.returncode, done.stderr.decode()))


def check_goes_on(session, before, open_trials=1, is_kept=True):
    """Run the same command without faults: it must end with all trials, keep the old ones and measure none twice."""
    known = trials_in(before)
    code, _, stderr = session.tune()
    if code != 0:
        raise Failure("to go on ends with %d: %s" % (code, stderr))
    after = session.journal_bytes()
    if is_kept and not after.startswith(whole_lines(before)):
        raise Failure("the journal does not begin as it did")
    trials = trials_in(after)
    for number, trial in enumerate(known):
        if trial["status"] and trials[number] != trial:
            raise Failure("trial %d was %s, and is %s" % (number, trial, trials[number]))
    wrong = [number for number, trial in enumerate(trials)
             if trial["status"] == "ok" and trial["value"] != value_of(trial["configuration"])]
    if wrong:
        raise Failure("another value than the configuration's: trials %s" % wrong)
    finished = [trial for trial in trials if trial["status"] and not was_never_run(trial)]
    if len(finished) != TRIALS:
        raise Failure("%d trials have ended, not %d" % (len(finished), TRIALS))
    if len(trials) - TRIALS > open_trials:
        raise Failure("%d trials were not run" % (len(trials) - TRIALS))
    if any(not trial["status"] for trial in trials):
        raise Failure("a trial is open at the end")
    # A session that continues more than ten minutes later measures its leader again, which is meant.
    meant = [trial for trial in finished if trial["strategy"] == "again"]
    seen = {json.dumps(trial["configuration"], sort_keys=True) for trial in finished}
    if len(seen) != TRIALS - len(meant):
        raise Failure("a configuration was measured twice")
    with open(os.path.join(session.run, "trials.csv")) as table:
        rows = table.read().splitlines()
    if len(rows) != len(trials) + 1:
        raise Failure("trials.csv has %d rows of %d trials" % (len(rows) - 1, len(trials)))

#!/usr/bin/env python3
"""Runs two thousand trials while everything around them breaks, and checks whether anything was lost.

usage: soak.py BIN_DIR OUT [--trials N] [--seed N] [--strategy NAME] [--full S] [--every N]

Runs `krigtune tune` on trial.py (crashes, out of memory, hangs, garbage, processes left
behind) and meanwhile

  - kills the tuner with SIGKILL, on average once in --every (50) trials, and starts it
    again with 1, 2 or 4 trials at a time; a fifth of the session in the middle is left in
    peace, so that one process lives long enough to show a leak,
  - fills the file system of the run directory (its own tmpfs in a mount namespace: as
    root, or if users may have one) three times, once for --full (60) seconds,
  - moves the tuner's wall clock by seconds to years, forwards and back (clock.cpp,
    preloaded),
  - runs results and watch, which must always answer.

Then it compares each trial's own evidence (OUT/evidence/TRIAL, on another file system)
with the journal and trials.csv. Prints a table. OUT/samples.csv has memory, descriptors
and threads of the tuner over time, OUT/tuner.log its output. Exit codes: 0 nothing was
lost, repeated, misjudged or left behind; 1 something was. Needs the standard library and
g++.
"""
import argparse
import collections
import csv
import ctypes
import errno
import json
import os
import pathlib
import random
import shutil
import statistics
import struct
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PAGE = os.sysconf("SC_PAGE_SIZE")
SHIFTS_S = [0, 1, -1, 61, -61, 700, -700, 3600, -3600, 86400, -86400, -365 * 86400, 2 * 365 * 86400]
STATUS_OF = {"segfault": "failed crash", "killed": "failed crash", "exit": "failed crash", "oom_exit": "oom", "oom_text": "oom",
             "hang": "failed timeout", "deaf_hang": "failed timeout", "no_result": "failed bad_result",
             "torn_result": "failed bad_result", "binary_result": "failed bad_result", "nan_result": "failed bad_result",
             "huge_result": "failed bad_result", "directory_result": "failed bad_result"}


def has_own_mounts():
    """Runs this process again in a namespace in which it can mount a tmpfs that nobody else sees."""
    if "SOAK_MOUNTS" in os.environ:
        return os.environ["SOAK_MOUNTS"] == "yes"
    unshare = ["unshare", "--mount", "--propagation", "private"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
    can = shutil.which("unshare") and subprocess.run([*unshare, "mount", "-t", "tmpfs", "none", "/mnt"],
                                                     stderr=subprocess.DEVNULL).returncode == 0
    os.environ["SOAK_MOUNTS"] = "yes" if can else "no"
    if can:
        os.execvp("unshare", [*unshare, sys.executable, *sys.argv])
    return False


class Journal:
    """How many trials are closed, reading on from where the last call stopped."""

    def __init__(self, path):
        self.path, self.at, self.closed = path, 0, 0

    def look(self):
        try:
            with open(self.path, "rb") as file:
                file.seek(self.at)
                new = file.read()
        except OSError:
            return self.closed
        new = new[: new.rfind(b"\n") + 1]
        self.at += len(new)
        self.closed += new.count(b'"op_code":6')
        return self.closed


class Soak:
    def __init__(self, options):
        self.options = options
        self.rng = random.Random(options.seed)
        self.krigtune = options.binaries.resolve() / "krigtune"
        self.out = options.out.resolve()
        self.full_possible = has_own_mounts()
        shutil.rmtree(self.out, ignore_errors=True)
        self.disk, self.evidence = self.out / "disk", self.out / "evidence"
        self.run, self.filler = self.disk / "run", self.disk / "filler"
        for folder in (self.disk, self.evidence):
            folder.mkdir(parents=True)
        if self.full_possible:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512m", "none", self.disk], check=True)
        self.session, self.clock, self.shim = self.out / "session.json", self.out / "clock", self.out / "clock.so"
        self.clock.write_bytes(struct.pack("q", 0))
        subprocess.run(["g++", "-O2", "-shared", "-fPIC", "-std=c++20", "-o", self.shim, HERE / "clock.cpp"], check=True)
        self.write_session()
        self.journal = Journal(self.run / "journal.log")
        self.log = open(self.out / "tuner.log", "ab", buffering=0)
        self.samples, self.ends, self.findings = [], collections.Counter(), []
        self.killed = set()  # worker ids
        self.counts = collections.Counter()
        self.tuner, self.starts, self.peaceful = None, 0, False
        self.begun = self.last_look = self.last_jump = time.monotonic()
        self.full_until, self.told_full = None, 0
        trials = options.trials
        self.fulls = [(trials // 5, options.full), (2 * trials // 5, 15), (4 * trials // 5, 15)] if self.full_possible else []
        self.next_kill = self.after_some_trials(0)

    def write_session(self):
        argv = [sys.executable, "-I", "-S", str(HERE / "trial.py"), "{trial}", "{config}", "{result}", str(self.evidence),
                str(self.options.seed)]
        self.session.write_text(json.dumps({
            "space": {"a": {"min": 1, "max": 20}, "b": {"min": 1, "max": 20}, "c": {"min": 1, "max": 10},
                      "d": ["w", "x", "y", "z"]},
            "baseline": {"a": 1, "b": 1, "c": 1, "d": "w"},
            "objective": {"metric": "speed", "direction": "maximize"},
            "runner": {"kind": "command", "argv": argv, "timeout_s": 4, "grace_s": 0.3, "oom_exit_codes": [77]},
            "budget": {"trials": self.options.trials, "regret": 0, "least_gain": 0}}))

    def after_some_trials(self, closed):
        at = closed + 1 + self.rng.expovariate(1 / self.options.every)
        peace = (0.45 * self.options.trials, 0.65 * self.options.trials)
        return peace[1] + self.rng.random() if peace[0] < at < peace[1] else at

    def start(self):
        jobs = [1, 2, 4][self.starts % 3]
        words = [self.krigtune, "tune", self.session, "--out", self.run, "--jobs", str(jobs), "--no-interference-check",
                 "--strategy", self.options.strategy, "--full-budget", "--keep-going"]
        environment = {**os.environ, "LD_PRELOAD": str(self.shim), "SOAK_CLOCK": str(self.clock)}
        self.tuner = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=self.log,
                                      stderr=self.log, env=environment)
        self.starts += 1

    def sample(self, closed):
        try:
            resident = int(pathlib.Path(f"/proc/{self.tuner.pid}/statm").read_text().split()[1]) * PAGE / 2**20
            descriptors = len(os.listdir(f"/proc/{self.tuner.pid}/fd"))
            threads = len(os.listdir(f"/proc/{self.tuner.pid}/task"))
        except OSError:
            return
        self.samples.append((time.monotonic() - self.begun, self.starts, closed, resident, descriptors, threads))

    def fill_disk(self, closed):
        if self.full_until is None and self.fulls and closed >= self.fulls[0][0]:
            self.full_until = time.monotonic() + self.fulls.pop(0)[1]
            self.counts["times the disk was full"] += 1
        if self.full_until is None:
            return
        if time.monotonic() < self.full_until:
            with open(self.filler, "ab", buffering=0) as file:  # also what trials have freed since
                try:
                    while file.write(b"\0" * 2**20):
                        pass
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    try:
                        while file.write(b"\0" * 512):
                            pass
                    except OSError:
                        pass
        else:
            self.filler.unlink()
            self.full_until = None

    def jump(self):
        if time.monotonic() - self.last_jump > 5:
            self.last_jump = time.monotonic()
            self.clock.write_bytes(struct.pack("q", self.rng.choice(SHIFTS_S)))
            self.counts["jumps of the clock"] += 1

    def look(self):
        if time.monotonic() - self.last_look < 7 or self.journal.closed == 0:
            return
        self.last_look = time.monotonic()
        words = self.rng.choice([["results", self.run, "--top", "3"], ["watch", self.run, "--once"],
                                 ["results", self.run, "--json"], ["doctor", "--help"]])
        asked = subprocess.run([str(word) for word in [self.krigtune, *words]], capture_output=True, timeout=60)
        self.counts["looks by results and watch"] += 1
        if asked.returncode != 0:
            self.findings.append(f"{words[0]} ended with {asked.returncode}: {asked.stderr.decode(errors='replace')[:300]}")

    def ended(self, code, was_killed):
        self.ends[code] += 1
        if was_killed or code == 0:
            return
        if code == 3 and (self.full_until is not None or self.told_full == 0):
            self.told_full += 1
            return
        self.findings.append(f"tune ended with {code} at {self.journal.closed} closed trials, see tuner.log")

    def go(self):
        limit = self.begun + 3 * 3600
        while time.monotonic() < limit:
            was_full = self.full_until is not None
            self.start()
            code, was_killed = self.follow()
            if code == 3 and (was_full or self.full_until is not None):
                self.told_full += 1
                self.ends[code] += 1
            else:
                self.ended(code, was_killed)
            if code == 0 and not was_killed:
                return
            if code not in (0, 3) and not was_killed:
                time.sleep(1)
            if self.full_until is not None:
                time.sleep(1)
        self.findings.append("three hours were not enough")

    def follow(self):
        """Waits until this tuner ends."""
        next_sample = 0.0
        while self.tuner.poll() is None:
            closed = self.journal.look()
            if time.monotonic() >= next_sample:
                self.sample(closed)
                next_sample = time.monotonic() + 0.25
            self.fill_disk(closed)
            self.jump()
            self.look()
            if closed >= self.next_kill and closed < self.options.trials:
                time.sleep(0.2 * self.rng.random())
                self.counts["kills of the tuner"] += 1
                self.next_kill = self.after_some_trials(closed)
                self.tuner.kill()
                self.killed.add(f"krigtune-{self.tuner.pid}")
                return self.tuner.wait(), True
            time.sleep(0.02)
        self.journal.look()
        return self.tuner.returncode, False


class Record:
    """What the journal says about one trial."""

    def __init__(self):
        self.configuration, self.repeat_of, self.strategy, self.worker = None, None, None, None
        self.status, self.reason, self.value, self.closings = None, "", None, 0


def read_journal(path, findings):
    trials = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line:
            continue
        try:
            entry = json.loads(line)
        except ValueError:
            findings.append(f"line {number} of the journal is no JSON: {line[:80]}")
            continue
        if entry["op_code"] == 4:
            record = Record()
            attributes = entry["user_attrs"]
            record.configuration, record.worker = attributes["configuration"], entry["worker_id"]
            record.repeat_of, record.strategy = attributes.get("repeat_of"), attributes["strategy"]
            trials.append(record)
        elif entry["op_code"] == 8:
            for key, value in entry["user_attr"].items():
                record = trials[entry["trial_id"]]
                if key == "status":
                    record.status = value
                elif key == "reason":
                    record.reason = value
        elif entry["op_code"] == 6:
            record = trials[entry["trial_id"]]
            record.closings += 1
            record.value = (entry.get("values") or [None])[0]
    return trials


def read_evidence(folder):
    evidence = {}
    for path in folder.iterdir():
        lines = path.read_text().splitlines()
        begins = sum(line.startswith("begin") for line in lines)
        ends = [line.split()[1:] for line in lines if line.startswith("end")]
        evidence[int(path.name)] = (begins, ends)
    return evidence


def check(soak):
    """Counts for the table. Errors are added to the findings."""
    findings, counts = soak.findings, soak.counts
    trials = read_journal(soak.run / "journal.log", findings)
    evidence = read_evidence(soak.evidence)
    measured = collections.Counter()
    for number, record in enumerate(trials):
        begins, ends = evidence.pop(number, (0, []))
        verdict = f"{record.status} {record.reason}".strip()
        counts[f"trials: {record.status or 'open'}{' (' + record.reason + ')' if record.reason else ''}"] += 1
        if record.closings != 1:
            findings.append(f"trial {number} was closed {record.closings} times")
        if begins > 1:
            findings.append(f"trial {number} was run {begins} times")
        end = ends[-1] if ends else None
        if verdict == "failed interrupted":
            if end is not None and end[0] == "ok" and record.worker in soak.killed:
                counts["trials that ended within the milliseconds of a kill, asked again"] += 1
            elif end is not None and end[0] == "ok":
                findings.append(f"trial {number} measured {end[1]}, and the tuner that ended by itself did not record it")
            continue
        if end is None and verdict == "failed timeout":
            counts["trials that a busy machine did not let end within 4 s"] += 1
        elif end is None:
            findings.append(f"trial {number} is {verdict} and never came to its end")
        elif end[0] == "ok":
            if record.status != "ok" or abs(record.value - float(end[1])) > 1e-9 * abs(record.value):
                findings.append(f"trial {number} measured {end[1]}, the journal says {verdict} {record.value}")
        elif end[0] == "unwritten":
            counts["trials whose result met a full disk"] += 1
            if record.status == "ok":
                findings.append(f"trial {number} could not write its result, the journal says ok")
        elif verdict != STATUS_OF[end[0]]:
            findings.append(f"trial {number} ended as {end[0]}, the journal says {verdict}")
        if record.status == "ok" or record.reason != "environment":
            again = record.repeat_of is not None or record.strategy in ("again", "alone", "together")
            measured[record.configuration] += 0 if again else 1
    findings.extend(f"evidence of trial {number}, which the journal does not know" for number in evidence)
    repeated = {configuration: times for configuration, times in measured.items() if times > 1}
    findings.extend(f"{configuration} was asked {times} times" for configuration, times in list(repeated.items())[:5])
    closed = sum(record.closings == 1 and record.reason != "interrupted" for record in trials)
    if closed != soak.options.trials:
        findings.append(f"{closed} trials count as closed, {soak.options.trials} were wanted")
    check_files(soak, trials)
    return trials


def check_files(soak, trials):
    findings = soak.findings
    with open(soak.run / "trials.csv", newline="") as file:
        rows = {int(row["trial"]): row for row in csv.DictReader(file)}
    for number, record in enumerate(trials):
        row = rows.pop(number, None)
        if row is None or row["status"] != record.status or row["reason"] != record.reason:
            findings.append(f"trial {number} is {record.status} {record.reason} in the journal and {row} in trials.csv")
    if rows:
        findings.append(f"trials.csv has {len(rows)} rows that the journal does not know")
    known = {"session.json", "journal.log", "trials.csv", "best.json", "config_optimal.json", "cmd_optimal.txt", "changes.md",
             "report.html", "trials"}
    for name in sorted(set(os.listdir(soak.run)) - known):
        findings.append(f"left in the run directory: {name}")
    for path in soak.run.glob("trials/*/*.tmp*"):
        findings.append(f"left behind: {path.relative_to(soak.run)}")
    best = json.loads((soak.run / "best.json").read_text())["trials"]
    by_status = collections.Counter(record.status for record in trials if record.reason != "interrupted")
    if {status: count for status, count in best.items() if count} != dict(by_status):
        findings.append(f"best.json counts {best}, the journal has {dict(by_status)}")
    for words in (["results", soak.run, "--json"], ["watch", soak.run, "--once"], ["repair", soak.run]):
        said = subprocess.run([str(word) for word in [soak.krigtune, *words]], capture_output=True, text=True)
        if said.returncode != 0:
            findings.append(f"{words[0]} afterwards ends with {said.returncode}: {said.stderr[:300]}")
        elif words[0] == "repair":
            print(f"repair says: {(said.stdout + said.stderr).strip()[:300]}")


def strays(soak):
    """Processes of trials that still exist."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if str(soak.evidence).encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:
            pass
    return found


def quarter(samples, trials, which):
    low, high = trials * which / 4, trials * (which + 1) / 4
    return [sample for sample in samples if low <= sample[2] < high or (which == 3 and sample[2] >= high)]


def report(soak, seconds):
    trials = soak.options.trials
    print(f"{trials} trials in {seconds / 60:.1f} minutes, {soak.starts} tuners, seed {soak.options.seed}")
    if not soak.full_possible:
        print("the disk was never full: no tmpfs can be mounted here (run it as root)")
    for name in sorted(soak.counts):
        print(f"  {name}: {soak.counts[name]}")
    print(f"  exit codes of tune: {dict(sorted(soak.ends.items()))}")
    with open(soak.out / "samples.csv", "w") as file:
        file.write("seconds,tuner,closed,resident_mb,descriptors,threads\n")
        for sample in soak.samples:
            file.write(",".join(f"{value:.2f}" if isinstance(value, float) else str(value) for value in sample) + "\n")
    print(f"{'quarter':8s} {'samples':>7s} {'median MB':>9s} {'most MB':>8s} {'median fds':>10s} {'most fds':>8s} {'threads':>7s}")
    for which in range(4):
        part = quarter(soak.samples, trials, which)
        if part:
            print(f"{which + 1:<8d} {len(part):7d} {statistics.median(s[3] for s in part):9.1f} {max(s[3] for s in part):8.1f} "
                  f"{statistics.median(s[4] for s in part):10.0f} {max(s[4] for s in part):8d} {max(s[5] for s in part):7d}")
    lives = collections.defaultdict(list)
    for sample in soak.samples:
        lives[sample[1]].append(sample)
    longest = max(lives.values(), key=lambda life: life[-1][2] - life[0][2])
    grown = longest[-1][2] - longest[len(longest) // 4][2]
    print(f"the longest life: {longest[0][2]} to {longest[-1][2]} closed trials; memory at its quarters "
          f"{[round(longest[len(longest) * i // 4][3], 1) for i in range(1, 4)] + [round(longest[-1][3], 1)]} MB, "
          f"descriptors {[longest[len(longest) * i // 4][4] for i in range(1, 4)] + [longest[-1][4]]}, over {grown} trials")
    for finding in soak.findings[:40]:
        print(f"FOUND {finding}")
    print(f"{len(soak.findings)} findings" if soak.findings else "nothing lost, repeated, misjudged or left behind")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.removeprefix("usage: "))
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--strategy", default="bayes")
    parser.add_argument("--full", type=float, default=60, help="seconds of the longest full disk")
    parser.add_argument("--every", type=float, default=50, help="trials between two kills, on average")
    soak = Soak(parser.parse_args())
    # krigtune guards its trials. Processes that escape become children of this one, and are found.
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    soak.go()
    seconds = time.monotonic() - soak.begun
    time.sleep(1)
    for pid in strays(soak):
        soak.findings.append(f"process {pid} of a trial is still there")
        os.kill(pid, 9)
    check(soak)
    report(soak, seconds)
    shutil.copytree(soak.run, soak.out / "run", ignore=shutil.ignore_patterns("trials"))
    sys.exit(1 if soak.findings else 0)


if __name__ == "__main__":
    main()

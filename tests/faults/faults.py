#!/usr/bin/env python3
"""usage: faults.py KRIGTUNE LIBRARY [--stride N | --sample N] [--only CLASS...]
                 [--trials N] [--workers N] [--findings N] [--keep DIR] [--table FILE]

Runs a session of 30 trials (or of --trials) again and again, each time with another system call
that fails: the first one of its class, the second, ... until the session ends
before the call is made. After each run no trial that was reported may be
missing, no temporary file and no process may remain, `krigtune results` must be
able to read the directory, and the same command without faults must end the
session and measure nothing twice but the trials that were running.

--stride N takes only every N-th call, starting at a different one in each case;
--sample N takes about N calls of each case, spread over all of them.
--findings N ends a case after N findings, --keep DIR keeps their run directories.
"""
import argparse
import concurrent.futures
import errno
import os
import shutil
import sys
import tempfile
import threading
import time

import sessions

# In these cases the call is made again, or its result is not needed. The others may have to end the session with 3.
SURVIVED = (0,)
ENDED = (0, 3)
KILLED = (-9,)

# This many trials in a row that cannot be started end a session.
ENVIRONMENT_FAILURES = 3

# In these cases each trial leaves a program running, which the guard has to end.
PROCESSES = ("fork", "poll", "thread", "descriptor", "unlink")


class Case:
    """One class of calls that fails in one way, in one kind of session."""

    def __init__(self, kind, name, error, codes, sticky=False, jobs=1, leftovers=False, outcomes=("interrupted",)):
        self.kind, self.name, self.error, self.codes, self.sticky, self.jobs = kind, name, error, codes, sticky, jobs
        self.leftovers, self.outcomes = leftovers, outcomes
        self.starts_fail = "environment" in outcomes

    def words(self):
        return "%s %s%s, %s%s" % (self.name, self.error, " from then on" if self.sticky else "", self.kind,
                                  " --jobs %d" % self.jobs if self.jobs > 1 else "")

    def faults(self, n):
        error = self.error if self.error in ("SHORT", "TORN", "KILL") else str(getattr(errno, self.error))
        return {"FAULT_CLASS": self.name, "FAULT_ERROR": error, "FAULT_N": str(n),
                "FAULT_STICKY": "1" if self.sticky else "0"}


def all_cases():
    cases = []
    # A trial that could not be started ends as "environment" and is not tried again by itself.
    start = ("interrupted", "environment")
    for kind in ("command", "replay"):
        cases += [Case(kind, "write", error, ENDED) for error in ("ENOSPC", "EIO")]
        cases += [Case(kind, "write", error, SURVIVED) for error in ("EINTR", "SHORT")]
        cases += [Case(kind, "write", "TORN", ENDED), Case(kind, "write", "ENOSPC", ENDED, sticky=True)]
        cases += [Case(kind, "fsync", error, ENDED) for error in ("EIO", "ENOSPC")]
        cases += [Case(kind, "rename", error, ENDED) for error in ("ENOSPC", "EIO")]
        cases += [Case(kind, "open", error, ENDED) for error in ("EMFILE", "ENOSPC", "EIO", "ENOMEM")]
        cases += [Case(kind, "read", error, ENDED) for error in ("EIO",)]
        cases += [Case(kind, "read", error, SURVIVED) for error in ("EINTR", "SHORT")]
        cases += [Case(kind, "mkdir", error, ENDED) for error in ("ENOSPC", "EIO")]
        cases += [Case(kind, "symlink", error, ENDED) for error in ("ENOSPC", "EIO")]
        cases += [Case(kind, "unlink", "EIO", ENDED, leftovers=True), Case(kind, "ftruncate", "EIO", ENDED)]
        cases += [Case(kind, "lock", "ENOLCK", ENDED), Case(kind, "lock", "EINTR", SURVIVED)]
        cases += [Case(kind, name, "KILL", KILLED, leftovers=True)
                  for name in ("write", "fsync", "rename", "open", "symlink", "unlink")]
        cases += [Case(kind, "thread", "EAGAIN", ENDED), Case(kind, "descriptor", "EMFILE", ENDED)]
        cases += [Case(kind, "poll", "EINTR", SURVIVED), Case(kind, "poll", "ENOMEM", ENDED)]
    cases += [Case("command", "fork", error, ENDED, outcomes=start) for error in ("EAGAIN", "ENOMEM")]
    cases += [Case("command", "fork", "EAGAIN", ENDED, sticky=True, outcomes=start)]
    # Every other call is made by the guard of a trial. If the guard is killed, the trial has crashed and the session continues.
    cases += [Case("command", "fork", "KILL", KILLED + SURVIVED, leftovers=True,
                   outcomes=("interrupted", "crash", "oom"))]
    for name, error in (("write", "ENOSPC"), ("open", "EMFILE"), ("fork", "EAGAIN")):
        cases.append(Case("command", name, error, ENDED, jobs=2, outcomes=start))
    return cases


def run_once(session, case, n):
    """Return False when the session made fewer calls of that class than `n`."""
    session.fresh()
    code, said, stderr = session.tune(case.faults(n))
    calls, failed = session.counts()
    if code not in (case.codes if failed else SURVIVED):
        raise sessions.Failure("exit code %d (%d of %d calls failed): %s" % (code, failed, calls, stderr.strip()))
    if code == 3 and not stderr.strip():
        raise sessions.Failure("exit code 3 without a word")
    if not failed:
        return False
    sessions.check_no_process(session)
    journal = session.journal_bytes()
    sessions.check_reported(said, journal)
    sessions.check_outcomes(journal, case.outcomes)
    if case.error != "KILL":
        sessions.check_files(session, case.leftovers)
    sessions.check_readable(session)
    sessions.check_goes_on(session, journal, case.jobs + (ENVIRONMENT_FAILURES if case.starts_fail else 0))
    sessions.check_files(session, case.leftovers)
    sessions.check_no_process(session)
    return True


def run_case(arguments, case, first):
    """Return the number of sessions that met the fault, the calls of a session, and the findings."""
    work = tempfile.mkdtemp(prefix="krigtune-faults-")
    session = sessions.Session(arguments.krigtune, arguments.library, work, case.kind, case.jobs, case.name in PROCESSES)
    findings = []
    n, stride = first, arguments.stride
    if arguments.sample:
        session.fresh()
        session.tune(case.faults(10**9))  # none fails
        stride = session.counts()[0] // arguments.sample + 1
        n = 1 + first * stride // 7 % stride  # not the same of each case
    runs = calls = 0
    while True:
        try:
            if not run_once(session, case, n):
                calls = session.counts()[0]
                break
        except sessions.Failure as failure:
            findings.append("call %d of %s: %s" % (n, case.words(), failure))
            if arguments.keep:
                shutil.copytree(work, os.path.join(arguments.keep, "%s-%d" % (case.words().replace(" ", "_"), n)),
                                dirs_exist_ok=True, symlinks=True)
        runs += 1
        n += stride
        if len(findings) >= arguments.findings:
            break
    shutil.rmtree(work, ignore_errors=True)
    return runs, calls, findings


def main():
    parser = argparse.ArgumentParser(usage=__doc__.removeprefix("usage: "))
    parser.add_argument("krigtune")
    parser.add_argument("library")
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--trials", type=int, default=sessions.TRIALS)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--findings", type=int, default=5, help="of a case, after which it is left")
    parser.add_argument("--keep", help="a folder for the run directories of findings")
    parser.add_argument("--table")
    arguments = parser.parse_args()
    sessions.TRIALS = arguments.trials
    arguments.krigtune = os.path.realpath(arguments.krigtune)
    arguments.library = os.path.realpath(arguments.library)
    cases = [case for case in all_cases() if not arguments.only or any(word in case.words() for word in arguments.only)]
    begun = time.time()
    lines, all_findings, all_runs = [], [], 0
    lock = threading.Lock()
    with concurrent.futures.ThreadPoolExecutor(arguments.workers) as pool:
        futures = {pool.submit(run_case, arguments, case, 1 + i % max(arguments.stride, 7)): case for i, case in enumerate(cases)}
        for future in concurrent.futures.as_completed(futures):
            runs, calls, findings = future.result()
            with lock:
                all_runs += runs
                all_findings += findings
                lines.append("%s,%d,%d,%d" % (futures[future].words().replace(", ", ","), calls, runs, len(findings)))
                print("%-44s calls %4d  runs %4d  findings %d" %
                      (futures[future].words(), calls, runs, len(findings)), flush=True)
                for finding in findings:
                    print("  " + finding, flush=True)
    if arguments.table:
        with open(arguments.table, "w") as table:
            table.write("\n".join(["class and error,session,calls,runs,findings"] + sorted(lines)) + "\n")
    print("%d runs of %d cases in %.0f s: %d findings" % (all_runs, len(cases), time.time() - begun, len(all_findings)))
    sys.exit(1 if all_findings else 0)


main()

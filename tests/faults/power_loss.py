#!/usr/bin/env python3
"""usage: power_loss.py KRIGTUNE LIBRARY [--stride N] [--seed N]
                     [--session command|replay] [--findings N]

Logs everything that a session of 30 trials writes into its run directory. Then
it cuts the power after each of these operations: it builds the directory again
from what was on the disk for sure, and from a part of the rest.

POSIX promises that a file's bytes are on the disk once fsync was called on it,
and a name (made, renamed or removed) once fsync was called on its directory. Of
the rest each operation is there or not, in any order; of a write there may be
all, nothing, the first half, or zeros in place of its bytes. Each cut gives
three disks: with nothing of the rest, all of it, and a part drawn by the seed.
From each `krigtune tune` must go on with every trial that it had reported.
"""
import argparse
import os
import random
import shutil
import sys
import tempfile
import time

import sessions


class Operation:
    def __init__(self, line):
        words = line.split(" ")
        self.what, self.words = words[0], words[1:]


class Disk:
    """The files and names of a directory, built from operations."""

    def __init__(self):
        self.files = {}  # by inode: content
        self.names = {}  # by path: ("file", inode), ("link", target), ("folder",)

    def write(self, inode, offset, data):
        content = self.files.setdefault(inode, bytearray())
        if len(content) < offset:
            content.extend(bytes(offset - len(content)))
        content[offset:offset + len(data)] = data

    def apply(self, operation, how="all"):
        what, words = operation.what, operation.words
        if what == "write":
            data = bytes.fromhex(words[2])
            if how == "half":
                data = data[: len(data) // 2]
            elif how == "zeros":
                data = bytes(len(data))
            self.write(operation.inode, int(words[1]), data)
        elif what == "cut":
            content = self.files.setdefault(operation.inode, bytearray())
            del content[int(words[1]):]
            content.extend(bytes(int(words[1]) - len(content)))
        elif what == "create":
            self.files.setdefault(operation.inode, bytearray())
            self.names[words[1]] = ("file", operation.inode)
        elif what == "rename" and words[0] in self.names:
            self.names[words[1]] = self.names.pop(words[0])
        elif what == "unlink":
            self.names.pop(words[0], None)
        elif what == "symlink":
            self.names[words[1]] = ("link", words[0])
        elif what == "mkdir":
            self.names[words[0]] = ("folder",)

    def put(self, root):
        """Write everything where it was; what lies in a folder that does not exist is lost."""
        shutil.rmtree(root, ignore_errors=True)
        folders = set()
        for path in sorted(self.names, key=len):
            if os.path.dirname(path) not in folders and path != root:
                continue
            entry = self.names[path]
            if entry[0] == "folder":
                os.mkdir(path)
                folders.add(path)
            elif entry[0] == "link":
                os.symlink(entry[1], path)
            else:
                with open(path, "wb") as out:
                    out.write(self.files.get(entry[1], b""))


def read_log(path):
    """Return the operations. An inode number that is used again stands for another file."""
    operations, serial, current = [], 0, {}
    with open(path) as log:
        for line in log:
            operation = Operation(line.rstrip("\n"))
            if operation.what == "create":
                serial += 1
                current[operation.words[0]] = serial
            if operation.what in ("create", "write", "cut", "sync"):
                operation.inode = current.get(operation.words[0])
            operations.append(operation)
    return operations


NAMES = {"create": 1, "rename": 1, "unlink": 0, "symlink": 1, "mkdir": 0}


def folder_of(operation):
    return os.path.dirname(operation.words[NAMES[operation.what]])


class Pending:
    """Tells which operations are on the disk for sure."""

    def __init__(self):
        self.operations = []  # [operation, is on the disk]

    def add(self, operation):
        if operation.what == "sync_all":
            for entry in self.operations:
                entry[1] = True
        elif operation.what == "sync":
            for entry in self.operations:
                other = entry[0]
                if other.what in NAMES and folder_of(other) == operation.words[1]:
                    entry[1] = True
                if other.what in ("write", "cut") and operation.inode and other.inode == operation.inode:
                    entry[1] = True
        elif operation.what != "say":
            self.operations.append([operation, False])

    def disk(self, how):
        disk = Disk()
        for operation, is_sure in self.operations:
            fate = "all" if is_sure else how(operation)
            if fate != "none":
                disk.apply(operation, fate)
        return disk


def check_cut(session, disk, said):
    session.fresh()
    disk.put(session.run)
    before = session.journal_bytes()
    sessions.check_reported(said, before)
    sessions.check_goes_on(session, before, is_kept=False)
    sessions.check_reported(said, session.journal_bytes())
    sessions.check_readable(session)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.removeprefix("usage: "))
    parser.add_argument("krigtune")
    parser.add_argument("library")
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--session", default="command")
    parser.add_argument("--findings", type=int, default=5)
    arguments = parser.parse_args()
    work = os.path.realpath(tempfile.mkdtemp(prefix="krigtune-power-"))
    session = sessions.Session(os.path.realpath(arguments.krigtune), os.path.realpath(arguments.library), work,
                               arguments.session)
    begun = time.time()
    session.fresh()
    log = os.path.join(work, "log")
    code, printed, stderr = session.tune({"FAULT_LOG": log})
    if code != 0 or len(sessions.reported_in(printed)) != sessions.TRIALS:
        sys.exit("the session that is written down ends with %d: %s" % (code, stderr))
    operations = read_log(log)
    draw = random.Random(arguments.seed)
    kinds = [("nothing of the rest", lambda operation: "none"),
             ("all of the rest", lambda operation: "all"),
             ("a part of the rest",
              lambda operation: draw.choice(["all", "none", "half", "zeros"] if operation.what == "write"
                                            else ["all", "none"]))]
    pending, said, findings, disks = Pending(), "", [], 0
    for number, operation in enumerate(operations):
        pending.add(operation)
        if operation.what == "say":
            said += bytes.fromhex(operation.words[0]).decode()
        if number % arguments.stride != 0:
            continue
        for name, how in kinds:
            disks += 1
            try:
                check_cut(session, pending.disk(how), said)
            except sessions.Failure as failure:
                findings.append("cut after operation %d (%s %s), %s: %s" %
                                (number, operation.what, " ".join(operation.words)[:80], name, failure))
                print("  " + findings[-1], flush=True)
        if len(findings) >= arguments.findings:
            break
    print("%d operations, %d disks in %.0f s: %d findings" %
          (len(operations), disks, time.time() - begun, len(findings)))
    shutil.rmtree(work, ignore_errors=True)
    sys.exit(1 if findings else 0)


main()

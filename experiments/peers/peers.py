#!/usr/bin/env python3
"""Runs other tools on the tables that experiments/search/spaces.py wrote, 40 trials each, and appends a row per run.

usage: peers.py SPACES_DIR ROWS.csv [--tools A;B] [--seeds N] [--slow-seeds N] [--only TEXT] [--trials N]
Fast tools (TPE) run on every space with --seeds seeds (30), the others on the spaces
marked "few" with --slow-seeds (3). Runs that are in ROWS.csv are not repeated, so the
program may be stopped and started. Columns: tool, version, set, space, seed, table
(CRC-32 of the part of it that the tools are told), seconds (CPU), and trials: the
numbers of the table's rows in the order in which they were tried.
"""
import argparse
import csv
import pathlib
import re
import time
import warnings
import zlib

from tools import FAST, TOOLS, Rows

HEADER = ["tool", "version", "set", "space", "seed", "table", "seconds", "trials"]


class Space:
    def __init__(self, folder, row):
        self.set, self.name, self.few = row["set"], row["space"], row["few"] == "1"
        with open(folder / row["table"], newline="") as file:
            header, *lines = csv.reader(file)
        status, metric = header.index("status"), header.index(row["metric"])
        self.checksum = row["checksum"]
        self.rows = Rows(header[:status], [tuple(line[:status]) for line in lines])
        times = -1 if row["metric"] == "latency" else 1  # a gain, which is maximised
        self.gains = [float(line[metric]) ** times if line[status] == "ok" else None for line in lines]


def read_spaces(folder):
    with open(folder / "spaces.csv", newline="") as file:
        return [Space(folder, row) for row in csv.DictReader(file) if row["variant"] == "physics"]


def run(tool, space, seed, trials):
    """Numbers of the rows in the order in which they were tried."""
    own = zlib.crc32(f"{space.set}/{space.name}/{seed}".encode())  # makes runs with the same seed independent
    peer = TOOLS[tool](space.rows, own)
    tried = []
    while len(tried) < min(trials, space.rows.count):
        row = peer.ask()
        peer.tell(row, space.gains[row])
        tried.append(row)
    return tried


def done_before(path):
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(",".join(HEADER) + "\n")
    with open(path, newline="") as file:
        return {(row["tool"], row["set"], row["space"], int(row["seed"]), row["table"]) for row in csv.DictReader(file)}


def jobs(arguments):
    """Seed by seed, so that an interruption leaves fewer seeds, and not fewer spaces."""
    spaces = [s for s in read_spaces(arguments.spaces) if re.search(arguments.only, f"{s.set}/{s.name}")]
    chosen = arguments.tools.split(";") if arguments.tools else list(TOOLS)
    for seed in range(1, max(arguments.seeds, arguments.slow_seeds) + 1):
        for tool in chosen:
            fast = tool in FAST
            if seed <= (arguments.seeds if fast else arguments.slow_seeds):
                yield from ((tool, space, seed) for space in spaces if fast or space.few)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spaces", type=pathlib.Path)
    parser.add_argument("rows", type=pathlib.Path)
    parser.add_argument("--tools", help=f"separated by ';': {'; '.join(TOOLS)}")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--slow-seeds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--trials", type=int, default=40)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    known = done_before(arguments.rows)
    for tool, space, seed in jobs(arguments):
        if (tool, space.set, space.name, seed, space.checksum) in known:
            continue
        begun = time.process_time()
        tried = run(tool, space, seed, arguments.trials)
        seconds = time.process_time() - begun
        line = [tool, TOOLS[tool].version(), space.set, space.name, seed, space.checksum, f"{seconds:.3g}",
                " ".join(map(str, tried))]
        with open(arguments.rows, "a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(line)


if __name__ == "__main__":
    main()

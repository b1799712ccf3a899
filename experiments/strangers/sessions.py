"""Writes for each of the tables of GPU kernels a session without a workload and its
table into FOLDER, and spaces.csv, which lists them for experiments/peers.

usage: sessions.py FOLDER
"""
import csv
import json
import pathlib
import sys
import zlib

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
NO_PARAMETERS = ("kernel", "status", "speed")


def write_session(name, folder):
    with (DATA / f"{name}_2080ti.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    parameters = [column for column in rows[0] if column not in NO_PARAMETERS]
    with (folder / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, parameters + ["status", "speed"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    session = {
        "space": {parameter: sorted({int(row[parameter]) for row in rows}) for parameter in parameters},
        "baseline": None,
        "objective": {"metric": "speed", "direction": "maximize"},
        "runner": {"kind": "replay", "table": f"{name}.csv", "value": "speed", "status": "status"},
        "budget": {"trials": 60},
    }
    (folder / f"{name}.json").write_text(json.dumps(session, indent=2) + "\n")
    checksum = zlib.crc32((folder / f"{name}.csv").read_bytes())
    return {"set": "strangers", "space": name, "variant": "physics", "table": f"{name}.csv", "metric": "speed", "few": 1,
            "checksum": f"{checksum:08x}"}


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    spaces = [write_session(table, target) for table in ("gemm", "conv")]
    with (target / "spaces.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(spaces[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(spaces)

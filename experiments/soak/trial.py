"""One trial of the soak: it begins, fails or not, and records that in a file of its own.

usage: trial.py TRIAL CONFIG RESULT EVIDENCE_DIR SEED

EVIDENCE_DIR/TRIAL gets a line `begin PID` and, at the end, `end ok VALUE` or the name of
the fault. It is on another file system than the run directory, so it can be compared
with the journal. The fault depends only on SEED and TRIAL. Uses only a little of the
standard library, because it is started two thousand times.
"""
import json
import os
import signal
import sys
import time
import zlib

# name -> fraction of the trials, in thousandths
FAULTS = {"segfault": 15, "killed": 10, "exit": 15, "oom_exit": 15, "oom_text": 15, "hang": 4, "deaf_hang": 4, "no_result": 8,
          "torn_result": 8, "binary_result": 8, "nan_result": 8, "huge_result": 5, "directory_result": 5, "flood": 8, "stray": 20}
RUNS = {"flood", "stray"}  # these still end well


def drawn(seed, trial, what):
    """A number from 0 to 1."""
    return zlib.crc32(f"{seed} {trial} {what}".encode()) / 2**32


def fault_of(seed, trial):
    at = 1000 * drawn(seed, trial, "fault")
    for name, share in FAULTS.items():
        at -= share
        if at < 0:
            return name
    return "ok"


def value_of(configuration, seed, trial):
    a, b, c = configuration["a"] / 20 - 0.6, configuration["b"] / 20 - 0.3, configuration["c"] / 10 - 0.7
    value = 100 - 80 * a * a - 60 * b * b - 50 * c * c + {"w": 0, "x": 3, "y": 6, "z": 1}[configuration["d"]]
    return round(value * (1 + 0.02 * (drawn(seed, trial, "noise") - 0.5)), 6)


def stay_behind():
    """A process that its trial leaves behind, in a session of its own."""
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
        os._exit(0)


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def misbehave(fault, result):
    if fault == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif fault == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault == "exit":
        print("Traceback (most recent call last):\nRuntimeError: soak", file=sys.stderr)
        os._exit(1)
    elif fault == "oom_exit":
        os._exit(77)
    elif fault == "oom_text":
        print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", file=sys.stderr, flush=True)
        os._exit(1)
    elif fault in ("hang", "deaf_hang"):
        if fault == "deaf_hang":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    elif fault == "torn_result":
        write(result, b'{"speed": 12')
    elif fault == "binary_result":
        noise = bytes(zlib.crc32(bytes([i % 256])) % 256 for i in range(5000))
        sys.stdout.buffer.write(noise)
        write(result, noise)
    elif fault == "nan_result":
        write(result, b'{"speed": NaN}')
    elif fault == "huge_result":
        write(result, b"[" * 200_000)
    elif fault == "directory_result":
        os.mkdir(result)


def main():
    trial, config, result, evidence, seed = sys.argv[1:]
    fault = fault_of(seed, trial)
    with open(f"{evidence}/{trial}", "a", buffering=1) as said:
        said.write(f"begin {os.getpid()}\n")
        with open(config) as file:
            configuration = json.load(file)
        value = value_of(configuration, seed, trial)
        time.sleep(0.03 * drawn(seed, trial, "time"))
        try:
            if fault not in RUNS and fault != "ok":
                said.write(f"end {fault}\n")
                misbehave(fault, result)
                return
            if fault == "flood":
                for _ in range(200):
                    sys.stdout.write("x" * 9_999 + "\n")
            if fault == "stray":
                stay_behind()
            write(result, json.dumps({"speed": value, "value_sem": 0.006 * value}).encode())
        except OSError as error:
            said.write(f"end unwritten {error.errno}\n")
            raise
        said.write(f"end ok {value!r}\n")


main()

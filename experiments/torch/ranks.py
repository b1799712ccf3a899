"""A program on several processes of this machine, which know their ranks from torchrun's variables."""
import os
import socket
import subprocess
import sys


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def go_first():
    """Gives the ranks priority over all other programs of this machine, and an immediate start when they wake up; only
    for root. Neither nice nor the weight of a session does the second: at load 7, a small all-reduce of gloo took 700 to
    2000 us with them, and 100 us in this way."""
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def run(ranks, command, timeout_s=300, first=False, more_variables=None):
    """Returns rank 0's output. Each rank computes with one thread. If a rank fails, the others are ended."""
    port = free_port()
    processes = []
    for rank in range(ranks):
        variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks,
                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": 1, "GLOO_SOCKET_IFNAME": "lo",
                     **(more_variables or {})}
        environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
        processes.append(subprocess.Popen(command, env=environment, text=True, stderr=subprocess.PIPE,
                                          stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
                                          preexec_fn=go_first if first else None))
    try:
        out, err = processes[0].communicate(timeout=timeout_s)
        for process in processes[1:]:
            process.communicate(timeout=20)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
    if any(process.returncode for process in processes):
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {[p.returncode for p in processes]}: {err[-1500:]}")
    return out


def main(arguments):
    first = arguments[:1] == ["--first"]
    arguments = arguments[first:]
    if len(arguments) < 2 or not arguments[0].isdigit():
        print("usage: ranks.py [--first] RANKS COMMAND [ARGUMENT...]", file=sys.stderr)
        return 2
    print(run(int(arguments[0]), arguments[1:], first=first), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

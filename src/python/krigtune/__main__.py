"""`python -m krigtune ...` and the command `krigtune` run the program with the same arguments."""
from __future__ import annotations

import os
import sys

from ._server import ProgramError, program


def run(name: str) -> int:
    """Replaces this process by a program of the package. Returns an exit code if there is no such program."""
    try:
        path = program(name)
    except ProgramError as error:
        print(f"krigtune: {error}", file=sys.stderr)
        return 3
    os.execv(path, [path, *sys.argv[1:]])


def main() -> int:
    return run("krigtune")


def bench() -> int:
    return run("krigtune-bench")


if __name__ == "__main__":
    sys.exit(main())

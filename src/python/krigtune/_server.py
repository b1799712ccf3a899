"""The program `krigtune serve --stdio`, and the pipe to it."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import weakref
from typing import Any, Dict, IO, Optional

_VARIABLE = "KRIGTUNE_EXECUTABLE"
_SECONDS_TO_END = 60.0  # it writes the last files then, which takes long on a busy machine or a slow disk
_MOST_BYTES = 16 << 20  # of a request


class Error(Exception):
    """Something that krigtune cannot do. `message` says what and where, `fix` what to do about it."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(f"{message}; {fix}" if fix else message)
        self.message = message
        self.fix = fix


class InputError(Error, ValueError):
    """A space, a session, a configuration or a result is wrong."""


class ProgramError(Error, RuntimeError):
    """The machine lacks something, or the program krigtune has ended or cannot be found. What was told is in the journal."""


def program(name: str = "krigtune") -> str:
    """Returns the path of a program: the variable KRIGTUNE_EXECUTABLE, the one in this package, or the one on the PATH.

    Raises ProgramError if there is none.
    """
    named = os.environ.get(_VARIABLE)
    if named:
        named = str(pathlib.Path(named).parent / name)
        if os.access(named, os.X_OK):
            return named
        raise ProgramError(f"{_VARIABLE}: '{named}' cannot be run", "name the program krigtune, or unset the variable")
    bundled = pathlib.Path(__file__).parent / "_program" / name
    found = str(bundled) if os.access(bundled, os.X_OK) else shutil.which(name)
    if found:
        return found
    raise ProgramError(f"there is no program {name} in this package and none on the PATH",
                       f"install the wheel, or name the program in the variable {_VARIABLE}")


class Server:
    """The program while it runs. Its functions may be called from any thread.

    temporary: it has a directory of its own, `folder`, which is removed when it is closed.
    """

    def __init__(self, temporary: bool = False) -> None:
        self.process_id = os.getpid()
        self._lock = threading.Lock()
        self._last_id = 0
        # An exception, such as Ctrl-C, may have left a part of a request, or of an answer, in the pipe.
        self._is_request_torn = False
        self._is_answer_torn = False
        path = program()
        # What it says besides its answers, for the case that it ends unexpectedly.
        self._said: IO[bytes] = tempfile.TemporaryFile()
        try:
            # In a session of its own: Ctrl-C in a terminal is for this program, which then tells what became of its trials.
            self._process = subprocess.Popen([path, "serve", "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                             stderr=self._said, start_new_session=True)
        except OSError as error:
            self._said.close()
            raise ProgramError(f"'{path}' cannot be started: {error.strerror}", "check the file") from error
        self.folder = tempfile.mkdtemp(prefix="krigtune-") if temporary else None
        self.close = weakref.finalize(self, _end, self._process, self._said, self.process_id, self.folder)
        _servers.add(self)

    def call(self, method: str, **params: Any) -> Any:
        """Sends a request and returns its result. Parameters that are None are left out. Raises InputError and ProgramError."""
        text = {name: value for name, value in params.items() if value is not None}
        with self._lock:
            self._last_id += 1
            request: Dict[str, Any] = {"id": self._last_id, "method": method, "params": text}
            answer = self._exchange(json.dumps(request, allow_nan=False, ensure_ascii=False))
        error = answer.get("error")
        if error is None:
            return answer["result"]
        raise (InputError if error["kind"] == "user" else ProgramError)(error["message"], error["fix"])

    def _exchange(self, line: str) -> Dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        request = line.encode(errors="replace") + b"\n"  # a half of a surrogate pair is no text
        if len(request) > _MOST_BYTES:
            raise InputError(f"a request has {len(request)} bytes, more than {_MOST_BYTES}", "send less at once")
        try:
            was_torn, self._is_request_torn = self._is_request_torn, True
            stdin.write(b"\n" + request if was_torn else request)
            stdin.flush()
            self._is_request_torn = False
            while True:
                answer = self._next_answer(stdout)
                if answer is None:
                    break
                if answer["id"] is None and was_torn:  # the answer to the torn request
                    was_torn = False
                elif answer["id"] in (self._last_id, None):  # not that of a call which an exception ended before
                    return answer
        except (OSError, ValueError) as error:  # the pipe is broken, or was closed
            raise self._ended() from error
        raise self._ended()

    def _next_answer(self, stdout: IO[bytes]) -> Optional[Dict[str, Any]]:
        """Returns the next answer, without what is left of a torn one; None at the end."""
        while True:
            was_torn, self._is_answer_torn = self._is_answer_torn, True
            line = stdout.readline()
            self._is_answer_torn = False
            if not line.endswith(b"\n"):
                return None
            try:
                answer: Dict[str, Any] = json.loads(line)
                return answer
            except ValueError:
                if not was_torn:
                    raise

    def _ended(self) -> ProgramError:
        if not self.close.alive:
            return ProgramError("the study is closed", "open it again with its directory")
        try:
            how = f" with exit code {self._process.wait(_SECONDS_TO_END)}"
        except subprocess.TimeoutExpired:
            how = ""
        self._said.seek(0)
        said = self._said.read().decode(errors="replace").strip().splitlines()
        return ProgramError(f"the program krigtune has ended{how}{': ' + said[-1] if said else ''}",
                            "what was told is in the journal: open the study again with its directory")


def _end(process: "subprocess.Popen[bytes]", said: IO[bytes], process_id: int, folder: Optional[str]) -> None:
    """Ends the program as it wants to be ended, by the end of its input, after which it writes the last files."""
    if os.getpid() != process_id:
        return  # a fork: the program belongs to the parent
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.close()
    except OSError:
        pass  # it has ended already
    try:
        process.wait(_SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
    said.close()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


# A forked child must not keep the pipe open, or the program would not see its end.
_servers: "weakref.WeakSet[Server]" = weakref.WeakSet()


def _leave_to_parent() -> None:
    for server in list(_servers):
        for pipe in (server._process.stdin, server._process.stdout):
            if pipe is not None:
                pipe.raw.close()  # type: ignore[attr-defined]  # without writing what its buffer may have
        server._said.close()
        server._process.returncode = 0  # nobody waits for it here


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)

"""Daemons that start within some milliseconds: forks of a process that has imported all they need.

The process is run as ``python -m tests.system.quick_daemon``. It reads an order a line, in JSON: a
list of lists of arguments starts a daemon for each, all let go at once, and their pids are
answered; a pid waits for that daemon's end, and its exit status is answered. When its input ends it
kills what is left.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tests.rig import PATIENCE, Daemon
from uuidd.cli import main as uuidd


class QuickStarts:
    """Starts daemons for as long as the context lasts; *lines* are what all of them have logged."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._more = threading.Condition()

    def __enter__(self) -> QuickStarts:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.system.quick_daemon"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(PATIENCE)
            self._reader.join(PATIENCE)

    def start(self, *daemons: list[str]) -> list[int]:
        """Let a daemon begin with each list of arguments, all at once; give their pids."""
        pids: list[int] = self._order(list(daemons))
        return pids

    def ended(self, pid: int) -> int:
        """Wait for the end of a daemon; give its exit status, below zero for a signal."""
        status: int = self._order(pid)
        return status

    def await_lines(self, done: Callable[[list[str]], bool], *, after: int) -> list[str]:
        """Give the lines from number *after* on, as soon as *done* says that they are all."""
        with self._more:
            assert self._more.wait_for(lambda: done(self.lines[after:]), PATIENCE), self.lines
            return self.lines[after:]

    def _order(self, order: object) -> Any:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in iter(self._process.stderr.readline, b""):
            with self._more:
                self.lines.append(line.decode().rstrip())
                self._more.notify_all()


class QuickDaemon(Daemon):
    """A daemon that starts, and starts again, within milliseconds; *pid* is that of the last."""

    def __init__(self, *arguments: str) -> None:
        super().__init__(*arguments)
        self._starts = QuickStarts()
        self.pid = 0

    def __enter__(self) -> QuickDaemon:
        self._starts.__enter__()
        self.lines = self._starts.lines
        super().__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._starts.__exit__(kind, error, trace)
        super().__exit__(kind, error, trace)

    def start(self) -> None:
        """Start the daemon, and wait until it has logged that it can be asked."""
        seen = len(self.lines)
        places = [f"--socket={self.socket}", f"--state={self.state}"]
        (self.pid,) = self._starts.start(["-F", "--no-pid", *places, *self.arguments])
        self._starts.await_lines(lambda lines: any(map(is_start, lines)), after=seen)

    def kill(self) -> None:
        """End the daemon by SIGKILL."""
        os.kill(self.pid, signal.SIGKILL)
        assert self._starts.ended(self.pid) == -signal.SIGKILL


def is_start(line: str) -> bool:
    """Whether this is the line of a daemon that can be asked from now on."""
    return "INFO: started:" in line


def _run(arguments: list[str], gate: int) -> None:
    """Be a daemon as soon as the gate is closed."""
    status = 70
    try:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.close(null)
        os.read(gate, 1)
        os.close(gate)
        status = uuidd(arguments)
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 70
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _start(daemons: list[list[str]]) -> list[int]:
    gate, keep = os.pipe()
    pids = []
    for arguments in daemons:
        pid = os.fork()
        if not pid:
            os.close(keep)
            _run(arguments, gate)
        pids.append(pid)
    os.close(gate)
    os.close(keep)
    return pids


def _serve() -> None:
    left: set[int] = set()
    try:
        for line in sys.stdin.buffer:
            order = json.loads(line)
            answer: object
            if isinstance(order, int):
                answer = os.waitstatus_to_exitcode(os.waitpid(order, 0)[1])
                left.discard(order)
            else:
                answer = pids = _start(order)
                left.update(pids)
            sys.stdout.write(f"{json.dumps(answer)}\n")
            sys.stdout.flush()
    finally:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


if __name__ == "__main__":
    # What a daemon imports only when it starts.
    from uuidd.server import startup  # noqa: F401  (it is the import that is wanted)

    _serve()

"""Processes that start within milliseconds: forks of one that has imported what they need.

``start`` runs ``main(words)`` of a module in a new process. The forks are made by a server, a
process of its own, which ends, and kills what is left, when its standard input ends. For ``start``
there is one for each environment of which the loader of libraries has to know, such as
libfaketime's.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import functools
import importlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

PATIENCE = 20.0
"""Seconds after which a process that does nothing has failed a test."""

_LOADERS = ("LD_", "FAKETIME", "UUIDD_EXTENSION")
"""How variables begin that are read when a process starts, and not after a fork."""


Streams = tuple[int | IO[bytes], int | IO[bytes], int | IO[bytes]]
"""Standard input, output and error."""


class Process:
    """A process that was forked, with the methods of ``subprocess.Popen`` that tests use."""

    def __init__(self, server: Forks, pid: int) -> None:
        self._server = server
        self._fd: int | None = os.pidfd_open(pid)
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, below zero for a signal; None while the process runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float = PATIENCE) -> int:
        """Wait for the end; return the exit status. Raises TimeoutExpired."""
        if self._fd is not None:
            if not select.select([self._fd], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            os.close(self._fd)
            self._fd = None
            self.returncode = self._server.order({"wait": self.pid})
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self._fd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._fd, number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


class Forks:
    """A server that forks in *environment*, as its parent sees it.

    It has imported *module*, works in *folder*, and removes the folder *leaves* at its end.
    """

    def __init__(
        self,
        module: str,
        environment: Mapping[str, str],
        *,
        folder: Path = Path(__file__).parents[1],
        leaves: Path | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        # The word "uuidd" is for "uuidd -k", which looks whether a process is a uuidd.
        last = ["uuidd"] if leaves is None else ["removing", str(leaves)]
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.forks", module, *last],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                cwd=folder,
                env=environment,
                # Ctrl-C is for the process that asks.
                start_new_session=True,
            )

    def start(
        self,
        module: str,
        *words: Sequence[str],
        streams: Streams,
        environment: Mapping[str, str],
        folder: Path,
    ) -> list[Process]:
        """Start a process for each list of *words*, as ``start``; *environment* is all of it."""
        # For tests that are to start no process.
        sys.audit("os.fork")
        fds = [each if isinstance(each, int) else each.fileno() for each in streams]
        order = {"module": module, "words": words, "environment": environment, "cwd": str(folder)}
        return [Process(self, pid) for pid in self.order(order, fds)]

    def order(self, order: dict[str, Any], descriptors: Sequence[int] = ()) -> Any:
        """Give the server an order, and return its answer."""
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(order).encode()], descriptors)
            answer = self._socket.recv(4096)
        assert answer, "the server of forks has ended"
        return json.loads(answer)

    def end(self) -> None:
        """End the server, and all that it has started."""
        self._socket.close()
        self._process.wait(PATIENCE)


@functools.cache
def _server(loaders: tuple[tuple[str, str], ...]) -> Forks:
    # What a daemon imports only when it starts.
    server = Forks("uuidd.server.startup", {**os.environ, **dict(loaders)})
    atexit.register(server.end)
    return server


def start(
    module: str,
    *words: Sequence[str],
    streams: Streams,
    environment: Mapping[str, str] | None = None,
) -> list[Process]:
    """Start a process for each list of *words*, all let go at once.

    *streams* are standard input, output and error of each; *environment* is added to that of the
    test.
    """
    whole = {**os.environ, **(environment or {})}
    loaders = {name: whole[name] for name in whole if name.startswith(_LOADERS)}
    server = _server(tuple(sorted(loaders.items())))
    return server.start(module, *words, streams=streams, environment=whole, folder=Path.cwd())


class Program:
    """``main(words)`` of a module in a process, for as long as the context lasts.

    Its standard *input* ends with the context, and then it has to end well.
    """

    def __init__(
        self,
        module: str,
        *words: object,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._module = module
        self._words = list(map(str, words))
        self._environment = environment

    def __enter__(self) -> Self:
        theirs, mine = os.pipe(), os.pipe()
        self.input, self.output = open(theirs[1], "wb", buffering=0), open(mine[0], "rb")
        try:
            streams = (theirs[0], mine[1], 2)
            (self.process,) = start(
                self._module, self._words, streams=streams, environment=self._environment
            )
        except BaseException:
            self._close()
            raise
        finally:
            os.close(theirs[0])
            os.close(mine[1])
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.process.kill()
        self._close()
        ended = self.process.wait()
        assert ended == 0 or kind is not None, f"{self._module} {self._words} ended with {ended}"

    def _close(self) -> None:
        self.input.close()
        self.output.close()

    def line(self) -> str:
        """Return the next line of its standard output."""
        assert select.select([self.output], [], [], PATIENCE)[0], f"{self._words} says nothing"
        return self.output.readline().decode().rstrip()

    def say(self, line: str) -> None:
        """Write a line to its standard input."""
        self.input.write(f"{line}\n".encode())

    def told(self) -> str:
        """End its standard input; return what is left of its standard output."""
        self.input.close()
        return self.output.read().decode()


def _run(order: dict[str, Any], words: list[str]) -> None:
    """Be the program that was ordered; never return."""
    status = 70
    try:
        os.environ.clear()
        os.environ.update(order["environment"])
        os.chdir(order["cwd"])
        sys.argv = [order["module"], *words]
        status = importlib.import_module(order["module"]).main(words) or 0
        sys.stdout.flush()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 70
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _fork(order: dict[str, Any], descriptors: list[int]) -> list[int]:
    # Each fork finds it imported.
    importlib.import_module(order["module"])
    gate, keep = os.pipe()
    pids = []
    for words in order["words"]:
        pid = os.fork()
        if not pid:
            os.close(keep)
            os.read(gate, 1)
            os.close(gate)
            for number, fd in enumerate(descriptors):
                os.dup2(fd, number)
            os.closerange(len(descriptors), max(descriptors) + 1)
            _run(order, words)
        pids.append(pid)
    for fd in (gate, keep, *descriptors):
        os.close(fd)
    return pids


def _end(pid: int) -> int:
    """End a process, and the group that it leads, if any; return its exit status."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _serve() -> None:
    left: set[int] = set()
    orders = socket.socket(fileno=os.dup(0))
    try:
        while True:
            data, ancillary, _, _ = orders.recvmsg(1 << 17, socket.CMSG_SPACE(64 * 4))
            if not data:
                return
            descriptors = array.array("i")
            for _, _, some in ancillary:
                descriptors.frombytes(some)
            order = json.loads(data)
            answer: object
            if "wait" in order:
                answer = _end(order["wait"])
                left.discard(order["wait"])
            else:
                answer = pids = _fork(order, list(descriptors))
                left.update(pids)
            orders.send(json.dumps(answer).encode())
    finally:
        for pid in left:
            _end(pid)


if __name__ == "__main__":
    module, _, *leaves = sys.argv[1:]
    importlib.import_module(module)
    try:
        _serve()
    finally:
        for folder in leaves:
            # Who asked may have been killed.
            shutil.rmtree(folder, ignore_errors=True)

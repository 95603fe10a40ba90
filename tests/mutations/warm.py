"""Quick tests that have been collected once, and run under one mutant after the other."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tests.mutations.executed import Executed
from tests.mutations.forking import SOCKETS
from tests.mutations.recording import function
from tests.mutations.trial import environment, pytest_command, run, started

FORK_BYTES = 1 << 30
"""The address space that a fork may take: one that eats more has a MemoryError, and fails."""

SECONDS = 10.0
"""So long a test may take, and longer if it takes long with the whole code."""

WHOLE_SECONDS = 60.0
"""So long a test may take with the whole code."""


class Warm:
    """Runs tests of the copy in *tree* in processes that have collected *files* of it."""

    def __init__(
        self,
        tree: Path,
        executed: Executed,
        links: Sequence[socket.socket],
        *,
        seconds: float,
        memory: int,
    ) -> None:
        self._tree = tree
        self._executed = executed
        self._seconds = seconds
        self._memory = memory
        self._free: SimpleQueue[tuple[socket.socket, Any]] = SimpleQueue()
        for link in links:
            self._free.put((link, link.makefile("rw")))
        self._sound: dict[str, bool] = {}
        self._alone: dict[str, bool] = {}

    def killers(
        self,
        path: str,
        before: bytes,
        after: bytes,
        tests: Sequence[str],
        *,
        until_one_fails: bool = True,
    ) -> dict[str, str] | None:
        """Return which tests see that *before* is *after*, and how; None if an import is needed.

        A test that fails here with the whole code as well is left out.
        """
        while True:
            sound = [test for test in tests if self._sound.get(test, True)]
            found = self._asked(path, before, after, sound, until_one_fails=until_one_fails)
            if found is None:
                return None
            for test in found.keys() - self._sound.keys():
                whole = self._asked(None, b"", b"", [test], seconds=WHOLE_SECONDS)
                self._sound[test] = not whole
            real = {test: how for test, how in found.items() if self._sound[test]}
            if real or not found or not until_one_fails:
                return real

    def sound(self, tests: Collection[str]) -> set[str]:
        """Return those of the tests that pass with the whole code in a process of their own."""
        wanted = [test for test in tests if test not in self._alone]
        if wanted:
            trial = run(self._tree, wanted, until_one_fails=False)
            failed = {function(test) for test in trial.failed}
            self._alone |= {test: test not in failed for test in wanted}
        return {test for test in tests if self._alone[test]}

    def _asked(
        self,
        path: str | None,
        before: bytes,
        after: bytes,
        tests: Sequence[str],
        *,
        seconds: float | None = None,
        until_one_fails: bool = True,
    ) -> dict[str, str] | None:
        least = self._seconds if seconds is None else seconds
        request = {
            "path": None if path is None else str(self._tree / path),
            "before": before.decode(),
            "after": after.decode(),
            "tests": {test: least + 5 * self._executed.seconds.get(test, 0.0) for test in tests},
            "until_one_fails": until_one_fails,
            "bytes": self._memory,
        }
        link, lines = self._free.get()
        try:
            lines.write(json.dumps(request) + "\n")
            lines.flush()
            line = lines.readline()
        finally:
            self._free.put((link, lines))
        if not line:
            raise RuntimeError("the process that had collected the tests has ended")
        found: dict[str, str] | None = json.loads(line)
        return found


@contextlib.contextmanager
def warm(
    tree: Path,
    executed: Executed,
    files: Sequence[str],
    jobs: int,
    *,
    seconds: float = SECONDS,
    memory: int = FORK_BYTES,
) -> Iterator[Warm]:
    """Provide a process for each job that has collected the quick tests of *files*.

    What it has imported is compiled in *tree* from then on.
    A test may take *seconds*, and five times what it takes with the whole code. A fork may take
    *memory* bytes more than it had at its start.
    """
    with contextlib.ExitStack() as stack:
        temporary = stack.enter_context(
            tempfile.TemporaryDirectory(dir=tree.parent, ignore_cleanup_errors=True)
        )
        pairs = [socket.socketpair() for _ in range(jobs)]
        links = [stack.enter_context(ours) for ours, _ in pairs]
        theirs = [other.fileno() for _, other in pairs]
        command = pytest_command("-p", "tests.mutations.forking", "--tb=no", "-m", "quick", *files)
        process = subprocess.Popen(
            command,
            cwd=tree,
            env={**environment(tree, temporary), SOCKETS: ",".join(map(str, theirs))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=theirs,
            text=True,
            start_new_session=True,
        )
        for _, other in pairs:
            other.close()
        with started(process):
            found = Warm(tree, executed, links, seconds=seconds, memory=memory)
            # Which is answered as soon as all tests are collected.
            found.killers("", b"", b"", [])
            yield found

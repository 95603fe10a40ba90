"""A pytest plugin: a process that has collected its tests, and runs them in forks of itself.

Each socket that the environment names gets requests, and a process of its own to answer them. A
request breaks a file, and names tests: they run in a fork that has the broken functions. The answer
says what each of them came to. A fork that hangs is ended, and the tests after it go on in another.
All ends when the other side of the socket does.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import FunctionType
from typing import Any

import pytest
from _pytest.main import pytest_runtestloop as run_items

from tests.mutations.ending import end_with_parent
from tests.mutations.recording import function
from tests.mutations.swap import Change, Key, changes, imported, is_imported, swap

SOCKETS = "UUIDD_FORKING"
"""The variable of the environment that names the descriptors of the sockets."""

HANGS = 3
"""After so many tests of a mutant have hung, no other is tried."""

GRACE_SECONDS = 2.0
"""So long a fork that hangs may clean up."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Answer requests, instead of running the tests."""
    items: dict[str, list[pytest.Item]] = {}
    for item in session.items:
        items.setdefault(function(item.nodeid), []).append(item)
    _import_all()
    functions = imported()
    # So that the forks share the memory of all that.
    gc.freeze()
    first, *others = map(int, os.environ[SOCKETS].split(","))
    for other in others:
        if os.fork() == 0:
            end_with_parent()
            _answer(session, items, functions, other)
            os._exit(0)
    _answer(session, items, functions, first)
    return True


def _import_all() -> None:
    """Import the modules that the product imports late, so that their functions can be swapped."""
    for package in ("uuidd", "uuidd_client"):
        for module in walk_packages(import_module(package).__path__, f"{package}."):
            if not module.name.endswith("__main__"):
                # What a module needs may not be installed.
                with suppress(ImportError):
                    import_module(module.name)


def _answer(
    session: pytest.Session,
    items: dict[str, list[pytest.Item]],
    functions: dict[Key, list[FunctionType]],
    descriptor: int,
) -> None:
    with socket.socket(fileno=descriptor) as link, link.makefile("rw") as lines:
        for line in lines:
            request = json.loads(line)
            found: list[Change] | None = []
            if request["path"] is not None:
                before, after = (request[name].encode() for name in ("before", "after"))
                found = changes(request["path"], before, after)
            answer = None
            if found is not None and is_imported(functions, found):
                swapped = _Swapped(session, functions, found, request, link)
                answer = swapped.run(
                    [one for test in request["tests"] for one in items.get(test, ())]
                )
            lines.write(json.dumps(answer) + "\n")
            lines.flush()


class _Swapped:
    """Tests under a mutant: which of them fail, and how."""

    def __init__(
        self,
        session: pytest.Session,
        functions: dict[Key, list[FunctionType]],
        found: list[Change],
        request: dict[str, Any],
        link: socket.socket,
    ) -> None:
        self._session = session
        self._functions = functions
        self._changes = found
        self._limits: dict[str, float] = request["tests"]
        self._until_one_fails: bool = request["until_one_fails"]
        self._bytes: int = request["bytes"]
        self._link = link
        self._killers: dict[str, str] = {}

    def run(self, items: list[pytest.Item]) -> dict[str, str]:
        """Return how each test that did not pass has failed."""
        hung = 0
        while items and hung < HANGS:
            items, how = self._forked(items)
            hung += how == "time"
            if self._until_one_fails and self._killers:
                break
        return self._killers

    def _forked(self, items: list[pytest.Item]) -> tuple[list[pytest.Item], str]:
        """Run tests in a fork. Return those that are left if it did not reach its end, and why."""
        begun, how = 0, ""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            self._be_child(items, writing)
        os.close(writing)
        limit = self._limits[function(items[0].nodeid)]
        with open(reading, "rb", buffering=0) as pipe:
            ended, rest = False, b""
            until = time.monotonic() + limit
            while not ended:
                readable = self._told(pipe.fileno(), child, until)
                how = "" if readable else "time"
                data = pipe.read(1 << 16) if readable else b""
                *told, rest = (rest + data).split(b"\n")
                for line in map(bytes.decode, told):
                    kind, _, name = line.partition(" ")
                    if kind == "begin":
                        begun += 1
                        limit = self._limits[function(name)]
                    else:
                        ended = kind == "end"
                    if kind in ("fail", "memory"):
                        self._killers.setdefault(function(name), kind)
                    until = time.monotonic() + limit
                if not data and not ended:
                    how = how or "crash"
                    break
        _end(child, gently=how == "time")
        if not how:
            return [], ""
        killer = function(items[max(begun, 1) - 1].nodeid)
        self._killers.setdefault(killer, how)
        return [one for one in items[begun:] if function(one.nodeid) != killer], how

    def _told(self, pipe: int, child: int, until: float) -> bool:
        """Wait until the fork tells something; False if its time is over."""
        left = max(0.0, until - time.monotonic())
        readable, _, _ = select.select([pipe, self._link.fileno()], [], [], left)
        if self._link.fileno() in readable:
            # The other side sends nothing now, so it has ended.
            _end(child, gently=False)
            os._exit(1)
        return bool(readable)

    def _be_child(self, items: list[pytest.Item], writing: int) -> None:
        try:
            os.setsid()
            end_with_parent()
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = pages * resource.getpagesize() + self._bytes
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            swap(self._functions, self._changes)
            session = self._session
            session.items = items
            session.config.option.maxfail = 1 if self._until_one_fails else 0
            session.config.pluginmanager.register(_Reports(writing))
            with suppress(session.Failed, KeyboardInterrupt):
                run_items(session)
            # Which ends the fixtures that are left.
            session.config.hook.pytest_sessionfinish(session=session, exitstatus=0)
            os.write(writing, b"end\n")
        finally:
            os._exit(0)


class _Reports:
    """What the fork tells the process that forked it."""

    def __init__(self, writing: int) -> None:
        self._writing = writing
        self._ate = False

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Tell that a test begins."""
        self._tell("begin", nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> None:
        """Notice that there was no memory."""
        if call.excinfo is not None and any(
            isinstance(error, MemoryError) for error in _errors(call.excinfo.value)
        ):
            self._ate = True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell that a test has failed."""
        if report.failed:
            self._tell("memory" if self._ate else "fail", report.nodeid)

    def _tell(self, kind: str, nodeid: str) -> None:
        # Parameters may have a line break; the name that comes before them has none.
        os.write(self._writing, f"{kind} {function(nodeid)}\n".encode())


def _errors(error: BaseException) -> Iterator[BaseException]:
    yield error
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _errors(one)


def _end(child: int, *, gently: bool) -> None:
    """End a fork and what it has started: gently as Ctrl-C does, so that it cleans up."""
    if gently:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGINT)
        until = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < until:
            if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                break
            time.sleep(0.01)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)

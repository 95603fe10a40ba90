"""A process that has imported what all tests need, and runs pytest in one fork after the other.

Each line on standard input is a request as ``trial.Copy`` makes it, in JSON. The answer is a
line with the status of the fork: below zero for a signal, null if its time was over. All ends when
standard input does; then the folder in the command line is removed. Nothing of the product or its
tests is imported before the fork.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import resource
import select
import shutil
import signal
import sys
import traceback
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, Any

import hypothesis.stateful
import msgpack  # noqa: F401  (only for the forks, as the last one)
import pytest
import trio.testing  # noqa: F401

MAX_BYTES = 2 << 30
"""The memory of a run that eats more fails. Its address space has no limit: etcd maps 10 GB."""

GRACE_SECONDS = 10
"""So long a run that hangs may clean up."""


def function(nodeid: str) -> str:
    """Return the name of a test without its parameters, which may be random."""
    return nodeid.partition("[")[0]


class _Reports:
    """A pytest plugin: tells which tests begin and fail, and ends a run that is too long."""

    def __init__(self, limits: dict[str, float], told: IO[str]) -> None:
        self._limits = limits
        self._told = told
        self._ate = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config) -> None:
        """Check that what is tested is of the copy, and not what is installed."""
        for name in ("uuidd", "uuidd_client"):
            module = sys.modules.get(name)
            if module is not None and config.rootpath not in Path(module.__file__ or "").parents:
                raise pytest.UsageError(f"{module.__file__} is not of {config.rootpath}")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Tell that a test begins."""
        name = function(item.nodeid)
        self._tell("begin", name)
        if name in self._limits:
            faulthandler.dump_traceback_later(self._limits[name], exit=True, file=self._told)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> None:
        """Notice that there was no memory."""
        if call.excinfo is not None:
            self._ate |= any(isinstance(e, MemoryError) for e in _errors(call.excinfo.value))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell that a test has failed."""
        if report.failed:
            self._tell("memory" if self._ate else "fail", function(report.nodeid))

    def pytest_sessionfinish(self) -> None:
        """Tell that all tests have ended."""
        self._tell("end", "")

    def _tell(self, kind: str, name: str) -> None:
        self._told.write(f"{kind} {name}\n")
        self._told.flush()


def _errors(error: BaseException) -> Iterator[BaseException]:
    yield error
    for one in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        yield from _errors(one)


def _be_child(request: dict[str, Any]) -> None:
    """Run pytest as requested; never return."""
    status = 70
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_BYTES, MAX_BYTES))
        with open(os.devnull, "rb") as null, open(request["output"], "wb") as output:
            for number, file in enumerate((null, output, output)):
                os.dup2(file.fileno(), number)
        os.environ["TMPDIR"] = request["temporary"]
        sys.dont_write_bytecode = not request["compiling"]
        # Without the phase that looks for a smaller failing example: that there is one is enough.
        phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
        hypothesis.settings.register_profile(
            "mutations", deadline=None, max_examples=100, derandomize=True, phases=phases
        )
        with open(request["told"], "w") as told:
            plugin = _Reports(request["limits"], told)
            status = int(pytest.main(request["arguments"], plugins=[plugin]))
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _answer(request: dict[str, Any]) -> int | None:
    child = os.fork()
    if child == 0:
        _be_child(request)
    descriptor = os.pidfd_open(child)
    try:
        # Nothing is requested before the answer, so standard input tells only of its end.
        ready, _, _ = select.select([descriptor, 0], [], [], request["seconds"])
        if not ready:
            # As Ctrl-C does, so that it cleans up.
            os.kill(child, signal.SIGINT)
            select.select([descriptor, 0], [], [], GRACE_SECONDS)
    finally:
        os.close(descriptor)
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError):
                kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) if ready else None


def main() -> None:
    """Answer until standard input ends."""
    # Ctrl-C is for the process that asks.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for line in iter(sys.stdin.readline, ""):
            status = _answer(json.loads(line))
            sys.stdout.write(json.dumps(status) + "\n")
            sys.stdout.flush()
    finally:
        # Whoever asked may have been killed.
        shutil.rmtree(sys.argv[1], ignore_errors=True)


if __name__ == "__main__":
    main()

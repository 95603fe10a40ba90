"""Pytest in a fork, which tells what became of each test; the word of ``main`` is its folder.

The file "request" in the folder is what ``trial.Copy`` asks for, in JSON. What all tests need is
imported here, before the fork, and nothing of the product or its tests.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO

import hypothesis
import msgpack  # noqa: F401  (only for the forks, as the last one)
import pytest
import trio.testing  # noqa: F401

MAX_BYTES = 2 << 30
"""The memory of a run that eats more fails. Its address space has no limit: etcd maps 10 GB."""

# Of whichever tier a test is; but see ``_Reports``.
ARGUMENTS = ["-q", "--color=no", "--tb=short", "-rfE", "-m", ""]
# This process has imported plugins before pytest does.
ARGUMENTS += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
ARGUMENTS += ["--hypothesis-profile=mutations", "-p", "no:cacheprovider", "-p", "no:xdist"]


def function(nodeid: str) -> str:
    """Return the name of a test without its parameters, which may be random."""
    return nodeid.partition("[")[0]


class _Reports:
    """A pytest plugin: tells which tests begin and fail, and ends a run that is too long.

    Of the tests *quick*, only what is of the quick tier runs: a test has parameters of both.
    """

    def __init__(self, limits: dict[str, float], quick: list[str], told: IO[str]) -> None:
        self._limits = limits
        self._quick = {*quick}
        self._told = told
        self._ate = False

    # After the tests' own conftest.py, which marks what is quick.
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Check that what is tested is of the copy, and not what is installed; take it by tier."""
        for name in ("uuidd", "uuidd_client"):
            module = sys.modules.get(name)
            if module is not None and config.rootpath not in Path(module.__file__ or "").parents:
                raise pytest.UsageError(f"{module.__file__} is not of {config.rootpath}")
        items[:] = [
            item
            for item in items
            if function(item.nodeid) not in self._quick or item.get_closest_marker("quick")
        ]

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


def main(words: list[str]) -> int:
    """Run pytest as requested; return its exit status."""
    folder = Path(words[0])
    request = json.loads((folder / "request").read_text())
    # So that all that it starts can be ended with it.
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_BYTES, MAX_BYTES))
    # Without the phase that looks for a smaller failing example: that there is one is enough.
    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
    hypothesis.settings.register_profile(
        "mutations", deadline=None, max_examples=100, derandomize=True, phases=phases
    )
    with (folder / "told").open("w") as told:
        plugin = _Reports(request["limits"], request["quick"], told)
        return int(pytest.main([*ARGUMENTS, *request["words"]], plugins=[plugin]))

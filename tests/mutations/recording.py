"""A pytest plugin: coverage learns which test runs, and what each took is written down."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest

from tests.mutations.ending import end_with_parent

FOLDER = "UUIDD_RECORDED"
"""The variable of the environment that names the folder for the times."""

_seconds: dict[str, float] = {}
_failed: set[str] = set()


def function(nodeid: str) -> str:
    """Return the name of a test without its parameters, which may be random."""
    return nodeid.partition("[")[0]


def pytest_configure(config: pytest.Config) -> None:
    """End with the command that asked for it; what runs side by side ends with this process."""
    if not hasattr(config, "workerinput"):
        end_with_parent()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Record what a test executes, with its fixtures, and the processor time that it takes."""
    name = function(item.nodeid)
    measuring = coverage.Coverage.current()
    if measuring is not None:
        measuring.switch_context(name)
    begun = time.process_time()
    try:
        return (yield)
    finally:
        _seconds[name] = _seconds.get(name, 0.0) + time.process_time() - begun
        if measuring is not None:
            measuring.switch_context("")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember what fails in the whole code: it can tell nothing of a mutant."""
    if report.failed:
        _failed.add(function(report.nodeid))


def pytest_sessionfinish() -> None:
    """Write what this process saw of its tests."""
    found = {"seconds": _seconds, "failed": sorted(_failed)}
    Path(os.environ[FOLDER], f"tests-{os.getpid()}.json").write_text(json.dumps(found))

"""A pytest plugin: coverage learns which test runs, and what each took is written down."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest

FOLDER = "UUIDD_RECORDED"
"""The variable of the environment that names the folder for the times."""

_ran: dict[str, tuple[float, bool]] = {}
"""The seconds of each test, and whether it failed: then it can tell nothing of a mutant."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Record what a test executes, with its fixtures, and the processor time that it takes."""
    name = item.nodeid.partition("[")[0]
    measuring = coverage.Coverage.current()
    if measuring is not None:
        measuring.switch_context(name)
    begun = time.process_time()
    try:
        return (yield)
    finally:
        seconds, failed = _ran.get(name, (0.0, False))
        _ran[name] = seconds + time.process_time() - begun, failed
        if measuring is not None:
            measuring.switch_context("")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember what fails."""
    if report.failed:
        name = report.nodeid.partition("[")[0]
        _ran[name] = _ran.get(name, (0.0, False))[0], True


def pytest_sessionfinish() -> None:
    """Write what this process saw of its tests."""
    Path(os.environ[FOLDER], f"tests-{os.getpid()}.json").write_text(json.dumps(_ran))

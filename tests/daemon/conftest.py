"""Fixtures of many tests, and the autojump clock for tests that have it from a fixture or a mark.

pytest-trio uses a clock only if the test function itself has it as an argument.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from inspect import iscoroutinefunction
from typing import TypeVar

import pytest
import trio
from trio.testing import MockClock

from uuidd.server.page import Page

T = TypeVar("T")


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, as it was before once the test has ended."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What the daemon logs."""
    caplog.set_level(logging.INFO, logger="uuidd")
    return caplog


@pytest.fixture
def page() -> Iterator[Page]:
    page = Page()
    yield page
    page.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run a test with the clock if one of its fixtures, or a mark, asks for ``autojump_clock``."""
    for item in items:
        if (
            isinstance(item, pytest.Function)
            and iscoroutinefunction(item.obj)
            and "autojump_clock" in item.fixturenames
        ):
            item.add_marker(pytest.mark.trio(run=_run))


def _run(
    test: Callable[[], Awaitable[T]],
    clock: trio.abc.Clock | None = None,
    instruments: Sequence[trio.abc.Instrument] = (),
) -> T:
    return trio.run(test, clock=clock or MockClock(autojump_threshold=0), instruments=instruments)

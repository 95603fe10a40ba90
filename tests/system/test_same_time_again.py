"""The very same moments once more, after a kill, a stop or a step of the clock (P1)."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.rig import Daemon
from tests.system.fake_time import HOUR, FakeTime

WIDE = 1_000_000
"""Ticks of one grant: a tenth of a second, so that two of about the same moment overlap."""

VISITS = 4

Given = tuple[bytes, int, int, int]
"""Node, clock sequence, first tick and count of a grant."""


def visit(daemon: Daemon, fake_time: FakeTime, at: float) -> list[Given]:
    """Take a short grant and a whole one when UTC is *at*, in seconds since 1970."""
    given = []
    with daemon.connect() as connection:
        for whole in (False, True):
            fake_time.set(at - time.time())
            block = connection.call("take", "utc", WIDE, whole)
            given.append((block["node"], block["clock_seq"], block["first"], block["count"]))
    return given


def repeated(given: list[Given]) -> list[tuple[Given, Given]]:
    """Return the pairs of grants that share a tick of one node and clock sequence."""
    return [
        (one, other)
        for index, one in enumerate(given)
        for other in given[:index]
        if one[:2] == other[:2] and one[2] < other[2] + other[3] and other[2] < one[2] + one[3]
    ]


def begin_again(
    daemon: Daemon, fake_time: FakeTime, end: Callable[[], object], at: float
) -> list[Given]:
    """End the daemon, start it a second before UTC is *at* again, and visit that moment."""
    end()
    fake_time.set(at - 1 - time.time())
    daemon.start()
    return visit(daemon, fake_time, at)


def test_a_kill_right_after_a_step_forward_repeats_nothing(
    daemon: Daemon, fake_time: FakeTime
) -> None:
    """A step puts UTC past every saved mark; yet what is given then is behind one already."""
    given = []
    at = time.time()
    for _ in range(VISITS):
        at += HOUR
        given += visit(daemon, fake_time, at)
        given += begin_again(daemon, fake_time, daemon.kill, at)
    assert not repeated(given)


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_an_end_at_the_same_moment_again_and_again_repeats_nothing(
    end: str, daemon: Daemon, fake_time: FakeTime
) -> None:
    """A daemon that meets a mark past now takes another generation, each time.

    So it is with the horizon after a kill, and with the exact mark after a stop.
    """
    at = time.time() + HOUR
    given = visit(daemon, fake_time, at)
    for _ in range(VISITS):
        given += begin_again(daemon, fake_time, getattr(daemon, end), at)
    assert not repeated(given)
    # The same ticks were given, told apart by the clock sequence.
    assert repeated([(node, 0, first, count) for node, _, first, count in given])


def test_a_clock_stepped_to_the_same_moment_again_and_again_repeats_nothing(
    daemon: Daemon, fake_time: FakeTime
) -> None:
    """A running daemon, too, gives another clock sequence to moments that it has seen."""
    at = time.time() + HOUR
    given = []
    for _ in range(VISITS):
        given += visit(daemon, fake_time, at)
        given += visit(daemon, fake_time, at - 1)
    assert not repeated(given)

"""A daemon whose state folder is moved away, and another that is started in its place."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig import Connection, Daemon, until
from uuidd.core.ids.ticks import TICKS_PER_SECOND


@pytest.fixture
def first() -> Iterator[Daemon]:
    """A daemon that has made Snowflakes."""
    with Daemon("--worker=5") as daemon:
        daemon.call("make", "snowflake", 1000)
        yield daemon


def moved(daemon: Daemon) -> Path:
    """Move a daemon's state folder away, make an empty one in its place; return where it is."""
    away = daemon.state.with_name("away")
    daemon.state.rename(away)
    daemon.state.mkdir()
    return away


def in_its_place(daemon: Daemon) -> Daemon:
    """Return another daemon, with another socket, whose state folder is at the same path."""
    second = Daemon("--worker=5")
    second.state.rmdir()
    second.state = daemon.state
    return second


def taken(connection: Connection) -> list[tuple[int, int]]:
    """Return the run of ticks that a request gets, first and past the last; none when refused."""
    block: dict[str, int] | None = connection.ask("take", "steady", 100_000)[3]
    return [(block["first"], block["first"] + block["count"])] if block else []


def test_two_daemons_on_one_path_give_no_tick_twice(first: Daemon) -> None:
    """A caller that takes from the first all along gets no tick that the second gives out.

    A second long, for a daemon that has just started may be ahead of UTC for half of that.
    """
    runs: list[tuple[int, int]] = []
    others: list[tuple[int, int]] = []
    ends = threading.Event()

    def draw() -> None:
        with first.connect() as connection:
            while not ends.is_set():
                runs.extend(taken(connection))

    drawing = threading.Thread(target=draw)
    drawing.start()
    try:
        until(lambda: len(runs) > 10)
        moved(first)
        with in_its_place(first) as second, second.connect() as other:
            while not others or others[-1][1] - others[0][0] < TICKS_PER_SECOND:
                others += taken(other)
    finally:
        ends.set()
        drawing.join()
    in_order = sorted(runs + others)
    assert [one for one, after in itertools.pairwise(in_order) if one[1] > after[0]] == []


def test_the_second_daemons_state_is_its_own(first: Daemon) -> None:
    """What the first saves never comes over it, also at its end."""
    away = moved(first)
    before = (away / "state").read_bytes()
    with in_its_place(first) as second:
        second.stop()
        kept = (second.state / "state").read_bytes()
        first.call("take", "utc", 1)
        assert first.stop() == 1
        assert (second.state / "state").read_bytes() == kept
    assert (away / "state").read_bytes() == before

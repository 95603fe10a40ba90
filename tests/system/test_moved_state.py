"""A daemon whose state folder is moved away, and another that is started in its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.judge import assert_no_id_twice
from tests.rig import Daemon
from tests.system.callers import Callers
from tests.system.holders import assert_sound, await_leases, holders, leases


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


def test_two_daemons_on_one_path_give_no_tick_twice(first: Daemon, tmp_path: Path) -> None:
    """Callers draw from the first all along; its leases end, and the second leases the lanes.

    The blocks of both are apart, and all ids.
    """
    callers = Callers(first)
    with holders(first, tmp_path, 3) as drawing, callers.drawing():
        callers.more()
        granted = leases(first)["granted"]
        moved(first)
        with in_its_place(first) as second:
            others = Callers(second, judge=callers.judge)
            with holders(second, tmp_path, 3) as their_drawing, others.drawing():
                others.more()
                await_leases(first, 0)
                assert leases(first)["revoked"] == granted
                for holder in drawing + their_drawing:
                    holder.more()
    callers.hang_up()
    others.hang_up()
    callers.assert_sound()
    others.assert_sound()
    drawn = [holder.drawn() for holder in drawing + their_drawing]
    # The lanes of two daemons are apart by their nodes; of v7, only the whole ids are.
    assert_sound([[each for each in some if each.is_v1] for some in drawn])
    assert_no_id_twice([each.id for each in some] for some in drawn)


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

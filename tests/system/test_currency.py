"""Ids that two processes draw at once are current and not of the future (P2, P3, P4)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.judge import first_inversion
from tests.rig import Daemon
from tests.system.far import far_reaching
from tests.system.holders import Drawn, Holder, holders, requests
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.generation import BLOCK_LANES
from uuidd_client.cutter import AHEAD_SECONDS

MAX_AGE = 0.1
MANY = 3000

SLEW = 0.001
"""Seconds by which UTC, which dates the ids, may leave the clock that measures max_age meanwhile.
There is no other slack: an id is found current after it was asked for, so it was so then."""

Process = list[Drawn]


@pytest.fixture(scope="module", params=[2, pytest.param(6, marks=pytest.mark.thorough)])
def drawn(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[Process]:
    """What two processes draw at once from one daemon: many v1 and then a few, again and again.

    After many at once the next block is large: it gets old with the few that follow, which take
    longer than the default max_age.
    """
    folder = tmp_path_factory.mktemp("current")
    settings: Any = {"kinds": ["v1"], "max_age": MAX_AGE, "bursts": [MANY, *[1] * 12]}
    with Daemon() as daemon, contextlib.ExitStack() as running:
        both = []
        for number in range(2):
            file = folder / str(number)
            holder = Holder(daemon.socket, file, fallback=False, pause=0.015, **settings)
            both.append(running.enter_context(holder))
        for holder in both:
            holder.more(1)
        for holder in both:
            holder.more(request.param * MANY)
    drawn = [holder.drawn() for holder in both]
    assert max(each[0].asked_ns for each in drawn) < min(each[-1].had_ns for each in drawn)
    # An id's tick has come by the time that the id is there.
    assert max(one.tick - one.had for each in drawn for one in each) <= 0
    return drawn


def inversion(drawn: Iterable[Iterable[Drawn]], seconds: float) -> object:
    """Return ids that are inverted by so much or more, or None."""
    return first_inversion(
        ((one.asked_ns, one.had_ns, one.tick) for some in drawn for one in some),
        int(seconds * TICKS_PER_SECOND),
    )


def test_ids_of_leases_are_a_millisecond_old_at_most(drawn: list[Process]) -> None:
    """And ids of two processes are inverted by no more. Most v1 are of leases."""
    # By the low byte of the clock sequence.
    leased = [[one for one in each if one.id >> 48 & 0xFF >= BLOCK_LANES] for each in drawn]
    by = (AHEAD_SECONDS + SLEW) * TICKS_PER_SECOND
    assert sum(map(len, leased)) > sum(map(len, drawn)) / 2
    assert all(one.asked - one.tick < by for each in leased for one in each)
    assert inversion(leased, AHEAD_SECONDS + SLEW) is None


def test_ids_of_two_processes_are_inverted_by_max_age_at_most(drawn: list[Process]) -> None:
    """What was had before another id was asked for is later by less than max_age, if at all."""
    assert inversion(drawn, MAX_AGE + SLEW) is None


@pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=pytest.mark.thorough)])
def test_with_leases_ids_of_two_processes_are_in_order_without_a_request(
    count: int, tmp_path: Path
) -> None:
    """With a max_age of 0 too: neither process has to ask what the other has drawn."""
    settings: Any = {"max_age": 0, "bursts": [400], "pause": 0}
    with far_reaching(20) as daemon, holders(daemon, tmp_path, 2, **settings) as both:
        before = requests(daemon)
        for holder in both:
            holder.more(count)
        assert requests(daemon) == before
    drawn = [holder.drawn() for holder in both]
    for kind in ("v1", "v7"):
        assert inversion([[one for one in each if one.kind == kind] for each in drawn], 0) is None

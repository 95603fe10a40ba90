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

ROUNDS = [2, pytest.param(6, marks=pytest.mark.thorough)]
"""How often many ids are drawn, and then a few."""

Process = list[Drawn]


def draw_side_by_side(
    kind: str, max_age: float, folder: Path, many: int, rounds: int
) -> list[Process]:
    """Let two processes draw at once from one daemon; return what each of them drew.

    After many at once the next block is large: it gets old with the few that follow, which take
    longer than the default max_age.
    """
    settings: Any = {
        "kinds": [kind],
        "max_age": max_age,
        "bursts": [many, *[1] * 12],
        "pause": 0.015,
    }
    with Daemon() as daemon, contextlib.ExitStack() as running:
        both = [
            running.enter_context(
                Holder(daemon.socket, folder / str(number), fallback=False, **settings)
            )
            for number in range(2)
        ]
        for holder in both:
            holder.more(1)
        for holder in both:
            holder.more(rounds * many)
    drawn = [holder.drawn() for holder in both]
    assert max(each[0].asked_ns for each in drawn) < min(each[-1].had_ns for each in drawn)
    return drawn


@pytest.fixture(scope="module", params=ROUNDS)
def rounds(request: pytest.FixtureRequest) -> int:
    """How often many are drawn."""
    count: int = request.param
    return count


@pytest.fixture(scope="module", params=["v1", "flake"])
def kind(request: pytest.FixtureRequest) -> str:
    """A kind of leases, and one of blocks alone."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def drawn(kind: str, rounds: int, tmp_path_factory: pytest.TempPathFactory) -> list[Process]:
    """What was drawn with the default max_age."""
    return draw_side_by_side(kind, MAX_AGE, tmp_path_factory.mktemp("current"), MANY, rounds)


@pytest.fixture(scope="module")
def at_once(kind: str, rounds: int, tmp_path_factory: pytest.TempPathFactory) -> list[Process]:
    """What was drawn with a max_age of 0."""
    return draw_side_by_side(kind, 0, tmp_path_factory.mktemp("ordered"), MANY // 6, rounds)


of_leases = pytest.mark.parametrize("kind", ["v1"], indirect=True, scope="module")
of_blocks = pytest.mark.parametrize("kind", ["flake"], indirect=True, scope="module")


def inversion(drawn: Iterable[Iterable[Drawn]], by: int) -> object:
    """Return ids that are inverted by *by* ticks or more, or None."""
    return first_inversion(
        ((one.asked_ns, one.had_ns, one.tick) for some in drawn for one in some), by
    )


def test_no_id_is_of_the_future(drawn: list[Process], at_once: list[Process]) -> None:
    """An id's tick has come by the time that the id is there."""
    assert max(one.tick - one.had for each in drawn + at_once for one in each) <= 0


def test_no_id_is_older_than_max_age(drawn: list[Process]) -> None:
    """An id's tick was not max_age past when it was asked for, even from a block that got old."""
    oldest = max(one.asked - one.tick for each in drawn for one in each)
    assert oldest < (MAX_AGE + SLEW) * TICKS_PER_SECOND


@of_blocks
def test_ids_of_blocks_got_old(drawn: list[Process]) -> None:
    """These tests see what they are for: Flakes were kept for a good part of max_age."""
    oldest = max(one.asked - one.tick for each in drawn for one in each)
    assert oldest > MAX_AGE / 2 * TICKS_PER_SECOND


@of_leases
def test_ids_of_leases_are_a_millisecond_old_at_most(drawn: list[Process]) -> None:
    """And ids of two processes are inverted by no more. Most v1 are of leases."""
    # By the low byte of the clock sequence.
    leased = [[one for one in each if one.id >> 48 & 0xFF >= BLOCK_LANES] for each in drawn]
    by = int((AHEAD_SECONDS + SLEW) * TICKS_PER_SECOND)
    assert sum(map(len, leased)) > sum(map(len, drawn)) / 2
    assert all(one.asked - one.tick < by for each in leased for one in each)
    assert inversion(leased, by) is None


def test_ids_of_two_processes_are_inverted_by_max_age_at_most(drawn: list[Process]) -> None:
    """What was had before another id was asked for is later by less than max_age, if at all."""
    by = int((MAX_AGE + SLEW) * TICKS_PER_SECOND)
    assert inversion(drawn, by) is None


def test_without_blocks_ids_of_two_processes_are_in_order(at_once: list[Process]) -> None:
    """With a max_age of 0, what was had before another id was asked for is earlier than that."""
    assert inversion(at_once, 0) is None


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

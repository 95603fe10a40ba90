"""Ids that two processes draw at once are current and not of the future (P2, P3, P4)."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.forks import Program
from tests.judge import first_inversion
from tests.kinds import tick
from tests.rig import PATIENCE, Daemon
from tests.system.dated import ENTRY, FEW
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.core.timeline.generation import BLOCK_LANES
from uuidd_client.cutter import AHEAD_SECONDS

MAX_AGE = 0.1
PROCESSES = 2
MANY = 3000

SLEW = 0.001
"""Seconds by which UTC, which dates the ids, may leave the clock that measures max_age meanwhile.
There is no other slack: an id is found current after it was asked for, so it was so then."""


class Drawn(NamedTuple):
    """An id's tick, and when it was asked for and had: in ticks, and in monotonic nanoseconds.

    *leased* is whether it is a v1 of a leased lane.
    """

    tick: int
    leased: bool
    asked: int
    asked_ns: int
    had_ns: int
    had: int


def draw_side_by_side(
    kind: str, max_age: float, folder: Path, *, rounds: int, many: int
) -> list[list[Drawn]]:
    """Let processes draw at once from one daemon; return what each of them drew."""
    paths = [folder / f"drawn-{number}" for number in range(PROCESSES)]
    with Daemon() as daemon, contextlib.ExitStack() as running:
        programs = [
            running.enter_context(
                Program("tests.system.dated", kind, daemon.socket, max_age, rounds, many, path)
            )
            for path in paths
        ]
        for program in programs:
            assert program.line() == "ready"
        for program in programs:
            program.say("go")
        for program in programs:
            program.process.wait(3 * PATIENCE)
    return [_read(kind, path) for path in paths]


def _read(kind: str, path: Path) -> list[Drawn]:
    return [
        Drawn(
            tick(kind, id),
            # The low byte of its clock sequence.
            kind == "v1" and id[9] >= BLOCK_LANES,
            asked // 100 + UNIX_EPOCH,
            asked_ns,
            had_ns,
            had // 100 + UNIX_EPOCH,
        )
        for id, asked, asked_ns, had_ns, had in ENTRY.iter_unpack(path.read_bytes())
    ]


@pytest.fixture(scope="module", params=[2, pytest.param(6, marks=pytest.mark.thorough)])
def rounds(request: pytest.FixtureRequest) -> int:
    """How often many ids are drawn, and then a few."""
    count: int = request.param
    return count


@pytest.fixture(scope="module", params=["v1", "flake"])
def kind(request: pytest.FixtureRequest) -> str:
    """A kind of leases, and one of blocks alone."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def drawn(kind: str, rounds: int, tmp_path_factory: pytest.TempPathFactory) -> list[list[Drawn]]:
    """What was drawn with the default max_age."""
    folder = tmp_path_factory.mktemp("current")
    return draw_side_by_side(kind, MAX_AGE, folder, rounds=rounds, many=MANY)


@pytest.fixture(scope="module")
def at_once(kind: str, rounds: int, tmp_path_factory: pytest.TempPathFactory) -> list[list[Drawn]]:
    """What was drawn with a max_age of 0."""
    folder = tmp_path_factory.mktemp("ordered")
    return draw_side_by_side(kind, 0, folder, rounds=rounds, many=MANY // 6)


of_leases = pytest.mark.parametrize("kind", ["v1"], indirect=True, scope="module")
of_blocks = pytest.mark.parametrize("kind", ["flake"], indirect=True, scope="module")


def inversion(drawn: list[list[Drawn]], by: int) -> object:
    """Return ids that are inverted by *by* ticks or more, or None."""
    return first_inversion(
        ((one.asked_ns, one.had_ns, one.tick) for some in drawn for one in some), by
    )


def test_they_drew_at_once(rounds: int, drawn: list[list[Drawn]]) -> None:
    """Each process had all its ids, and began before the other ended."""
    assert [len(each) for each in drawn] == [rounds * (MANY + FEW)] * PROCESSES
    assert max(each[0].asked_ns for each in drawn) < min(each[-1].had_ns for each in drawn)


def test_no_id_is_of_the_future(drawn: list[list[Drawn]]) -> None:
    """An id's tick has come by the time that the id is there."""
    assert max(one.tick - one.had for each in drawn for one in each) <= 0


def test_no_id_is_older_than_max_age(drawn: list[list[Drawn]]) -> None:
    """An id's tick was not max_age past when it was asked for, even from a block that got old."""
    oldest = max(one.asked - one.tick for each in drawn for one in each)
    assert oldest < (MAX_AGE + SLEW) * TICKS_PER_SECOND


@of_blocks
def test_ids_of_blocks_got_old(drawn: list[list[Drawn]]) -> None:
    """These tests see what they are for: Flakes were kept for a good part of max_age."""
    oldest = max(one.asked - one.tick for each in drawn for one in each)
    assert oldest > MAX_AGE / 2 * TICKS_PER_SECOND


@of_leases
def test_ids_of_leases_are_a_millisecond_old_at_most(drawn: list[list[Drawn]]) -> None:
    """And ids of two processes are inverted by no more. Most v1 are of leases."""
    leased = [[one for one in each if one.leased] for each in drawn]
    by = int((AHEAD_SECONDS + SLEW) * TICKS_PER_SECOND)
    assert sum(map(len, leased)) > sum(map(len, drawn)) / 2
    assert all(one.asked - one.tick < by for each in leased for one in each)
    assert inversion(leased, by) is None


def test_ids_of_two_processes_are_inverted_by_max_age_at_most(drawn: list[list[Drawn]]) -> None:
    """What was had before another id was asked for is later by less than max_age, if at all."""
    by = int((MAX_AGE + SLEW) * TICKS_PER_SECOND)
    assert inversion(drawn, by) is None


def test_without_blocks_ids_of_two_processes_are_in_order(
    at_once: list[list[Drawn]],
) -> None:
    """With a max_age of 0, what was had before another id was asked for is earlier than that."""
    assert inversion(at_once, 0) is None


def test_without_blocks_no_id_is_of_the_future(at_once: list[list[Drawn]]) -> None:
    """An id's tick has come by the time that the id is there."""
    assert max(one.tick - one.had for each in at_once for one in each) <= 0

"""Supplies of the steady kinds and of v4, from blocks that are told in turn."""

from __future__ import annotations

import contextlib
import itertools
from functools import partial
from typing import cast

import pytest

from tests.client.breaking import break_off
from tests.client.fakes import NODE, START, UNAVAILABLE, Time, Unwatched
from tests.kinds import KINDS, MS, STEADY, UNLEASED, fields
from uuidd.core.ids import snowflake, versions
from uuidd.core.timeline import SteadyBlock
from uuidd_client import DaemonUnavailable, TimeOutOfRange
from uuidd_client.blocks import MAX_NODES
from uuidd_client.fork_guard import ForkGuard
from uuidd_client.places import MAX_EMPTY, Places
from uuidd_client.source import Source
from uuidd_client.supply import SLOW_RUNS, Supply
from uuidd_client.system import ClientClock

pytestmark = pytest.mark.usefixtures("implementation")


class Blocks(Unwatched):
    """A source that gives the steady blocks told to it in turn, or raises."""

    class connection:  # noqa: N801  (an attribute of a source)
        """Where the source is said to have them from."""

        path = "/path"

    def __init__(
        self, *blocks: SteadyBlock | BaseException, clock: ClientClock | None = None
    ) -> None:
        self.clock = clock or Time(10)
        self.left = list(blocks)
        self.asked: list[int] = []
        self.without_fallback = 0

    def take_steady(self, count: int) -> tuple[SteadyBlock, bool]:
        """Return the next block."""
        self.asked.append(count)
        block = self.left.pop(0)
        if isinstance(block, BaseException):
            raise block
        return block, True

    def take_snowflake(self, count: int) -> SteadyBlock:
        """Return the next block, as one for which there is no fallback."""
        self.without_fallback += 1
        return self.take_steady(count)[0]


def block(first: int, count: int, *, node: int = NODE, worker: int | None = 5) -> SteadyBlock:
    """Return a block whose ticks count from START."""
    return SteadyBlock(START + first, count, node, worker, snowflake.TWITTER_EPOCH)


def supply_of(source: Blocks, kind: str) -> Supply:
    """Return a supply from *source*."""
    return Supply(Places(kind, cast(Source, source), ForkGuard(), 0.1))


def test_a_snowflake_without_any_age_asks_for_three_ticks() -> None:
    """One of them has a slot."""
    source = Blocks(block(0, 3))
    Supply(Places("snowflake", cast(Source, source), ForkGuard(), 0)).make(1, "int")
    assert source.asked == [3]


def test_a_block_without_a_slot_is_followed_by_another() -> None:
    """Fewer than three ticks may be free."""
    source = Blocks(block(1, 1), block(2, 1), block(3, 1))
    (id,) = supply_of(source, "snowflake").make(1, "int")
    assert fields("snowflake", id)["rest"] == 1
    assert not source.left


def test_only_snowflakes_have_no_fallback() -> None:
    """Random bits, or a random node, tell the others apart."""
    for kind in (*STEADY, "snowflake"):
        source = Blocks(block(0, 3))
        supply_of(source, kind).make(1, "text")
        assert source.without_fallback == (kind == "snowflake")


def test_runs_of_slow_ids_stay_short() -> None:
    """A lease's run of them would be too old before it is drawn."""
    supply = supply_of(Blocks(block(0, 10_000)), "ksuid")
    lengths = []
    for _ in range(8):
        draw = supply.run("text")[0][0]
        lengths.append(1)
        with contextlib.suppress(IndexError):
            while draw():
                lengths[-1] += 1
    assert max(lengths) == SLOW_RUNS["ksuid", "text"]


def test_a_failure_in_the_middle_is_raised() -> None:
    """As for v1."""
    supply = supply_of(Blocks(block(0, 10), UNAVAILABLE), "v7")
    with pytest.raises(DaemonUnavailable):
        supply.make(11, "uuid")


@pytest.mark.parametrize("kind", UNLEASED)
def test_under_another_node_or_worker_ids_go_on_in_the_next_millisecond(
    kind: str, time: Time
) -> None:
    """Within one a lower node or worker would put them before those already used."""
    other = {field: 1 for field in ("node", "worker") if KINDS[kind].has(field)}
    source = Blocks(block(0, 3), block(10, 10, **other), block(MS - 3, 10, **other), clock=time)
    supply = supply_of(source, kind)
    found = supply.make(1, "int")
    time.move(1)
    found += supply.make(1, "int")
    assert found == sorted(found)
    first, second = (fields(kind, id)["time"] for id in found)
    assert second - first == 1
    assert not source.left


def test_v4_asks_for_no_block() -> None:
    """It is random, and made here."""
    supply = supply_of(Blocks(), "v4")
    ids = supply.make(10_000, "uuid")
    assert len(set(ids)) == 10_000


def test_a_fetch_that_is_broken_off_anywhere_leaves_only_ticks_of_a_block() -> None:
    """Ctrl-C may come at any line: what lies between two blocks is another process's."""
    for at in itertools.count(1):
        supply = supply_of(Blocks(block(0, 10), block(5000, 10), block(9000, 10)), "v7")
        supply.make(10, "uuid")
        broken = break_off(partial(supply.make, 1, "uuid"), at)
        (id,) = supply.make(1, "uuid")
        assert versions.v7_tick(id.int) - START in {*range(5000, 5010), *range(9000, 9010)}
        if broken is None:
            break
    assert at > 10


@pytest.mark.parametrize("ahead_ms", [7_200_000, 3_599_999])
@pytest.mark.parametrize("kind", UNLEASED)
def test_ids_of_a_source_that_begins_again_are_not_waited_for(
    kind: str, ahead_ms: int, time: Time
) -> None:
    """The supply follows, also under another node, however far the source had got."""
    source = Blocks(block(ahead_ms * MS, 3), block(10, 10, node=1, worker=1), clock=time)
    supply = supply_of(source, kind)
    (ahead,) = supply.make(1, "int")
    time.move(1)
    (after,) = supply.make(1, "int")
    assert fields(kind, ahead)["time"] - fields(kind, after)["time"] == ahead_ms


# --- a daemon that is wrong, and times that no id can tell


def test_a_daemon_whose_blocks_have_no_place_is_given_up() -> None:
    """A Snowflake is not waited for without an end; the error says why."""
    source = Blocks(*(block(1, 1) for _ in range(1000)))
    with pytest.raises(DaemonUnavailable, match="32 blocks in a row have no place for a snowflake"):
        supply_of(source, "snowflake").make(1, "int")
    assert len(source.asked) == 1 + MAX_EMPTY


def test_a_daemon_whose_node_is_another_each_time_is_given_up() -> None:
    """Each would cost a millisecond, for ids go on with the next one."""
    source = Blocks(*(block(number * MS, 1, node=number) for number in range(1000)))
    with pytest.raises(DaemonUnavailable, match="9 answers in a row each have another node"):
        supply_of(source, "flake").make(500, "int")
    assert len(source.asked) == 1 + MAX_NODES


def test_a_node_that_changes_now_and_then_is_followed() -> None:
    """From call to call the node may be another each time."""
    source = Blocks(*(block(number * MS, 1, node=number) for number in range(100)))
    supply = supply_of(source, "flake")
    found = [supply.make(1, "int")[0] for _ in range(100)]
    assert found == sorted(found)


YEAR = 365 * 86400 * 10_000_000


@pytest.mark.parametrize(
    ("kind", "years", "words"),
    [
        ("snowflake", 60, "the time is 2083-.*a snowflake holds times from 2010-11.* to 2080-07"),
        ("ksuid", 130, "the time is 2153-.*a ksuid holds times from 2014-05-13.* to 2150-06"),
        ("ksuid", -11, "the time is 2012-.*a ksuid holds times from 2014-05-13.* to 2150-06"),
        ("v7", -60, "the time is 1963-.*a v7 holds times from 1970-01-01"),
    ],
)
def test_a_time_that_the_kind_cannot_tell_is_named(
    kind: str, years: int, words: str, time: Time
) -> None:
    """With what it can tell; nothing is made."""
    time.utc += years * YEAR
    with pytest.raises(TimeOutOfRange, match=words) as caught:
        supply_of(Blocks(block(years * YEAR, 3), clock=time), kind).make(1, "text")
    assert caught.value.kind == kind


@pytest.mark.parametrize("kind", ["snowflake", "ksuid"])
def test_a_daemon_whose_time_no_id_can_tell_is_wrong(kind: str) -> None:
    """Where UTC here is one that ids can tell."""
    supply = supply_of(Blocks(block(130 * YEAR, 3), block(0, 3)), kind)
    with pytest.raises(DaemonUnavailable, match="/path: an unusable answer: the time is 2153-"):
        supply.make(1, "text")
    assert supply.make(1, "text")

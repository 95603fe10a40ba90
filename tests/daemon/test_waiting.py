"""Hosts that wait for a number of a fleet in which all are taken."""

from __future__ import annotations

import contextlib

import pytest
import trio
from trio.testing import MockClock

from tests.daemon.fleet import HOLD, NOW, WINDOW, Engine, Host
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.fleet.keeper import ALL_SECONDS, POLL_SECONDS, SHARE_SECONDS, UNTOLD_SECONDS
from uuidd.fleet.record import Found, Record
from uuidd.fleet.rules import FAR, candidates, next_due

pytestmark = pytest.mark.usefixtures("autojump_clock")

SOON = POLL_SECONDS[1] + 0.1


@pytest.fixture
def engine() -> Engine:
    """A fleet whose numbers 3 to 5 others have, for a while and ever longer."""
    engine = Engine()
    for number in range(3, 6):
        until = NOW + (WINDOW + number) * TICKS_PER_SECOND
        engine.replace(number, Record(f"{number:016x}", until, held=True, host=f"db{number}"))
    return engine


@pytest.fixture
async def host(engine: Engine, autojump_clock: MockClock) -> Host:
    """A host that is to have one of these numbers."""
    return Host(engine, low=3, high=5)


def renew(engine: Engine) -> None:
    """Lengthen all claims by a window."""
    for number, found in engine.kept.items():
        engine.change(number, until=found.record.until + WINDOW * TICKS_PER_SECOND)


async def test_the_refusal_says_which_number_is_next_and_when(host: Host) -> None:
    async with host.running():
        why = (
            "no worker number of 3 to 5 is free; number 3 may be next, at 2027-01-15T08:15:04Z if"
            " db3 does not renew it; uuidd workers list folder:///fleet shows who has them"
        )
        assert host.keeper.status()["why"] == why
        assert host.inside.timelines.fence.why == f"{why}; all other kinds go on"


def found(until: int, *, held: bool = False, reserved: bool = False) -> Found:
    """Return a register as it was read."""
    return Found(Record("0" * 16, until, held=held, reserved=reserved), "1")


def test_a_number_that_is_kept_free_or_cannot_be_read_is_never_next() -> None:
    registers: dict[int, Found | str] = {3: "garbage", 4: found(5, reserved=True)}
    registers |= {5: found(9, held=True), 6: found(8, held=True)}
    due = next_due(registers, [2, 3, 4, 5, 6], hold=0)
    assert due is not None
    assert due.number == 6


def test_only_numbers_that_can_be_read_and_begin_soon_are_tried() -> None:
    """One whose ticks begin a minute ahead was used by a wrong clock."""
    registers: dict[int, Found | str] = {3: "garbage", 4: found(FAR + 6), 5: found(5)}
    assert candidates(registers, [3, 4, 5], steady=5, hold=0) == [(5, found(5))]


def test_numbers_that_nobody_has_had_are_tried_first() -> None:
    """Then those that were let go, those of silent hosts, and one that begins ahead."""
    registers: dict[int, Found | str] = {3: found(6), 4: found(1, held=True), 5: found(5)}
    tried = candidates(registers, [3, 4, 5, 6], steady=5, hold=0)
    assert [number for number, _ in tried] == [6, 5, 4, 3]


async def test_the_log_says_once_that_all_are_taken(
    engine: Engine, host: Host, log: pytest.LogCaptureFixture
) -> None:
    async with host.running():
        before = host.keeper.status()["why"]
        renew(engine)
        await trio.sleep(2 * ALL_SECONDS)
        assert host.keeper.status()["why"] != before
    assert [record.getMessage() for record in log.records] == [before]


async def test_a_number_of_a_silent_host_is_another_ones_when_its_hold_is_over(host: Host) -> None:
    async with host.running():
        await trio.sleep(WINDOW + HOLD + 3 - 1.1)
        assert host.number is None
        await trio.sleep(0.2 + SHARE_SECONDS)
        assert host.number == 3


async def test_many_hosts_that_wait_ask_little(engine: Engine) -> None:
    """Each looks at all numbers once in a minute or two; of one that is let go, each reads that."""
    many = [Host(engine, low=3, high=5, seed=seed) for seed in range(30)]
    async with contextlib.AsyncExitStack() as stack:
        for host in many:
            await stack.enter_async_context(host.running())
        before = engine.looks
        await trio.sleep(4 * ALL_SECONDS)
        assert engine.looks - before <= 4 * len(many)
        renew(engine)
        before, looks = engine.questions, engine.looks
        engine.let_go(4)
        await trio.sleep(SOON)
        assert [host.number for host in many if host.number is not None] == [4]
        assert engine.looks - looks <= len(many) * SOON / ALL_SECONDS + 5
        assert engine.questions - before <= 5 * len(many)


async def test_numbers_that_are_let_go_at_once_are_all_found(engine: Engine) -> None:
    """Though a host hears of the last one only."""
    one, two, three = (Host(engine, low=3, high=5, seed=seed) for seed in range(3))
    async with one.running(), two.running(), three.running():
        await trio.sleep(10)
        for number in (3, 4, 5):
            engine.let_go(number)
        await trio.sleep(2 * UNTOLD_SECONDS)
        assert {one.number, two.number, three.number} == {3, 4, 5}


async def test_a_number_of_which_nobody_is_told_is_found_all_the_same(
    engine: Engine, host: Host
) -> None:
    """As one that a daemon let go whose connection ended then."""
    engine.mute = True
    async with host.running():
        engine.let_go(4)
        await trio.sleep(2 * ALL_SECONDS + 1)
        assert host.number == 4


async def test_a_number_that_is_let_go_is_that_of_a_host_which_may_have_it_soon(
    engine: Engine,
) -> None:
    """Hosts of one fleet may be limited to some of its numbers."""
    host = Host(engine, low=3, high=4)
    async with host.running():
        await trio.sleep(20)
        for number, then in ((5, None), (4, 4)):
            engine.let_go(number)
            await trio.sleep(SOON)
            assert host.number == then


async def test_a_host_that_waits_stops_at_once(engine: Engine, host: Host) -> None:
    async with host.running():
        before = dict(engine.kept)
        with trio.fail_after(0.1):
            await host.stop()
        assert engine.kept == before

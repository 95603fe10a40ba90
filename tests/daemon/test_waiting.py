"""Hosts that wait for a number of a fleet in which all are taken."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from tests.daemon.fleet import HOLD, NOW, WINDOW, Engine, Host
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.fleet.keeper import FEW, FULL_SECONDS
from uuidd.fleet.record import Record
from uuidd.fleet.rules import FAR, candidates, next_due

pytestmark = pytest.mark.usefixtures("autojump_clock")

SOON = FULL_SECONDS[1] + 0.1


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
        engine.change(number, until=found.until + WINDOW * TICKS_PER_SECOND)


async def test_the_refusal_says_which_number_is_next_and_when(host: Host) -> None:
    async with host.running():
        why = (
            "no worker number of 3 to 5 is free; number 3 may be next, at 2027-01-15T08:15:04Z if"
            " db3 does not renew it; uuidd workers list folder:///fleet shows who has them"
        )
        assert host.keeper.status()["why"] == why
        assert host.inside.timelines.fence.why == f"{why}; all other kinds go on"


def found(until: int, *, held: bool = False, reserved: bool = False) -> Record:
    """Return a register as it was read."""
    return Record("0" * 16, until, held=held, reserved=reserved)


def test_a_number_that_is_kept_free_or_cannot_be_read_is_never_next() -> None:
    registers: dict[int, Record | str] = {3: "garbage", 4: found(5, reserved=True)}
    registers |= {5: found(9, held=True), 6: found(8, held=True)}
    assert next_due(registers, [2, 3, 4, 5, 6], hold=0) == (9, 6, "")


def test_only_numbers_that_can_be_read_and_begin_soon_are_tried() -> None:
    """One whose ticks begin a minute ahead was used by a wrong clock."""
    registers: dict[int, Record | str] = {3: "garbage", 4: found(FAR + 6), 5: found(5)}
    assert candidates(registers, [3, 4, 5], steady=5, hold=0) == [(5, found(5))]


def test_numbers_that_nobody_has_had_are_tried_first() -> None:
    """Then those that were let go, those of silent hosts, and one that begins ahead."""
    registers: dict[int, Record | str] = {3: found(6), 4: found(1, held=True), 5: found(5)}
    tried = candidates(registers, [3, 4, 5, 6], steady=5, hold=0)
    assert [number for number, _ in tried] == [6, 5, 4, 3]


@pytest.mark.parametrize("had", [3, 4])
def test_a_number_that_was_given_by_hand_is_tried_alone(had: int) -> None:
    """If it is reserved, or nobody has had it."""
    registers: dict[int, Record | str] = {3: found(0, reserved=True), 5: found(0)}
    tried = candidates(registers, [3, 4, 5], steady=5, hold=0, had=had)
    assert [number for number, _ in tried] == [had]


@pytest.mark.parametrize("had", [2, 5])
def test_a_number_by_hand_that_is_not_for_this_host_is_not_tried_alone(had: int) -> None:
    """Its options do not allow 2, and 5 was another host's."""
    tried = candidates({5: found(0)}, [3, 4, 5], steady=5, hold=0, had=had)
    assert [number for number, _ in tried] == [3, 4, 5]


async def test_the_log_says_once_that_all_are_taken(
    engine: Engine, host: Host, log: pytest.LogCaptureFixture
) -> None:
    async with host.running():
        before = host.keeper.status()["why"]
        renew(engine)
        await trio.sleep(SOON)
        assert host.keeper.status()["why"] != before
    assert [record.getMessage() for record in log.records] == [before]


async def test_a_number_of_a_silent_host_is_another_ones_when_its_hold_is_over(host: Host) -> None:
    async with host.running():
        await trio.sleep(WINDOW + HOLD + 3 - 1.1)
        assert host.number is None
        await trio.sleep(0.2 + SOON)
        assert host.number == 3


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


async def test_a_host_looks_the_less_often_the_more_numbers_are_taken(
    engine: Engine, host: Host
) -> None:
    """Or the engine would have no time for renewals. It writes nothing meanwhile."""
    for number in range(6, 1024):
        engine.replace(number, Record(f"{number:016x}", NOW + 10**12, held=True))
    async with host.running():
        looks, writes, pause = engine.looks, engine.writes, FULL_SECONDS[0] * 1021 / FEW
        engine.questions = 0
        await trio.sleep(20 * pause)
        assert 10 <= engine.looks - looks <= 20
        # Those for the namespace and for all registers; the next look may have begun.
        assert engine.questions <= 2 * (engine.looks - looks) + 1
        assert engine.writes == writes


async def test_a_host_that_waits_stops_at_once(engine: Engine, host: Host) -> None:
    async with host.running():
        before = dict(engine.kept)
        with trio.fail_after(0.1):
            await host.stop()
        assert engine.kept == before

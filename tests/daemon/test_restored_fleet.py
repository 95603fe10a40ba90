"""Hosts whose engine forgot what it had confirmed: restored from a backup, wiped, or made anew."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import pytest
import trio

from tests.daemon.fleet import META, WINDOW, Engine, Host
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.outcomes import NoNumber
from uuidd.fleet.administering import Administrator
from uuidd.fleet.record import Found, Holder

pytestmark = pytest.mark.usefixtures("autojump_clock")


@pytest.fixture
def engine() -> Engine:
    """An initialised fleet without a host."""
    return Engine()


async def raise_registers(engine: Engine, host: Host) -> int:
    """Do what ``uuidd workers raise`` does, at the time of a host; return where numbers begin."""
    administrator = Administrator(engine, Holder("admin"), host.inside.clock.now())
    _, until = await administrator.raise_all(WINDOW * TICKS_PER_SECOND, cut_off=True)
    return until


async def test_without_raising_a_number_claimed_after_the_backup_is_two_hosts(
    engine: Engine,
) -> None:
    """It looks free; so this is what the administrator prevents."""
    host, other = Host(engine, low=3, high=3), Host(engine, "db2", low=3, high=3)
    backup = dict(engine.kept)
    async with host.running():
        engine.kept = backup
        async with other.running():
            assert host.number == other.number == 3
            assert host.claim.begin <= other.take().first < host.claim.until


async def test_with_raising_it_begins_after_the_time_of_its_host(engine: Engine) -> None:
    """The host goes on until then; both claim a number again afterwards."""
    host, other = Host(engine, low=3, high=4), Host(engine, "db2", low=3, high=4)
    backup = dict(engine.kept)
    async with host.running():
        last = host.claim
        engine.kept = backup
        begin = await raise_registers(engine, host)
        assert last.until <= begin
        async with other.running():
            assert other.number is None
            await trio.sleep(WINDOW / 2 + 10)
            assert (host.claim, other.number) == (last, None)
            assert host.take().worker == last.number
            await trio.sleep(WINDOW)
            assert {host.number, other.number} == {3, 4}
            assert min(host.claim.begin, other.claim.begin) >= begin
            assert min(host.take().first, other.take().first) >= begin


async def test_a_host_that_the_backup_knows_keeps_its_number_through_raising(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    host = Host(engine, low=3, high=3)
    async with host.running():
        backup, first = dict(engine.kept), host.claim
        await trio.sleep(WINDOW)
        assert host.claim.until > first.until
        engine.kept = backup
        await raise_registers(engine, host)
        await trio.sleep(WINDOW)
        assert (host.claim.token, host.claim.begin) == (first.token, first.begin)
        assert host.take().worker == 3
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


def forget_registers(engine: Engine) -> None:
    """Restore a backup that was made right after the fleet was."""
    engine.kept.clear()


def forget_renewals(engine: Engine) -> None:
    """Restore a backup in which the time of each host ends a while earlier."""
    for number, found in engine.kept.items():
        record = replace(found.record, until=found.record.until - 10**9)
        engine.kept[number] = Found(record, "restored")


def forget_all(engine: Engine) -> None:
    """Lose the namespace, or restore a backup that was made before it was."""
    engine.kept.clear()
    engine.found = None


def make_anew(engine: Engine) -> None:
    """Lose the namespace, and make another one."""
    engine.kept.clear()
    engine.found = replace(META, id="9" * 16)


def change_epoch(engine: Engine) -> None:
    """Make another fleet, of another epoch."""
    engine.kept.clear()
    engine.found = replace(META, id="9" * 16, epoch=0)


LOST = (
    "the folder /fleet has lost writes, as after a restore from a backup, so worker number ",
    " is written there again; two hosts may have another number, so cut off all hosts from the"
    " engine, run uuidd workers raise folder:///fleet --worker-window 600s on its machine, with"
    " the longest window of all hosts, and then let the hosts reach the engine again",
)


@pytest.mark.parametrize(
    ("change", "begin", "end"),
    [
        (forget_registers, *LOST),
        (forget_renewals, *LOST),
        (
            forget_all,
            "the fleet of worker number ",
            " only; run uuidd workers init folder:///fleet with the options of the first time,"
            " except --new",
        ),
        (
            make_anew,
            "worker number ",
            " was claimed in another fleet than the folder /fleet has now:"
            " namespace=0123456789abcdef",
        ),
        (
            change_epoch,
            "the fleet's Snowflakes count from 0, and --epoch is 1288834974657; ",
            "start uuidd with --epoch 0",
        ),
    ],
)
@pytest.mark.parametrize("restarted", [False, True])
async def test_an_engine_that_forgot_is_told_of_in_one_line(
    engine: Engine,
    change: Callable[[Engine], None],
    begin: str,
    end: str,
    restarted: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """All other kinds go on, before and after the host's time with its number is over."""
    host = Host(engine)
    async with host.running():
        if not restarted:
            change(engine)
            await trio.sleep(WINDOW / 2 + 10)
            assert host.take(fenced=False).count == 1
            await trio.sleep(WINDOW)
            assert host.take(fenced=False).count == 1
    if restarted:
        caplog.clear()
        change(engine)
        host = Host(engine, claim=host.claim)
        async with host.running():
            assert host.take(fenced=False).count == 1
            await trio.sleep(2 * WINDOW)
            assert host.take(fenced=False).count == 1
    [line] = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert line.startswith(begin)
    assert line.endswith(end)


async def test_a_host_whose_fleet_is_gone_goes_on_until_its_time_is_over(engine: Engine) -> None:
    """And not longer; the refusal names the command that makes the fleet anew."""
    host = Host(engine)
    async with host.running():
        forget_all(engine)
        await trio.sleep(WINDOW / 2 + 10)
        assert host.take().worker == host.number
        assert host.keeper.status()["namespace"] == META.id
        await trio.sleep(WINDOW)
        with pytest.raises(NoNumber):
            host.take()
        assert host.inside.timelines.fence.why.endswith(
            "run uuidd workers init folder:///fleet with the options of the first time, except"
            " --new; all other kinds go on"
        )

"""Real engines that are restored from a backup while hosts go on, as systemd/fleet.md says."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.fleet.backups import Backup
from tests.fleet.fleets import Fleet, answered, reaches, refused, renews, take, told
from tests.fleet.servers import KINDS, Server, running
from tests.rig import Daemon
from uuidd.cli import main
from uuidd.fleet.engines import Changed
from uuidd.fleet.record import Record

pytestmark = pytest.mark.thorough

GUIDE = Path(__file__).parents[2] / "systemd" / "fleet.md"

LONG = ("--worker-window=1h", "--worker-hold=1h")
"""A host with these does not ask again while a test lasts."""


@pytest.fixture(params=KINDS)
def engine(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A real engine with one node."""
    with running(KINDS[request.param], alone=True) as engine:
        yield engine


def raise_numbers(fleet: Fleet) -> None:
    """Run the command of the GUIDE for this fleet, whose hosts have a window of an hour."""
    _, _, text = GUIDE.read_text().partition("**If the engine was restored from a backup**")
    [line] = [line for line in text.split("```")[1].splitlines() if " raise " in line]
    words = shlex.split(line, comments=True)
    assert words[:3] == ["uuidd", "workers", "raise"]
    assert words[3].startswith("etcd://")
    assert words[4] == "--worker-window"
    # This backup is of now, so a host that was stopped may still hold a number.
    words = ["workers", "raise", fleet.url, words[4], "1h", "--hosts-cut-off"]
    assert main([*words, *fleet.access_options]) == 0


@pytest.mark.parametrize("raised", [True, False])
def test_a_number_that_was_claimed_after_the_backup(
    engine: Server, tmp_path: Path, raised: bool
) -> None:
    """It is two hosts' at once if the registers are not raised, and only then."""
    fleet = Fleet(engine, tmp_path)
    with Daemon(*fleet.options, *LONG) as host:
        # First, or the other one gets the only number.
        take(host)
        with Daemon(*fleet.options, *LONG) as other:
            # Then no host has the number.
            assert other.stop() == host.stop() == 0
            backup = Backup(engine, tmp_path)
            host.start()
            assert take(host)[0] == 3
            backup.restore()
            if raised:
                raise_numbers(fleet)
            other.start()
            if raised:
                assert "no worker number of 3 to 3 is free" in reaches(other, state="full")["why"]
                refused(other)
            else:
                before, between, after = take(host), take(other), take(host)
                assert before[0] == between[0] == after[0] == 3
                assert before[1] < between[1] < after[1]
            assert take(host)[0] == 3


@pytest.mark.parametrize("raised", [True, False])
def test_a_host_that_had_its_number_before_the_backup_keeps_it(
    engine: Server, tmp_path: Path, raised: bool
) -> None:
    """It renews its claim; if the registers lie behind, it says so and writes what it has."""
    fleet = Fleet(engine, tmp_path)
    with Daemon(*fleet.options) as host:
        take(host)
        backup = Backup(engine, tmp_path)
        renews(host)
        # It does not reach the engine now.
        host.process.send_signal(signal.SIGSTOP)
        try:
            backup.restore()
            if raised:
                raise_numbers(fleet)
        finally:
            host.process.send_signal(signal.SIGCONT)
        renews(host, 1)
        assert (told(host)["number"], told(host)["fenced"]) == (3, 0)
        assert any("has lost writes" in line for line in host.lines) is not raised


def test_a_write_over_what_the_engine_has_lost_changes_nothing(
    engine: Server, tmp_path: Path
) -> None:
    """Although another write has given the register the same count once more."""
    fleet = Fleet(engine, tmp_path)
    first, lost, other, late = (
        Record(token * 16, ticks, held=True) for ticks, token in enumerate("1234")
    )

    async def write() -> None:
        async with fleet.connect() as coordinator:
            await coordinator.meta()
            await coordinator.write(3, first, None)
            before = await coordinator.read(3)
            backup = Backup(engine, tmp_path)
            await coordinator.write(3, lost, before)
            forgotten = await coordinator.read(3)
            for _ in range(20):
                # A ZooKeeper refuses a client that has seen later writes than the server has.
                await coordinator.write(2, lost, await coordinator.read(2))
            backup.restore()
            found = await answered(lambda: coordinator.read(3))
            assert found == first
            await coordinator.write(3, other, found)
            with pytest.raises(Changed):
                await coordinator.write(3, late, forgotten)
            found = await answered(lambda: coordinator.read(3))
            assert found == other

    trio.run(write)

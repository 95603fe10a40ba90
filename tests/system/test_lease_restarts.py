"""Programs that draw from leases do not notice a restart, and are in order without a request."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest

from tests.forks import Program
from tests.rig import Daemon, until
from tests.system.far import far_reaching
from tests.system.holders import Holder, assert_sound, await_leases, holders, leases
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd_client.system import SYSTEM_CLOCK

CLIENTS = 8

REACHES = (2.0, 6.0, 15.0)
"""Seconds that a save reaches ahead, tried in turn until restarts and a look take less than that.

The first is enough, unless the machine is very busy.
"""

ROUNDS = 20_000
"""How often the baton is passed there and back."""


def restart(
    daemon: Daemon, reach: float, ending: signal.Signals, drawing: list[Holder]
) -> tuple[int, int] | None:
    """End the daemon and start another, while clients draw; return what they asked it for.

    None if that took longer than the horizon lasted.
    """
    # Right after a save.
    until(lambda: leases(daemon)["horizon_in"] > 0.9 * reach)
    horizon = SYSTEM_CLOCK.utc_tick() + int(leases(daemon)["horizon_in"] * TICKS_PER_SECOND)
    if ending == signal.SIGKILL:
        daemon.kill()
    else:
        assert daemon.stop() == 0
    for holder in drawing:
        holder.more(100)
    daemon.start()
    for holder in drawing:
        holder.more(100)
    asked = requests(daemon)
    in_time = SYSTEM_CLOCK.utc_tick() < horizon
    await_leases(daemon, len(drawing))
    return asked if in_time else None


@pytest.mark.parametrize(
    "endings",
    [
        pytest.param([signal.SIGKILL], id="kill"),
        pytest.param([signal.SIGTERM], id="stop"),
        pytest.param(
            [signal.SIGKILL, signal.SIGTERM] * 6, id="12 times", marks=pytest.mark.thorough
        ),
    ],
)
def test_no_client_with_a_lease_notices_a_restart(
    endings: list[signal.Signals], tmp_path: Path
) -> None:
    """All ids are safe, in order, and none comes twice; then all clients lease from the next."""
    for reach in REACHES:
        with far_reaching(reach) as daemon, holders(daemon, tmp_path, CLIENTS) as drawing:
            asked = [restart(daemon, reach, ending, drawing) for ending in endings]
            for holder in drawing:
                holder.more()
        drawn = [holder.drawn() for holder in drawing]
        assert_sound(drawn)
        if None not in asked:
            assert asked == [(0, 0)] * len(endings)
            assert all(each.safe for some in drawn for each in some)
            return
    pytest.fail(f"each restart took longer than {REACHES[-1]:g} s")


@pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.thorough)])
def test_ids_rise_over_two_processes_without_a_request(times: int) -> None:
    """With max_age=0, what one process draws is later than what another had told it."""
    pipes = [os.pipe(), os.pipe()]
    (comes, theirs), (theirs_comes, goes) = pipes
    try:
        with far_reaching(20) as daemon, contextlib.ExitStack() as running:
            both = [
                running.enter_context(
                    Program("tests.system.baton", daemon.socket, ROUNDS, first, keep=keep)
                )
                for first, keep in ((True, [comes, goes]), (False, [theirs_comes, theirs]))
            ]
            for program in both:
                assert program.line() == "ready"
            assert leases(daemon)["out"] == 2
            before = requests(daemon)
            for _ in range(times):
                for program in both:
                    program.say("go")
                assert [int(program.line()) for program in both] == [ROUNDS, ROUNDS]
            assert requests(daemon) == before
    finally:
        for pipe in pipes:
            os.close(pipe[0])
            os.close(pipe[1])


def requests(daemon: Daemon) -> tuple[int, int]:
    """Return how many ids, and leases, the daemon has been asked for."""
    status = daemon.call("status")
    return status["requests"]["rpc"]["ids"], status["leases"]["granted"]

"""Programs that draw from leases do not notice a restart."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.rig import Daemon, until
from tests.system.far import far_reaching
from tests.system.holders import (
    Holder,
    assert_sound,
    await_leases,
    holders,
    leases,
    requests,
)
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd_client.system import SYSTEM_CLOCK

CLIENTS = 8

REACHES = (2.0, 6.0, 15.0)
"""Seconds that a save reaches ahead, tried in turn until restarts and a look take less than that.

The first is enough, unless the machine is very busy.
"""


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

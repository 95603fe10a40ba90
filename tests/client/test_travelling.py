"""Under the tools by which tests set a process's clock, the client neither hangs nor repeats."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import freezegun
import pytest

from tests.client import travelling
from tests.client.lanes import Clock, World
from tests.rig import Daemon
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd_client import Client

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("implementation")]

PATIENCE = 60.0


def travelled(tool: str, socket: Path) -> dict[str, Any]:
    """Return what a process tells that draws at several times of *tool*."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.client.travelling", tool, str(socket)],
        capture_output=True,
        check=True,
        timeout=PATIENCE,
        text=True,
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return told


DRAWN = len(travelling.KINDS) * 2 * travelling.EACH * 7


@pytest.mark.parametrize("tool", travelling.TOOLS)
def test_without_a_daemon_a_clock_of_a_test_neither_holds_up_nor_repeats(
    tool: str, tmp_path: Path
) -> None:
    """Frozen, in the past, in the future and back: ids differ, and have the real time after it."""
    told = travelled(tool, tmp_path / "absent")
    assert (told["again"], told["drawn"]) == (0, DRAWN)
    assert told["longest"] < 10
    assert all(abs(lag) < 60 * TICKS_PER_SECOND for lag in told["lags"][1::2])


@pytest.mark.parametrize("tool", travelling.TOOLS)
def test_with_a_daemon_a_clock_of_a_test_neither_holds_up_nor_repeats(
    tool: str, daemon: Daemon
) -> None:
    """The daemon's ids are of its own clock, whatever the client's shows."""
    told = travelled(tool, daemon.socket)
    assert (told["again"], told["drawn"]) == (0, DRAWN)
    assert told["longest"] < 10
    assert all(abs(lag) < 60 * TICKS_PER_SECOND for lag in told["lags"][1::2])


def test_a_client_that_is_made_under_freezegun_uses_its_lease(tmp_path: Path) -> None:
    """Freezegun does not set the client's clock, so ids come from the lane as ever."""
    with World(tmp_path / "s", Clock()).server() as server, freezegun.freeze_time("2030-01-01"):
        client = Client(tmp_path / "s", fallback=False)
        while not server.asked:
            client.uuid7()
        before = len(server.requests)
        for _ in range(1000):
            client.uuid7()
        assert len(server.requests) < before + 100
        client.close()

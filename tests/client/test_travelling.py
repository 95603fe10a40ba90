"""Under the tools by which tests set a process's clock, the client neither hangs nor repeats."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.client import travelling
from tests.rig import Daemon
from uuidd.core.ids.ticks import TICKS_PER_SECOND

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
    """Frozen, in the past, in the future and back: ids differ, and follow the system's clock."""
    told = travelled(tool, tmp_path / "absent")
    assert (told["again"], told["drawn"]) == (0, DRAWN)
    assert told["longest"] < 10
    # All but freezegun set that for the process; one that stands still is led by the steady kinds.
    assert all(abs(lag) < 60 * TICKS_PER_SECOND for lag in told["lags"])


@pytest.mark.parametrize("tool", travelling.TOOLS)
def test_with_a_daemon_a_clock_of_a_test_neither_holds_up_nor_repeats(
    tool: str, daemon: Daemon
) -> None:
    """The daemon's ids are of its own clock, whatever the client's shows."""
    told = travelled(tool, daemon.socket)
    assert (told["again"], told["drawn"]) == (0, DRAWN)
    assert told["longest"] < 10
    assert all(abs(lag) < 60 * TICKS_PER_SECOND for lag in told["lags"][1::2])

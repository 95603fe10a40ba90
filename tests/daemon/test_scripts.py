"""The script by which the service is started: one that fails does not fail over and over."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rig import PATIENCE

pytestmark = pytest.mark.system

SCRIPT = Path(__file__).parents[2] / "uuidd" / "scripts" / "uuidd"

SLEEP = "import sys\nsys.modules['time'].sleep = lambda seconds: print('sleeps', seconds)\n"
"""Lets the script say how long it would sleep."""


def run(tmp_path: Path, *options: str, broken: bool = False) -> tuple[int, str, str]:
    """Return exit status, output and errors of the script."""
    (tmp_path / "sitecustomize.py").write_text(f"import time\n{SLEEP}")
    if broken:
        (tmp_path / "trio.py").write_text("raise ImportError('half of it is missing')\n")
    done = subprocess.run(
        [sys.executable, SCRIPT, *options],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        timeout=PATIENCE,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("flag", ["-S", "--socket-activation"])
def test_a_service_that_cannot_start_waits_before_it_ends(tmp_path: Path, flag: str) -> None:
    """It says why at once; systemd starts it again once it has ended."""
    status, out, err = run(tmp_path, flag)
    assert (status, out) == (1, "sleeps 2\n")
    assert err.startswith("uuidd: no socket was passed")


def test_a_service_with_a_wrong_flag_waits_too(tmp_path: Path) -> None:
    """Its unit may have been edited."""
    assert run(tmp_path, "-S", "--wrong")[:2] == (1, "sleeps 2\n")


def test_a_service_that_cannot_be_imported_waits_too(tmp_path: Path) -> None:
    """As after an upgrade that was broken off."""
    status, out, err = run(tmp_path, "-S", broken=True)
    assert (status, out) == (1, "sleeps 2\n")
    assert "half of it is missing" in err


@pytest.mark.parametrize("options", [["-F"], ["--check", "-S", "--worker=9999"], ["-S", "--help"]])
def test_others_wait_for_nothing(tmp_path: Path, options: list[str]) -> None:
    _, out, _ = run(tmp_path, *options, f"--state={tmp_path}/none", f"--socket={tmp_path}/s", "-P")
    assert "sleeps" not in out

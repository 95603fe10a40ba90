"""The script by which the service is started: one that fails does not fail over and over."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.tools import run

pytestmark = pytest.mark.system

SCRIPT = Path(__file__).parents[2] / "uuidd" / "scripts" / "uuidd"

SLEEP = "import sys, time\nsys.modules['time'].sleep = lambda seconds: print('sleeps', seconds)\n"
"""Lets the script say how long it would sleep."""


@pytest.mark.parametrize(
    ("options", "error"),
    [
        *((flag, "no socket was passed") for flag in ("-S", "--socket-activation")),
        # Its unit may have been edited.
        ("-S --wrong", "unrecognized arguments: --wrong"),
        # As after an upgrade that was broken off.
        ("-S", "half of it is missing"),
    ],
)
def test_a_service_that_cannot_start_waits_before_it_ends(
    tmp_path: Path, options: str, error: str
) -> None:
    """It says why at once; systemd starts it again once it has ended."""
    (tmp_path / "sitecustomize.py").write_text(SLEEP)
    if "missing" in error:
        (tmp_path / "trio.py").write_text(f"raise ImportError('{error}')\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = run(sys.executable, SCRIPT, *options.split(), env=environment)
    assert (done.returncode, done.stdout) == (1, "sleeps 2\n")
    assert error in done.stderr


@pytest.mark.parametrize("options", ["-F", "--check -S --worker=9999", "-S --help"])
def test_others_wait_for_nothing(tmp_path: Path, options: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(SLEEP)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    words = [*options.split(), f"--state={tmp_path}/none", f"--socket={tmp_path}/s", "-P"]
    assert "sleeps" not in run(sys.executable, SCRIPT, *words, env=environment).stdout

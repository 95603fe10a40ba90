"""The daemon's way into the background, by a process that goes there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.rig import PATIENCE, until

pytestmark = pytest.mark.process

ENTER = """
import os, sys
from uuidd.cli import background

before = os.listdir("/proc/self/fd")
entered = background.enter()
if sys.argv[1] == "fails":
    os._exit(3)
entered.ready()
after = os.listdir("/proc/self/fd")
text = f"{sorted(before)} {sorted(after)}"
with open(sys.argv[1] + ".new", "w") as file:
    file.write(text)
os.rename(sys.argv[1] + ".new", sys.argv[1])
"""


def enter(told: Path | str) -> int:
    """Run a program that goes into the background; return the status of the command."""
    command = [sys.executable, "-c", ENTER, str(told)]
    return subprocess.run(command, timeout=PATIENCE, check=False).returncode


def test_a_process_in_the_background_has_the_descriptors_that_it_had_before(
    tmp_path: Path,
) -> None:
    told = tmp_path / "told"
    assert enter(told) == 0
    until(told.exists)
    before, after = told.read_text().replace("] [", "]|[").split("|")
    assert before == after


def test_the_command_fails_as_soon_as_the_process_in_the_background_ends() -> None:
    assert enter("fails") == 1

"""The daemon's way into the background, by a process that goes there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.rig import until
from tests.tools import run

pytestmark = pytest.mark.process

ENTER = """
import os, sys
from uuidd.cli import background

before = os.listdir("/proc/self/fd")
background.enter()()
after = os.listdir("/proc/self/fd")
text = f"{sorted(before)} {sorted(after)}"
with open(sys.argv[1] + ".new", "w") as file:
    file.write(text)
os.rename(sys.argv[1] + ".new", sys.argv[1])
"""


def test_a_process_in_the_background_has_the_descriptors_that_it_had_before(
    tmp_path: Path,
) -> None:
    told = tmp_path / "told"
    assert run(sys.executable, "-c", ENTER, told).returncode == 0
    until(told.exists)
    before, after = told.read_text().replace("] [", "]|[").split("|")
    assert before == after


def test_a_caller_fails_if_the_process_in_the_background_does() -> None:
    failing = "from uuidd.cli import background; background.enter(); raise SystemExit(3)"
    assert run(sys.executable, "-c", failing).returncode == 1

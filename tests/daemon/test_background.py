"""The daemon's way into the background, by a process that goes there."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.rig import until
from tests.tools import run
from uuidd.cli import background

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


def test_a_command_whose_descriptors_are_open_needs_no_dev_null(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There is none in a bare chroot."""
    monkeypatch.setattr(os, "devnull", "/nowhere")
    background.fill_standard_descriptors()


def test_a_caller_fails_if_there_is_no_dev_null_for_the_background() -> None:
    without = "import os; os.devnull = '/nowhere'; from uuidd.cli import background"
    done = run(sys.executable, "-c", f"{without}; background.enter()()")
    assert (done.returncode, done.stderr.splitlines()[-1][:17]) == (1, "FileNotFoundError")


def test_a_closed_descriptor_without_dev_null_is_told_in_a_line() -> None:
    without = "import os; os.devnull = '/nowhere'; from uuidd.cli import main"
    words = f"{without}; raise SystemExit(main(['--version']))"
    done = run("sh", "-c", 'exec "$0" -c "$1" <&-', sys.executable, words)
    line = "uuidd: [Errno 2] No such file or directory: '/nowhere'\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", line)

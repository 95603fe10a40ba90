"""That a run of all tests ends, whatever happens to its processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forks import PATIENCE

pytestmark = pytest.mark.process

CRASHES = """
import os
import signal

import pytest

@pytest.mark.process
def test_that_crashes():
    if {forks} and not os.fork():
        signal.pause()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("forks", [False, True])
def test_a_run_ends_if_one_of_its_processes_crashes(tmp_path: Path, *, forks: bool) -> None:
    """It fails and names the test, also if a fork of the process is left."""
    tmp_path.joinpath("test_first.py").write_text("def test_ends():\n    pass\n")
    tmp_path.joinpath("test_second.py").write_text(CRASHES.format(forks=forks))
    tmp_path.joinpath("test_third.py").write_text("def test_ends():\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    command += ["-n", "1", "--dist", "loadfile", "--rootdir", str(tmp_path), str(tmp_path)]
    # Not through a pipe, whose end the fork would hold open.
    with open(tmp_path / "told", "w+") as output:
        run = subprocess.Popen(
            command,
            cwd=Path(__file__).parents[1],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            # Longer than for others, for it imports all that tests share, twice.
            status = run.wait(3 * PATIENCE)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
            run.wait()
        output.seek(0)
        told = output.read()
    assert status != 0
    assert "crashed while running" in told
    assert "test_that_crashes" in told

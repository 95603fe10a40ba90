"""After a fork, parent and children never draw the same id (P1)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.forking import CHILDREN, EACH
from tests.rig import Daemon

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("implementation")]


@pytest.mark.parametrize("served", [True, False])
@pytest.mark.parametrize("way", ["os", "multiprocessing", "raw"])
def test_no_id_comes_twice_after_a_fork(
    daemon: Daemon, tmp_path: Path, way: str, served: bool
) -> None:
    """A child goes on with a block of its own, and without a daemon with a node of its own."""
    subprocess.run(
        [sys.executable, "-m", "tests.client.forking", way, str(tmp_path)],
        env={**os.environ, "UUIDD_SOCKET": str(daemon.socket if served else "/nowhere/s")},
        check=True,
        timeout=60,
    )
    files = list(tmp_path.iterdir())
    ids = [line for file in files for line in file.read_text().splitlines()]
    assert len(files) == 1 + CHILDREN
    assert len(set(ids)) == len(ids) == (2 + CHILDREN) * 4 * EACH

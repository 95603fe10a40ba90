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

WAYS = ["os", "multiprocessing", "raw"]


def drawn(way: str, folder: Path, socket: Path) -> list[str]:
    """Return the ids of a parent, before and after it forked, and of its children."""
    subprocess.run(
        [sys.executable, "-m", "tests.client.forking", way, str(folder)],
        env={**os.environ, "UUIDD_SOCKET": str(socket)},
        check=True,
        timeout=60,
    )
    files = list(folder.iterdir())
    assert len(files) == 1 + CHILDREN
    return [line for file in files for line in file.read_text().splitlines()]


@pytest.mark.parametrize("way", WAYS)
def test_no_id_comes_twice_after_a_fork(way: str, tmp_path: Path) -> None:
    """With a daemon: a child goes on with a block of its own."""
    with Daemon() as daemon:
        ids = drawn(way, tmp_path, daemon.socket)
    assert len(set(ids)) == len(ids) == (2 + CHILDREN) * 4 * EACH


@pytest.mark.parametrize("way", WAYS)
def test_no_id_comes_twice_after_a_fork_without_a_daemon(way: str, tmp_path: Path) -> None:
    """Without a daemon: a child goes on with a node of its own."""
    (tmp_path / "drawn").mkdir()
    ids = drawn(way, tmp_path / "drawn", tmp_path / "absent")
    assert len(set(ids)) == len(ids) == (2 + CHILDREN) * 4 * EACH

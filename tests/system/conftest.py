"""Fixtures: a daemon whose UTC can be set."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.rig import Daemon
from tests.system.fake_time import FakeTime
from tests.tools import need

SHARED = Path("/dev/shm")
"""Where libfaketime leaves two files for each process, for good if that is killed."""


@pytest.fixture
def fake_time(tmp_path: Path) -> FakeTime:
    """A clock to be set."""
    need("faketime")
    return FakeTime(tmp_path)


@pytest.fixture
def daemon(fake_time: FakeTime) -> Iterator[Daemon]:
    """A daemon under that clock."""
    with Daemon(environment=fake_time.environment) as daemon:
        try:
            yield daemon
        finally:
            daemon.kill()
            forget(re.findall(r" pid=(\d+) ", "\n".join(daemon.lines)))


def forget(pids: Iterable[str]) -> None:
    """Remove what libfaketime left of processes."""
    for pid in pids:
        for name in (f"faketime_shm_{pid}", f"sem.faketime_sem_{pid}"):
            (SHARED / name).unlink(missing_ok=True)

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from tests.rig import Daemon, ended
from uuidd.server.startup import earlier_run


@pytest.mark.parametrize("started", [True, False])
def test_only_a_daemon_that_has_started_leaves_a_witness(tmp_path: Path, started: bool) -> None:
    socket = f"{tmp_path}/s"
    with contextlib.ExitStack() as undo:
        assert earlier_run(socket, undo, lambda: started) == ""
    found = [path.name for path in tmp_path.iterdir()]
    assert found == (["s.used"] if started else [])
    told = earlier_run(socket, contextlib.ExitStack(), lambda: True)
    assert told == (f"{socket}.used shows that ids were made here before" if started else "")


@pytest.mark.parametrize(
    ("socket", "told"),
    [
        ("/nowhere/s", "/nowhere/s.used cannot be made, to show that no ids were made before: No "),
        (b"\0uuidd", "a socket without a path cannot show that no ids were made here before"),
        ("", "a socket without a path cannot show that no ids were made here before"),
    ],
)
def test_where_no_witness_can_be_ids_may_have_been_made(socket: str | bytes, told: str) -> None:
    """So a start without a state waits as if it was lost."""
    with contextlib.ExitStack() as undo:
        assert earlier_run(socket, undo, lambda: True).startswith(told)


@pytest.mark.process
def test_a_refused_start_leaves_no_witness(tmp_path: Path) -> None:
    status, _, _ = ended("-F", "-P", f"-s{tmp_path}/s", f"--state={tmp_path}/none", "--worker=5")
    assert status == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.process
@pytest.mark.parametrize(
    ("option", "left"),
    [("--worker=5", True), ("--node=0x448899365732", True), ("--epoch=0", False)],
)
def test_a_daemon_whose_ids_may_repeat_without_its_state_leaves_a_witness(
    option: str, left: bool
) -> None:
    """Snowflakes hold a number that was set by hand, and Flakes a node; other ids are random."""
    with Daemon(option) as daemon:
        assert daemon.stop() == 0
        assert Path(f"{daemon.socket}.used").exists() == left

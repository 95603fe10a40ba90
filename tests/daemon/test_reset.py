"""``uuidd --reset-steady``: the way out of a steady timeline that is far in the future."""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.test_statefile import CLAIM, STATE, kept
from tests.tools import failing, refusal
from uuidd.cli import main
from uuidd.core.ids import times
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.core.timeline.fence import Claim
from uuidd.core.timeline.state import State
from uuidd.server.reset import reset_steady
from uuidd.statefile import encode, machine_hash
from uuidd.store import FolderStore

YEAR = 365 * 86_400
YEAR_AHEAD = YEAR * TICKS_PER_SECOND


def now() -> int:
    return time.time_ns() // 100 + UNIX_EPOCH


def keep(folder: Path, **changed: Any) -> State:
    """Leave a state of this host with some *changed* fields in *folder*, and return it."""
    state = replace(STATE, machine=machine_hash(), **changed)
    with contextlib.closing(FolderStore(folder, machine=machine_hash())) as store:
        store.save(state)
    return state


def told(capsys: pytest.CaptureFixture[str], folder: Path, *, option: str = "steady") -> str:
    assert main([f"--reset-{option}", f"--state={folder}"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    (line,) = out.splitlines()
    return line


def test_a_mark_ahead_is_set_back_to_now_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = now()
    ahead = keep(tmp_path, steady=before + YEAR_AHEAD, epochs={5: 7})
    line = told(capsys, tmp_path)
    after = kept(tmp_path)
    assert before <= after.steady <= now()
    assert after == replace(ahead, steady=after.steady)
    assert line == (
        f"reset: steady ids begin at {times.text(after.steady)} instead of"
        f" {times.text(ahead.steady)},"
        f" {(ahead.steady - after.steady) / TICKS_PER_SECOND:.3f} s earlier. In that time their"
        " order is lost, and Snowflakes and Flakes that were made in it may be repeated"
    )
    assert told(capsys, tmp_path).startswith("nothing to reset: ")


def test_a_mark_of_leases_ahead_is_set_back_too(tmp_path: Path) -> None:
    """Leases hold steady ids; a steady mark that is not ahead stays."""
    before = now()
    ahead = keep(tmp_path, leases=before + YEAR_AHEAD)
    assert reset_steady(tmp_path).startswith("reset: ")
    after = kept(tmp_path)
    assert before <= after.leases <= now()
    assert after == replace(ahead, leases=after.leases)


@pytest.mark.parametrize("ahead", [0, -TICKS_PER_SECOND, -YEAR_AHEAD])
def test_a_mark_that_is_not_ahead_is_left_alone(tmp_path: Path, ahead: int) -> None:
    keep(tmp_path, steady=now() + ahead)
    before = (tmp_path / "state").read_bytes()
    assert reset_steady(tmp_path) == (
        f"nothing to reset: the steady timeline is not ahead of UTC in {tmp_path}"
    )
    assert (tmp_path / "state").read_bytes() == before


@pytest.mark.parametrize(
    ("worker", "left", "lost"),
    [(CLAIM, None, "Flakes that"), (5, 5, "Snowflakes and Flakes that")],
    ids=["a claim is given up", "one set by hand is kept"],
)
def test_what_becomes_of_the_worker_number(
    tmp_path: Path, worker: Claim | int, left: int | None, lost: str
) -> None:
    """With another claim, no Snowflake of the time that is made again is repeated."""
    keep(tmp_path, steady=now() + YEAR_AHEAD, worker=worker)
    assert f"lost, and {lost} were made in it may be repeated" in reset_steady(tmp_path)
    assert kept(tmp_path).worker == left


def test_a_reset_of_the_epoch_lets_a_later_one_be_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = keep(tmp_path, epochs={5: 1_420_070_400_000})
    assert told(capsys, tmp_path, option="epoch") == (
        "reset: any --epoch may be named now. One that is later than 1420070400000 (worker number"
        " 5) may repeat Snowflakes that were made so far"
    )
    assert kept(tmp_path) == replace(before, epochs={})
    assert told(capsys, tmp_path, option="epoch") == (
        f"nothing to reset: no Snowflakes were made from the state in {tmp_path}"
    )


@pytest.mark.parametrize("used", [False, True])
def test_without_a_state_there_is_nothing_to_reset(tmp_path: Path, used: bool) -> None:
    """No lock is made in an unused folder, so the next start is a first one."""
    if used:
        keep(tmp_path)
        (tmp_path / "state").unlink()
    assert refusal(reset_steady, tmp_path) == f"no state to reset: there is none in {tmp_path}"
    assert [path.name for path in tmp_path.iterdir()] == ["lock"] * used


def test_an_unusable_state_is_set_aside_and_named(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(encode(STATE)[:-1])
    line = refusal(reset_steady, tmp_path)
    assert line.startswith("no state to reset: it is damaged: ")
    assert "unusable-1" in line
    assert {path.name for path in tmp_path.iterdir()} == {"lock", "state.unusable-1"}


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    keep(tmp_path, steady=now() + YEAR_AHEAD)
    before = (tmp_path / "state").read_bytes()
    with contextlib.closing(FolderStore(tmp_path, machine=machine_hash())):
        assert "is in use by the uuidd with pid" in refusal(reset_steady, tmp_path)
    assert (tmp_path / "state").read_bytes() == before


def test_a_save_that_fails_is_told_and_resets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = keep(tmp_path, steady=now() + YEAR_AHEAD)
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    assert refusal(reset_steady, tmp_path) == (
        f"the state cannot be saved in {tmp_path}: Input/output error; nothing was reset"
    )
    assert kept(tmp_path) == ahead
    monkeypatch.undo()
    assert reset_steady(tmp_path).startswith("reset: ")


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize("uid", [pwd.getpwnam("nobody").pw_uid, 4711], ids=["nobody", "no name"])
def test_root_resets_a_state_that_is_a_users(uid: int, capsys: pytest.CaptureFixture[str]) -> None:
    """It acts as the folder's owner, who need not have a name, so that all stays the owner's."""
    # Not pytest's folder, which other users may not enter.
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        keep(folder, steady=now() + YEAR_AHEAD)
        for path in (folder, *folder.iterdir()):
            os.chown(path, uid, -1)
        assert told(capsys, folder).startswith("reset: steady ids begin at ")
        assert kept(folder).steady <= now()
        assert {path.stat().st_uid for path in (folder, *folder.iterdir())} == {uid}

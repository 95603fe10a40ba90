"""``uuidd --reset-steady``: the way out of a steady timeline that is far in the future."""

from __future__ import annotations

import errno
import os
import pwd
import re
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rig import PATIENCE, Daemon
from uuidd.cli import main
from uuidd.core.ids import times
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.core.timeline.fence import Claim
from uuidd.core.timeline.state import Node, State
from uuidd.refused import Refused
from uuidd.server.reset import reset_steady
from uuidd.statefile import decode, encode, machine_hash
from uuidd.store import FolderStore

YEAR = 365 * 86_400


def now() -> int:
    """Return the tick that UTC is in."""
    return time.time_ns() // 100 + UNIX_EPOCH


def state_with(steady: int) -> State:
    """Return a state of this host whose steady mark is at *steady*."""
    return State(
        node=Node(0x9F6BDECED846, "random"),
        machine=machine_hash(),
        generation=51,
        marks={51: 0x1EC9414C232AB00, 50: 7},
        floor=5,
        steady=steady,
    )


def keep(folder: Path, state: State) -> None:
    """Leave *state* in *folder*, as a daemon that has stopped does."""
    store = FolderStore(folder, machine=machine_hash())
    store.save(state)
    store.close()


def kept(folder: Path) -> State:
    """Return the state in *folder*."""
    return decode((folder / "state").read_bytes())


def test_a_mark_ahead_is_set_back_to_now_and_nothing_else(tmp_path: Path) -> None:
    ahead = state_with(now() + YEAR * TICKS_PER_SECOND)
    keep(tmp_path, ahead)
    before = now()
    line = reset_steady(tmp_path)
    after = kept(tmp_path)
    assert before <= after.steady <= now()
    assert after == replace(ahead, steady=after.steady)
    assert line == (
        f"reset: steady ids begin at {times.text(after.steady)} instead of"
        f" {times.text(ahead.steady)},"
        f" {(ahead.steady - after.steady) / TICKS_PER_SECOND:.3f} s earlier. In that time their"
        " order is lost, and Snowflakes and Flakes that were made in it may be repeated"
    )


def test_a_mark_of_leases_ahead_is_set_back_too(tmp_path: Path) -> None:
    """Leases hold steady ids; a steady mark that is not ahead stays."""
    keep(tmp_path, replace(state_with(5), leases=now() + YEAR * TICKS_PER_SECOND))
    before = now()
    assert reset_steady(tmp_path).startswith("reset: ")
    after = kept(tmp_path)
    assert before <= after.leases <= now()
    assert after == replace(state_with(5), leases=after.leases)


@pytest.mark.parametrize("seconds", [0, -1, -YEAR])
def test_a_mark_that_is_not_ahead_is_left_alone(tmp_path: Path, seconds: int) -> None:
    """Never forward: not a byte of the file changes, and the line says so."""
    keep(tmp_path, state_with(now() + seconds * TICKS_PER_SECOND))
    before = (tmp_path / "state").read_bytes()
    assert reset_steady(tmp_path) == (
        f"nothing to reset: the steady timeline is not ahead of UTC in {tmp_path}"
    )
    assert (tmp_path / "state").read_bytes() == before


@pytest.mark.parametrize("used", [False, True])
def test_without_a_state_there_is_nothing_to_reset(tmp_path: Path, used: bool) -> None:
    """No lock is made in an unused folder, so the next start is a first one."""
    if used:
        keep(tmp_path, state_with(now()))
        (tmp_path / "state").unlink()
    with pytest.raises(Refused) as caught:
        reset_steady(tmp_path)
    assert str(caught.value) == f"no state to reset: there is none in {tmp_path}"
    assert [path.name for path in tmp_path.iterdir()] == ["lock"] * used


def test_an_unusable_state_is_set_aside_and_named(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(encode(state_with(0))[:-1])
    with pytest.raises(Refused, match=r"no state to reset: it is damaged: .*unusable-1"):
        reset_steady(tmp_path)
    assert not (tmp_path / "state").exists()
    assert (tmp_path / "state.unusable-1").exists()


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    keep(tmp_path, state_with(now() + YEAR * TICKS_PER_SECOND))
    before = (tmp_path / "state").read_bytes()
    store = FolderStore(tmp_path, machine=machine_hash())
    try:
        with pytest.raises(Refused, match="is in use by the uuidd with pid"):
            reset_steady(tmp_path)
    finally:
        store.close()
    assert (tmp_path / "state").read_bytes() == before


def test_a_save_that_fails_is_told_and_resets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = state_with(now() + YEAR * TICKS_PER_SECOND)
    keep(tmp_path, ahead)

    def broken(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", broken)
    for _ in range(2):
        with pytest.raises(Refused) as caught:
            reset_steady(tmp_path)
        assert str(caught.value) == (
            f"the state cannot be saved in {tmp_path}: Input/output error; nothing was reset"
        )
    assert kept(tmp_path) == ahead
    monkeypatch.undo()
    assert reset_steady(tmp_path).startswith("reset: ")


def told(capsys: pytest.CaptureFixture[str], folder: Path) -> str:
    """Return the one line that the command prints, which ends with status 0."""
    assert main(["--reset-steady", f"--state={folder}"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    (line,) = out.splitlines()
    return line


def test_the_command_resets_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep(tmp_path, state_with(now() + YEAR * TICKS_PER_SECOND))
    line = told(capsys, tmp_path)
    assert line.startswith("reset: steady ids begin at ")
    assert re.search(r", 3153\d{4}\.\d{3} s earlier\. In that time", line)
    reset = kept(tmp_path)
    assert reset.steady <= now()
    assert told(capsys, tmp_path).startswith("nothing to reset: ")
    assert kept(tmp_path) == reset


@pytest.mark.system
def test_a_daemon_a_year_ahead_refuses_steady_until_a_reset(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It says by how much it leads and what to do, in answers, status and log; utc goes on."""
    with Daemon("--worker", "3") as daemon:
        daemon.stop()
        path = daemon.state / "state"
        ahead = now() + YEAR * TICKS_PER_SECOND
        path.write_bytes(encode(replace(decode(path.read_bytes()), steady=ahead)))
        daemon.start()
        with daemon.connect() as connection:
            for asked in (("take", "steady", 1), ("make", "snowflake", 1), ("make", "v7", 1)):
                _, _, error, _ = connection.ask(*asked)
                lead = re.match(
                    r"unavailable: the steady timeline is (\d+)\.\d{3} s ahead of UTC, ", error
                )
                assert lead is not None
                assert YEAR - PATIENCE < int(lead[1]) <= YEAR
                assert "--max-lead is 3600 s" in error
                assert "uuidd --reset-steady" in error
            node = connection.call("take", "utc", 1)["node"]
            assert len(connection.call("make", "v6", 10)) == 10
            status = connection.call("status")
            assert YEAR - PATIENCE < status["steady"]["lead"] <= YEAR
            assert status["volatile"] is False
        (warned,) = [each for each in daemon.lines if "steady kinds are " in each]
        assert re.search(r"WARNING: .* are 3153\d{4}\.\d{3} s ahead of UTC", warned)
        assert warned.endswith("(--max-lead 3600, --rollback slew)")
        assert daemon.stop() == 0
        told(capsys, daemon.state)
        reset = kept(daemon.state).steady
        daemon.start()
        with daemon.connect() as connection:
            block = connection.call("take", "steady", 10)
            assert (block["node"], block["worker"]) == (node, 3)
            assert reset <= block["first"] <= now()
            assert connection.call("status")["steady"]["lead"] < 1
            assert len(connection.call("make", "snowflake", 1000)) == 1000


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize("uid", [pwd.getpwnam("nobody").pw_uid, 4711], ids=["nobody", "no name"])
def test_root_resets_a_state_that_is_a_users(uid: int, capsys: pytest.CaptureFixture[str]) -> None:
    """It acts as the folder's owner, who need not have a name, so that all stays the owner's."""
    # Not pytest's folder, which other users may not enter.
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        keep(folder, state_with(now() + YEAR * TICKS_PER_SECOND))
        for path in (folder, *folder.iterdir()):
            os.chown(path, uid, -1)
        assert told(capsys, folder).startswith("reset: steady ids begin at ")
        assert kept(folder).steady <= now()
        assert {path.stat().st_uid for path in (folder, *folder.iterdir())} == {uid}


def test_a_number_of_a_fleet_is_given_up_and_one_set_by_hand_is_kept(tmp_path: Path) -> None:
    """The host claims another, so no Snowflake of the time that is made again is repeated."""
    ahead = now() + 10 * YEAR * TICKS_PER_SECOND
    claim = Claim("0123456789abcdef", 17, "fedcba9876543210", ahead - 1, ahead + 1)
    keep(tmp_path, replace(state_with(ahead), worker=claim))
    assert "lost, and Flakes that were made in it may be repeated" in reset_steady(tmp_path)
    assert kept(tmp_path).worker is None
    keep(tmp_path, replace(state_with(ahead), worker=5))
    assert "lost, and Snowflakes and Flakes that were made" in reset_steady(tmp_path)
    assert kept(tmp_path).worker == 5

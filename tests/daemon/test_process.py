"""What only a whole process shows: signals, its end, a disk that fails under it, its sleep."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import pytest

from tests.rig import PATIENCE, Daemon, until
from uuidd.core.ids.ticks import UNIX_EPOCH
from uuidd.statefile import decode, encode

pytestmark = pytest.mark.system

WINDOW = 1.5
"""Seconds for which an idle daemon is watched."""


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """A daemon that was asked and answered; whatever becomes of it, it shows no traceback."""
    with Daemon() as daemon:
        take(daemon)
        yield daemon
        daemon.kill()
        assert not [line for line in daemon.lines if "Traceback" in line]


def take(daemon: Daemon, count: int = 1) -> dict[str, Any]:
    """Return a block over a connection of its own."""
    with daemon.connect() as connection:
        block: dict[str, Any] = connection.call("take", "utc", count)
    return block


def steady(daemon: Daemon, count: int = 1) -> dict[str, Any]:
    """Return a block of the steady timeline over a connection of its own."""
    with daemon.connect() as connection:
        block: dict[str, Any] = connection.call("take", "steady", count)
    return block


def saved_mark(daemon: Daemon) -> int:
    """Return the mark of the open generation in the state file."""
    state = decode((daemon.state / "state").read_bytes())
    return state.marks[state.generation]


def switches(pid: int) -> int:
    """Return how often the process's threads went to sleep of themselves: once a wake-up."""
    return sum(
        int(status.read_text().split("\nvoluntary_ctxt_switches:")[1].split()[0])
        for status in Path(f"/proc/{pid}/task").glob("*/status")
    )


def wait(seconds: float) -> None:
    """Let real time pass: other processes have no autojump clock."""
    select.select([], [], [], seconds)


# Stopping


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(daemon: Daemon, number: signal.Signals) -> None:
    block = take(daemon, 1000)
    daemon.process.send_signal(number)
    assert daemon.process.wait(PATIENCE) == 0
    assert not daemon.socket.exists()
    assert sorted(path.name for path in daemon.state.iterdir()) == ["lock", "state"]
    assert saved_mark(daemon) == block["first"] + block["count"]
    until(lambda: daemon.lines[-1].startswith("uuidd: INFO: stopped"))
    assert daemon.lines[-2:] == [
        f"uuidd: INFO: stopping: signal={number.name}",
        "uuidd: INFO: stopped: state saved",
    ]


def test_clients_that_leave_cause_no_warning(daemon: Daemon) -> None:
    make = msgpack.packb([0, 1, "make", ["v4", 1000]])
    for sent in (3 * make, make[:-3], b"\x04\x01"):
        with daemon.connect() as leaving:
            leaving.sock.sendall(sent)
    until(lambda: daemon.call("status")["connections"] == 1)
    requests = daemon.call("status")["requests"]
    assert [tally["refused"] for tally in requests.values()] == [{}, {}]
    assert daemon.stop() == 0
    assert not [line for line in daemon.lines if "WARNING" in line]


def test_a_stopped_daemon_goes_on_in_its_generation(daemon: Daemon) -> None:
    before = take(daemon, 100)
    for _ in range(3):
        daemon.stop()
        daemon.start()
        after = take(daemon, 100)
        assert (after["node"], after["clock_seq"]) == (before["node"], before["clock_seq"])
        assert after["first"] >= before["first"] + before["count"]
        before = after


def test_the_first_horizon_is_on_the_disk_when_the_daemon_says_that_it_started() -> None:
    """So a crash right after the first id repeats none."""
    before = time.time_ns() // 100 + UNIX_EPOCH
    with Daemon() as daemon:
        # An idle daemon writes nothing, so this is what the start wrote.
        state = decode((daemon.state / "state").read_bytes())
    assert state.marks[state.generation] > before


def test_the_request_limit_holds_on_a_connection_that_was_silent(daemon: Daemon) -> None:
    daemon.stop()
    daemon.arguments = ["--max-request-bytes=100"]
    daemon.start()
    with daemon.connect() as connection:
        connection.call("status")
        _, _, error, _ = connection.ask("status", 200 * "x")
        assert "at most 100 are read" in error


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_during_the_start_leaves_nothing_behind(
    tmp_path: Path, number: signal.Signals
) -> None:
    script = """
import os, select, sys
from uuidd.cli import main

def pause(*_):
    # After the socket and the pid file were made, and before the state is saved.
    select.select = lambda *_: ([], [], [])
    os.kill(os.getpid(), int(sys.argv[1]))

select.select = pause
sys.exit(main(sys.argv[2:]))
"""
    (tmp_path / "state").mkdir()
    paths = [f"--socket={tmp_path}/s", f"--pid={tmp_path}/pid", f"--state={tmp_path}/state"]
    done = subprocess.run(
        [sys.executable, "-c", script, str(int(number)), "-F", *paths],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, "stopped: state saved" in done.stderr) == (0, True), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_callers_see_an_end_when_it_stops(daemon: Daemon) -> None:
    with daemon.connect() as silent, daemon.connect() as half:
        silent.call("status")
        half.sock.sendall(b"\x94\x00")
        assert daemon.stop() == 0
        assert silent.sock.recv(1) == b""
        with contextlib.suppress(ConnectionResetError):
            assert half.sock.recv(1) == b""


def test_an_idle_time_out_ends_it_in_order() -> None:
    with Daemon("-T", "1") as daemon:
        block = take(daemon, 10)
        assert daemon.process.wait(PATIENCE) == 0
        assert not daemon.socket.exists()
        assert saved_mark(daemon) == block["first"] + block["count"]
        daemon.kill()
        assert "uuidd: INFO: stopping: no request for 1 s" in daemon.lines


# Killed


def test_a_killed_daemon_with_a_mark_ahead_opens_the_next_generation(daemon: Daemon) -> None:
    before = take(daemon)
    daemon.kill()
    path = daemon.state / "state"
    state = decode(path.read_bytes())
    # What a daemon that is up for 40 s would have left; this one's reach was a part of a second.
    ahead = {state.generation: state.marks[state.generation] + 20 * 10**7}
    path.write_bytes(encode(replace(state, marks={**state.marks, **ahead})))
    daemon.start()
    after = take(daemon)
    assert after["node"] == before["node"]
    assert after["clock_seq"] == (before["clock_seq"] + 256) % (1 << 14)
    assert [line for line in daemon.lines if "the last run did not stop cleanly" in line]
    kept = decode(path.read_bytes())
    assert kept.marks[state.generation] == ahead[state.generation]


def test_the_state_of_another_host_is_set_aside(daemon: Daemon) -> None:
    before = take(daemon)
    daemon.stop()
    path = daemon.state / "state"
    path.write_bytes(encode(replace(decode(path.read_bytes()), machine="another")))
    daemon.start()
    assert take(daemon)["node"] != before["node"]
    assert (daemon.state / "state.unusable-1").exists()
    assert [line for line in daemon.lines if "it is of another host" in line]
    assert daemon.lines[-2] == (
        "uuidd: WARNING: the state was lost, so v7, Snowflakes and the other steady kinds begin in"
        " 20 s"
    )
    assert "INFO: started:" in daemon.lines[-1]
    with daemon.connect() as connection:
        _, _, error, _ = connection.ask("take", "steady", 1)
        assert error.startswith("unavailable: the state was lost, so steady starts in ")
        assert 0 < connection.call("status")["steady"]["held_for"] <= 20


def test_a_state_that_is_gone_holds_steady_back(daemon: Daemon) -> None:
    daemon.stop()
    (daemon.state / "state").unlink()
    daemon.start()
    assert [line for line in daemon.lines if "steady kinds begin in 20 s" in line]
    with daemon.connect() as connection:
        _, _, error, _ = connection.ask("make", "ulid", 1)
        assert error.startswith("unavailable: ")
        assert connection.call("take", "utc", 1)["count"] == 1


def test_a_start_far_ahead_adds_nothing_to_its_lead(daemon: Daemon) -> None:
    daemon.stop()
    path = daemon.state / "state"
    state = decode(path.read_bytes())
    ahead = time.time_ns() // 100 + UNIX_EPOCH + 100 * 10**7
    path.write_bytes(encode(replace(state, steady=ahead)))
    for _ in range(2):
        daemon.start()
        assert decode(path.read_bytes()).steady == ahead
        daemon.kill()
    daemon.start()
    assert steady(daemon)["first"] >= ahead


def test_require_sync_refuses_steady_and_leaves_the_rest() -> None:
    """No clock is as good as a microsecond; the start is not held up, and v1 goes on."""
    with Daemon("--require-sync=0.000001") as daemon, daemon.connect() as connection:
        assert connection.call("take", "utc", 1)["count"] == 1
        why = connection.call("status")["clock"]["withheld"]
        assert why.endswith("withholds steady after a start until its error is at most 1e-06 s")
        assert connection.ask("take", "steady", 1)[2] == f"unavailable: {why}"


def test_worker_epoch_and_max_lead_are_what_was_chosen() -> None:
    chosen = ["--datacenter=3", "--worker=5", "--epoch=2015-01-01T00:00:00Z"]
    with (
        Daemon(*chosen, "--max-lead=7.5", "--rollback=wait") as daemon,
        daemon.connect() as connection,
    ):
        block = connection.call("take", "steady", 1)
        assert (block["worker"], block["epoch"]) == (101, 1_420_070_400_000)
        (text,) = connection.call("make", "snowflake")
        assert int(text) >> 12 & 0x3FF == 101
        assert abs((int(text) >> 22) + 1_420_070_400_000 - time.time() * 1000) < 1000 * PATIENCE
        told = connection.call("status")
        assert told["steady"]["worker"] == 101
        assert told["steady"]["epoch"] == 1_420_070_400_000
        assert (told["steady"]["max_lead"], told["steady"]["rollback"]) == (7.5, "wait")
        assert told["full_on"]["snowflake"] == "2084-09-06"


# A disk that fails under it


def test_a_failing_disk_turns_it_volatile_and_back(daemon: Daemon) -> None:
    own = take(daemon)["node"]
    # A folder in the temporary file's place: every save fails, as on a broken disk, also for root.
    (daemon.state / "state.new").mkdir()
    with daemon.connect() as connection:
        until(lambda: connection.call("take", "utc", 1)["node"] != own)
        told = connection.call("status")
        assert told["volatile"] is True
        assert told["saves"]["trouble"] == os.strerror(21) == "Is a directory"
        (daemon.state / "state.new").rmdir()
        # The volatile node ends with the save that makes it needless, not with the next request.
        until(lambda: not connection.call("status")["saves"]["failing"])
        assert connection.call("status")["volatile"] is False
        assert connection.call("take", "utc", 1)["node"] == own
    assert daemon.stop() == 0
    assert [line for line in daemon.lines if "ERROR: the state cannot be saved" in line]
    assert [line for line in daemon.lines if "WARNING: the state is saved again" in line]


def test_a_stop_that_cannot_save_is_a_failure(daemon: Daemon) -> None:
    mark = saved_mark(daemon)
    (daemon.state / "state.new").mkdir()
    assert daemon.stop() == 1
    assert daemon.lines[-1] == (
        "uuidd: ERROR: stopped without saving the exact state, so the next start changes the clock"
        " sequence: Is a directory"
    )
    assert not daemon.socket.exists()
    assert saved_mark(daemon) >= mark


def test_a_stop_with_a_hung_disk_ends_all_the_same(daemon: Daemon) -> None:
    # To open a FIFO that nobody reads is to wait, as on a disk that hangs.
    os.mkfifo(daemon.state / "state.new")
    assert daemon.stop() == 1
    assert daemon.lines[-1] == (
        "uuidd: ERROR: stopped without saving the exact state, so the next start changes the clock"
        " sequence: the disk took longer than 10 s"
    )
    assert not daemon.socket.exists()


# At rest


def test_an_idle_daemon_neither_wakes_up_nor_writes(daemon: Daemon) -> None:
    pid = daemon.process.pid
    with daemon.connect() as connection:
        connection.call("status")
        # That nothing happens can only be seen by waiting; a first window may still hold the saves
        # that follow the first use, so the second is the one that counts.
        wait(WINDOW)
        before = switches(pid), (daemon.state / "state").stat()
        wait(WINDOW)
        after = switches(pid), (daemon.state / "state").stat()
    assert after[0] == before[0]
    assert (after[1].st_ino, after[1].st_mtime_ns) == (before[1].st_ino, before[1].st_mtime_ns)


def test_a_removed_socket_is_told_while_requests_go_on(daemon: Daemon) -> None:
    with daemon.connect() as connection:
        daemon.socket.unlink()
        line = f"no program can connect: the socket is no longer at {daemon.socket}; restart uuidd"

        def is_told() -> bool:
            connection.call("take", "steady", 1_000_000)
            return f"uuidd: ERROR: unreachable: {line}" in daemon.lines

        until(is_told)
        assert connection.call("status")["unreachable"] == line


def test_a_second_signal_does_not_break_off_the_stop(daemon: Daemon) -> None:
    with daemon.connect() as connection:
        # Replies that are not read hold the stop up.
        connection.sock.sendall(msgpack.packb([0, 1, "make", ["v7", 1000]]) * 3)
        assert connection.sock.recv(1)
        daemon.process.send_signal(signal.SIGTERM)
        until(lambda: any("stopping:" in each for each in daemon.lines))
        daemon.process.send_signal(signal.SIGINT)
        assert daemon.process.wait(PATIENCE) == 0
    until(lambda: any("stopped: state saved" in each for each in daemon.lines))


def test_signals_until_its_last_moment_do_not_break_off_the_stop() -> None:
    with Daemon(fresh=True) as daemon:
        with daemon.connect() as connection:
            # The thread that saves lasts longer than the handlers of the signals.
            until(lambda: take(daemon) and connection.call("status")["saves"]["done"] > 1)
        while daemon.process.poll() is None:
            daemon.process.send_signal(signal.SIGTERM)
            wait(0.0003)
        assert daemon.process.wait(PATIENCE) == 0

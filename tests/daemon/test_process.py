"""What only a whole process shows: signals, its end, its sleep."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest

from tests.daemon.test_statefile import kept
from tests.rig import PATIENCE, Daemon, until

pytestmark = pytest.mark.system


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """A daemon that was asked and answered; whatever becomes of it, it shows no traceback."""
    with Daemon() as daemon:
        take(daemon)
        yield daemon
        daemon.kill()
        assert not [line for line in daemon.lines if "Traceback" in line]


def take(daemon: Daemon, count: int = 1) -> dict[str, Any]:
    block: dict[str, Any] = daemon.call("take", "utc", count)
    return block


def saved_mark(daemon: Daemon) -> int:
    state = kept(daemon.state)
    return state.marks[state.generation]


def wait(seconds: float) -> None:
    """Let real time pass: other processes have no autojump clock."""
    select.select([], [], [], seconds)


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


def test_an_idle_time_out_ends_it_in_order() -> None:
    with Daemon("-T", "1") as daemon:
        block = take(daemon, 10)
        assert daemon.process.wait(PATIENCE) == 0
        assert not daemon.socket.exists()
        assert saved_mark(daemon) == block["first"] + block["count"]
        daemon.kill()
        assert "uuidd: INFO: stopping: no request for 1 s" in daemon.lines


@pytest.mark.parametrize(
    ("put", "why"),
    [
        # Every save fails, as on a broken disk, also for root.
        (os.mkdir, "Is a directory"),
        # To open a FIFO that nobody reads is to wait, as on a disk that hangs.
        (os.mkfifo, "the disk took longer than 10 s"),
    ],
    ids=["fails", "hangs"],
)
def test_a_stop_that_cannot_save_is_a_failure(daemon: Daemon, put: Any, why: str) -> None:
    mark = saved_mark(daemon)
    put(daemon.state / "state.new")
    assert daemon.stop() == 1
    assert daemon.lines[-1] == (
        "uuidd: ERROR: stopped without saving the exact state, so the next start changes the clock"
        f" sequence: {why}"
    )
    assert not daemon.socket.exists()
    assert saved_mark(daemon) >= mark


def test_an_idle_daemon_neither_wakes_up_nor_writes(daemon: Daemon) -> None:
    with daemon.connect() as connection:
        connection.call("status")
        assert daemon.rests()


def test_a_removed_socket_is_told_while_requests_go_on(daemon: Daemon) -> None:
    with daemon.connect() as connection:
        daemon.socket.unlink()
        line = f"no program can connect: the socket is no longer at {daemon.socket}; restart uuidd"

        def is_told() -> bool:
            connection.call("take", "steady", 1_000_000)
            return f"uuidd: ERROR: unreachable: {line}" in daemon.lines

        until(is_told)
        assert connection.call("status")["unreachable"] == line


def test_signals_until_its_last_moment_do_not_break_off_the_stop() -> None:
    with Daemon(fresh=True) as daemon:
        with daemon.connect() as connection:
            # The thread that saves lasts longer than the handlers of the signals.
            until(lambda: take(daemon) and connection.call("status")["saves"]["done"] > 1)
        numbers = cycle([signal.SIGTERM, signal.SIGINT])
        while daemon.process.poll() is None:
            daemon.process.send_signal(next(numbers))
            wait(0.0003)
        assert daemon.process.wait(PATIENCE) == 0

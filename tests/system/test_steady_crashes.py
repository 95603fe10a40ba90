"""Kills in a row under a steady timeline in use: it rises, and runs no further ahead (P1, P4)."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

import pytest

from tests.rig import PATIENCE, Daemon
from tests.system.fake_time import HOUR, FakeTime

APART = 0.5
"""Seconds from a start to the kill: about as long as a service manager lets a crash loop be."""


class Drawer:
    """Draws steady blocks of *daemon* all the time, while the context lasts.

    *blocks* are the first tick and the count of each, in the order in which they came; *refused*
    what was answered instead of one. A test that ends the daemon holds *down* until
    the next one runs.
    """

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._draw)
        self.came = threading.Condition()
        self.down = threading.Lock()
        self.blocks: list[tuple[int, int]] = []
        self.refused: list[str] = []

    def __enter__(self) -> Drawer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def more(self) -> None:
        """Wait until another block has come."""
        seen = len(self.blocks)
        with self.came:
            assert self.came.wait_for(lambda: len(self.blocks) > seen + 1, PATIENCE), self.refused

    def _draw(self) -> None:
        while not self._done.is_set():
            with self.down:
                connected = self._daemon.connect()
            # A kill in the midst of a request is an end or an error; then the next one is asked.
            with connected as connection, contextlib.suppress(OSError, EOFError):
                self._draw_from(connection.ask)

    def _draw_from(self, ask: Callable[..., list[object]]) -> None:
        number = 0
        while not self._done.is_set():
            number += 1
            _, _, error, block = ask("take", "steady", 1 + number % 500, number % 3 == 0)
            if error is not None:
                self.refused.append(str(error))
                continue
            assert isinstance(block, dict)
            with self.came:
                self.blocks.append((block["first"], block["count"]))
                self.came.notify()
            self._done.wait(0.0005)


def assert_rising(blocks: list[tuple[int, int]]) -> None:
    """Fail unless each block begins past the end of the one before it: so no tick came twice."""
    end = 0
    for number, (first, count) in enumerate(blocks):
        assert first >= end, f"block {number} begins at {first}, and {end} was to be the least"
        end = first + count


def crash_loop(daemon: Daemon, drawer: Drawer, kills: int, *, apart: float) -> None:
    """Kill and start the daemon again and again, each time *apart* after it has started."""
    for _ in range(kills):
        begun = time.monotonic()
        drawer.more()
        # How long a daemon lives is what is tested: its lead grows with its uptime.
        threading.Event().wait(max(0.0, begun + apart - time.monotonic()))
        with drawer.down:
            daemon.kill()
            daemon.start()


def lead(daemon: Daemon) -> float:
    """Return by how many seconds the steady timeline leads UTC."""
    with daemon.connect() as connection:
        found: float = connection.call("status")["steady"]["lead"]
    return found


@pytest.mark.parametrize("kills", [6, pytest.param(40, marks=pytest.mark.thorough)])
def test_a_crash_loop_does_not_run_steady_ahead(kills: int) -> None:
    """After kills half a second apart the lead is below 5 s, and every block rose."""
    with Daemon() as daemon:
        with Drawer(daemon) as drawer:
            crash_loop(daemon, drawer, kills, apart=APART)
            drawer.more()
        assert lead(daemon) < 5
    assert len(drawer.blocks) > kills * 10
    assert_rising(drawer.blocks)
    assert not drawer.refused


@pytest.mark.parametrize("kills", [5, pytest.param(20, marks=pytest.mark.thorough)])
def test_a_crash_loop_right_after_the_start_does_not_run_steady_ahead(kills: int) -> None:
    """A daemon killed as soon as it has given something is ahead by little more than 1 s."""
    with Daemon() as daemon:
        with Drawer(daemon) as drawer:
            crash_loop(daemon, drawer, kills, apart=0)
            drawer.more()
        assert lead(daemon) < 1.5
    assert_rising(drawer.blocks)


@pytest.mark.parametrize("kills", [2, pytest.param(5, marks=pytest.mark.thorough)])
def test_a_crash_loop_through_a_step_back_repeats_nothing(
    kills: int, daemon: Daemon, fake_time: FakeTime
) -> None:
    """UTC goes back an hour between kills: the steady timeline goes on, and upward."""
    daemon.kill()
    daemon.arguments = ["--max-lead=7200"]
    daemon.start()
    with Drawer(daemon) as drawer:
        crash_loop(daemon, drawer, kills, apart=APART)
        before = lead(daemon)
        fake_time.set(-HOUR)
        drawer.more()
        crash_loop(daemon, drawer, kills, apart=APART)
        drawer.more()
    after = lead(daemon)
    assert_rising(drawer.blocks)
    assert not drawer.refused
    # The kills after the step have brought it no further ahead than it was.
    assert before < 5
    assert HOUR - 60 < after < HOUR + before + 1
    assert [line for line in daemon.lines if "steady kinds are" in line]


def test_a_step_back_while_the_daemon_is_down_repeats_nothing(
    daemon: Daemon, fake_time: FakeTime
) -> None:
    """The stored mark holds, after a kill as after a stop, whatever UTC is at the next start."""
    daemon.kill()
    daemon.arguments = ["--max-lead=14400"]
    daemon.start()
    with Drawer(daemon) as drawer:
        for end, offset in ((daemon.kill, -HOUR), (daemon.stop, -2 * HOUR), (daemon.kill, HOUR)):
            drawer.more()
            with drawer.down:
                end()
                fake_time.set(offset)
                daemon.start()
            drawer.more()
    assert_rising(drawer.blocks)
    assert lead(daemon) < 1

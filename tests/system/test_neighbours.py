"""What a daemon costs the callers of one user, and its host, while others are silent or greedy."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

from tests.rig import PATIENCE, SOON, Daemon
from tests.system.attacker import connected

CALLS = 200


def slowest(daemon: Daemon) -> float:
    """Return how long the slowest of many single takes took, in seconds."""
    times = []
    with daemon.connect() as connection:
        for _ in range(CALLS):
            begun = time.monotonic()
            assert connection.call("take", "utc", 1)["count"] == 1
            times.append(time.monotonic() - begun)
    return max(times)


@contextlib.contextmanager
def greedy(daemon: Daemon) -> Iterator[None]:
    """Let a caller ask for 1,000,000 ticks whole, over and over, while the context lasts."""
    done = threading.Event()

    def ask() -> None:
        with daemon.connect() as connection:
            while not done.is_set():
                connection.ask("take", "utc", 1_000_000, True)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(PATIENCE)


def test_silent_slow_and_greedy_callers_keep_no_other_waiting() -> None:
    """One is silent, one sends half a request, one is greedy: each single take is answered soon."""
    with (
        Daemon() as daemon,
        connected(daemon.socket),
        connected(daemon.socket) as half,
        greedy(daemon),
    ):
        half.sendall(b"\x94\x00")
        assert slowest(daemon) < SOON


def test_an_idle_daemon_takes_at_most_forty_megabytes() -> None:
    """A daemon without requests costs its host this much."""
    with Daemon(fresh=True) as daemon:
        assert daemon.resident_kib() < 40 * 1024

"""Steps of the clock under a running daemon: no id twice, and it tells of them (P1)."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.forks import Program
from tests.rig import PATIENCE, Connection, Daemon
from tests.system.fake_time import HOUR, FakeTime
from uuidd.core.ids import versions
from uuidd.core.wire import libuuid

Taken = dict[tuple[int, int], list[tuple[int, int]]]
"""Runs of ticks, first and last, by node and clock sequence."""


class Record:
    """All that was drawn from *daemon*: by rpc, by the libuuid dialect, and by our client."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self.taken: Taken = {}

    def note(self, node: int, clock_seq: int, first: int, count: int) -> None:
        """Note that these ticks were given."""
        self.taken.setdefault((node, clock_seq), []).append((first, first + count - 1))

    def draw(self, times: int = 100) -> set[int]:
        """Draw in every way; return the clock sequences of lane 0 that came."""
        seen = set()
        with self._daemon.connect() as connection:
            for number in range(times):
                block = connection.call("take", "utc", 100, number % 3 == 0)
                node = int.from_bytes(block["node"], "big")
                self.note(node, block["clock_seq"], block["first"], block["count"])
                seen.add(block["clock_seq"] & ~0xF)
        for _ in range(times):
            with Connection(self._daemon.socket) as connection:
                connection.sock.sendall(libuuid.pack_request(libuuid.Op.BULK_TIME_UUID, 64))
                reply = libuuid.unpack_body(connection.sock.recv(64))
                assert reply is not None
                given = libuuid.unpack_block(reply)
                self.note(given.node, given.clock_seq, given.first, given.count)
        return seen

    def note_drawn(self, path: Path) -> int:
        """Note what a drawer left in *path*, and return how many ids those are."""
        data = path.read_bytes()
        for at in range(0, len(data), 16):
            fields = versions.gregorian_fields(int.from_bytes(data[at : at + 16], "big"))
            self.note(fields.node, fields.clock_seq, fields.tick, 1)
        return len(data) // 16

    def assert_nothing_twice(self) -> None:
        """Fail if a tick was given twice under one node and clock sequence."""
        for key, runs in self.taken.items():
            runs.sort()
            for (_, last), (first, _) in itertools.pairwise(runs):
                assert last < first, f"tick {first} came twice under {key}"


def test_no_tick_comes_twice_through_steps_of_hours(
    daemon: Daemon, fake_time: FakeTime, tmp_path: Path
) -> None:
    """+1 h, -2 h, +1 h under a daemon while callers of all three kinds draw."""
    record = Record(daemon)
    left = tmp_path / "left"
    with Program("tests.system.drawer", daemon.socket, left) as drawer:
        assert drawer.line() == "drawing"
        before = record.draw()
        fake_time.set(HOUR)
        assert record.draw() == before
        fake_time.set(-HOUR)
        moved = record.draw()
        assert not moved & before
        fake_time.set(0)
        assert record.draw() == moved
    assert record.note_drawn(left) > 100
    record.assert_nothing_twice()


def test_no_tick_comes_twice_when_each_step_is_followed_by_a_kill(
    daemon: Daemon, fake_time: FakeTime
) -> None:
    """A daemon that is killed right after a step starts past all that was given before."""
    record = Record(daemon)
    record.draw()
    for offset in (HOUR, -HOUR, 0):
        fake_time.set(offset)
        record.draw(100)
        daemon.kill()
        daemon.start()
        record.draw(100)
    record.assert_nothing_twice()


def test_no_tick_comes_twice_when_the_clock_steps_while_the_daemon_is_down(
    daemon: Daemon, fake_time: FakeTime
) -> None:
    """The stored marks hold whatever the clock says at the next start."""
    record = Record(daemon)
    record.draw(100)
    for offset in (HOUR, -HOUR, 0):
        assert daemon.stop() == 0
        fake_time.set(offset)
        daemon.start()
        record.draw(100)
    record.assert_nothing_twice()


def test_a_clean_restart_goes_on_under_the_same_clock_sequence(
    daemon: Daemon, fake_time: FakeTime
) -> None:
    """When the clock went on meanwhile there is no need for another."""
    record = Record(daemon)
    before = record.draw(10)
    daemon.stop()
    fake_time.set(HOUR)
    daemon.start()
    assert record.draw(10) == before


def test_status_and_log_tell_of_steps(daemon: Daemon, fake_time: FakeTime) -> None:
    """Steps are counted both ways, and each is a line with its size."""
    with daemon.connect() as connection:
        for offset in (0.0, HOUR, -HOUR):
            fake_time.set(offset)
            connection.call("take", "utc", 1)
        utc = connection.call("status")["utc"]
    assert (utc["steps_forward"], utc["steps_back"], utc["openings"]) == (1, 1, 2)
    daemon.stop()
    steps = [line for line in daemon.lines if "WARNING: UTC was set " in line]
    assert [line.split("UTC was set ")[1] for line in steps] == [
        "forward by 3600.000 s",
        "back by 7200.000 s",
    ]
    assert any("s behind the last id: clock_seq=" in line for line in daemon.lines)


def test_a_step_of_five_milliseconds_is_waited_out(daemon: Daemon, fake_time: FakeTime) -> None:
    """A small step back costs a short wait, and no clock sequence."""
    record = Record(daemon)
    before = record.draw(30)
    fake_time.set(-0.005)
    assert record.draw(30) == before
    record.assert_nothing_twice()


def test_a_step_of_fifty_milliseconds_opens_the_next_generation(
    daemon: Daemon, fake_time: FakeTime
) -> None:
    """A step back past the tolerance moves the clock sequence."""
    record = Record(daemon)
    before = record.draw(30)
    fake_time.set(-0.05)
    assert not record.draw(30) & before
    record.assert_nothing_twice()


def test_the_fake_clock_leaves_boottime_alone(fake_time: FakeTime) -> None:
    """What these tests rest on: CLOCK_BOOTTIME goes on while UTC is set."""
    fake_time.set(-HOUR)
    said = subprocess.run(
        [sys.executable, "-c", "import time; print(time.clock_gettime(time.CLOCK_BOOTTIME))"],
        env={**os.environ, **fake_time.environment},
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    ).stdout
    assert abs(float(said) - time.clock_gettime(time.CLOCK_BOOTTIME)) < 10

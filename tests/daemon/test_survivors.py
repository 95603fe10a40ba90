"""Facts that no other test stated, found by breaking the code (``python -m tests.mutations``)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from trio.testing import MockClock

from tests.client.fakes import START, Server, Time, granted, result
from tests.daemon.fakes import Inside, request
from tests.rig import Daemon
from uuidd.core.ids.ticks import UNIX_EPOCH
from uuidd.core.timeline import Block, SteadyBlock
from uuidd.server import connection
from uuidd.server.stream import Stream
from uuidd.statefile import decode
from uuidd_client.connection import Connection
from uuidd_client.errors import DaemonUnavailable
from uuidd_client.fallback import Fallback

PATIENCE = 8.0
"""Seconds of a time-out that must not pass twice."""


@pytest.mark.process
def test_the_first_horizon_is_on_the_disk_when_the_daemon_says_that_it_started() -> None:
    """So a crash right after the first id repeats none."""
    before = time.time_ns() // 100 + UNIX_EPOCH
    with Daemon() as daemon:
        # An idle daemon writes nothing, so this is what the start wrote.
        state = decode((daemon.state / "state").read_bytes())
    assert state.marks[state.generation] > before


def test_a_larger_block_than_was_asked_for_is_refused(tmp_path: Path) -> None:
    """Nobody makes ids of ticks that he did not ask for."""
    with Server(tmp_path / "s", lambda asked: result(asked, granted(0, 11))):
        connection = Connection(str(tmp_path / "s"), 20)
        with pytest.raises(DaemonUnavailable, match="11 ticks where 10 were asked for"):
            connection.take(10)


def test_the_time_out_is_what_is_left_of_the_call_at_each_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon that sends a part when the time is nearly up gets no second time-out."""
    clock = Time(monkeypatch)

    def a_part(_: bytes) -> bytes:
        clock.move(PATIENCE)
        return b"\xdb\x00\x01\x00\x00"

    with Server(tmp_path / "s", a_part):
        connection = Connection(str(tmp_path / "s"), PATIENCE)
        begun = time.monotonic()
        with pytest.raises(DaemonUnavailable, match="silent"):
            connection.take(1)
        assert time.monotonic() - begun < PATIENCE / 2


def test_two_processes_without_a_daemon_have_two_nodes() -> None:
    """Of utc and of steady, so that their ids differ at the same tick."""
    utc, steady = set(), set()
    for here in (Fallback(), Fallback()):
        block = here.take(1, now=START)
        other = here.take_steady(1, past=0, now=START, elapsed=0)
        assert isinstance(block, Block)
        assert isinstance(other, SteadyBlock)
        utc.add(block.node)
        steady.add(other.node)
    assert len(utc) == len(steady) == 2


@pytest.mark.process
def test_the_request_limit_holds_on_a_connection_that_was_silent() -> None:
    """There requests are read in another place than a connection's first."""
    with Daemon("--max-request-bytes=100") as daemon, daemon.connect() as connection:
        connection.call("status")
        _, _, error, _ = connection.ask("status", 200 * "x")
        assert "at most 100 are read" in error


async def test_no_more_requests_are_answered_in_one_go_than_may_be_pipelined(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so many their replies are sent, before the next are answered."""
    sent = []
    send_now = Stream.send_now

    def noted(stream: Stream, view: bytes | bytearray | memoryview) -> int:
        sent.append(len(view))
        return send_now(stream, view)

    monkeypatch.setattr(Stream, "send_now", noted)
    # So that no turn ends because it took long.
    monkeypatch.setattr(connection, "monotonic", lambda: 0.0)
    async with Inside().talking(pipelined=2) as peer:
        await peer.send(b"".join(request("nothing", msgid=number) for number in range(5)))
        replies = await peer.replies(5)
    assert [reply.msgid for reply in replies] == list(range(5))
    assert len(sent) == 3

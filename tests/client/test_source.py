from __future__ import annotations

import os
import warnings
from typing import cast

import pytest

from tests.client.fakes import NODE, START, Time, Unwatched, block
from uuidd.core.ids.nodes import MULTICAST
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline import Block, SteadyBlock
from uuidd_client import notices
from uuidd_client.connection import Connection
from uuidd_client.errors import DaemonUnavailable
from uuidd_client.source import RETRY_SECONDS, LatestSteady, Source


class FakeDaemon(Unwatched):
    """A connection that answers while it is *up*, and notes when it was asked."""

    def __init__(self, time: Time) -> None:
        self.up = False
        self.reason = "no_socket"
        self.steady_up = False
        self.steady_asked = 0
        self.steady_from = START
        self.asked_at: list[float] = []
        self.clock = self._time = time
        self._first = 0

    def take(self, count: int) -> Block:
        """Return a block, or raise DaemonUnavailable."""
        self.asked_at.append(self._time.elapsed() - 1000)
        if not self.up:
            raise DaemonUnavailable("/path", "it is a fake", self.reason)
        self._first += count
        return block(self._first, count)

    path = "/path"

    def take_steady(self, count: int) -> SteadyBlock:
        """Return a steady block, from *steady_from* on, or raise DaemonUnavailable."""
        self.steady_asked += 1
        if not self.steady_up:
            raise DaemonUnavailable("/path", "steady is a fake", "no_socket")
        first, self.steady_from = self.steady_from, self.steady_from + count
        return SteadyBlock(first, count, NODE, 5, 0)

    take_snowflake = take_steady


@pytest.fixture
def time() -> Time:
    """Return a clock that is moved by hand."""
    return Time()


@pytest.fixture
def fake(time: Time) -> FakeDaemon:
    """Return a daemon that does not answer yet."""
    return FakeDaemon(time)


def source_of(fake: FakeDaemon, *, fallback: bool = True) -> Source:
    """Return a source of *fake*."""
    return Source(cast(Connection, fake), fallback=fallback, latest=LatestSteady())


def tries(found: Source, fake: FakeDaemon, time: Time) -> list[float]:
    """Take for a second, sixteen times; give when the daemon was asked."""
    for _ in range(16):
        found.take(1)
        time.move(1 / 16)
    return fake.asked_at


def test_the_daemons_block_is_given_as_the_daemons(fake: FakeDaemon) -> None:
    """What the daemon gives comes as it is, with word that it is the daemon's."""
    fake.up = True
    assert source_of(fake).take(10) == (block(10, 10), True)


def test_a_block_made_here_is_not_the_daemons(fake: FakeDaemon) -> None:
    """Without a daemon a block comes from the process, with word of that."""
    assert source_of(fake).take(10)[1] is False


def test_sources_of_one_process_go_on_after_one_another(fake: FakeDaemon, time: Time) -> None:
    """What a handler or another client gets lies between what was got before and after."""
    ticks: list[int] = []
    for _ in range(5):
        # Fewer ticks than are asked for, so that two that did not share would give some twice.
        time.move(5e-7)
        block, _ = source_of(fake).take_steady(10)
        ticks += range(block.first, block.first + block.count)
        other, _ = source_of(fake).take(10)
        assert (other.node, other.clock_seq) == source_of(fake).take(1)[0][3:1:-1]
    assert ticks == sorted(set(ticks))


def test_a_small_step_back_is_waited_out(fake: FakeDaemon, time: Time) -> None:
    """Up to 10 ms, the same node goes on once UTC has caught up."""
    found = source_of(fake)
    first, _ = found.take(1)
    time.utc -= 50_000
    second, _ = found.take(1)
    assert (second.first, second.node) == (first.first + 1, first.node)


def test_a_large_step_back_draws_another_node(fake: FakeDaemon, time: Time) -> None:
    """Beyond 10 ms nobody waits, and ticks come again under another node."""
    found = source_of(fake)
    first, _ = found.take(1)
    time.utc -= 10_000_000
    second, _ = found.take(1)
    assert second.first < first.first
    assert second.node != first.node


def test_without_fallback_each_call_asks(fake: FakeDaemon) -> None:
    """Without other ids there is nothing to be won by not asking."""
    found = source_of(fake, fallback=False)
    for _ in range(3):
        with pytest.raises(DaemonUnavailable, match="it is a fake"):
            found.take(1)
    fake.up = True
    assert found.take(1)[1] is True


def test_an_absent_daemon_is_tried_four_times_a_second(fake: FakeDaemon, time: Time) -> None:
    """To try it costs next to nothing, and ids are to be safe soon after it is back."""
    assert tries(source_of(fake), fake, time) == [0, 0.25, 0.5, 0.75]


def test_the_daemon_serves_again_once_it_is_tried(fake: FakeDaemon, time: Time) -> None:
    """Once it is back, blocks are its own after a quarter of a second at most."""
    found = source_of(fake)
    found.take(1)
    fake.up = True
    assert found.take(1)[1] is False
    time.move(RETRY_SECONDS)
    assert found.take(1)[1] is True


def test_a_silent_daemon_is_looked_after_at_each_call(fake: FakeDaemon, time: Time) -> None:
    """The connection knows that it is silent, and does not wait; so there is nothing to put off."""
    fake.reason = "silent"
    found = source_of(fake)
    for _ in range(3):
        assert found.take(1)[1] is False
    fake.up = True
    assert found.take(1)[1] is True
    assert len(fake.asked_at) == 4


def test_a_try_that_took_long_puts_off_the_next_from_its_end(fake: FakeDaemon, time: Time) -> None:
    """What the daemon took to refuse is no part of the pause after it."""
    found = source_of(fake)
    original = fake.take

    def slow(count: int) -> Block:
        time.move(5)
        return original(count)

    fake.take = slow  # type: ignore[method-assign]
    found.take(1)
    found.take(1)
    assert len(fake.asked_at) == 1


def told(source: Source) -> bool:
    """Take a block, and tell what there is to tell; return whether it came from the daemon."""
    _, from_daemon = source.take(1)
    source.notices.tell()
    return from_daemon


def test_the_warning_comes_once(fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources of one process warn once among them, and say path and cause."""
    monkeypatch.setattr(notices, "_warned_in", 0)
    with pytest.warns(RuntimeWarning, match="uuidd at /path: it is a fake; .* not marked safe"):
        told(source_of(fake))
    told(source_of(fake))


def test_another_process_warns_anew(fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork's child has not warned because its parent did."""
    monkeypatch.setattr(notices, "_warned_in", os.getppid())
    with pytest.warns(RuntimeWarning):
        told(source_of(fake))


def test_a_warning_that_is_an_error_is_one_once(
    fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With warnings as errors one call fails; the next one has its block."""
    monkeypatch.setattr(notices, "_warned_in", 0)
    found = source_of(fake)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning):
            told(found)
        assert told(found) is False
    assert len(fake.asked_at) == 1


def test_nobody_is_warned_while_the_daemon_answers(
    fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No warning without a cause; one would be an error here."""
    monkeypatch.setattr(notices, "_warned_in", 0)
    fake.up = True
    told(source_of(fake))


# --- steady


def test_the_daemons_steady_block_is_given_as_the_daemons(fake: FakeDaemon) -> None:
    """With its node, worker and epoch."""
    fake.steady_up = True
    assert source_of(fake).take_steady(10) == (SteadyBlock(START, 10, NODE, 5, 0), True)


def test_steady_ticks_made_here_are_not_the_daemons(fake: FakeDaemon) -> None:
    """They have a random node, and no worker number."""
    block, safe = source_of(fake).take_steady(10)
    assert not safe
    assert block.node & MULTICAST
    assert block.worker is None


def test_what_has_no_fallback_is_asked_of_the_daemon_each_time(fake: FakeDaemon) -> None:
    """A Snowflake cannot be made here, so there is nothing to do in the meantime."""
    found = source_of(fake)
    for tries in range(3):
        with pytest.raises(DaemonUnavailable):
            found.take_snowflake(1)
        assert fake.steady_asked == tries + 1
    fake.steady_up = True
    assert found.take_snowflake(1).count == 1


def test_a_daemon_that_refuses_steady_gives_utc_all_the_same(fake: FakeDaemon) -> None:
    """What becomes of one timeline says nothing of the other."""
    fake.up = True
    found = source_of(fake)
    assert not found.take_steady(1)[1]
    assert found.take(1)[1]


def test_steady_ticks_rise_from_the_daemons_to_those_made_here(
    fake: FakeDaemon, time: Time
) -> None:
    """Also when the daemon was ahead of UTC."""
    fake.steady_up = True
    fake.steady_from = START + 15 * TICKS_PER_SECOND
    found = source_of(fake)
    theirs, _ = found.take_steady(100)
    fake.steady_up = False
    ours, safe = found.take_steady(100)
    assert not safe
    assert theirs.first + theirs.count <= ours.first


def test_a_daemon_behind_what_was_used_is_not_used(fake: FakeDaemon, time: Time) -> None:
    """Its ticks would come before those made here while it was away."""
    found = source_of(fake)
    ours, _ = found.take_steady(1)
    fake.steady_up = True
    fake.steady_from = ours.first - 50
    time.move(2)
    block, safe = found.take_steady(10)
    assert fake.steady_asked == 2
    assert not safe
    assert block.first > ours.first


def test_of_a_daemons_block_what_was_used_is_cut_off(fake: FakeDaemon, time: Time) -> None:
    """What lies past it is the daemon's, and later than all before."""
    found = source_of(fake)
    ours, _ = found.take_steady(1)
    fake.steady_up = True
    fake.steady_from = ours.first - 4
    time.move(2)
    block, safe = found.take_steady(10)
    assert (block.first, block.count, safe) == (ours.first + 1, 5, True)


def test_what_a_handler_got_in_the_middle_of_a_request_is_no_sign_of_a_daemon_behind(
    fake: FakeDaemon,
) -> None:
    """Its block is later than the one asked for before, and both are the daemon's."""
    fake.steady_up = True
    latest = LatestSteady()
    found = Source(cast(Connection, fake), fallback=False, latest=latest)
    handlers = Source(cast(Connection, fake), fallback=False, latest=latest)
    original = fake.take_steady
    inside: list[SteadyBlock] = []

    def interrupted(count: int) -> SteadyBlock:
        block = original(count)
        fake.take_steady = original  # type: ignore[method-assign]
        inside.append(handlers.take_steady(count)[0])
        return block

    fake.take_steady = interrupted  # type: ignore[method-assign]
    first, safe = found.take_steady(10)
    assert safe
    assert first.first < inside[0].first < found.take_steady(10)[0].first


def test_sources_that_share_what_they_reached_rise_from_the_daemon_on(fake: FakeDaemon) -> None:
    """A signal handler's source, which finds no daemon, stays past what the daemon has given."""
    fake.steady_up = True
    fake.steady_from = START + 15 * TICKS_PER_SECOND
    latest = LatestSteady()
    theirs, _ = Source(cast(Connection, fake), fallback=True, latest=latest).take_steady(10)
    fake.steady_up = False
    ours, safe = Source(cast(Connection, fake), fallback=True, latest=latest).take_steady(1)
    assert not safe
    assert ours.first >= theirs.first + theirs.count


def test_a_daemon_more_than_an_hour_behind_is_used(fake: FakeDaemon, time: Time) -> None:
    """What was used was of a clock that was wrong, or set by a test: order begins anew."""
    found = source_of(fake)
    time.utc += 14 * 365 * 86400 * TICKS_PER_SECOND
    ours, _ = found.take_steady(1)
    time.utc -= 14 * 365 * 86400 * TICKS_PER_SECOND
    fake.steady_up = True
    fake.steady_from = time.utc
    time.move(2)
    assert found.take_steady(10) == (SteadyBlock(START, 10, NODE, 5, 0), True)
    assert ours.first > START
    assert found.take_steady(10)[0].first == START + 10


def test_a_clock_that_stands_still_is_not_waited_for(
    fake: FakeDaemon, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ticks come again under another node, after 20 ms the first time and at once from then on."""
    found = source_of(fake)
    stopped, slept = time.utc, 0.0

    def sleep(seconds: float) -> None:
        nonlocal slept
        # A millisecond at least, so that there are few rounds.
        slept += max(seconds, 0.001)
        time.ticks += round(max(seconds, 0.001) * TICKS_PER_SECOND)

    monkeypatch.setattr(time, "pause", sleep)
    blocks = [found.take(1)[0] for _ in range(50)]
    assert {(block.first, block.count) for block in blocks} == {(stopped, 1)}
    assert len({block.node for block in blocks}) == 50
    assert 0.01 < slept < 0.1


def test_without_fallback_a_daemon_behind_is_told_of(fake: FakeDaemon, time: Time) -> None:
    """The daemon has lost its state, or has one of before."""
    fake.steady_up = True
    found = source_of(fake, fallback=False)
    found.take_steady(1)
    fake.steady_from -= 5 * TICKS_PER_SECOND
    with pytest.raises(DaemonUnavailable, match="its steady timeline is behind"):
        found.take_steady(1)

"""A daemon that does not answer costs one call its time-out, and the calls after it nothing.

Nothing is timed here: a connection is given ten minutes for what it must not wait for.
"""

from __future__ import annotations

import contextlib
import itertools
import select
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import SafeUUID

import pytest

from tests.client.breaking import break_off
from tests.client.conftest import Waits
from tests.client.fakes import (
    Held,
    Server,
    Time,
    full_backlog,
    granted,
    in_turn,
)
from tests.kinds import KINDS, TIMED
from tests.rig import PATIENCE, Daemon, until
from uuidd_client import Client, DaemonUnavailable, connection, life
from uuidd_client.connection import Connection, Silence, Stream
from uuidd_client.system import SYSTEM_CLOCK, ClientClock

pytestmark = pytest.mark.usefixtures("implementation")

SHORT, TEN_MINUTES = 0.01, 600.0

Makes = Callable[..., Connection]


ONE = granted(0, 1)
"""A block of either timeline."""


def heard(found: Connection) -> bool:
    """Whether a call is answered; if not, the daemon is silent."""
    try:
        return found.take("utc", 1)[0].count == 1
    except DaemonUnavailable as unavailable:
        if unavailable.reason != "silent":
            raise
        return False


WITHOUT_FALLBACK: list[Callable[[Client], object]] = [
    Client.snowflake,
    Client.status,
    lambda client: next(client.iter("snowflake")),
]


DRAWS: list[Callable[[Client], object]] = [
    *(getattr(Client, KINDS[kind].method) for kind in TIMED if kind != "snowflake"),
    lambda client: client.make("v1", 3),
    lambda client: client.make("v7", 3, "bytes"),
    lambda client: next(client.iter("v6")),
    *WITHOUT_FALLBACK,
]


@pytest.fixture
def asks(path: Path) -> Iterator[Makes]:
    """Return what makes a connection, whose calls wait for ten minutes unless *wait* is given."""
    with contextlib.ExitStack() as stack:

        def ask(
            silence: Silence | None = None,
            wait: float | None = TEN_MINUTES,
            clock: ClientClock = SYSTEM_CLOCK,
        ) -> Connection:
            made = Connection(str(path), wait, silence, clock=clock)
            return stack.enter_context(contextlib.closing(made))

        yield ask


@pytest.mark.parametrize("fallback", [True, False])
def test_one_call_waits_for_a_silent_daemon_whatever_is_drawn(
    path: Path, fallback: bool, waits: Waits
) -> None:
    """While the silence is known every kind of call falls back, or fails, at once."""
    failed = 0
    with Held(path, ONE), Client(path, fallback=fallback, timeout=SHORT, max_age=0) as client:
        for draw in DRAWS * 3:
            try:
                draw(client)
            except DaemonUnavailable as unavailable:
                failed += unavailable.reason == "silent"
    assert failed == 3 * (len(WITHOUT_FALLBACK) if fallback else len(DRAWS))
    # To look without waiting is no wait. None, if the machine was too busy for the time-out.
    assert len([seconds for seconds in waits if seconds]) <= 1


def test_one_request_is_out_on_a_connection_while_the_daemon_is_silent(path: Path) -> None:
    with Held(path, ONE) as stopped:
        with Client(path, fallback=False, timeout=SHORT) as client:
            for _ in range(20):
                with pytest.raises(DaemonUnavailable):
                    client.uuid7()
        stopped.awake.set()
        until(lambda: stopped.requests)
    assert len(stopped.requests) == stopped.connections == 1


def test_what_one_connection_found_the_others_do_not_wait_for(path: Path, asks: Makes) -> None:
    """A v1 does not wait to find what a v7 has just found."""
    silence = Silence()
    with Held(path, ONE):
        other = asks(silence)
        for found in (asks(silence, SHORT), other, other):
            assert not heard(found)


def test_a_call_that_interrupts_another_does_not_wait_for_what_is_known_to_be_silent(
    path: Path, waits: Waits
) -> None:
    """A handler of a signal that draws ids does not hold the program up each time."""
    with Held(path, ONE), Client(path, timeout=SHORT, max_age=0, _clock=Time()) as client:
        client.flake()
        assert waits == pytest.approx([SHORT])
        client._channels.call(lambda channel: channel.in_turn(lambda _: client.flake()))
    assert waits[1:] == [0.0]


def test_what_another_connection_found_long_ago_is_not_heeded(path: Path, asks: Makes) -> None:
    """Nobody may have looked since, so a connection that has found nothing asks, and waits."""
    time, silence = Time(), Silence()
    silence.until = time.elapsed() + 1.0
    time.move(1.0)
    with Server(path, ONE):
        assert heard(asks(silence, clock=time))


@pytest.mark.parametrize("held_up", ["after the request", "in the wait"])
def test_an_answer_that_came_while_the_process_was_held_up_is_used(
    path: Path, asks: Makes, monkeypatch: pytest.MonkeyPatch, held_up: str
) -> None:
    """A process that ran out of its time-out in a signal handler looks once before it gives up."""
    time = Time()

    def hold_up(sock: Stream) -> None:
        time.move(TEN_MINUTES)
        assert select.select([sock], [], [], PATIENCE)[0]

    class Watched(Stream):
        def at_once(self, call: Callable[..., Any], *args: Any) -> Any:
            done = super().at_once(call, *args)
            if held_up == "after the request" and call == self.send:
                hold_up(self)
            return done

        def wait_for_bytes(self, seconds: float) -> None:
            if held_up == "in the wait":
                hold_up(self)

    monkeypatch.setattr(connection, "Stream", Watched)
    with Server(path, ONE):
        assert heard(asks(wait=1.0, clock=time))


def test_another_connection_is_tried_every_five_seconds(path: Path, asks: Makes) -> None:
    time, silence = Time(), Silence()
    with Held(path, ONE) as held:
        found = asks(silence, clock=time)
        silence.until = time.elapsed() + 1.0
        for _ in range(14):
            assert not heard(found)
            time.move(1.25)
        # The first connection, and those after 5, 10 and 15 seconds.
        held.awake.set()
        until(lambda: held.connections == 4)
    assert held.connections == 4


def test_a_daemon_that_takes_the_place_of_a_listener_that_keeps_its_connections_is_found(
    path: Path,
) -> None:
    """A listener that sends a byte and nothing more does not hold a program for good."""
    time = Time()
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(Client(path, fallback=False, timeout=1.0, _clock=time))
        # A byte that begins an answer.
        stack.enter_context(Server(path, b"\x94"))
        with pytest.raises(DaemonUnavailable, match="silent for"):
            client.snowflake()
        moved = path.with_name("moved")
        path.rename(moved)
        time.move(5)
        with Server(path, ONE):
            until(lambda: _drawn(client))
        moved.rename(path)


def test_ids_of_the_fallback_are_told_once_to_a_daemon_that_answers_late(
    path: Path, asks: Makes
) -> None:
    with Held(path, ONE) as held:
        found = asks(wait=SHORT)
        found.untold = 7
        assert not heard(found)
        held.awake.set()
        until(lambda: heard(found))
        assert held.fallback_ids == [7]


def test_a_request_that_nobody_waits_for_tells_of_no_ids(path: Path, asks: Makes) -> None:
    """A daemon that hangs may be killed before it reads the request."""
    time, silence = Time(), Silence()
    with Held(path, ONE) as held:
        found = asks(silence, clock=time)
        found.untold = 7
        silence.until = time.elapsed() + 1.0
        assert not heard(found)
        assert found.untold == 7
        held.awake.set()
        until(lambda: heard(found))
        assert (len(held.requests), held.fallback_ids) == (2, [7])


@pytest.fixture
def silenced(asks: Makes) -> Makes:
    """Return what makes a connection whose request has no answer; later ones may wait."""

    def silence() -> Connection:
        silence = Silence()
        found = asks(silence)
        silence.until = SYSTEM_CLOCK.elapsed() + TEN_MINUTES
        assert not heard(found)
        return found

    return silence


def test_the_late_answer_ends_the_silence(path: Path, silenced: Makes, waits: Waits) -> None:
    """It is dropped, for its time is past, and the call that finds it asks anew and waits."""
    with Held(path, ONE) as held:
        found = silenced()
        waits.clear()
        held.awake.set()
        until(lambda: heard(found))
        assert heard(found)
    assert len(held.requests) == 3
    assert [seconds > 0 for seconds in waits] == [True, True]


def test_a_daemon_that_closed_the_connection_is_asked_anew(path: Path, silenced: Makes) -> None:
    with Held(path, in_turn(None, ONE, ONE)) as held:
        found = silenced()
        held.awake.set()
        until(lambda: heard(found))


def test_a_silent_daemon_that_ended_is_absent(path: Path, silenced: Makes) -> None:
    with Held(path, None):
        found = silenced()
    with pytest.raises(DaemonUnavailable, match="No such file"):
        heard(found)


def test_a_daemon_whose_backlog_is_full_is_silent_until_it_has_room(
    path: Path, silenced: Makes
) -> None:
    """There is no request out then, and no connection; each call tries, and does not wait."""
    with full_backlog(path):
        found = silenced()
        for _ in range(3):
            assert not heard(found)
        path.unlink()
        with Server(path, ONE):
            until(lambda: heard(found))


def test_a_look_that_is_broken_off_anywhere_leaves_the_connection_sound(
    path: Path, silenced: Makes
) -> None:
    """Wherever a signal handler's exception comes, the next call looks again, and never waits."""
    with Held(path, ONE) as held:
        found = silenced()
        for at in itertools.count(1):
            if break_off(lambda: heard(found), at) is None:
                break
            assert not heard(found)
        assert at > 5
        held.awake.set()
        until(lambda: heard(found))


def test_a_forks_child_asks_anew(path: Path) -> None:
    """What its parent knew, and the request that is out, are the parent's."""
    with Held(path, ONE) as stopped, Client(path, fallback=False, timeout=SHORT) as client:
        with pytest.raises(DaemonUnavailable):
            client.uuid1()
        # As the kernel does in a child.
        life.current().end()
        with pytest.raises(DaemonUnavailable):
            client.uuid1()
        stopped.awake.set()
        until(lambda: _drawn(client))
    assert stopped.connections >= 2


def _drawn(client: Client) -> bool:
    try:
        return bool(client.snowflake())
    except DaemonUnavailable:
        return False


@pytest.mark.process
def test_the_ids_of_a_process_are_safe_again_once_a_stopped_daemon_goes_on() -> None:
    with Daemon("--worker=5") as daemon:
        client = Client(daemon.socket, timeout=0.2, max_age=0)
        daemon.process.send_signal(signal.SIGSTOP)
        assert {client.uuid1().is_safe for _ in range(5)} == {SafeUUID.unknown}
        with pytest.raises(DaemonUnavailable, match="silent for"):
            client.snowflake()
        daemon.process.send_signal(signal.SIGCONT)
        until(lambda: client.uuid1().is_safe is SafeUUID.safe)
        until(lambda: _drawn(client))
        client.close()


@pytest.mark.parametrize(
    ("fallback", "calls", "waited"),
    [
        (True, [Client.flake, Client.flake], [5.0, 0.2]),
        (True, [Client.flake, Client.snowflake], [5.0, 5.0]),
        (False, [Client.flake, Client.flake], [5.0, 5.0]),
        (True, [Client.flake, Client.flake, Client.status], [5.0, 0.2, 5.0]),
    ],
)
def test_a_daemon_that_hangs_costs_one_long_wait(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    waits: Waits,
    fallback: bool,
    calls: list[Callable[[Client], object]],
    waited: list[float],
) -> None:
    """Not where there is no fallback, and no longer once an answer has come in time."""
    monkeypatch.delenv("UUIDD_TIMEOUT")
    time = Time()
    answered = len(calls) == 3
    waits.lasting = lambda _: PATIENCE if answered and len(waits) == 2 else 0
    with Client(path, fallback=fallback, _clock=time) as client:
        answers = b"", ONE if answered else b"", b""
        for call, answer in zip(calls, answers, strict=False):
            # The next daemon is met over another connection.
            with Server(path, answer), contextlib.suppress(DaemonUnavailable):
                call(client)
            time.move(6)
    assert waits == pytest.approx(waited)


def test_the_first_call_after_close_waits_as_long_as_that_of_a_new_client(
    path: Path, monkeypatch: pytest.MonkeyPatch, waits: Waits
) -> None:
    """Another daemon may be there by now, whose ids are safe."""
    monkeypatch.delenv("UUIDD_TIMEOUT")
    waits.lasting = lambda _: 0
    with Held(path, ONE), Client(path, _clock=Time()) as client:
        for close in (False, True, False):
            client.flake()
            if close:
                client.close()
    assert waits == pytest.approx([5.0, 5.0])


@pytest.mark.parametrize(("seconds", "wait"), [(4, 5.0), (6, 0.2)])
def test_a_late_answer_is_worth_a_long_wait_if_that_had_heard_it(
    path: Path, asks: Makes, waits: Waits, seconds: float, wait: float
) -> None:
    """A busy daemon is waited for again, and one that takes longer than any wait is not."""
    time = Time()
    waits.lasting = lambda _: 0
    with Held(path, ONE) as stopped:
        found = asks(wait=None, clock=time)
        assert not heard(found)
        time.move(seconds)
        stopped.awake.set()
        assert select.select([waits.streams[0]], [], [], PATIENCE)[0]
        heard(found)
    assert waits == pytest.approx([5.0, wait])

"""A daemon that does not answer costs one call its time-out, and the calls after it nothing.

Nothing is timed here: a connection is given ten minutes for what it must not wait for.
"""

from __future__ import annotations

import contextlib
import itertools
import select
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import SafeUUID

import pytest

from tests.client.breaking import break_off
from tests.client.fakes import Answer, Server, Time, full_backlog, granted, result, util_linux
from tests.rig import PATIENCE, Daemon, until
from uuidd_client import Client, DaemonUnavailable, connection, life
from uuidd_client.connection import Connection, Silence, Stream
from uuidd_client.system import SYSTEM_CLOCK

pytestmark = pytest.mark.usefixtures("implementation")

SHORT, TEN_MINUTES = 0.01, 600.0


class Stopped:
    """A daemon that takes connections and requests, and answers them only once it is *awake*."""

    def __init__(self, path: Path, answer: Answer) -> None:
        self.awake = threading.Event()
        self._answer = answer
        self.server = Server(path, self._late)

    def _late(self, request: bytes) -> bytes | None:
        self.awake.wait(60)
        return self._answer(request)

    def __enter__(self) -> Stopped:
        self.server.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.awake.set()
        self.server.__exit__()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the time-outs of all waits for an answer; to look without waiting is none."""
    waits: list[float] = []

    class Watched(Stream):
        def wait_for_bytes(self, seconds: float) -> None:
            if seconds:
                waits.append(seconds)
            super().wait_for_bytes(seconds)

    monkeypatch.setattr(connection, "Stream", Watched)
    return waits


def said_nothing(_: bytes) -> bytes:
    """Answer nothing, and keep the connection."""
    return b""


def both(request: bytes) -> bytes:
    """Answer a take of either timeline."""
    return result(request, granted(0, 1))


WITHOUT_FALLBACK: list[Callable[[Client], object]] = [
    Client.snowflake,
    Client.status,
    lambda client: next(client.iter("snowflake")),
]

DRAWS: list[Callable[[Client], object]] = [
    Client.uuid1,
    Client.uuid6,
    Client.uuid7,
    Client.flake,
    Client.ulid,
    Client.ksuid,
    Client.push_id,
    lambda client: client.make("v1", 3),
    lambda client: client.make("v7", 3, "bytes"),
    lambda client: next(client.iter("v6")),
    *WITHOUT_FALLBACK,
]


@pytest.mark.parametrize("fallback", [True, False])
def test_one_call_waits_for_a_silent_daemon_whatever_is_drawn(
    path: Path, fallback: bool, waits: list[float]
) -> None:
    """While the silence is known every kind of call falls back, or fails, at once."""
    failed = 0
    with Stopped(path, both), Client(path, fallback=fallback, timeout=SHORT, max_age=0) as client:
        for draw in DRAWS * 3:
            try:
                draw(client)
            except DaemonUnavailable as unavailable:
                failed += unavailable.reason == "silent"
    assert failed == 3 * (len(WITHOUT_FALLBACK) if fallback else len(DRAWS))
    # None, if the machine was too busy for the time-out.
    assert len(waits) <= 1


def test_one_request_is_out_on_a_connection_while_the_daemon_is_silent(path: Path) -> None:
    """A daemon that comes back is not met by a pile of requests."""
    with Stopped(path, both) as stopped:
        with Client(path, fallback=False, timeout=SHORT) as client:
            for _ in range(20):
                with pytest.raises(DaemonUnavailable):
                    client.uuid7()
        stopped.awake.set()
        until(lambda: stopped.server.requests)
    assert len(stopped.server.requests) == stopped.server.connections == 1


def test_what_one_connection_found_the_others_do_not_wait_for(path: Path) -> None:
    """A v1 does not wait to find what a v7 has just found."""
    silence = Silence()
    with Stopped(path, both):
        first = Connection(str(path), SHORT, silence)
        other = Connection(str(path), TEN_MINUTES, silence)
        for found in (first, other, other):
            with pytest.raises(DaemonUnavailable, match="silent for") as caught:
                found.take("utc", 1)
            assert caught.value.reason == "silent"
        first.close()
        other.close()


def test_silence_is_known_for_as_long_as_it_lasts(path: Path) -> None:
    """Who calls once an hour does not wait each time: his request is still out."""
    time = Time()
    silence = Silence()
    with Stopped(path, both):
        found = Connection(str(path), TEN_MINUTES, silence, clock=time)
        silence.until = time.elapsed() + 1.0
        for _ in range(3):
            with pytest.raises(DaemonUnavailable, match="silent for"):
                found.take("utc", 1)
            time.move(3600)
        found.close()


def test_what_another_connection_found_long_ago_is_not_heeded(path: Path) -> None:
    """Nobody may have looked since, so a connection that has found nothing asks, and waits."""
    time = Time()
    silence = Silence()
    silence.until = time.elapsed() + 1.0
    time.move(1.0)
    with Server(path, both):
        found = Connection(str(path), TEN_MINUTES, silence, clock=time)
        assert found.take("utc", 1)[0].count == 1
        found.close()


@pytest.mark.parametrize("held_up", ["after the request", "in the wait"])
def test_an_answer_that_came_while_the_process_was_held_up_is_used(
    path: Path, monkeypatch: pytest.MonkeyPatch, held_up: str
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
    with Server(path, both):
        found = Connection(str(path), 1.0, clock=time)
        assert found.take("utc", 1)[0].count == 1
        found.close()


def test_another_connection_is_tried_every_five_seconds(path: Path) -> None:
    """However many calls there are meanwhile, and all of them are late."""
    time = Time()
    silence = Silence()
    with Stopped(path, both) as stopped:
        found = Connection(str(path), TEN_MINUTES, silence, clock=time)
        silence.until = time.elapsed() + 1.0
        for _ in range(14):
            with pytest.raises(DaemonUnavailable, match="silent for"):
                found.take("utc", 1)
            time.move(1.25)
        # The first connection, and those after 5, 10 and 15 seconds.
        stopped.awake.set()
        until(lambda: stopped.server.connections == 4)
        found.close()
    assert stopped.server.connections == 4


def test_a_daemon_that_takes_the_place_of_a_listener_that_keeps_its_connections_is_found(
    path: Path,
) -> None:
    """A listener that sends a byte and nothing more does not hold a program for good."""
    time = Time()
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(Client(path, fallback=False, timeout=1.0, _clock=time))
        # A byte that begins an answer.
        stack.enter_context(Server(path, lambda _: b"\x94"))
        with pytest.raises(DaemonUnavailable, match="silent for"):
            client.snowflake()
        moved = path.with_name("moved")
        path.rename(moved)
        time.move(5)
        with Server(path, both):
            until(lambda: _drawn(client))
        moved.rename(path)


@contextlib.contextmanager
def silenced(path: Path, wait: float = TEN_MINUTES) -> Iterator[Connection]:
    """Return a connection whose request has no answer; later ones may wait for *wait* seconds."""
    silence = Silence()
    found = Connection(str(path), wait, silence)
    silence.until = SYSTEM_CLOCK.elapsed() + TEN_MINUTES
    try:
        with pytest.raises(DaemonUnavailable, match="silent for"):
            found.take("utc", 1)
        yield found
    finally:
        found.close()


def heard(found: Connection) -> bool:
    """Whether a call is answered, as one is again some time after the daemon awoke."""
    try:
        return found.take("utc", 1)[0].count == 1
    except DaemonUnavailable as unavailable:
        if unavailable.reason != "silent":
            raise
        return False


def test_the_late_answer_ends_the_silence(path: Path) -> None:
    """It is dropped, for its time is past, and the call that finds it asks anew and waits."""
    with Stopped(path, both) as stopped, silenced(path) as found:
        stopped.awake.set()
        until(lambda: heard(found))
        assert heard(found)
    assert len(stopped.server.requests) == 3


def test_a_daemon_that_closed_the_connection_is_asked_anew(path: Path) -> None:
    """Whoever was silent has ended, or lost patience with a request that took long to come."""
    answers = iter([lambda _: None, both, both])
    with Stopped(path, lambda request: next(answers)(request)) as stopped, silenced(path) as found:
        stopped.awake.set()
        until(lambda: heard(found))


def test_a_silent_daemon_that_ended_is_absent(path: Path) -> None:
    """The error then is the one of a socket that is not there."""
    with contextlib.ExitStack() as stack:
        with Stopped(path, lambda _: None):
            found = stack.enter_context(silenced(path))
        with pytest.raises(DaemonUnavailable, match="No such file") as caught:
            found.take("utc", 1)
        assert caught.value.reason != "silent"


def test_a_daemon_whose_backlog_is_full_is_silent_until_it_has_room(path: Path) -> None:
    """There is no request out then, and no connection; each call tries, and does not wait."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(full_backlog(path))
        found = stack.enter_context(silenced(path))
        for _ in range(3):
            assert not heard(found)
        path.unlink()
        stack.enter_context(Server(path, both))
        until(lambda: heard(found))


def test_a_silent_util_linux_daemon_is_waited_for_once(path: Path) -> None:
    """What was asked in its dialect is the probe as well; its late answer ends the silence."""
    silence = Silence()
    with Stopped(path, util_linux) as stopped:
        found = Connection(str(path), TEN_MINUTES, silence)
        stopped.awake.set()
        assert heard(found)
        asked = stopped.server.connections
        stopped.awake.clear()
        silence.until = SYSTEM_CLOCK.elapsed() + TEN_MINUTES
        assert [heard(found) for _ in range(3)] == [False] * 3
        stopped.awake.set()
        until(lambda: stopped.server.connections > asked)
        assert stopped.server.connections == asked + 1
        until(lambda: heard(found))
        found.close()


def test_a_look_that_is_broken_off_anywhere_leaves_the_connection_sound(path: Path) -> None:
    """Wherever a signal handler's exception comes, the next call looks again, and never waits."""
    with Stopped(path, both) as stopped, silenced(path) as found:
        for at in itertools.count(1):
            if break_off(lambda: heard(found), at) is None:
                break
            assert not heard(found)
        assert at > 5
        stopped.awake.set()
        until(lambda: heard(found))


def test_a_forks_child_asks_anew(path: Path) -> None:
    """What its parent knew, and the request that is out, are the parent's."""
    with Stopped(path, both) as stopped, Client(path, fallback=False, timeout=SHORT) as client:
        with pytest.raises(DaemonUnavailable):
            client.uuid1()
        # As the kernel does in a child.
        life.current().end()
        with pytest.raises(DaemonUnavailable):
            client.uuid1()
        stopped.awake.set()
        until(lambda: _drawn(client))
    assert stopped.server.connections >= 2


def _drawn(client: Client) -> bool:
    try:
        return bool(client.snowflake())
    except DaemonUnavailable:
        return False


@pytest.mark.process
def test_the_ids_of_a_process_are_safe_again_once_a_stopped_daemon_goes_on() -> None:
    """With a real daemon: stopped it costs one time-out, and it is heard when it goes on."""
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
    fallback: bool,
    calls: list[Callable[[Client], object]],
    waited: list[float],
) -> None:
    """Not where there is no fallback, and no longer once an answer has come in time."""
    monkeypatch.delenv("UUIDD_TIMEOUT")
    time = Time()
    waits: list[float] = []
    answered = len(calls) == 3

    class Watched(Stream):
        def wait_for_bytes(self, seconds: float) -> None:
            waits.append(seconds)
            super().wait_for_bytes(PATIENCE if answered and len(waits) == 2 else 0)

    monkeypatch.setattr(connection, "Stream", Watched)
    with Client(path, fallback=fallback, _clock=time) as client:
        answers = said_nothing, both if answered else said_nothing, said_nothing
        for call, answer in zip(calls, answers, strict=False):
            # The next daemon is met over another connection.
            with Server(path, answer), contextlib.suppress(DaemonUnavailable):
                call(client)
            time.move(6)
    assert waits == pytest.approx(waited)


@pytest.mark.parametrize(("seconds", "wait"), [(4, 5.0), (6, 0.2)])
def test_a_late_answer_is_worth_a_long_wait_if_that_had_heard_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, wait: float
) -> None:
    """A busy daemon is waited for again, and one that takes longer than any wait is not."""
    time = Time()
    waits: list[tuple[float, Stream]] = []

    class Watched(Stream):
        def wait_for_bytes(self, seconds: float) -> None:
            waits.append((seconds, self))
            super().wait_for_bytes(0)

    monkeypatch.setattr(connection, "Stream", Watched)
    with Stopped(path, both) as stopped:
        found = Connection(str(path), None, clock=time)
        assert not heard(found)
        time.move(seconds)
        stopped.awake.set()
        assert select.select([waits[0][1]], [], [], PATIENCE)[0]
        heard(found)
        found.close()
    assert [seconds for seconds, _ in waits] == pytest.approx([5.0, wait])

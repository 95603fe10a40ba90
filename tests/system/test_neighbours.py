"""No caller harms another, whatever it sends or does not send (P5)."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import msgpack
import pytest

from tests.rig import PATIENCE, SOON, Daemon
from tests.system.attacker import connected

CALLS = 200


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """A daemon for all tests here: each leaves it as it was."""
    with Daemon("--max-request-seconds=1", "--max-reply-seconds=1") as daemon:
        yield daemon


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
def sending(daemon: Daemon, data: bytes) -> Iterator[socket.socket]:
    """Provide a connection over which *data* was sent."""
    with connected(daemon.socket) as sock:
        sock.sendall(data)
        yield sock


def seconds_until_closed(sock: socket.socket) -> float:
    """Return how long it takes until the daemon closes, without a byte."""
    begun = time.monotonic()
    with contextlib.suppress(ConnectionResetError):
        assert sock.recv(1) == b""
    return time.monotonic() - begun


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


def test_silent_slow_and_greedy_callers_keep_no_other_waiting(daemon: Daemon) -> None:
    """One is silent, one sends half a request, one is greedy: each single take is answered soon."""
    with sending(daemon, b""), sending(daemon, b"\x94\x00"), greedy(daemon):
        assert slowest(daemon) < SOON


HOSTILE = {
    "no MessagePack": b"\xc1",
    "another first byte": b"GET / HTTP/1.1\r\n\r\n",
    "an array of the wrong shape": msgpack.packb([0, 1, "take"]),
    "an answer that is none": msgpack.packb([1, 1, None]),
    "invalid after the head": b"\x94\x00\x01\xc1",
    "a 4 GB array": b"\xdd\xff\xff\xff\xff",
    "a 4 GB array of params": b"\x94\x00\x01\xa4take\xdd\xff\xff\xff\xff",
    "libuuid op 6": b"\x06",
    "libuuid op 255": b"\xff",
    "libuuid n = 10,000,000": b"\x04" + (10_000_000).to_bytes(4, "little"),
}

UNFINISHED = {
    "a 4 GB text": b"\x94\x00\x01\xdb\xff\xff\xff\xff",
    "nesting 1,000 deep": b"\x94\x00\x01\xa4take" + b"\x91" * 1000,
    "half a libuuid op 4": b"\x04\x01",
}


@pytest.fixture(scope="module")
def patient() -> Iterator[Daemon]:
    """A daemon that leaves a request far more time than a test has."""
    with Daemon("--max-request-seconds=600") as daemon:
        yield daemon


@pytest.mark.parametrize("what", HOSTILE)
def test_what_no_caller_sends_is_closed_at_once(patient: Daemon, what: str) -> None:
    """Bytes that are no request get the connection closed, after an error if they have a msgid."""
    with sending(patient, HOSTILE[what]) as sock:
        said = b""
        with contextlib.suppress(ConnectionResetError):
            while more := sock.recv(4096):
                said += more
    told = said and msgpack.unpackb(said)[2]
    assert bool(told) == (b"\x00\x01" in HOSTILE[what])
    assert not told or told.startswith("bad_params: ")


@pytest.mark.parametrize("what", UNFINISHED)
def test_what_never_comes_to_its_end_is_closed_in_time(daemon: Daemon, what: str) -> None:
    """A request has its time from the first byte to the last; here it is one second."""
    with sending(daemon, UNFINISHED[what]) as sock:
        assert 0.5 < seconds_until_closed(sock) < SOON


def test_silence_is_free(daemon: Daemon) -> None:
    """A caller that connects at its start is served, however much later it first asks."""
    with sending(daemon, b"") as sock:
        sock.settimeout(1.5)
        with pytest.raises(TimeoutError):
            sock.recv(1)
        sock.sendall(b"\x02")
        assert len(sock.recv(64)) == 20


def test_a_byte_now_and_then_buys_no_time(daemon: Daemon) -> None:
    """The time counts from a request's first byte, whatever comes after."""
    request = msgpack.packb([0, 1, "take", ["utc", 1]])
    begun = time.monotonic()
    with sending(daemon, b"") as sock:
        sock.settimeout(0.9)
        for byte in request:
            with contextlib.suppress(BrokenPipeError):
                sock.send(bytes([byte]))
            try:
                assert sock.recv(1) == b""
                break
            except TimeoutError:
                continue
            except ConnectionResetError:
                break
    # With a second for each byte it would be as many as the request has.
    assert time.monotonic() - begun < SOON < 0.9 * len(request)


def test_a_caller_that_never_reads_costs_little_and_is_closed(daemon: Daemon) -> None:
    """Requests whose replies are not read pile up at the caller, not in the daemon."""
    with daemon.connect() as connection:
        connection.call("status")
    before = daemon.resident_kib()
    flood = msgpack.packb([0, 1, "make", ["v1", 1000]]) * 2000
    with sending(daemon, b"") as sock:
        sent = 0
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(1000):
                sock.sendall(flood)
                sent += 1
        assert sent < 1000
    assert daemon.resident_kib() - before < 4096


def test_a_param_nested_as_deep_as_can_be_is_refused(daemon: Daemon) -> None:
    """A whole request of a thousand nested arrays is an error like any other."""
    with sending(daemon, b"\x94\x00\x01\xa4take\x92" + b"\x91" * 990 + b"\xc0\x01") as sock:
        answer = msgpack.unpackb(sock.recv(4096))
    assert answer == [1, 1, "bad_params: timeline is an array; there are utc, steady", None]


def test_a_caller_that_dies_in_mid_request_delays_no_other(daemon: Daemon) -> None:
    """Connections cut off at any byte of a request leave the next caller served."""
    request = msgpack.packb([0, 1, "take", ["utc", 1, True]])
    for end in range(len(request)):
        with sending(daemon, request[:end]):
            pass
    assert slowest(daemon) < SOON


def test_an_idle_daemon_takes_at_most_forty_megabytes() -> None:
    """A daemon without requests costs its host this much."""
    with Daemon(fresh=True) as daemon:
        assert daemon.resident_kib() < 40 * 1024

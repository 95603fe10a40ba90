"""Engines that answer garbage, slowly or never: one line, within the time of an attempt."""

from __future__ import annotations

import base64
import gc
import json
import os
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from functools import partial
from itertools import cycle
from pathlib import Path
from threading import Timer
from unittest.mock import Mock

import pytest
import trio
import trio.testing

from tests.tools import kept_port
from uuidd.fleet.address import parse
from uuidd.fleet.engines import ATTEMPT_SECONDS, Away, Changed, Entry, opened
from uuidd.fleet.engines.folder import Folder
from uuidd.fleet.record import Meta, Record
from uuidd.fleet.registers import Registers, connect
from uuidd.refused import Refused

URLS = ("zk://{}/uuidd", "etcd://{}/uuidd", "postgresql://me@{}/ids")

# kazoo and psycopg leave a socket that they gave up to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

Serve = Callable[[trio.SocketStream], Awaitable[None]]


@asynccontextmanager
async def served(serve: Serve) -> AsyncIterator[str]:
    """Give the host and port at which each connection is served so."""

    async def handle(stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError):
            await serve(stream)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, handle, 0, host="127.0.0.1"))
        yield f"127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()
    gc.collect()


async def asked(url: str) -> str:
    """Return why the engine at *url* is away, which has to be known in time."""
    async with connect(parse(url)) as engine:
        with trio.fail_after(ATTEMPT_SECONDS * 4), pytest.raises(Away) as caught:
            await engine.meta()
    line = str(caught.value)
    assert line
    assert "\n" not in line
    return line


def answering(body: bytes, status: bytes = b"200 OK") -> Serve:
    """Return what answers each connection's first request by HTTP."""

    async def serve(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(
            b"HTTP/1.1 %b\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
            % (status, len(body), body)
        )

    return serve


async def nothing(stream: trio.SocketStream) -> None:
    """Read, and never answer."""
    async for _ in stream:
        pass


async def garbage(stream: trio.SocketStream) -> None:
    """Answer with bytes of no protocol."""
    await stream.receive_some()
    await stream.send_all(b"\xff\x00\xfe garbage\r\n" * 20)


async def slowly(stream: trio.SocketStream) -> None:
    """Answer a byte at a time, for ever."""
    await stream.receive_some()
    await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        await stream.send_all(b" ")
        await trio.sleep(0.05)


@pytest.fixture
def unserved() -> Iterator[str]:
    """A host and port that nobody serves meanwhile, not even another test."""
    with closing(kept_port()) as port:
        yield f"127.0.0.1:{port.getsockname()[1]}"


@pytest.fixture
def full() -> Iterator[str]:
    """A host and port that let nobody connect, as a firewall that drops packets."""
    with closing(socket.socket()) as full, ExitStack() as stack:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(2):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        yield f"127.0.0.1:{full.getsockname()[1]}"


@pytest.mark.thorough
@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("serve", [nothing, garbage, slowly])
async def test_an_engine_without_a_useful_answer_is_away(url: str, serve: Serve) -> None:
    async with served(serve) as host:
        await asked(url.format(host))


@pytest.mark.thorough
@pytest.mark.parametrize("url", URLS)
async def test_an_engine_that_nobody_serves_is_away(url: str, unserved: str) -> None:
    assert "connect" in (await asked(url.format(unserved))).lower()


async def test_why_no_host_of_etcd_was_reached_is_one_cause(unserved: str) -> None:
    line = await asked(f"etcd://{unserved}/uuidd")
    assert line == f"cannot connect to {unserved}: Connection refused"


async def test_a_host_of_etcd_that_lets_nobody_connect_is_given_up_soon(full: str) -> None:
    """So that another one can be asked within the attempt."""
    line = await asked(f"etcd://{full}/uuidd")
    assert line == f"cannot connect to {full}: timed out"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("bad\nkey"), "ValueError: bad key"),
        (KeyError("mod_revision"), "KeyError: 'mod_revision'"),
        (TimeoutError(), "TimeoutError"),
    ],
)
async def test_an_error_of_an_engines_library_is_one_without_an_answer(
    monkeypatch: pytest.MonkeyPatch, error: Exception, line: str
) -> None:
    monkeypatch.setattr(Folder, "get", Mock(side_effect=error))
    assert await asked("folder:///none") == line


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (
            b'{"error": "x", "message": "etcdserver: no\\n leader\\u0000"}',
            "it answers 503: etcdserver: no leader?",
        ),
        (b"<html>", "its answer, with status 200, is not etcd's"),
        (b"[]", "its answer, with status 200, is not etcd's"),
        (b"[" * 9999, "its answer, with status 200, is not etcd's"),
        (b'{"kvs": 5}', "its answer about /uuidd/meta is not etcd's"),
        (b'{"kvs": [{"key": "?"}]}', "its answer about /uuidd/meta is not etcd's"),
    ],
)
async def test_what_is_no_answer_of_etcd_is_named(body: bytes, error: str) -> None:
    """As from a web server at its port. The reason that etcd gives is passed on, in one line."""
    status = b"503 Service Unavailable" if b"error" in body else b"200 OK"
    async with served(answering(body, status)) as host:
        assert await asked(f"etcd://{host}/uuidd") == error


async def test_a_long_answer_of_etcd_is_not_read_to_its_end() -> None:
    """All registers of a fleet have some 350 kB."""
    async with served(answering(b" " * (4 << 21))) as host:
        assert await asked(f"etcd://{host}/uuidd") == "its answer has more than 4194304 bytes"


async def test_the_next_host_is_asked() -> None:
    """If one has no useful answer, which may be said by none."""
    async with (
        served(answering(b"{}")) as good,
        served(garbage) as bad,
        connect(parse(f"etcd://{bad},{good}/uuidd")) as engine,
    ):
        assert await engine.meta() is None


async def test_the_next_host_of_postgresql_is_asked() -> None:
    """By the same question, for a command asks no other one."""
    asked_too = []

    async def serve(stream: trio.SocketStream) -> None:
        asked_too.append(await stream.receive_some())

    async with served(garbage) as bad, served(serve) as good:
        await asked(f"postgresql://me@{bad},{good}/ids")
    assert len(asked_too) > 0


SESSION = b"\0\0\0\x24" + struct.pack(">iiqi16x", 0, 60_000, 1, 16)
"""ZooKeeper's answer to a new connection."""


async def zookeeper(stream: trio.SocketStream) -> None:
    """Answer as a ZooKeeper without nodes."""
    received = b""
    async for data in stream:
        received += data
        while len(received) >= (end := 4 + int.from_bytes(received[:4], "big")) > 4:
            # A question begins with its number, and what opens a connection with zeros.
            number, received = received[4:8], received[end:]
            no_node = b"\0\0\0\x10" + number + struct.pack(">qi", 1, -101)
            await stream.send_all(no_node if any(number) else SESSION)


async def test_the_host_of_zookeeper_that_answered_is_asked_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another may hang: a renewal would wait for it, and a stop too long to let the number go."""
    orders = cycle([list.copy, list.reverse])
    # kazoo asks the hosts in a random order; this one is another each time.
    monkeypatch.setattr("random.shuffle", lambda hosts: next(orders)(hosts))
    connections = []

    async def other(stream: trio.SocketStream) -> None:
        connections.append(stream)

    async with (
        served(zookeeper) as one,
        served(other) as two,
        connect(parse(f"zk://{one},{two}/uuidd")) as engine,
    ):
        for _ in range(2):
            assert await engine.meta() is None
            engine.rest()
    assert connections == []


async def test_a_host_of_zookeeper_that_lets_nobody_connect_is_given_up_soon(
    full: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that another one is asked within the attempt."""
    monkeypatch.setattr("random.shuffle", Mock())
    async with (
        served(zookeeper) as good,
        connect(parse(f"zk://{full},{good},{good},{good}/uuidd")) as engine,
    ):
        assert await engine.meta() is None


@pytest.mark.parametrize("answers", [[], [SESSION]], ids=["connecting", "connected"])
async def test_a_question_to_zookeeper_that_was_given_up_ends(
    answers: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, because the next one waits for it."""
    for name in ("CONNECT_SECONDS", "HOST_SECONDS"):
        monkeypatch.setattr(f"uuidd.fleet.engines.zookeeper.{name}", 60.0)
    asked = trio.Event()

    async def serve(stream: trio.SocketStream) -> None:
        if asked.is_set():
            await zookeeper(stream)
        for answer in answers:
            await stream.receive_some()
            await stream.send_all(answer)
        await stream.receive_some()
        asked.set()
        await nothing(stream)

    async with served(serve) as host, connect(parse(f"zk://{host}/uuidd")) as engine:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(engine.meta)
            await asked.wait()
            nursery.cancel_scope.cancel()
        assert await engine.meta() is None


def sent(data: bytes) -> str:
    """Return a key or a value as it is in the JSON of etcd."""
    return base64.b64encode(data).decode()


async def test_garbage_in_the_namespace_is_named() -> None:
    kept = {"key": sent(b"/uuidd/meta"), "value": "eA==", "mod_revision": "5"}
    async with (
        served(answering(json.dumps({"kvs": [kept]}).encode())) as host,
        connect(parse(f"etcd://{host}/uuidd")) as engine,
    ):
        with pytest.raises(Refused, match="/uuidd/meta is no record of uuidd"):
            await engine.meta()


async def put(hosts: str, old: Entry | None = None) -> None:
    """Write to etcd: a value in place of the *old* one, while another key has a value."""
    engine = opened(parse(f"etcd://{hosts}/uuidd"))
    await trio.to_thread.run_sync(engine.put, "/k", b"new", old, ("/meta", b"meta"))


async def test_a_write_that_may_have_been_done_is_not_repeated() -> None:
    """The host that got it went away without an answer; nothing is asked of the next."""
    requests = []

    async def lost(stream: trio.SocketStream) -> None:
        requests.append(await stream.receive_some())

    async with served(lost) as one, served(lost) as other:
        with pytest.raises(Away):
            await put(f"{one},{other}")
    assert len(requests) == 1


async def test_a_write_to_etcd_names_what_it_replaces() -> None:
    """The key, at the revision and with the value that were read; else nothing is written."""
    requests = []

    async def serve(stream: trio.SocketStream) -> None:
        received = b""
        while not received.endswith(b"}"):
            received += await stream.receive_some()
        requests.append(json.loads(received.partition(b"\r\n\r\n")[2]))
        body = b'{"header": {"revision": "6"}, "succeeded": true}'
        head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        await stream.send_all(head % len(body) + body)

    async with served(serve) as host:
        await put(host, Entry(b"before", 5))
    guard, key, equal = sent(b"/meta"), sent(b"/k"), {"result": "EQUAL"}
    compare = [
        {**equal, "key": guard, "target": "VALUE", "value": sent(b"meta")},
        {**equal, "key": key, "target": "MOD", "mod_revision": "5"},
        {**equal, "key": key, "target": "VALUE", "value": sent(b"before")},
    ]
    success = [{"request_put": {"key": key, "value": sent(b"new")}}]
    assert requests == [{"compare": compare, "success": success}]


async def test_a_refused_transaction_is_no_error() -> None:
    """In JSON, ``succeeded`` is left out then."""
    async with served(answering(b'{"header": {"revision": "5"}}')) as host:
        with pytest.raises(Changed):
            await put(host)


@pytest.mark.parametrize(
    "ask",
    [
        lambda engine: engine.read(7),
        lambda engine: engine.write(7, Record("0" * 16, 1, held=True), None),
    ],
    ids=["read", "write"],
)
async def test_a_folder_on_a_disk_that_hangs_is_away(
    ask: Callable[[Registers], Awaitable[object]],
    tmp_path: Path,
    mock_clock: trio.testing.MockClock,
) -> None:
    """Within the time of an attempt; the thread that hangs is none of those for saves."""
    meta = Meta("0" * 16, 0)
    register = tmp_path / meta.id / "0007"

    def end_hanging() -> None:
        os.close(os.open(register, os.O_RDWR))

    async with connect(parse(f"folder://{tmp_path}")) as engine:
        await engine.create(meta, {})
        await engine.meta()
        # Who opens a pipe to read it waits for a writer.
        os.mkfifo(register)
        late = Timer(10, end_hanging)
        late.start()
        mock_clock.autojump_threshold = 0
        try:
            with pytest.raises(Away, match=f"^no answer within {ATTEMPT_SECONDS:g} s$"):
                await ask(engine)
            assert late.is_alive()
            assert trio.to_thread.current_default_thread_limiter().borrowed_tokens == 0
        finally:
            late.cancel()
            end_hanging()

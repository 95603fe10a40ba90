from __future__ import annotations

import contextlib
import errno
import gc
import itertools
import os
import select
import socket
import sys
import time as real_time
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import pack
from typing import Any

import msgpack
import pytest

from tests.client.breaking import break_off, come_between
from tests.client.fakes import (
    NODE,
    START,
    Answer,
    Server,
    Time,
    bulk_reply,
    full_backlog,
    granted,
    grants,
    in_turn,
    refused,
    result,
    util_linux,
)
from tests.client.lanes import Lanes
from uuidd.core.timeline import Block
from uuidd_client import connection
from uuidd_client.connection import MAX_FROM_LIBUUID, Connection
from uuidd_client.errors import DaemonUnavailable
from uuidd_client.lease import page_of
from uuidd_client.life import Life, Over, Watch
from uuidd_client.system import SYSTEM_CLOCK, ClientClock

PATIENCE = 10.0


@contextlib.contextmanager
def connect(
    path: Path, timeout: float = PATIENCE, clock: ClientClock = SYSTEM_CLOCK
) -> Iterator[Connection]:
    """Return a connection that is closed in the end."""
    # A life of its own, which keeps no page of other tests.
    found = Connection(str(path), timeout, clock=clock, life=Life())
    try:
        yield found
    finally:
        found.close()


@contextlib.contextmanager
def warnings_while_collected() -> Iterator[list[str]]:
    """Return what is warned of by objects that end in the context, the collector's also."""
    found: list[str] = []
    hook = sys.unraisablehook
    sys.unraisablehook = lambda caught: found.append(str(caught.exc_value))
    try:
        yield found
        gc.collect()
    finally:
        sys.unraisablehook = hook


@contextlib.contextmanager
def served(
    path: Path, answer: Answer, clock: ClientClock = SYSTEM_CLOCK
) -> Iterator[tuple[Server, Connection]]:
    """Return a server and a connection to it."""
    with Server(path, answer) as server, connect(path, clock=clock) as found:
        yield server, found


# --- rpc


def test_a_block_is_what_the_daemon_says(path: Path) -> None:
    with served(path, lambda request: result(request, granted(3, 4))) as (_, found):
        assert found.take("utc", 4)[0] == Block(START + 3, 4, 5, NODE)


def test_a_block_for_snowflakes_has_the_daemons_worker_number(path: Path) -> None:
    with served(path, lambda request: result(request, granted(3, 4) | {"worker": 7})) as (_, found):
        assert found.take("snowflake", 4)[0].origin.worker == 7


@pytest.mark.parametrize("timeline", ["utc", "steady", "snowflake"])
@pytest.mark.parametrize("wait", [False, True])
def test_a_take_says_whether_the_daemon_may_wait_for_its_disk(
    path: Path, timeline: str, wait: bool
) -> None:
    """The request names the timeline too, and is a MessagePack-RPC one, as published."""
    with served(path, lambda request: result(request, granted(3, 4))) as (server, found):
        taken, _ = found.take(timeline, 4, wait=wait)
        assert (taken.first, taken.count) == (START + 3, 4)
    assert msgpack.unpackb(server.requests[0]) == [0, 1, "take", [timeline, 4, False, wait]]


@pytest.mark.parametrize(("wait", "seconds"), [(False, PATIENCE), (True, PATIENCE + 0.8)])
def test_a_daemon_that_waits_has_its_own_time_for_that(
    path: Path, monkeypatch: pytest.MonkeyPatch, wait: bool, seconds: float
) -> None:
    """The time-out is for silence; what the daemon may wait for its disk comes on top."""
    left: list[float] = []

    class Watched(connection.Stream):
        def wait_for_bytes(self, seconds: float) -> None:
            left.append(seconds)
            super().wait_for_bytes(seconds)

    monkeypatch.setattr(connection, "Stream", Watched)
    with served(path, grants(), Time()) as (_, found):
        found.take("utc", 1, wait=wait)
    assert left == [pytest.approx(seconds)]


def test_each_request_has_a_msgid_of_its_own(path: Path) -> None:
    """So a late answer is not taken for the next one's, over the one connection of all calls."""
    with served(path, grants()) as (server, found):
        for _ in range(20):
            found.take("utc", 1)
    assert server.connections == 1
    assert len({msgpack.unpackb(request)[1] for request in server.requests}) == 20


def test_msgids_wrap_around_after_32_bits(path: Path) -> None:
    """After the highest msgid comes 0, for there is no higher one in the protocol."""
    with served(path, grants()) as (server, found):
        found._msgid = (1 << 32) - 2
        found.take("utc", 1)
        found.take("utc", 1)
    assert [msgpack.unpackb(request)[1] for request in server.requests] == [(1 << 32) - 1, 0]


def test_a_connection_that_broke_is_made_anew(path: Path) -> None:
    with connect(path) as found:
        for _ in range(2):
            with Server(path, grants()) as server:
                found.take("utc", 1)
            assert server.connections == 1


def test_a_request_that_broke_off_is_sent_once_more(path: Path) -> None:
    answers = in_turn(grants(), lambda _: None, grants())
    with served(path, answers) as (server, found):
        found.take("utc", 1)
        found.take("utc", 2)
    assert (server.connections, server.requests[1]) == (2, server.requests[2])


def test_an_answer_may_come_in_pieces(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = msgpack.packb([1, 1, None, granted(0, 1)])
    pieces = iter([whole[:1], whole[1:9], whole[9:]])
    monkeypatch.setattr(connection.Stream, "receive", lambda *_: (next(pieces), []))
    with served(path, lambda _: b"") as (_, found):
        assert found.take("utc", 1)[0].first == START


def test_an_error_is_told_in_one_line_that_a_terminal_can_show(path: Path) -> None:
    """The daemon's own text is the cause, without characters that would move a cursor."""
    text = "unavailable: x\ny\x1b[2J" + 9999 * "z"
    with (
        served(path, lambda request: refused(request, text)) as (_, found),
        pytest.raises(DaemonUnavailable) as caught,
    ):
        found.take("utc", 1)
    assert "unavailable: x\\ny\\x1b[2Jzz" in str(caught.value)
    assert len(str(caught.value)) < 2000
    assert (caught.value.path, caught.value.reason) == (str(path), "unavailable")
    assert caught.value.code == "unavailable"


def test_an_error_leaves_the_connection_open(path: Path) -> None:
    """A daemon that refuses is there. Whether it may wait for its disk is the caller's choice."""
    with served(path, in_turn(lambda asked: refused(asked, "must_wait: x"), grants())) as (
        server,
        found,
    ):
        with pytest.raises(DaemonUnavailable) as caught:
            found.take("utc", 1)
        assert (caught.value.code, len(server.requests)) == ("must_wait", 1)
        found.take("utc", 1)
    assert server.connections == 1


NO_RESPONSES = [
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"\xc1",
    b"\x00",
    msgpack.packb([2, "hello", []]),
    msgpack.packb([0, 1, "take", []]),
    msgpack.packb([1, 1, None]),
    msgpack.packb([1, 1, ["busy", "no room"], None]),
    msgpack.packb([1, 1, b"busy: no room", None]),
    msgpack.packb([1, 1, [1, 2], None]),
    msgpack.packb([True, 1, None, granted(0, 1)]),
    msgpack.packb([1, True, None, granted(0, 1)]),
    msgpack.packb([1, 1.0, None, granted(0, 1)]),
    msgpack.packb({}),
    b"\x91" * 5000,
    b"\xff" * 100_000,
]

NO_BLOCKS: list[Any] = [
    None,
    7,
    "text",
    [],
    {},
    granted(0, 0),
    granted(0, -1),
    granted(0, 1_000_001),
    granted(-START - 1, 1),
    granted((1 << 60) - START, 1),
    granted(0, 1) | {"clock_seq": 1 << 14},
    granted(0, 1) | {"clock_seq": -1},
    granted(0, 1) | {"node": b"12345"},
    granted(0, 1) | {"node": "123456"},
    granted(0, 1) | {"first": 1.5},
    granted(0, 1) | {"first": None},
    granted(0, 1) | {"count": True},
    {name: value for name, value in granted(0, 1).items() if name != "node"},
]


def says(value: Any) -> Answer:
    """Return an answer with this result."""
    return lambda request: result(request, value)


UNUSABLE: list[tuple[str, Answer, str]] = [
    *(("utc", lambda _, it=it: it, "") for it in NO_RESPONSES),
    *(("utc", says(block), "") for block in NO_BLOCKS),
    *(
        ("utc", lambda _, it=it: msgpack.packb([1, it, None, granted(0, 1)]), "it is to another re")
        for it in (0, 2, 77)
    ),
    ("utc", says(granted(0, 11)), "11 ticks where 10 were asked for"),
    *(
        ("utc", says(granted(0, 1) | {"page_epoch": it}), ".* is not an epoch")
        for it in (-1, True, "1", None, 1.0, [1])
    ),
    ("snowflake", says(granted(3, 4) | {"worker": None}), ".* without a worker number"),
    *(
        (timeline, says(granted(0, 1) | {"epoch": 1 << 48}), "a map is not a block")
        for timeline in ("steady", "snowflake")
    ),
]


@pytest.mark.parametrize(("timeline", "answer", "words"), UNUSABLE)
def test_an_answer_that_cannot_be_is_unusable(
    path: Path, timeline: str, answer: Answer, words: str
) -> None:
    """No id is made of it, and the connection, which may be out of step, is given up."""
    expected = f"uuidd at {path}: an unusable answer: {words}"
    with served(path, in_turn(answer, grants())) as (server, found):
        with pytest.raises(DaemonUnavailable, match=expected):
            found.take(timeline, 10)
        found.take("utc", 1)
    assert server.connections == 2


# --- no answer


def dead(path: Path) -> Path:
    """Leave a socket on which no process listens."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
    return path


@pytest.mark.parametrize(
    ("place", "cause"),
    [
        (lambda path: path, "No such file"),
        (dead, "Connection refused"),
        (
            lambda path: path.with_name("x" * 120),
            r"the path has \d+ bytes, and a socket's at most 107",
        ),
    ],
)
def test_a_socket_that_cannot_be_reached_is_the_cause(
    path: Path, place: Callable[[Path], Path], cause: str
) -> None:
    tried = place(path)
    with connect(tried) as found, pytest.raises(DaemonUnavailable, match=cause) as caught:
        found.take("utc", 1)
    assert str(tried) in str(caught.value)
    assert caught.value.reason != "silent"


def test_silence_ends_with_the_time_out(path: Path) -> None:
    with Server(path, lambda _: b""), connect(path, timeout=0.1) as found:
        begun = real_time.monotonic()
        with pytest.raises(DaemonUnavailable, match="silent for") as caught:
            found.take("utc", 1)
        assert 0.09 < real_time.monotonic() - begun < 5
    assert caught.value.reason == "silent"


def test_what_comes_after_the_time_out_is_not_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who sends byte after byte is late all the same, though there is always one to be read."""
    time = Time()
    # The beginning of a megabyte.
    pieces = itertools.chain([b"\xc6\x00\x0f\xff\xff"], itertools.repeat(b"\x00", 20))

    def trickled(*_: object) -> tuple[bytes, list[int]]:
        time.move(PATIENCE / 5)
        return next(pieces), []

    monkeypatch.setattr(connection.Stream, "receive", trickled)
    with (
        served(path, lambda _: b"", time) as (_, found),
        pytest.raises(DaemonUnavailable, match="silent for longer") as caught,
    ):
        found.take("utc", 1)
    assert caught.value.reason == "silent"


def test_a_silence_after_a_piece_ends_with_the_time_out_of_the_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A piece of an answer gives its sender no more time than was left."""
    time, waits = Time(), []

    class Watched(connection.Stream):
        def wait_for_bytes(self, seconds: float) -> None:
            waits.append(seconds)
            time.move(PATIENCE / 4)
            super().wait_for_bytes(PATIENCE if len(waits) == 1 else 0)

    monkeypatch.setattr(connection, "Stream", Watched)
    with (
        served(path, lambda _: b"\x94", time) as (_, found),
        pytest.raises(DaemonUnavailable, match="silent for"),
    ):
        found.take("utc", 1)
    assert waits == pytest.approx([PATIENCE, PATIENCE * 3 / 4])


def test_a_full_backlog_ends_with_the_time_out(path: Path) -> None:
    """A daemon that accepts nobody any more cannot hold a caller in connect()."""
    time = Time()
    with contextlib.ExitStack() as stack:
        stack.enter_context(full_backlog(path))
        found = stack.enter_context(connect(path, clock=time))
        with pytest.raises(DaemonUnavailable) as caught:
            found.take("utc", 1)
    assert time.elapsed() == pytest.approx(1000 + PATIENCE, abs=0.1)
    assert caught.value.reason == "silent"


def test_a_connection_that_the_collector_ends_is_no_leak(path: Path) -> None:
    """Whichever of the connection and its socket the collector comes to first."""
    with Server(path, grants()), warnings_while_collected() as warned:
        found = Connection(str(path), PATIENCE)
        found.take("utc", 1)
        cycle: list[object] = [found]
        cycle.append(cycle)
        # A collection that finds the socket in use here sorts it before what leads to it.
        sock, found = found._sock, None  # type: ignore[assignment]
        gc.collect()
        del sock, cycle
    assert not warned


def test_a_connect_that_is_broken_off_anywhere_leaves_no_socket(path: Path) -> None:
    """Wherever in it a signal handler's exception comes, the descriptor is closed."""
    with socket.socket(socket.AF_UNIX) as listener, warnings_while_collected() as warned:
        listener.bind(str(path))
        listener.listen(1000)
        before = os.listdir("/proc/self/fd")
        found = Connection(str(path), PATIENCE)
        for at in itertools.count(1):
            broken = break_off(found._open, at)
            if broken is None:
                break
            del broken
            found.close()
            assert os.listdir("/proc/self/fd") == before
        assert at > 5
        found.close()
    assert not warned


def test_a_hanging_up_that_is_broken_off_anywhere_leaves_no_socket(path: Path) -> None:
    """What is not closed then is closed with the connection."""
    with socket.socket(socket.AF_UNIX) as listener, warnings_while_collected():
        listener.bind(str(path))
        listener.listen(1000)
        before = os.listdir("/proc/self/fd")
        for at in itertools.count(1):
            found = Connection(str(path), PATIENCE)
            found._open()
            broken = break_off(found.close, at)
            if broken is None:
                break
            del broken, found
            assert os.listdir("/proc/self/fd") == before
        assert at > 3


def test_a_connection_may_be_closed_while_it_is_closed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a fork's child the first calls of many threads close their parent's at once."""
    with served(path, grants()) as (_, found):
        found.take("utc", 1)
        is_open = connection.Stream.is_open

        def closing_meanwhile(self: connection.Stream) -> bool:
            monkeypatch.setattr(connection.Stream, "is_open", is_open)
            there = is_open(self)
            found.close()
            return there

        monkeypatch.setattr(connection.Stream, "is_open", closing_meanwhile)
        found.close()
        found.take("utc", 1)


def test_without_a_descriptor_left_the_error_says_so(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an error of the one kind, so that the fallback can stand in."""

    def none_left(_: Life) -> connection.Stream:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(connection, "Stream", none_left)
    with connect(path) as found, pytest.raises(DaemonUnavailable, match="Too many open files"):
        found.take("utc", 1)


# --- util-linux's uuidd


def test_a_daemon_that_hangs_up_on_rpc_is_asked_in_libuuids_dialect(path: Path) -> None:
    """util-linux's uuidd closes on rpc; its block is that of the one UUID it answers with."""
    with served(path, util_linux) as (server, found):
        assert found.take("utc", 100)[0] == Block(START, 100, 9, NODE)
    assert server.requests[-1] == b"\x04" + pack("=i", 100)


def test_the_dialect_is_kept_for_a_minute(path: Path) -> None:
    """Rpc is not tried before each block, but after a minute it is: ours may have come."""
    time = Time()
    with served(path, util_linux, time) as (server, found):
        found.take("utc", 1)
        time.move(59)
        found.take("utc", 1)
        time.move(1)
        found.take("utc", 1)
    tried = [0x94, 0x94, 4]
    assert [request[0] for request in server.requests] == [*tried, 4, *tried]


def test_a_daemon_that_closed_once_is_not_taken_for_util_linuxs(path: Path) -> None:
    """Ours may be restarted during the first call, and speaks libuuid's dialect too."""
    with served(path, in_turn(lambda _: None, grants())) as (server, found):
        found.take("utc", 1)
    assert [request[0] for request in server.requests] == [0x94, 0x94]


def test_no_more_is_asked_of_util_linux_than_its_clock_bears(path: Path) -> None:
    """Its clock runs ahead by what it gives, so a large block is several."""
    with served(path, util_linux) as (_, found):
        assert found.take("utc", 1_000_000)[0].count == MAX_FROM_LIBUUID


@pytest.mark.parametrize(
    "garbage",
    [
        pack("=i", -1),
        pack("=i", 1 << 20),
        pack("=i", 3) + b"123",
        pack("=i", 20) + bytes(20),
        pack("=i", 16) + bytes(16),
    ],
)
def test_garbage_in_libuuids_dialect_is_an_unusable_answer(path: Path, garbage: bytes) -> None:
    """Who answered neither dialect well is not taken for util-linux's: rpc is tried first then."""
    answers = in_turn(*[lambda _: None] * 2, lambda _: garbage, grants())
    with served(path, answers) as (server, found):
        with pytest.raises(DaemonUnavailable, match="unusable"):
            found.take("utc", 1)
        found.take("utc", 1)
    assert [request[0] for request in server.requests] == [0x94, 0x94, 4, 0x94]


def test_who_hangs_up_on_both_dialects_is_no_daemon(path: Path) -> None:
    with (
        served(path, lambda _: None) as (_, found),
        pytest.raises(DaemonUnavailable, match="closed the connection"),
    ):
        found.take("utc", 1)


def test_util_linux_s_uuidd_has_no_status(path: Path) -> None:
    with (
        served(path, util_linux) as (_, found),
        pytest.raises(DaemonUnavailable, match=f"uuidd at {path}: .*as util-linux's does"),
    ):
        found.status()


def test_a_call_after_an_interrupted_one_is_answered(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal handler that raises costs its own call, not the next one's answer."""
    with served(path, grants()) as (_, found):
        found.take("utc", 1)

        def interrupt(sock: connection.Stream, *_: object) -> tuple[bytes, list[int]]:
            monkeypatch.undo()
            # Not before the answer has come, which is the case that matters.
            assert select.select([sock], [], [], PATIENCE)[0]
            raise KeyboardInterrupt

        monkeypatch.setattr(connection.Stream, "receive", interrupt)
        with pytest.raises(KeyboardInterrupt):
            found.take("utc", 1)
        assert found.take("utc", 1)[0].count == 1


@pytest.mark.parametrize("answer", [None, 7, [1]])
def test_a_status_that_is_not_a_map_is_an_unusable_answer(path: Path, answer: object) -> None:
    with (
        served(path, lambda request: result(request, answer)) as (_, found),
        pytest.raises(DaemonUnavailable, match="an unusable answer: it is not a map"),
    ):
        found.status()


def test_util_linux_grants_no_more_than_was_asked(path: Path) -> None:
    """What a reply's count claims beyond the request was never reserved."""

    def boast(request: bytes) -> bytes | None:
        return bulk_reply(START, 2_000_000_000) if request[0] == 4 else None

    with served(path, boast) as (_, found):
        assert found.take("utc", 10)[0].count == 10


# --- the page, and what a block says of it


def giving(path: Path, greeting: list[int], **more: Any) -> Server:
    """Return a daemon that passes *greeting* with its first reply, and says *more* of a block."""
    return Server(path, lambda asked: result(asked, granted(0, 4) | more), greeting=greeting)


def over(watch: Watch) -> bool:
    """Whether what has this watch may be used no longer."""
    return watch.token[0] != watch.value


@pytest.mark.parametrize("timeline", ["utc", "steady", "snowflake"])
def test_a_block_is_watched_from_the_first_one_on(path: Path, lanes: Lanes, timeline: str) -> None:
    """The page comes with it, in the same round trip; the next ones are of the same page."""
    with giving(path, [lanes.fd]) as server, connect(path) as found:
        watches = [found.take(timeline, 4)[1] for _ in range(2)]
        assert len(server.requests) == 2
        assert list(map(over, watches)) == [False, False]
        lanes.renew()
        assert list(map(over, watches)) == [True, True]


@pytest.mark.parametrize("of", [0, 1])
def test_a_block_says_after_how_many_clones_it_was_given(path: Path, lanes: Lanes, of: int) -> None:
    """The machine may be cloned between the reply and the first look at its page."""
    lanes.renew()
    with giving(path, [lanes.fd], page_epoch=of) as server, connect(path) as found:
        assert over(found.take("utc", 4)[1]) is (of == 0)
        assert len(server.requests) == 1


@pytest.mark.parametrize("passed", ["nothing", "a file"])
def test_a_block_without_a_page_is_used_all_the_same(path: Path, passed: str) -> None:
    """As of an earlier daemon; a renewal ends it. A descriptor of something else is closed."""
    before = len(os.listdir("/proc/self/fd"))
    life = Life()
    with open(__file__, "rb") as file:
        greeting = [file.fileno()] if passed == "a file" else []
        with giving(path, greeting, page_epoch=3):
            found = Connection(str(path), PATIENCE, life=life)
            block, watch = found.take("utc", 4)
            assert block.count == 4
            assert watch is life.watch
            found.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_page_is_passed_on_to_the_life(path: Path, lanes: Lanes) -> None:
    """So a clone ends also what is made without the daemon."""
    life = Life()
    with giving(path, [lanes.fd]):
        found = Connection(str(path), PATIENCE, life=life)
        found.take("utc", 4)
        found.close()
    assert not life.over
    lanes.renew()
    assert life.over


def test_connections_leave_no_descriptor_of_the_page_open(path: Path, lanes: Lanes) -> None:
    """All of a process share the page of their daemon, one after another too."""
    with giving(path, [lanes.fd]):
        pages = []
        for _ in range(5):
            with connect(path) as found:
                found.take("utc", 4)
                pages.append(found.page)
        assert len({id(page) for page in pages}) == 1


# --- leases


@contextlib.contextmanager
def leasing(path: Path, lanes: Lanes) -> Iterator[tuple[Server, Connection]]:
    """Return a server that leases *lanes*, and a connection to it."""
    with Server(path, grants(), lanes.answered) as server, connect(path) as found:
        yield server, found


def test_another_lease_of_a_connection_is_of_the_same_page(path: Path, lanes: Lanes) -> None:
    with leasing(path, lanes) as (server, found):
        first = found.lease()
        lanes.passed = []
        second = found.lease()
        assert second.allows(START)
        assert (second.page is first.page, second.lane) == (True, first.lane + 1)
        assert server.connections == 1


def test_a_page_is_not_taken_for_the_next_daemons(path: Path, lanes: Lanes) -> None:
    """The next connection has none until one is passed over it."""
    with leasing(path, lanes) as (_, found):
        found.lease()
        found.close()
        lanes.passed = []
        with pytest.raises(DaemonUnavailable, match="a lease came without its page"):
            found.lease()


@pytest.mark.parametrize("number", [0, 1])
def test_a_lease_without_its_page_is_given_back(path: Path, lanes: Lanes, number: int) -> None:
    """It ends with its connection. A file, which its owner could shorten, is no page."""
    with open(__file__, "rb") as file, leasing(path, lanes) as (server, found):
        lanes.passed = [file.fileno()] * number
        with pytest.raises(DaemonUnavailable, match="a lease came without its page"):
            found.lease()
        assert found.take("utc", 1)[0].count == 1
        assert server.connections == 2


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_lease_leaves_no_passed_descriptor_open(path: Path, lanes: Lanes, number: int) -> None:
    """However many are passed: the mapping of the page, which is known here, has the only one."""
    page = page_of(os.dup(lanes.fd))
    with leasing(path, lanes) as (_, found):
        found.take("utc", 1)
        before = len(os.listdir("/proc/self/fd"))
        lanes.passed *= number
        holding = found.lease()
        assert len(os.listdir("/proc/self/fd")) == before
        assert holding.page is page


LEASE = {
    "lane": 20,
    "clock_seq": 3 << 8 | 20,
    "node": NODE.to_bytes(6, "big"),
    "token": 7,
    "begin": START,
}


@pytest.mark.parametrize(
    "lie",
    [
        {"lane": 15, "clock_seq": 3 << 8 | 15},
        {"lane": 256, "clock_seq": 4 << 8},
        {"lane": -1, "clock_seq": 3 << 8 | 255},
        {"lane": 21},
        {"clock_seq": 1 << 14 | 20},
        {"token": 0},
        {"token": -1},
        {"begin": 1 << 60},
        {"begin": -1},
        {"node": b"12345"},
        {"lane": True},
        {"token": None},
    ],
    ids=str,
)
def test_a_lease_that_cannot_be_is_an_unusable_answer(
    path: Path, lanes: Lanes, lie: dict[str, Any]
) -> None:
    with leasing(path, lanes) as (server, found):
        lanes.answer = LEASE | lie
        with pytest.raises(DaemonUnavailable, match="an unusable answer: a map is not a lease"):
            found.lease()
        assert found.take("utc", 1)[0].count == 1
        assert server.connections == 2


@pytest.mark.parametrize(
    "said",
    ["no_lease: none is free", "unknown_method: no method is called 'lease'; there are make, take"],
)
def test_a_refused_lease_leaves_the_connection_open(path: Path, lanes: Lanes, said: str) -> None:
    """The error has the code, and the daemon's words. An older daemon knows no leases."""
    lanes.refusing, lanes.refusal = True, said
    with leasing(path, lanes) as (server, found):
        with pytest.raises(DaemonUnavailable, match=f"refused: {said}") as caught:
            found.lease()
        assert caught.value.code == said.partition(":")[0]
        assert found.take("utc", 1)[0].count == 1
        assert server.connections == 1


def test_util_linux_s_uuidd_has_no_leases(path: Path) -> None:
    """It hangs up; its blocks are asked for in its own protocol."""
    with Server(path, util_linux, lambda *_: False) as server, connect(path) as found:
        with pytest.raises(DaemonUnavailable, match="as util-linux's does"):
            found.lease()
        assert [found.take("utc", 5)[0].count for _ in range(2)] == [5, 5]
        asked = server.asked
        with pytest.raises(DaemonUnavailable, match="as util-linux's does"):
            found.lease()
        # It is known by then.
        assert server.asked == asked


def test_a_lease_may_be_closed_anywhere(path: Path, lanes: Lanes) -> None:
    """As in a child whose signal handler draws: what is not there any more is not used."""
    with leasing(path, lanes) as (_, found):
        for at in itertools.count(1):
            closed: list[int] = []

            def close(at: int = at, closed: list[int] = closed) -> None:
                closed.append(at)
                found.close()

            with contextlib.suppress(DaemonUnavailable, Over):
                come_between(found.lease, at, close)
            found.close()
            if not closed:
                break
    assert at > 20


# --- that ids are being made


def test_the_daemon_is_told_that_ids_are_made(path: Path, lanes: Lanes) -> None:
    """By a notification, which has no answer."""
    with leasing(path, lanes) as (server, found):
        found.lease()
        found.tell_in_use()
        # Only then has the server read what came before.
        found.take("utc", 1)
        assert server.told == 1
        assert len(server.requests) == 1


def test_the_next_daemon_is_told_over_another_connection(path: Path, lanes: Lanes) -> None:
    with leasing(path, lanes) as (_, found):
        found.lease()
    with Server(path, grants()) as server:
        found.tell_in_use()
        assert found.take("utc", 1)[0].count == 1
        assert (server.told, server.connections) == (1, 1)
    found.close()


def test_a_daemon_that_has_gone_is_told_nothing(path: Path, lanes: Lanes) -> None:
    with leasing(path, lanes) as (_, found):
        found.lease()
    found.tell_in_use()
    found.tell_in_use()
    with Server(path, grants()):
        assert found.take("utc", 1)[0].count == 1
    found.close()


def test_a_daemon_that_reads_nothing_is_not_waited_for(path: Path) -> None:
    """Its socket is full in the end: then no more is sent, and no other connection is opened."""
    with socket.socket(socket.AF_UNIX) as listener, connect(path) as found:
        listener.bind(str(path))
        listener.listen(1)
        listener.settimeout(0)
        for _ in range(100_000):
            found.tell_in_use()
        accepted, _ = listener.accept()
        with accepted, pytest.raises(BlockingIOError):
            listener.accept()


def test_a_silent_daemon_is_told_nothing(path: Path) -> None:
    """What it would read first is the request that it has not answered."""
    with Server(path, lambda _: b"") as server, connect(path, timeout=0.01) as found:
        with pytest.raises(DaemonUnavailable):
            found.take("utc", 1)
        found.tell_in_use()
        with pytest.raises(DaemonUnavailable):
            found.take("utc", 1)
        assert server.told == 0

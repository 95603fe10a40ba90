"""The client's connection: requests and answers, silence, pages and leases."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import itertools
import os
import select
import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from struct import pack
from typing import Any

import msgpack
import pytest

from tests.client.breaking import break_off, come_between
from tests.client.conftest import Waits
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
    result,
    util_linux,
)
from tests.client.lanes import Lanes
from tests.tools import descriptors, output
from uuidd.core.timeline.outcomes import Block
from uuidd.core.timeline.page import HORIZON_AT, MAGIC_AT, PAGE_MAGIC
from uuidd_client import connection
from uuidd_client.connection import MAX_FROM_LIBUUID, Connection, Stream
from uuidd_client.errors import DaemonUnavailable
from uuidd_client.lease import PAGE_BYTES, SEALS, Lease, Page, PageError
from uuidd_client.life import Life, Over, Watch
from uuidd_client.system import SYSTEM_CLOCK, ClientClock

PATIENCE = 10.0


@contextlib.contextmanager
def connect(
    path: Path,
    timeout: float = PATIENCE,
    clock: ClientClock = SYSTEM_CLOCK,
    life: Life | None = None,
) -> Iterator[Connection]:
    # A life of its own, which keeps no page of other tests.
    found = Connection(str(path), timeout, clock=clock, life=life or Life())
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
    with Server(path, answer) as server, connect(path, clock=clock) as found:
        yield server, found


def says(value: Any) -> Answer:
    return lambda request: result(request, value)


@pytest.fixture
def waits(waits: Waits, time: Time) -> Waits:
    """A quarter of PATIENCE passes before each wait for an answer."""

    def lasting(_: float) -> float:
        time.move(PATIENCE / 4)
        return PATIENCE if len(waits) == 1 else 0

    waits.lasting = lasting
    return waits


@pytest.mark.parametrize(("wait", "seconds"), [(False, PATIENCE), (True, PATIENCE + 0.8)])
def test_a_daemon_that_waits_has_its_own_time_for_that(
    path: Path, time: Time, waits: Waits, wait: bool, seconds: float
) -> None:
    """The time-out is for silence; what the daemon may wait for its disk comes on top."""
    with served(path, grants(), time) as (_, found):
        found.take("utc", 1, wait=wait)
    assert waits == pytest.approx([seconds])


@pytest.mark.parametrize("last", [0, (1 << 32) - 2])
def test_each_request_has_a_msgid_of_its_own(path: Path, last: int) -> None:
    """So a late answer is not taken for the next one's. After the highest msgid comes 0."""
    with served(path, grants()) as (server, found):
        found._msgid = last
        for _ in range(20):
            found.take("utc", 1)
    assert server.connections == 1
    sent = [msgpack.unpackb(request)[1] for request in server.requests]
    assert sent == [(last + number) % (1 << 32) for number in range(1, 21)]


def test_an_error_is_told_in_one_line_that_a_terminal_can_show(path: Path) -> None:
    text = "unavailable: x\ny\x1b[2J" + 9999 * "z"
    with (
        served(path, text) as (_, found),
        pytest.raises(DaemonUnavailable) as caught,
    ):
        found.take("utc", 1)
    assert "unavailable: x\\ny\\x1b[2Jzz" in str(caught.value)
    assert len(str(caught.value)) < 2000
    assert (caught.value.path, caught.value.reason) == (str(path), "unavailable")
    assert caught.value.code == "unavailable"


UNUSABLE: list[tuple[str, Answer, str]] = [
    *(("utc", it, "") for it in (b"HTTP/1.1 400", b"\x91" * 5000, b"\xff" * 100_000)),
    ("utc", says(None), ""),
    *(
        ("utc", lambda _, it=it: msgpack.packb([1, it, None, granted(0, 1)]), "it is to another re")
        for it in (0, 2, 77)
    ),
    ("utc", granted(0, 11), "11 ticks where 10 were asked for"),
    *(
        ("utc", granted(0, 1) | {"page_epoch": it}, ".* is not an epoch")
        for it in (-1, True, "1", None, 1.0, [1])
    ),
    ("snowflake", granted(3, 4) | {"worker": None}, ".* without a worker number"),
    ("steady", granted(0, 1) | {"epoch": 1 << 48}, "a map is not a block"),
    *(("status", says(it), "it is not a map") for it in (None, 7, [1])),
]


@pytest.mark.parametrize(("asked", "answer", "words"), UNUSABLE)
def test_an_answer_that_cannot_be_is_unusable(
    path: Path, asked: str, answer: Answer, words: str
) -> None:
    """No id is made of it, and the connection, which may be out of step, is given up."""
    with served(path, in_turn(answer, grants())) as (server, found):
        call = found.status if asked == "status" else partial(found.take, asked, 10)
        with pytest.raises(
            DaemonUnavailable, match=f"uuidd at {path}: an unusable answer: {words}"
        ):
            call()
        found.take("utc", 1)
    assert server.connections == 2


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("absent", "No such file"),
        ("dead", "Connection refused"),
        ("x" * 120, r"the path has \d+ bytes, and a socket's at most 107"),
    ],
)
def test_a_socket_that_cannot_be_reached_is_the_cause(
    tmp_path: Path, name: str, cause: str
) -> None:
    path = tmp_path / name
    with socket.socket(socket.AF_UNIX) as listener:
        if name == "dead":
            listener.bind(str(path))
    with connect(path) as found, pytest.raises(DaemonUnavailable, match=cause) as caught:
        found.take("utc", 1)
    assert str(path) in str(caught.value)
    assert caught.value.reason != "silent"


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
        served(path, b"", time) as (_, found),
        pytest.raises(DaemonUnavailable, match="silent for longer") as caught,
    ):
        found.take("utc", 1)
    assert caught.value.reason == "silent"


def test_a_silence_after_a_piece_ends_with_the_time_out_of_the_whole(
    path: Path, time: Time, waits: Waits
) -> None:
    """A piece of an answer gives its sender no more time than was left."""
    with (
        served(path, b"\x94", time) as (_, found),
        pytest.raises(DaemonUnavailable, match="silent for"),
    ):
        found.take("utc", 1)
    assert waits == pytest.approx([PATIENCE, PATIENCE * 3 / 4])


def test_a_full_backlog_ends_with_the_time_out(path: Path) -> None:
    time = Time()
    with contextlib.ExitStack() as stack:
        stack.enter_context(full_backlog(path))
        found = stack.enter_context(connect(path, clock=time))
        with pytest.raises(DaemonUnavailable) as caught:
            found.take("utc", 1)
    assert time.elapsed() == pytest.approx(1000 + PATIENCE, abs=0.1)
    assert caught.value.reason == "silent"


@pytest.mark.parametrize(("call", "least"), [("tell_in_use", 15), ("close", 3)])
def test_a_call_that_is_broken_off_anywhere_leaves_no_socket(
    path: Path, call: str, least: int
) -> None:
    """What a broken hanging up has not closed is closed with the connection, with a warning."""
    with socket.socket(socket.AF_UNIX) as listener, warnings_while_collected() as warned:
        listener.bind(str(path))
        listener.listen(1000)
        before = descriptors()
        for at in itertools.count(1):
            found = Connection(str(path), PATIENCE)
            if call == "close":
                found.tell_in_use()
            broken = break_off(getattr(found, call), at)
            if call != "close":
                found.close()
            if broken is None:
                break
            del broken, found
            assert os.listdir("/proc/self/fd") == before
        assert at > least
    assert call == "close" or not warned


@pytest.mark.parametrize(
    ("count", "said", "taken"),
    [
        (100, 100, 100),
        # Its clock runs ahead by what it gives, so a large block is several.
        (1_000_000, MAX_FROM_LIBUUID, MAX_FROM_LIBUUID),
        # What a reply claims beyond the request was never reserved.
        (10, 2_000_000_000, 10),
    ],
)
def test_a_daemon_that_hangs_up_on_rpc_is_asked_in_libuuids_dialect(
    path: Path, count: int, said: int, taken: int
) -> None:
    def answer(request: bytes) -> bytes | None:
        return bulk_reply(START, said) if request[0] == 4 else None

    with served(path, answer) as (server, found):
        assert found.take("utc", count)[0] == Block(START, taken, 9, NODE)
    assert server.requests[-1] == b"\x04" + pack("=i", taken)


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
    with served(path, in_turn(None, grants())) as (server, found):
        found.take("utc", 1)
    assert [request[0] for request in server.requests] == [0x94, 0x94]


@pytest.mark.parametrize("garbage", [pack("=i", -1), pack("=i", 20) + bytes(20)])
def test_garbage_in_libuuids_dialect_is_an_unusable_answer(path: Path, garbage: bytes) -> None:
    """Who answered neither dialect well is not taken for util-linux's: rpc is tried first then."""
    answers = in_turn(None, None, garbage, grants())
    with served(path, answers) as (server, found):
        with pytest.raises(DaemonUnavailable, match="unusable"):
            found.take("utc", 1)
        found.take("utc", 1)
    assert [request[0] for request in server.requests] == [0x94, 0x94, 4, 0x94]


@pytest.mark.parametrize(
    ("answer", "call"),
    [(None, lambda found: found.take("utc", 1)), (util_linux, Connection.status)],
    ids=["no daemon", "no status"],
)
def test_who_hangs_up_may_be_util_linuxs_daemon(
    path: Path, answer: Answer, call: Callable[[Connection], object]
) -> None:
    words = f"uuidd at {path}: it closed the connection, as util-linux's does"
    with served(path, answer) as (_, found), pytest.raises(DaemonUnavailable, match=words):
        call(found)


def giving(path: Path, greeting: list[int], **more: Any) -> Server:
    """Return a daemon that passes *greeting* with its first reply, and says *more* of a block."""
    return Server(path, granted(0, 4) | more, greeting=greeting)


def over(watch: Watch) -> bool:
    """Whether what has this watch may be used no longer."""
    return watch.token[0] != watch.value


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
    before = descriptors()
    life = Life()
    with open(__file__, "rb") as file:
        greeting = [file.fileno()] if passed == "a file" else []
        with giving(path, greeting, page_epoch=3), connect(path, life=life) as found:
            block, watch = found.take("utc", 4)
            assert (block.count, watch is life.watch) == (4, True)
    assert os.listdir("/proc/self/fd") == before


@contextlib.contextmanager
def leasing(path: Path, lanes: Lanes) -> Iterator[tuple[Server, Connection]]:
    with Server(path, grants(), lanes.answered) as server, connect(path) as found:
        yield server, found


def test_all_leases_of_a_connection_are_of_its_page(path: Path, lanes: Lanes) -> None:
    with leasing(path, lanes) as (server, found):
        first = found.lease()
        lanes.passed = []
        second = found.lease()
        assert (second.page is first.page, second.lane) == (True, first.lane + 1)
        assert (second.allows(START), server.connections) == (True, 1)
        found.close()
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
    with leasing(path, lanes) as (_, found):
        page = found.lease().page
        before = descriptors()
        lanes.passed *= number
        holding = found.lease()
        assert os.listdir("/proc/self/fd") == before
        assert holding.page is page


LEASE = {
    "lane": 20,
    "clock_seq": 3 << 8 | 20,
    "node": NODE.to_bytes(6, "big"),
    "token": 7,
    "begin": START,
}

LIES: list[dict[str, Any]] = [
    *({"lane": lane, "clock_seq": 3 << 8 | lane & 255} for lane in (15, -1)),
    {"lane": 256, "clock_seq": 4 << 8},
    *({"lane": lane} for lane in (21, True)),
    {"clock_seq": 1 << 14 | 20},
    *({"token": token} for token in (0, -1, None)),
    *({"begin": begin} for begin in (1 << 60, -1)),
    {"node": b"12345"},
]


@pytest.mark.parametrize("lie", LIES, ids=str)
def test_a_lease_that_cannot_be_is_an_unusable_answer(
    path: Path, lanes: Lanes, lie: dict[str, Any]
) -> None:
    with leasing(path, lanes) as (server, found):
        lanes.answer = LEASE | lie
        with pytest.raises(DaemonUnavailable, match="an unusable answer: a map is not a lease"):
            found.lease()
        assert found.take("utc", 1)[0].count == 1
        assert server.connections == 2


def test_util_linux_s_uuidd_has_no_leases(path: Path) -> None:
    with Server(path, util_linux, lambda *_: False) as server, connect(path) as found:
        with pytest.raises(DaemonUnavailable, match="as util-linux's does"):
            found.lease()
        assert [found.take("utc", 5)[0].count for _ in range(2)] == [5, 5]
        asked = server.asked
        with pytest.raises(DaemonUnavailable, match="as util-linux's does"):
            found.lease()
        # It is known by then.
        assert server.asked == asked


@pytest.mark.parametrize(("call", "least"), [("lease", 20), ("close", 2)])
def test_a_connection_may_be_closed_anywhere(
    path: Path, lanes: Lanes, call: str, least: int
) -> None:
    """As in a fork's child, where a handler draws, or many threads close their parent's at once."""
    with leasing(path, lanes) as (_, found):
        for at in itertools.count(1):
            closed: list[int] = []

            def close(at: int = at, closed: list[int] = closed) -> None:
                closed.append(at)
                found.close()

            if call == "close":
                found.take("utc", 1)
            with contextlib.suppress(DaemonUnavailable, Over):
                come_between(getattr(found, call), at, close)
            found.close()
            if not closed:
                break
    assert at > least


def test_the_next_daemon_is_told_over_another_connection(path: Path, lanes: Lanes) -> None:
    with leasing(path, lanes) as (_, found):
        found.lease()
    with Server(path, grants()) as server:
        found.tell_in_use()
        assert found.take("utc", 1)[0].count == 1
        assert (server.told, server.connections) == (1, 1)
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


def test_a_daemon_that_could_not_be_told_at_once_is_not_silent(path: Path) -> None:
    """All clients of a daemon that was restarted may meet there, and their leases end later."""
    with connect(path) as found:
        with full_backlog(path):
            found.tell_in_use()
        path.unlink()
        with Server(path, grants()):
            assert found.take("utc", 1)[0].count == 1


def test_a_silent_daemon_is_told_nothing(path: Path) -> None:
    """What it would read first is the request that it has not answered."""
    with socket.socket(socket.AF_UNIX) as listener, connect(path, timeout=0.01) as found:
        listener.bind(str(path))
        listener.listen(1)
        with pytest.raises(DaemonUnavailable):
            found.take("utc", 1)
        found.tell_in_use()
        found.close()
        accepted, _ = listener.accept()
        with accepted, accepted.makefile("rb") as sent:
            assert [*msgpack.Unpacker(sent)] == [[0, 1, "take", ["utc", 1, False, False]]]


def test_ids_of_the_fallback_are_told_with_a_request_that_has_an_answer(path: Path) -> None:
    """A daemon that ends may not have read what goes before a notification."""
    with Server(path, grants()) as server, connect(path) as found:
        found.take("utc", 1)
        found.untold = 7
        found.tell_in_use()
        assert found.untold == 7
        found.take("utc", 1)
        assert (server.fallback_ids, found.untold) == ([7], 0)


def test_more_ids_of_the_fallback_than_can_be_told_are_told_as_the_highest_count(
    path: Path,
) -> None:
    with Server(path, grants()) as server, connect(path) as found:
        found.untold = 2**32
        found.take("utc", 1)
        assert (server.fallback_ids, found.untold) == ([2**32 - 1], 0)


ANSWER = b"answer"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Stream, socket.socket]]:
    """Return a client's socket, and the daemon's end of it."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        stream = Stream(Life())
        stream.at_once(stream.connect, str(tmp_path / "s"))
        daemon, _ = listener.accept()
        with contextlib.closing(stream), daemon:
            yield stream, daemon


def unread(stream: Stream) -> bytes:
    return stream.recv(100, socket.MSG_PEEK) if select.select([stream], [], [], 0)[0] else b""


def test_a_child_leaves_the_answer_to_its_parent(pair: tuple[Stream, socket.socket]) -> None:
    stream, daemon = pair
    for at in itertools.count(1):
        daemon.sendall(ANSWER)
        left: list[bytes] = []

        def fork(left: list[bytes] = left) -> None:
            left.append(unread(stream))
            # As the kernel does in a child.
            stream.alive[0] = 0

        try:
            come_between(partial(stream.receive, 100, 10.0), at, fork)
        except Over:
            assert left == [ANSWER]
            assert unread(stream) == ANSWER
        else:
            assert left in ([], [b""]), at
        finally:
            stream.alive[0] = 1
        stream.setblocking(True)
        if unread(stream):
            stream.recv(100)
        if not left:
            break
    assert at > 5


def test_a_child_does_not_wait_for_an_answer(pair: tuple[Stream, socket.socket]) -> None:
    """It is the parent's, so the child would wait for its whole time-out."""
    stream, _ = pair
    stream.alive[0] = 0
    with pytest.raises(Over):
        stream.wait_for_bytes(0)


def test_descriptors_are_passed_with_the_bytes(pair: tuple[Stream, socket.socket]) -> None:
    stream, daemon = pair
    with socket.socket() as one, socket.socket() as other:
        socket.send_fds(daemon, [ANSWER], [one.fileno(), other.fileno()])
        data, passed = stream.receive(100, 10.0)
    assert data == ANSWER
    assert len(passed) == 1
    with socket.socket(fileno=passed[0]) as found:
        assert not found.get_inheritable()


@contextlib.contextmanager
def memory(size: int = PAGE_BYTES, seals: int = SEALS, magic: int = PAGE_MAGIC) -> Iterator[int]:
    """Memory that a daemon could pass."""
    descriptor = os.memfd_create("page", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.write(descriptor, magic.to_bytes(8, sys.byteorder))
        os.truncate(descriptor, size)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        yield descriptor
    finally:
        os.close(descriptor)


def test_the_words_of_a_page_cannot_be_written_to(lanes: Lanes) -> None:
    with pytest.raises(TypeError, match="read-only"):
        Page(lanes.fd).words[HORIZON_AT] = 1


NO_PAGES: list[tuple[dict[str, int], str]] = [
    *(
        ({"seals": SEALS & ~it}, f"it has the seals {SEALS & ~it:#x} and 4096 bytes; a page has at")
        for it in (0x2, 0x4, 0x10)
    ),
    *(
        ({"size": it}, f"0x16 and {it} bytes; a page has at least 0x16 and 4096")
        for it in (0, PAGE_BYTES - 1, PAGE_BYTES + 1)
    ),
    *(
        ({"magic": it}, f"it begins with {it:#x}, not 0x757569646c6e0001")
        for it in (0, PAGE_MAGIC + 1)
    ),
]


@pytest.mark.parametrize(("other", "words"), NO_PAGES, ids=str)
def test_memory_with_another_seal_size_or_first_word_is_no_page(
    other: dict[str, int], words: str
) -> None:
    with memory(**other) as descriptor, pytest.raises(PageError, match=words):
        Page(descriptor)


def test_a_closed_descriptor_is_no_page() -> None:
    with memory() as descriptor:
        pass
    with pytest.raises(PageError, match="it cannot be mapped: Bad file descriptor"):
        Page(descriptor)


@pytest.mark.process
def test_a_page_does_not_close_the_file_that_got_its_number() -> None:
    """A program that closes all descriptors, as daemons do, keeps the files that it opens then."""
    program = (
        "import fcntl, gc, os\n"
        "from uuidd.server.page import Page as Written\n"
        "from uuidd.core.timeline.page import MAGIC_AT, PAGE_MAGIC\n"
        "from uuidd_client.lease import Page\n"
        "written = Written()\n"
        "written.words[MAGIC_AT] = PAGE_MAGIC\n"
        "page = Page(written.fd)\n"
        "before = os.listdir('/proc/self/fd')\n"
        "os.closerange(3, 100)\n"
        "mine = [os.open('/dev/null', os.O_RDONLY) for _ in range(20)]\n"
        "del page\n"
        "gc.collect()\n"
        "for each in mine:\n"
        "    os.fstat(each)\n"
    )
    output(sys.executable, "-c", program)


def test_a_tick_before_the_horizon_is_allowed(lanes: Lanes) -> None:
    lease = lanes.lease()
    lanes.words[HORIZON_AT] = START + 10
    assert [lease.allows(START + tick) for tick in (0, 9, 10, 11)] == [True, True, False, False]


def test_the_horizon_is_read_before_the_token(lanes: Lanes) -> None:
    """A horizon that was raised after the lease had ended does not count."""
    lease = lanes.lease()

    class Words(list[int]):
        def __getitem__(self, at: int) -> int:  # type: ignore[override]  # no slice is read
            # As if the daemon ran now.
            lanes.revoke()
            return lanes.words[at]

    lease.words = Words()  # type: ignore[assignment]  # the daemon runs when it is read
    assert not lease.allows(START)


def test_ids_of_a_lease_have_its_lane_node_and_clock_sequence(lanes: Lanes) -> None:
    granted = lanes.grant()
    origin = Lease(granted, lanes.page).origin
    found = origin.lane, origin.node, origin.clock_seq
    assert found == (granted.lane, granted.node, granted.clock_seq)
    assert lanes.words[MAGIC_AT] == PAGE_MAGIC

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import sys
import termios
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import pairwise
from struct import pack
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.daemon.fakes import HOUR, Inside, Peer, meanwhile, request
from tests.tools import need_root
from uuidd.core.wire import rpc
from uuidd.server.acceptor import ACCEPTS, GRACE, GRACE_LOOK, NEW_GRACE
from uuidd.server.client import UNREAD_BYTES, Client
from uuidd.server.daemon import until_idle
from uuidd.server.descriptors import bar_descriptors
from uuidd.server.fairness import Answer
from uuidd.server.page import Page
from uuidd.server.service import PIECES
from uuidd.server.settings import MAX_REJECTIONS, Limits

pytestmark = pytest.mark.usefixtures("autojump_clock")

NOBODY = 65534


class Listener(socket.socket):
    """A listening socket at a name of the kernel's choice; *errors* are raised by accept.

    Unless it *bars* descriptors, they may come over any of its connections.
    """

    def __init__(self, *, bars: bool = True) -> None:
        super().__init__(socket.AF_UNIX, socket.SOCK_STREAM)
        self.errors: list[int] = []
        self.setblocking(False)
        if bars:
            bar_descriptors(self)
        self.bind("")
        self.listen(1000)

    def _accept(self) -> tuple[int, Any]:
        """Accept a connection. Raises the next of the errors instead, while there are any."""
        if self.errors:
            number = self.errors.pop(0)
            raise OSError(number, os.strerror(number))
        accepted: tuple[int, Any] = super()._accept()  # type: ignore[misc]
        return accepted


class Serving:
    """An acceptor at work."""

    def __init__(self, inside: Inside, listener: Listener) -> None:
        self.inside = inside
        self.listener = listener
        self.acceptor = inside.acceptor(listener)
        self.ended = trio.Event()

    def connect(self, *, limited: bool = False) -> Peer:
        """Connect; the other end is accepted when the acceptor comes to it.

        It is ``somebody`` who connects if the user is to be *limited*.
        """
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with somebody() if limited else contextlib.nullcontext():
            sock.connect(self.listener.getsockname())
        return Peer(sock)

    async def run(self) -> None:
        """Serve, and note the end."""
        await self.acceptor.run()
        self.ended.set()


@contextlib.asynccontextmanager
async def serving(
    *, bars: bool = True, page: Page | None = None, spared: bool = True, **limits: Any
) -> AsyncIterator[Serving]:
    """An acceptor that serves meanwhile, with an hour's horizon.

    Unless *spared*, no user but root is trusted.
    """
    own_uid = os.geteuid() if spared else -1
    inside = Inside(Limits(**limits), ahead=2 * HOUR, own_uid=own_uid, page=page)
    with Listener(bars=bars) as listener:
        served = Serving(inside, listener)
        async with meanwhile(served.run):
            yield served


@pytest.fixture
async def served(autojump_clock: MockClock) -> AsyncIterator[Serving]:
    """An acceptor that serves, without limits of its own."""
    async with serving() as served:
        yield served


@contextlib.contextmanager
def somebody() -> Iterator[int]:
    """Be a user whose connections are limited, and enter the uid."""
    uid = os.geteuid()
    if uid:
        yield uid
        return
    os.seteuid(NOBODY)
    try:
        yield NOBODY
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("asked", [request("status"), b"\x01"])
async def test_requests_in_either_dialect_keep_a_daemon_from_being_idle(
    asked: bytes, served: Serving
) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(until_idle, served.inside.service, 10, nursery.cancel_scope)
        for _ in range(5):
            await trio.sleep(6)
            async with served.connect() as peer:
                await peer.send(asked)
                await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(HOUR)
    assert trio.current_time() == pytest.approx(40, abs=2)


async def test_a_descriptor_is_the_end_of_its_connection() -> None:
    async with serving(bars=False) as served:
        ours, theirs = os.pipe()
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(served.listener.getsockname())
        async with Peer(sock) as peer, served.connect() as other:
            socket.send_fds(sock, [b"\x02"], [theirs])
            os.close(theirs)
            await peer.ended()
            assert (await other.call("status")).error is None
        # Its other end comes to its end once no descriptor of it is left.
        await trio.lowlevel.wait_readable(ours)
        os.close(ours)
        assert served.inside.service.rpc.refused == {"descriptors": 1}
        assert served.inside.service.libuuid.requests == 0
        await trio.testing.wait_all_tasks_blocked()
        assert len(served.inside.admission.open) == 0


async def test_a_libuuid_request_that_has_to_wait_stops_nobody(served: Serving) -> None:
    served.inside.use_up()
    async with served.connect() as slow, served.connect() as quick:
        await slow.send(b"\x04" + pack("=i", 1_000_000))
        await quick.send(b"\x02")
        assert len(await quick.rest()) == 20
        assert trio.current_time() == 0
        assert len(await slow.rest()) == 24
        assert trio.current_time() == pytest.approx(0.1, abs=1e-5)


async def test_of_one_users_makes_only_one_is_half_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many a user asks for at once, only one at a time costs memory, and no tick waits."""
    happened: list[str] = []
    monkeypatch.setitem(PIECES, "v1", 40)
    async with serving() as served, contextlib.AsyncExitStack() as stack:
        service, allocator = served.inside.service, served.inside.allocator
        answer, take = service.answer, allocator.take

        def noted_take(*wanted: Any, **others: Any) -> Any:
            happened.append("begun")
            return take(*wanted, **others)

        def noted_answer(asked: rpc.Request, client: Client) -> Answer:
            yield from answer(asked, client)
            happened.append("ended")

        monkeypatch.setattr(allocator, "take", noted_take)
        monkeypatch.setattr(service, "answer", noted_answer)
        await trio.sleep(1)
        peers = [await stack.enter_async_context(served.connect()) for _ in range(5)]
        for peer in peers:
            await peer.send(request("make", "v1", 500))
        for peer in peers:
            await peer.reply()
    assert happened == ["begun", "ended"] * 5


async def test_the_tasks_of_a_user_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many connections one user has, another user waits for one turn of it."""
    answered: list[int] = []
    async with serving(pipelined=1) as served, contextlib.AsyncExitStack() as stack:
        answer = served.inside.service.answer

        def noted(asked: rpc.Request, client: Client) -> Answer:
            answered.append(client.uid)
            return answer(asked, client)

        monkeypatch.setattr(served.inside.service, "answer", noted)
        await trio.testing.wait_all_tasks_blocked()
        for uid in [1] * 20 + [2]:
            theirs, ours = socket.socketpair()
            stack.enter_context(theirs).send(request("make", "v4") * 2)
            served.acceptor.admit(ours, uid)
        await trio.testing.wait_all_tasks_blocked()
    assert answered[:21] == [1] * 20 + [2]
    assert answered[21:].index(2) < 3
    assert sorted(answered) == [1] * 40 + [2] * 2


async def test_silence_is_looked_for_once_a_second() -> None:
    """Looking takes long where there are thousands, and some may connect thousands of times."""
    async with serving(connections=1) as served, served.connect():
        await trio.sleep(4.5)
        async with served.connect() as first:
            assert (await first.call("status")).error is not None
        await trio.sleep(0.6)
        async with served.connect() as soon:
            assert (await soon.call("status")).error is not None
        await trio.sleep(0.5)
        async with served.connect() as later:
            assert (await later.call("status")).error is None
        assert served.inside.service.rpc.refused == {"connections": 2, "silent": 1}


async def test_one_users_silence_makes_no_room_for_another() -> None:
    need_root()
    async with (
        serving(connections_per_uid=1) as served,
        served.connect() as roots,
        served.connect(limited=True) as one,
    ):
        await trio.sleep(HOUR)
        async with served.connect(limited=True) as two:
            assert (await two.call("status")).error is None
            assert await one.rest() == b""
            assert (await roots.call("status")).error is None


async def test_those_in_the_middle_of_a_request_make_room_soon() -> None:
    need_root()
    async with serving(connections=3) as served, contextlib.AsyncExitStack() as stack:
        for _ in range(3):
            peer = await stack.enter_async_context(served.connect())
            await peer.send(b"\x94\x00")
        await trio.sleep(0.1)
        codes = []
        for _ in range(2):
            newcomer = await stack.enter_async_context(served.connect(limited=True))
            codes.append((await newcomer.call("status")).code)
        assert codes == ["busy", ""]
        assert trio.current_time() == pytest.approx(0.1)


async def test_room_is_made_until_both_users_have_as_many() -> None:
    """Even if the other user needs the end of more connections than that."""
    need_root()
    async with serving(connections=4) as served, contextlib.AsyncExitStack() as stack:
        one = await stack.enter_async_context(served.connect(limited=True))
        assert (await one.call("status")).error is None
        for _ in range(3):
            peer = await stack.enter_async_context(served.connect())
            assert (await peer.call("status")).error is None
        two = await stack.enter_async_context(served.connect(limited=True))
        assert (await two.call("status")).code == "busy"
        assert served.inside.service.rpc.refused["made_room"] == 1


async def test_past_the_limit_rpc_is_told_why() -> None:
    async with serving(connections=1) as served:
        async with served.connect() as one, served.connect() as two:
            await one.call("status")
            reply = await two.call("take", "utc", 1, msgid=99)
            assert reply.msgid == 99
            assert reply.error == (
                "busy: 1 connections are open, the most there may be; try again later"
            )
            assert await two.rest() == b""
            assert (await one.call("status")).result["connections_rejected"] == 1
        assert served.inside.service.rpc.refused == {"connections": 1}


async def test_the_daemons_own_user_can_ask_when_it_has_all_connections() -> None:
    """One of its own makes room."""
    async with serving(connections=2) as served, served.connect() as one, served.connect() as two:
        await one.call("status")
        await two.call("status")
        async with served.connect() as three:
            assert (await three.call("status")).error is None
        assert served.inside.service.rpc.refused == {"made_room": 1}


async def test_connections_that_have_sent_nothing_make_room_first() -> None:
    async with serving(connections=40) as served, contextlib.AsyncExitStack() as stack:
        open_ones = [await stack.enter_async_context(served.connect()) for _ in range(40)]
        await trio.testing.wait_all_tasks_blocked()
        used = open_ones[::2]
        for peer in used:
            await peer.call("status")
        for _ in range(20):
            newcomer = await stack.enter_async_context(served.connect())
            assert (await newcomer.call("status")).error is None
            used.append(newcomer)
        assert [(await peer.call("status")).error for peer in used] == [None] * 40


@pytest.mark.parametrize(("asked", "end"), [(b"\x04" + pack("=i", 1), 1), (b"", 5)])
async def test_past_the_limit_libuuid_is_closed_upon_in_order(asked: bytes, end: float) -> None:
    """A libuuid caller has its request read, and then sees the end, not a reset. It has 5 s."""
    async with serving(connections=1) as served, served.connect() as one:
        await one.call("status")
        async with served.connect() as two:
            await trio.sleep(1)
            await two.send(asked)
            assert await two.rest() == b""
            assert trio.current_time() == end


async def test_only_so_many_rejected_wait_to_be_told() -> None:
    async with serving(connections=1) as served, contextlib.AsyncExitStack() as stack:
        one = await stack.enter_async_context(served.connect())
        await one.call("status")
        waiting = [
            await stack.enter_async_context(served.connect()) for _ in range(MAX_REJECTIONS + 10)
        ]
        for peer in waiting[MAX_REJECTIONS:]:
            assert await peer.rest() == b""
        assert trio.current_time() == 0
        assert (await waiting[0].call("status")).code == "busy"
        assert await waiting[0].rest() == b""
        async with served.connect() as another:
            assert (await another.call("status")).code == "busy"
        assert served.inside.service.rpc.refused["connections"] == MAX_REJECTIONS + 11


async def test_room_comes_back_when_a_connection_ends() -> None:
    async with serving(connections=1) as served:
        for sent in (b"", b"\x02", b"\xc1", b"\x04\x01", request("status"), request("x")[:3]):
            async with served.connect() as peer:
                await peer.send(sent)
                await trio.testing.wait_all_tasks_blocked()
            await trio.testing.wait_all_tasks_blocked()
            async with served.connect() as peer:
                assert (await peer.call("status")).result["connections"] == 1
            await trio.testing.wait_all_tasks_blocked()


async def test_of_one_user_only_so_many_may_leave_their_replies_unread() -> None:
    async with (
        serving(unread_per_uid=1) as served,
        served.connect() as one,
        served.connect() as other,
    ):
        await one.send(request("make", "v4", 1000) * 16)
        await trio.testing.wait_all_tasks_blocked()
        assert served.inside.service.rpc.refused == {}
        await other.send(request("make", "v4", 1000) * 16)
        await trio.testing.wait_all_tasks_blocked()
        assert served.inside.service.rpc.refused == {"unread": 1}
        await trio.sleep(served.inside.limits.reply_seconds + 0.01)
        assert served.inside.service.rpc.refused == {"unread": 2}


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
async def test_used_up_descriptors_do_not_end_the_daemon(
    log: pytest.LogCaptureFixture, number: int, served: Serving
) -> None:
    """Each shortage is logged, once."""
    async with served.connect() as one:
        await one.call("status")
        for _ in range(2):
            served.listener.errors = [number] * 50
            async with served.connect() as two:
                assert (await one.call("status")).error is None
                assert (await two.call("status")).error is None
        assert trio.current_time() == pytest.approx(10)
    line = f"cannot accept connections, and keeps trying: {os.strerror(number)}"
    assert log.messages == [line] * 2


async def test_callers_that_gave_up_hold_nobody_up(
    log: pytest.LogCaptureFixture, served: Serving
) -> None:
    async with served.connect():
        await trio.testing.wait_all_tasks_blocked()
        served.listener.errors = [errno.ECONNABORTED] * 30
        async with served.connect():
            left = [30]
            while left[-1]:
                await trio.lowlevel.checkpoint()
                left.append(len(served.listener.errors))
        # Trio draws the order, so two turns of the acceptor may lie between two of this test.
        assert max(before - later for before, later in pairwise(left)) <= 2
    assert (log.messages, trio.current_time()) == ([], 0)


async def test_of_replies_that_are_not_read_the_system_keeps_little() -> None:
    """The rest waits in the daemon, which counts it and has a limit for it."""
    asked = request("make", "v4", 1000) * 100
    async with serving() as served, served.connect() as peer:
        await peer.send(asked)
        await trio.testing.wait_all_tasks_blocked()
        unread = fcntl.ioctl(peer.sock, termios.FIONREAD, bytes(4))
        assert int.from_bytes(unread, sys.byteorder) <= 2 * UNREAD_BYTES


async def test_stop_lets_what_was_asked_be_answered(served: Serving) -> None:
    async with served.connect() as peer:
        whole = [request("take", "utc", 1_000_000, True, msgid=n) for n in range(16)]
        await peer.send(b"".join([*whole, request("make", "v4", msgid=16)]))
        await trio.testing.wait_all_tasks_blocked()
        served.acceptor.stop(drain=False)
        replies = await peer.replies(17)
        assert [(reply.msgid, reply.error) for reply in replies] == [(n, None) for n in range(17)]
        assert await peer.rest() == b""
        await served.ended.wait()


async def answered(peer: Peer) -> None:
    await peer.call("status")


async def half_asked(peer: Peer) -> None:
    await peer.send(request("status")[:4])
    await trio.testing.wait_all_tasks_blocked()


async def new(_: Peer) -> None:
    await trio.testing.wait_all_tasks_blocked()


async def old(_: Peer) -> None:
    await trio.sleep(HOUR)


@pytest.mark.parametrize(
    ("was", "asks_after", "seconds"),
    [
        (answered, None, 0),
        (half_asked, None, 0),
        (new, None, NEW_GRACE),
        # The second ends as soon as nobody needs it.
        (new, 2 * GRACE, 2 * GRACE),
        (new, NEW_GRACE - 2 * GRACE_LOOK, NEW_GRACE - 2 * GRACE_LOOK),
        # A program that connects at its start, and asks hours later, delays no restart.
        (old, None, GRACE),
        (old, GRACE / 2, GRACE / 2),
    ],
)
async def test_stop_leaves_a_moment_to_those_who_have_not_asked_yet(
    served: Serving,
    was: Callable[[Peer], Awaitable[None]],
    asks_after: float | None,
    seconds: float,
) -> None:
    """Libuuid's callers connect and then write, and SIGPIPE would kill them in between."""
    async with served.connect() as peer:
        await was(peer)
        stopped = trio.current_time()
        served.acceptor.stop(drain=False)
        if asks_after is not None:
            await trio.sleep(asks_after)
            await peer.send(b"\x04" + pack("=i", 1))
            await peer.receive(24)
        assert await peer.rest() == b""
    await served.ended.wait()
    assert trio.current_time() - stopped == pytest.approx(seconds, abs=2 * GRACE_LOOK)
    assert len(served.inside.admission.open) == 0


async def test_stop_does_not_wait_for_the_silence_of_who_was_rejected() -> None:
    with somebody():
        async with serving(spared=False, connections_per_uid=1) as served:
            async with served.connect() as one, served.connect() as other:
                await one.call("status")
                await trio.testing.wait_all_tasks_blocked()
                served.acceptor.stop(drain=False)
                assert await one.rest() == await other.rest() == b""
            await served.ended.wait()
            assert trio.current_time() == GRACE


async def test_many_who_connect_at_once_hold_nobody_up(served: Serving) -> None:
    async with contextlib.AsyncExitStack() as stack:
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(6 * ACCEPTS):
            await stack.enter_async_context(served.connect())
        open_ones = [0]
        while open_ones[-1] < 6 * ACCEPTS:
            await trio.lowlevel.checkpoint()
            open_ones.append(len(served.inside.admission.open))
        # Trio draws the order, so two turns of the acceptor may lie between two of this test.
        most = max(later - before for before, later in pairwise(open_ones))
        assert most <= 2 * ACCEPTS


@pytest.mark.parametrize("drain", [False, True])
async def test_stop_serves_who_has_connected_unless_another_will(
    drain: bool, served: Serving
) -> None:
    """Queued connections are answered, or left to the next daemon if systemd has the socket."""
    async with served.connect() as before:
        await before.call("status")
        peers = [served.connect() for _ in range(3 * ACCEPTS)]
        served.acceptor.stop(drain=drain)
        async with contextlib.AsyncExitStack() as stack:
            for peer in peers:
                await stack.enter_async_context(peer)
                await peer.send(b"\x04" + pack("=i", 1))
            await served.ended.wait()
            assert served.inside.service.libuuid.requests == (len(peers) if drain else 0)

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import select
import socket
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.daemon.fakes import UID, Inside, Peer, notification, request
from uuidd.core.wire import rpc
from uuidd.server import poller as hub_module
from uuidd.server.making import PIECES
from uuidd.server.poller import PIPELINED, SOON, Poller
from uuidd.server.stream import Stream


class Place:
    """A poller, and what it handed over and hung up on."""

    def __init__(self, inside: Inside) -> None:
        self.inside = inside
        self.handed_over: list[tuple[bytes, bytes]] = []
        self.hung_up: list[Stream] = []
        self.begun: list[bytes] = []
        self.poller = Poller(
            inside.service,
            lambda: inside.limits,
            begin=self._begin,
            hand_over=self._hand_over,
            hang_up=self._hang_up,
        )
        self.changed = trio.Event()

    def _begin(self, _: Stream, data: bytes) -> None:
        self.begun.append(data)
        self.changed.set()

    def _hand_over(self, _: Stream, data: bytes, unsent: bytes) -> None:
        self.handed_over.append((data, unsent))
        self.changed.set()

    def _hang_up(self, stream: Stream) -> None:
        self.hung_up.append(stream)
        self.changed.set()

    @contextlib.asynccontextmanager
    async def parked(self) -> AsyncIterator[Peer]:
        """Give the other end of a connection that is parked."""
        theirs, ours = socket.socketpair()
        ours.setblocking(False)
        self.poller.park(Stream(ours, UID))
        with ours:
            async with Peer(theirs) as peer:
                yield peer


@pytest.fixture
async def place(autojump_clock: MockClock) -> AsyncIterator[Place]:
    """A poller that runs."""
    place = Place(Inside())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(place.poller.run)
        yield place
        nursery.cancel_scope.cancel()


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let serving take no time."""
    monkeypatch.setattr(hub_module, "monotonic", lambda: 0.0)


async def until(place: Place, *, handed_over: int = 0, hung_up: int = 0) -> None:
    """Wait until so much has happened."""
    with trio.fail_after(5):
        while (len(place.handed_over), len(place.hung_up)) != (handed_over, hung_up):
            place.changed = trio.Event()
            await place.changed.wait()


async def test_a_request_is_answered_without_a_task(place: Place) -> None:
    """The connection stays parked, and the next one is answered too."""
    async with place.parked() as peer:
        for number in range(3):
            reply = await peer.call("make", "v4", msgid=number)
            assert (reply.msgid, reply.error) == (number, None)
    assert place.handed_over == []


async def test_many_connections_are_served(place: Place) -> None:
    """Each gets its own replies."""
    async with contextlib.AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(place.parked()) for _ in range(100)]
        for number, peer in enumerate(peers):
            await peer.send(request("make", "v4", msgid=number))
        assert [(await peer.reply()).msgid for peer in peers] == list(range(100))


@pytest.mark.usefixtures("no_time")
async def test_a_few_pipelined_requests_are_answered_in_order(place: Place) -> None:
    """Notifications among them are not answered."""
    async with place.parked() as peer:
        some = [request("make", "v4", msgid=number) for number in range(PIPELINED - 1)]
        await peer.send(b"".join([*some, notification("make", "v4")]))
        assert [reply.msgid for reply in await peer.replies(len(some))] == list(range(len(some)))
    assert place.handed_over == []


@pytest.mark.usefixtures("no_time")
async def test_more_pipelined_requests_are_handed_over(place: Place) -> None:
    """The first are answered; a task goes on with those after them, so that others get a turn."""
    async with place.parked() as peer:
        some = [request("make", "v4", msgid=number) for number in range(PIPELINED + 3)]
        await peer.send(b"".join(some))
        await peer.replies(PIPELINED)
        await until(place, handed_over=1)
    assert place.handed_over == [(b"".join(some[PIPELINED:]), b"")]


async def test_what_is_left_of_a_request_is_handed_over(place: Place) -> None:
    """A task waits for the rest, with a deadline; what came whole before is answered."""
    async with place.parked() as peer:
        whole, part = request("make", "v4"), request("status", msgid=2)[:5]
        await peer.send(whole + part)
        assert (await peer.reply()).msgid == 1
        await until(place, handed_over=1)
    assert place.handed_over == [(part, b"")]


async def test_a_request_that_has_to_wait_is_handed_over(place: Place) -> None:
    """A save is needed, say; nothing is answered before it, or twice."""
    place.inside.wall.step(3600)
    async with place.parked() as peer:
        await peer.send(request("take", "utc", 1))
        await until(place, handed_over=1)
    assert place.handed_over == [(request("take", "utc", 1), b"")]


async def test_replies_that_are_not_read_are_handed_over(place: Place) -> None:
    """A full socket delays nobody else: a task waits until it is read."""
    async with place.parked() as peer:
        asked = 0
        with trio.fail_after(30):
            while not place.handed_over:
                await peer.send(request("make", "v4", 1000, msgid=asked))
                asked += 1
                await trio.lowlevel.checkpoint()
        (_, unsent), *_ = place.handed_over
    assert unsent


async def test_bytes_that_are_no_requests_end_a_connection(place: Place) -> None:
    """What came before them is answered; the refusal is counted."""
    async with place.parked() as peer:
        await peer.send(request("make", "v4") + b"\xc1")
        assert (await peer.reply()).msgid == 1
        await until(place, hung_up=1)
    assert place.inside.service.rpc.refused == {"malformed": 1}


async def test_a_request_that_cannot_be_read_is_answered_before_the_end(place: Place) -> None:
    """What came before it is answered, then it is, without a task; then the connection ends."""
    async with place.parked() as peer:
        await peer.send(request("make", "v4") + b"\x94\x00\x02\xa4make\xc1")
        assert [reply.code for reply in await peer.replies(2)] == ["", "bad_params"]
        await until(place, hung_up=1)
    assert place.handed_over == []
    assert place.inside.service.rpc.refused == {"malformed": 1}


async def test_the_other_dialect_in_the_midst_of_this_one_ends_a_connection(place: Place) -> None:
    """The first byte of a connection has told its dialect once and for all."""
    async with place.parked() as peer:
        await peer.call("make", "v4")
        await peer.send(b"\x02")
        await until(place, hung_up=1)
    assert place.handed_over == []


async def test_a_peer_that_hangs_up_is_hung_up_on(place: Place) -> None:
    """At once, and no other is disturbed."""
    async with place.parked() as other:
        async with place.parked() as peer:
            await peer.end_sending()
            await until(place, hung_up=1)
        assert (await other.call("make", "v4")).error is None


async def test_a_new_connection_whose_request_is_there_already_is_answered(place: Place) -> None:
    """Without a task, and parked for the next; of the other dialect it is left alone."""
    theirs, ours = socket.socketpair()
    ours.setblocking(False)
    with ours:
        async with Peer(theirs) as peer:
            assert not place.poller.answered(Stream(ours, UID), b"\x02")
            assert place.poller.answered(Stream(ours, UID), request("make", "v4", msgid=7))
            assert (await peer.reply()).msgid == 7
            assert (await peer.call("make", "v4", msgid=8)).msgid == 8


async def test_more_ids_than_are_made_in_one_go_are_for_a_task(place: Place) -> None:
    """One caller's thousand in base 62 would delay all others by milliseconds."""
    most = PIECES["ksuid"]
    async with place.parked() as peer:
        await peer.send(request("make", "ksuid", most))
        assert len((await peer.reply()).result) == most
        await peer.send(request("make", "ksuid", most + 1))
        await until(place, handed_over=1)
    assert place.handed_over == [(request("make", "ksuid", most + 1), b"")]


async def test_others_have_their_turn_while_it_serves(place: Place) -> None:
    """A caller that always has another request there does not keep the loop to itself."""
    async with place.parked() as peer:
        for _ in range(200):
            await peer.send(request("make", "v4", 100))
        with trio.fail_after(5):
            for _ in range(5):
                await trio.lowlevel.checkpoint()
        assert (await peer.reply()).error is None


@pytest.mark.parametrize(
    ("calls", "looks"),
    [
        ([(0, 0.0)], 0),
        ([(0, 0.0), (0, SOON / 2)], 1),
        ([(0, 0.0), (0, SOON / 2), (0, SOON / 2)], 2),
        ([(0, 0.0), (0, 2 * SOON)], 0),
        ([(0, 0.0), (1, 0.0), (0, 0.0)], 0),
    ],
)
async def test_one_who_asks_one_thing_after_the_other_is_waited_for_a_moment(
    calls: list[tuple[int, float]],
    looks: int,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If his last request came soon after the one before, and nobody else asked in between."""
    now = 1.0
    monkeypatch.setattr(hub_module, "monotonic", lambda: now)
    place.poller._may_busy_poll = True
    polled: list[bool] = []

    def busy_poll() -> list[tuple[int, int]]:
        polled.append(place.poller._lone)
        return []

    async with place.parked() as one, place.parked() as other:
        await trio.testing.wait_all_tasks_blocked()
        monkeypatch.setattr(place.poller, "_busy_poll", busy_poll)
        for caller, passed in calls:
            now += passed
            await (one, other)[caller].call("make", "v4")
            await trio.testing.wait_all_tasks_blocked()
        assert polled == [False] * looks


async def test_others_have_their_turn_before_he_is_waited_for(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One who asks without a pause costs those who connect no more than his requests take."""
    monkeypatch.setattr(hub_module, "monotonic", lambda: 1.0)
    place.poller._may_busy_poll = True
    happened: list[str] = []
    answer = place.inside.service.answer

    def answered(asked: rpc.Request, *, uid: int) -> bytes | None:
        happened.append("answered")
        return answer(asked, uid=uid)

    def busy_poll() -> list[tuple[int, int]]:
        happened.append("polled")
        return []

    async def take_turns() -> None:
        while True:
            happened.append("turn")
            await trio.lowlevel.checkpoint()

    async with place.parked() as peer, trio.open_nursery() as nursery:
        await trio.testing.wait_all_tasks_blocked()
        monkeypatch.setattr(place.inside.service, "answer", answered)
        monkeypatch.setattr(place.poller, "_busy_poll", busy_poll)
        nursery.start_soon(take_turns)
        for _ in range(50):
            await peer.call("make", "v4")
        # trio takes those whose turn it is in any order, so it is not so each time.
        assert ("turn", "polled") in set(itertools.pairwise(happened))
        nursery.cancel_scope.cancel()


async def test_a_request_that_comes_in_that_moment_is_found(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked for so often, and then no more."""
    poller = Place(Inside()).poller
    looks = iter([[], [], [(5, 1)]])
    monkeypatch.setattr(poller, "_users", SimpleNamespace(poll=lambda _, __: next(looks)))
    assert poller._busy_poll() == [(5, 1)]
    monkeypatch.setattr(poller, "_users", SimpleNamespace(poll=lambda _, __: []))
    assert poller._busy_poll() == []


@contextlib.asynccontextmanager
async def always_asking(
    count: int, monkeypatch: pytest.MonkeyPatch, most: int
) -> AsyncIterator[list[int | None]]:
    """Give what is answered, by number, of so many connections that ask anew when they are.

    Each look at the clock takes 0.04 ms. They ask *most* times in all.
    """
    looks = itertools.count()
    monkeypatch.setattr(hub_module, "monotonic", lambda: next(looks) * 0.00004)
    place = Place(Inside())
    place.poller._may_busy_poll = False
    answered: list[int | None] = []
    answer = place.inside.service.answer
    peers: list[socket.socket] = []

    def noted(asked: rpc.Request, *, uid: int) -> bytes | None:
        answered.append(asked.msgid)
        assert asked.msgid is not None
        if len(answered) < most:
            peers[asked.msgid].send(request("make", "v4", msgid=asked.msgid))
        return answer(asked, uid=uid)

    monkeypatch.setattr(place.inside.service, "answer", noted)
    with contextlib.ExitStack() as socks:
        for number in range(count):
            theirs, ours = socket.socketpair()
            peers.append(socks.enter_context(theirs))
            place.poller.park(Stream(socks.enter_context(ours), UID))
            theirs.send(request("make", "v4", msgid=number))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(place.poller.run)
            yield answered
            nursery.cancel_scope.cancel()


async def test_who_was_not_reached_in_a_turn_comes_before_who_was(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ten connections that always ask, all are served, though a turn is for two or three."""
    async with always_asking(10, monkeypatch, most=100) as answered:
        await trio.testing.wait_all_tasks_blocked()
    assert set(answered[:10]) == set(range(10))


async def test_others_have_their_turn_though_there_is_always_a_request(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a millisecond or so, without an end of the requests."""
    async with always_asking(1, monkeypatch, most=1000) as answered:
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        assert len(answered) < 200


async def test_a_user_with_many_connections_delays_another_by_one_turn(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a hundred connections that all ask, few are answered before another user's only one."""
    looks = itertools.count()
    monkeypatch.setattr(hub_module, "monotonic", lambda: next(looks) * 0.0001)
    place = Place(Inside())
    answered: list[int] = []
    answer = place.inside.service.answer

    def noted(asked: rpc.Request, *, uid: int) -> bytes | None:
        answered.append(uid)
        return answer(asked, uid=uid)

    monkeypatch.setattr(place.inside.service, "answer", noted)
    with contextlib.ExitStack() as socks:
        for uid in [1] * 100 + [2]:
            theirs, ours = socket.socketpair()
            socks.enter_context(theirs)
            socks.enter_context(ours)
            place.poller.park(Stream(ours, uid))
            theirs.send(request("make", "v4"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(place.poller.run)
            with trio.fail_after(5):
                while len(answered) < 101:
                    await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    assert answered.index(2) < 10
    assert sorted(answered) == [1] * 100 + [2]


async def test_a_user_who_is_gone_makes_room_for_the_queue_of_another(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are never more descriptors for queues than there are queues."""
    monkeypatch.setattr(hub_module, "QUEUES", 1)
    counts = set()
    for uid in range(3):
        theirs, ours = socket.socketpair()
        with ours:
            async with Peer(theirs) as peer:
                place.poller.park(Stream(ours, uid))
                await peer.send(request("make", "v4", msgid=uid))
                assert (await peer.reply()).msgid == uid
                counts.add(len(os.listdir("/proc/self/fd")))
            await until(place, hung_up=uid + 1)
    assert len(counts) == 1


async def test_a_user_who_always_asks_does_not_take_anothers_turn(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though each of his requests takes longer than all turns, and his queue was there first."""
    looks = itertools.count()
    monkeypatch.setattr(hub_module, "monotonic", lambda: next(looks) * 0.1)
    async with contextlib.AsyncExitStack() as stack:
        peers = []
        for uid in (1, 1, 2):
            theirs, ours = socket.socketpair()
            stack.enter_context(ours)
            peers.append(await stack.enter_async_context(Peer(theirs)))
            place.poller.park(Stream(ours, uid))
        for round in range(3):
            for peer in peers[:1] if round else peers:
                await peer.send(request("make", "v4", msgid=round))
        for peer in peers:
            assert (await peer.reply()).msgid == 0


@pytest.mark.parametrize("shortage", ["queues", "descriptors"])
async def test_users_beyond_those_with_a_queue_share_one(
    place: Place, shortage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are served like the others."""

    def none_left() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    if shortage == "queues":
        monkeypatch.setattr(hub_module, "QUEUES", 2)
    else:
        monkeypatch.setattr(select, "epoll", none_left)
    async with contextlib.AsyncExitStack() as stack:
        for uid in range(5):
            theirs, ours = socket.socketpair()
            stack.enter_context(ours)
            peer = await stack.enter_async_context(Peer(theirs))
            place.poller.park(Stream(ours, uid))
            await peer.send(request("make", "v4", msgid=uid))
            assert (await peer.reply()).msgid == uid


async def test_requests_that_take_long_are_handed_over_after_a_users_turn(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of pipelined requests that take a millisecond each one is answered here."""
    looks = itertools.count()
    monkeypatch.setattr(hub_module, "monotonic", lambda: next(looks) * 0.001)
    async with place.parked() as peer:
        some = [request("make", "v4", msgid=number) for number in range(3)]
        await peer.send(b"".join(some))
        await until(place, handed_over=1)
    assert place.handed_over == [(b"".join(some[1:]), b"")]


async def test_replies_to_what_came_before_malformed_bytes_are_sent_whole(place: Place) -> None:
    """Also when they are more than the system takes at once: then a task sends the rest."""
    theirs, ours = socket.socketpair()
    with ours:
        async with Peer(theirs):
            stream = Stream(ours, UID)
            stream.bound_unread()
            place.poller.park(stream)
            whole = request("make", "v1", 1000)
            assert theirs.send(whole + b"\0") == len(whole) + 1
            await until(place, handed_over=1)
    ((data, unsent),) = place.handed_over
    assert (data, len(unsent) > 0) == (b"\0", True)


class FewWatches:
    """An epoll, of which all together may watch so few descriptors (fs.epoll.max_user_watches)."""

    left = 0
    make = select.epoll

    def __init__(self) -> None:
        self._epoll = self.make()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._epoll, name)

    def __enter__(self) -> None:
        self._epoll.__enter__()

    def __exit__(self, *_: object) -> None:
        self._epoll.close()

    def register(self, fd: int, events: int) -> None:
        """Watch a descriptor. Raises OSError when that is one too many."""
        if not FewWatches.left:
            raise OSError(errno.ENOSPC, "No space left on device")
        FewWatches.left -= 1
        self._epoll.register(fd, events)


async def test_a_connection_that_cannot_be_watched_is_hung_up_on(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system lets only so many be; those that are go on, and one more is counted as refused."""
    monkeypatch.setattr(FewWatches, "left", 3)
    monkeypatch.setattr(select, "epoll", FewWatches)
    place = Place(Inside())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(place.poller.run)
        async with place.parked() as peer:
            async with place.parked():
                await until(place, hung_up=1)
                theirs, ours = socket.socketpair()
                with theirs, ours:
                    # Its request can be answered all the same, by a task.
                    assert not place.poller.answered(Stream(ours, UID), request("status"))
            assert (await peer.call("status")).error is None
        nursery.cancel_scope.cancel()
    assert place.inside.service.rpc.refused == {"no_watch": 1}

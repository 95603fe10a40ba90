from __future__ import annotations

import contextlib
import errno
import itertools
import select
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from tests.daemon.fakes import UID, Inside, Peer, TickingClock, meanwhile, request
from uuidd.core.wire import rpc
from uuidd.server import poller as poller_module
from uuidd.server.client import END, PAUSE, PIECE, READ, REST, TURN, Client, Next
from uuidd.server.fairness import Answer
from uuidd.server.poller import BACK_TO_BACK, SPINS, Poller
from uuidd.server.service import PIECES

pytestmark = pytest.mark.usefixtures("autojump_clock")


class Epolls:
    """Makes a poller's epolls, which watch so many descriptors in all."""

    def __init__(self) -> None:
        self.watches = 1000
        self.on_nothing: Callable[[], object] = lambda: None

    def __call__(self) -> select.epoll:
        """Return another one."""
        return cast("select.epoll", _Epoll(self))


class _Epoll:
    def __init__(self, made_by: Epolls) -> None:
        self._made_by = made_by
        self._epoll = select.epoll()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._epoll, name)

    def __enter__(self) -> None:
        self._epoll.__enter__()

    def __exit__(self, *_: object) -> None:
        self._epoll.close()

    def poll(self, timeout: float, most: int) -> list[tuple[int, int]]:
        if not (ready := self._epoll.poll(timeout, most)):
            self._made_by.on_nothing()
        return ready

    def register(self, fd: int, events: int) -> None:
        if not self._made_by.watches:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._made_by.watches -= 1
        self._epoll.register(fd, events)


class Place:
    """A poller, and what it goes on with and has ended. Time stands still unless *clock* ticks."""

    def __init__(
        self, inside: Inside, clock: TickingClock | None = None, *, cores: int = 1
    ) -> None:
        self.inside = inside
        self.clock = clock or TickingClock()
        self.epolls = Epolls()
        self.gone_on: list[Next] = []
        self.ended: list[Client] = []
        self.poller = Poller(self._place, self.clock, self.epolls, cores)
        self.changed = trio.Event()

    def client(self, sock: socket.socket, uid: int = UID) -> Client:
        """Return a client of *uid*."""
        return Client(sock, uid, self.inside.service)

    def _place(self, client: Client, then: Next) -> None:
        if then is END:
            self.ended.append(client)
        else:
            self.gone_on.append(then)
        self.changed.set()

    @contextlib.asynccontextmanager
    async def parked(self, uid: int = UID) -> AsyncIterator[Peer]:
        """Enter the client's end of a connection of *uid* that is parked."""
        theirs, ours = socket.socketpair()
        ours.setblocking(False)
        self.poller.park(self.client(ours, uid))
        with ours:
            async with Peer(theirs) as peer:
                yield peer


@pytest.fixture
async def place(autojump_clock: MockClock) -> AsyncIterator[Place]:
    """A poller that runs."""
    async with serving(Place(Inside())) as place:
        yield place


@contextlib.asynccontextmanager
async def serving(place: Place) -> AsyncIterator[Place]:
    """Let a place's poller run meanwhile."""
    async with meanwhile(place.poller.run):
        yield place


async def until(place: Place, *, gone_on: list[Next] | None = None, ended: int = 0) -> None:
    """Wait until so much has happened."""
    with trio.fail_after(5):
        while (place.gone_on, len(place.ended)) != (gone_on or [], ended):
            place.changed = trio.Event()
            await place.changed.wait()


async def test_requests_of_many_connections_are_answered_without_a_task(place: Place) -> None:
    async with contextlib.AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(place.parked()) for _ in range(100)]
        for _ in range(2):
            for number, peer in enumerate(peers):
                await peer.send(request("make", "v4", msgid=number))
            assert [(await peer.reply()).msgid for peer in peers] == list(range(100))
        assert place.gone_on == []


@pytest.mark.parametrize(
    ("asked", "then"),
    [
        (request("make", "v4") + request("status")[:5], REST),
        (request("take", "utc", 1), PAUSE),
        (request("make", "v4", 1000) * 16, READ),
        (request("make", "ksuid", PIECES["ksuid"] + 1), PIECE),
        (b"\x04\x01", REST),
    ],
    ids=["a rest", "a save", "a reader", "a turn of its own", "a rest in libuuid's dialect"],
)
async def test_what_has_to_wait_is_for_a_task(place: Place, asked: bytes, then: Next) -> None:
    place.inside.wall.step(3600)
    async with place.parked() as peer:
        await peer.send(asked)
        await until(place, gone_on=[then])
        await peer.send(request("status"))
        await trio.testing.wait_all_tasks_blocked()
    assert place.gone_on == [then]


@pytest.mark.parametrize("data", [request("make", "v4") + b"\xc1", b"GET /", b"\x02"])
async def test_a_client_that_is_at_its_end_is_ended(place: Place, data: bytes) -> None:
    async with place.parked() as peer:
        await peer.send(data)
        await until(place, ended=1)
    assert place.gone_on == []


async def test_a_client_that_hangs_up_is_ended(place: Place) -> None:
    async with place.parked() as other:
        async with place.parked() as peer:
            await peer.end_sending()
            await until(place, ended=1)
        assert (await other.call("make", "v4")).error is None


SOON, LATER = BACK_TO_BACK / 2, 2 * BACK_TO_BACK


@pytest.mark.parametrize(
    ("cores", "calls", "moments"),
    [
        (2, [(0, SOON)], 0),
        (2, [(0, SOON), (0, SOON)], 1),
        (2, [(0, SOON), (0, SOON), (0, SOON)], 2),
        (2, [(0, SOON), (0, LATER)], 0),
        (2, [(0, SOON), (1, SOON), (0, SOON)], 0),
        (1, [(0, SOON), (0, SOON)], 0),
    ],
    ids=["one request", "two", "three", "a pause", "another client between", "one core"],
)
async def test_a_client_that_sends_back_to_back_requests_is_busy_polled(
    cores: int, calls: list[tuple[int, float]], moments: int
) -> None:
    looks = itertools.count()
    async with (
        serving(Place(Inside(), cores=cores)) as place,
        place.parked() as one,
        place.parked() as other,
    ):
        await trio.testing.wait_all_tasks_blocked()
        place.epolls.on_nothing = lambda: next(looks)
        for caller, passed in calls:
            place.clock.now += passed
            await (one, other)[caller].call("make", "v4")
            await trio.testing.wait_all_tasks_blocked()
    assert next(looks) // SPINS == moments


async def test_tasks_have_a_turn_before_a_client_is_busy_polled() -> None:
    happened: list[str] = []

    async def take_turns() -> None:
        while True:
            happened.append("turn")
            await trio.lowlevel.checkpoint()

    async with serving(Place(Inside(), cores=2)) as place, place.parked() as peer:
        place.epolls.on_nothing = lambda: happened.append("nothing")
        async with meanwhile(take_turns):
            for _ in range(50):
                await peer.call("make", "v4")
                happened.append("answered")
    # trio lets tasks run in any order, so this does not happen at each request.
    order = [name for name, _ in itertools.groupby(happened)]
    assert ("nothing", "turn", "nothing") in set(zip(order, order[1:], order[2:], strict=False))


@contextlib.asynccontextmanager
async def always_asking(uids: list[int], most: int, step: float) -> AsyncIterator[list[int]]:
    """Enter what is answered, by number, of a connection for each uid that asks again at once.

    Each look at the clock takes *step* seconds. They ask *most* times in all. Another user was
    there before, and is gone.
    """
    place = Place(Inside(), TickingClock(step))
    answered: list[int] = []
    answer = place.inside.service.answer
    peers: list[socket.socket] = []

    def noted(asked: rpc.Request, client: Client) -> Answer:
        assert asked.msgid is not None
        answered.append(asked.msgid)
        if len(answered) < most:
            peers[asked.msgid].send(request("make", "v4", msgid=asked.msgid))
        return answer(asked, client)

    with contextlib.ExitStack() as socks, pytest.MonkeyPatch.context() as patched:
        patched.setattr(place.inside.service, "answer", noted)
        gone = place.client(socks.enter_context(socket.socket(socket.AF_UNIX)), uid=0)
        place.poller.park(gone)
        assert place.poller.drop(gone)
        for number, uid in enumerate(uids):
            theirs, ours = socket.socketpair()
            peers.append(socks.enter_context(theirs))
            place.poller.park(place.client(socks.enter_context(ours), uid))
            theirs.send(request("make", "v4", msgid=number))
        async with serving(place):
            yield answered


async def test_who_was_not_reached_in_a_turn_comes_before_who_was() -> None:
    """Of ten connections that always ask, all are served, though a turn is for two or three."""
    async with always_asking([UID] * 10, most=100, step=0.00004) as answered:
        await trio.testing.wait_all_tasks_blocked()
    assert set(answered[:10]) == set(range(10))


async def test_connections_of_a_user_are_served_in_the_order_in_which_they_asked() -> None:
    async with always_asking([UID] * 10, most=1, step=0.0) as answered:
        await trio.testing.wait_all_tasks_blocked()
    assert answered == list(range(10))


async def test_others_have_their_turn_though_there_is_always_a_request() -> None:
    async with always_asking([*range(30)], most=1000, step=0.00004) as answered:
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        assert len(answered) < 200


@pytest.mark.parametrize("queues", [32, 1])
async def test_a_user_with_many_connections_delays_another_by_one_turn(
    queues: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a hundred connections that all ask, few are answered before another user's only one.

    So it is too if a queue of its own is what one who is gone has left.
    """
    monkeypatch.setattr(poller_module, "QUEUES", queues)
    async with always_asking([1] * 100 + [2], most=1, step=0.0001) as answered:
        await trio.testing.wait_all_tasks_blocked()
    assert answered.index(100) < 10
    assert sorted(answered) == list(range(101))


async def test_a_user_who_always_asks_does_not_take_anothers_turn() -> None:
    """Though each of its requests takes longer than all turns, and its queue was there first."""
    async with always_asking([1, 1, 2], most=50, step=0.1) as answered:
        await trio.testing.wait_all_tasks_blocked()
    assert set(answered[:6]) == {0, 1, 2}


async def test_users_beyond_those_with_a_queue_share_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poller_module, "QUEUES", 2)
    async with serving(Place(Inside())) as place, contextlib.AsyncExitStack() as stack:
        for uid in range(5):
            peer = await stack.enter_async_context(place.parked(uid))
            assert (await peer.call("make", "v4", msgid=uid)).msgid == uid


async def test_requests_that_take_long_are_for_a_task_after_a_users_turn() -> None:
    async with serving(Place(Inside(), TickingClock(step=0.001))) as place, place.parked() as peer:
        some = [request("make", "v4", msgid=number) for number in range(3)]
        await peer.send(b"".join(some))
        await until(place, gone_on=[TURN])
        assert (await peer.reply()).msgid == 0
    assert place.inside.service.rpc.requests == 1


async def test_a_connection_that_cannot_be_watched_is_ended() -> None:
    place = Place(Inside())
    place.epolls.watches = 1
    async with serving(place), place.parked() as peer, place.parked():
        await until(place, ended=1)
        assert (await peer.call("status")).error is None
    assert place.inside.service.rpc.refused == {"no_watch": 1}

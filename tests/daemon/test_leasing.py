from __future__ import annotations

import contextlib
import mmap
import os
import socket
import tracemalloc
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest
import trio
from trio.testing import MockClock

from tests.daemon.fakes import (
    HOUR,
    UID,
    Inside,
    Peer,
    TickingClock,
    at_once,
    message,
    notification,
    request,
)
from tests.daemon.test_acceptor import Serving, serving
from tests.tools import need_root
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.generation import BLOCK_LANES
from uuidd.core.timeline.leases import PER_USER, RESERVED
from uuidd.core.timeline.page import EPOCH_AT, HORIZON_AT, TOKENS_AT
from uuidd.core.wire import methods, rpc
from uuidd.core.wire.methods import MOST_ASK_AGAIN
from uuidd.server.client import Client
from uuidd.server.events import SPAN
from uuidd.server.leasing import ASK_AGAIN_SECONDS
from uuidd.server.page import PAGE_BYTES, Page
from uuidd.server.poller import ENDS
from uuidd.server.saver import REACH
from uuidd.server.settings import SOON_SECONDS

pytestmark = pytest.mark.usefixtures("autojump_clock")

IN_USE = notification("in_use")


async def refusal(peer: Peer) -> tuple[str, float]:
    """Return why the daemon grants no lease, and how many seconds later to ask again."""
    reply = await peer.call("lease")
    assert reply.error is not None
    assert reply.code == "no_lease"
    words, seconds = reply.error.removeprefix("no_lease: ").split("; ask again in ")
    return words, float(seconds.removesuffix(" s"))


@pytest.fixture
async def served(page: Page, autojump_clock: MockClock) -> AsyncIterator[Serving]:
    """A daemon that serves, and has a page."""
    async with serving(page=page) as served:
        yield served


@pytest.fixture
async def holder(served: Serving) -> AsyncIterator[Peer]:
    """A client of it, a second after its start."""
    async with served.connect() as holder:
        await trio.sleep(1)
        yield holder


def tokens(page: Page) -> dict[int, int]:
    """Return the tokens in a page that stand for a holder, by lane."""
    return {
        lane: token for lane, token in enumerate(page.words[TOKENS_AT : TOKENS_AT + 256]) if token
    }


@pytest.mark.parametrize("bars", [True, False])
async def test_a_lease_is_a_lane_whose_token_is_in_the_page(page: Page, bars: bool) -> None:
    """On a kernel that cannot bar descriptors from a connection, too."""
    async with serving(page=page, bars=bars) as served, served.connect() as holder:
        await trio.sleep(1)
        lease = await holder.lease()
        assert tokens(page) == {lease.lane: lease.token}
        assert lease.lane >= BLOCK_LANES
        assert lease.clock_seq == served.inside.open.clock_seq + lease.lane
        assert lease.node == served.inside.timeline.node.value
        assert lease.begin <= served.inside.wall.now()
        assert len(holder.passed) == 1


async def test_the_page_comes_with_the_first_lease_of_a_connection(page: Page) -> None:
    """It comes with the first byte of that reply, which is sent alone.

    An earlier client expects it there, and has dropped that of the first reply.
    """
    inside = Inside(page=page, ahead=10)
    async with inside.talking(TickingClock()) as holder:
        await trio.sleep(1)
        await holder.send(request("take", "utc", 1) + request("lease") + request("lease"))
        replies = await holder.replies(3)
        assert [data for _, data in holder.passed] == [
            message(1, 1, None, reply.result) for reply in replies[:2]
        ]
        last = methods.unpack_lease(replies[-1].result)
        with mmap.mmap(holder.passed[-1][0], PAGE_BYTES, prot=mmap.PROT_READ) as read:
            words = memoryview(read).cast("Q")
            assert words[TOKENS_AT + last.lane] == last.token
            words.release()


async def test_the_page_comes_with_the_first_lease_after_other_replies(
    page: Page, holder: Peer
) -> None:
    await holder.call("take", "utc", 1)
    lease = await holder.call("lease")
    assert [data for _, data in holder.passed][1:] == [message(1, 1, None, lease.result)]


@pytest.mark.parametrize("first", [("take", "utc", 64), ("make", "v1"), ("status",), ("none",)])
async def test_the_page_comes_with_the_first_reply(
    page: Page, first: tuple[Any, ...], holder: Peer
) -> None:
    """So who holds a block learns of a clone, and no request is needed for that; it comes once."""
    await holder.call(*first)
    await holder.call("take", "steady", 1)
    [(fd, data)] = holder.passed
    assert data[:2] == b"\x94\x01"
    assert os.fstat(fd).st_ino == os.fstat(page.fd).st_ino


@pytest.mark.parametrize("timeline", ["utc", "steady"])
async def test_a_block_says_in_which_epoch_it_was_given(
    page: Page, served: Serving, holder: Peer, timeline: str
) -> None:
    """The page may reach a client after its block, and another clone may come between the two."""
    before = await holder.call("take", timeline, 1)
    assert "page_epoch" not in before.result
    served.inside.timeline.leases.renew()
    after = await holder.call("take", timeline, 1)
    assert after.result["page_epoch"] == page.words[EPOCH_AT] == 1


async def test_a_second_lease_ends_the_first(page: Page, served: Serving, holder: Peer) -> None:
    first, second = await holder.lease(), await holder.lease()
    assert tokens(page) == {second.lane: second.token}
    assert first.lane != second.lane
    assert served.inside.timeline.leases.out == 1


async def test_a_client_that_takes_no_descriptor_gets_no_lease(
    page: Page, served: Serving, holder: Peer
) -> None:
    """It asked the kernel for that (SO_PASSRIGHTS, Linux 6.16). Its lane is not wasted on it."""
    try:
        holder.sock.setsockopt(socket.SOL_SOCKET, 83, 0)
    except OSError:
        pytest.skip("this kernel passes descriptors to all")
    assert await refusal(holder) == (
        "the page could not be passed over this connection; blocks serve meanwhile",
        ASK_AGAIN_SECONDS,
    )
    assert tokens(page) == {}
    assert served.inside.leasing.refused == {"unpassed": 1}
    # It is the client's choice, and no fault that somebody has to hear of.
    assert served.inside.leasing.unpassed == 0
    holder.sock.setsockopt(socket.SOL_SOCKET, 83, 1)
    await holder.lease()
    assert len(holder.passed) == 1


async def test_a_kernel_that_passes_no_descriptors_is_told_now_and_then(
    caplog: pytest.LogCaptureFixture, served: Serving, holder: Peer
) -> None:
    served.inside.leasing.page = -1
    for _ in range(3):
        await refusal(holder)
    told = "the page could not be passed, so clients get no leases: Bad file descriptor"
    assert caplog.messages == [told]
    await trio.sleep(SPAN)
    await refusal(holder)
    assert caplog.messages == [told] * 2
    assert served.inside.leasing.unpassed == 4


async def test_a_client_that_is_gone_is_no_fault_of_the_kernels(
    caplog: pytest.LogCaptureFixture, served: Serving
) -> None:
    gone = served.connect().sock
    gone.send(request("status"))
    gone.close()
    await trio.testing.wait_all_tasks_blocked()
    assert served.inside.service.rpc.requests == 1
    assert served.inside.leasing.unpassed == 0
    assert caplog.messages == []


async def test_a_lease_that_is_taken_back_takes_no_other_reply_with_it(page: Page) -> None:
    inside = Inside(page=page, ahead=10)
    inside.leasing.page = -1
    async with inside.talking(TickingClock()) as holder:
        await holder.send(request("lease") + request("take", "utc", 1))
        assert [reply.code for reply in await holder.replies(2)] == ["no_lease", ""]


async def ended_unread(peer: Peer) -> None:
    """End a connection over which a reply comes with the page, and is not read."""
    await peer.send(request("status"))
    await peer.end_sending()
    await trio.testing.wait_all_tasks_blocked()


async def test_a_connection_counts_until_its_page_was_read(served: Serving) -> None:
    """Also after it has ended, because the kernel counts the page as the daemon's until then."""
    async with served.connect() as peer:
        await ended_unread(peer)
        assert len(served.inside.admission.open) == 1
        assert await peer.rest()
        assert len(peer.passed) == 1
        await trio.testing.wait_all_tasks_blocked()
        assert len(served.inside.admission.open) == 0


async def test_a_connection_counts_until_a_page_that_was_not_read_is_dropped(
    served: Serving,
) -> None:
    """The kernel drops it when the client closes its end."""
    peers = [served.connect() for _ in range(3 * ENDS)]
    for peer in peers:
        await ended_unread(peer)
    assert len(served.inside.admission.open) == len(peers)
    for peer in peers:
        peer.sock.close()
    await trio.testing.wait_all_tasks_blocked()
    assert len(served.inside.admission.open) == 0


async def test_a_connection_that_has_ended_keeps_no_bytes_while_its_page_is_unread(
    served: Serving,
) -> None:
    """Or one user, with thousands of them, would fill the memory."""
    asked, count = request("make", "v4", 1000) * 1000, 20
    async with contextlib.AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(served.connect()) for _ in range(count)]
        await trio.testing.wait_all_tasks_blocked()
        tracemalloc.start()
        try:
            for peer in peers:
                await peer.send(asked)
            await trio.sleep(served.inside.limits.reply_seconds + 1)
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert served.inside.service.rpc.refused == {"unread": count}
        assert len(served.inside.admission.open) == count
    assert kept < count * 4096


async def test_a_page_that_is_not_read_makes_room_for_another_user(page: Page) -> None:
    need_root()
    async with serving(page=page, connections=3) as served, contextlib.AsyncExitStack() as stack:
        for _ in range(3):
            await ended_unread(await stack.enter_async_context(served.connect()))
        newcomer = await stack.enter_async_context(served.connect(limited=True))
        assert (await newcomer.call("status")).error is None
        assert served.inside.service.rpc.refused == {"made_room": 2}


async def test_a_stop_does_not_wait_until_a_page_is_read(served: Serving) -> None:
    async with served.connect() as peer, served.connect() as late:
        await ended_unread(peer)
        assert (await late.call("status")).error is None
        served.acceptor.stop(drain=False)
        await served.ended.wait()
        assert trio.current_time() == 0


async def test_without_a_page_nothing_is_leased() -> None:
    async with serving() as served, served.connect() as holder:
        assert await refusal(holder) == (
            "this daemon has no leases, and its log says why; blocks serve meanwhile",
            MOST_ASK_AGAIN,
        )
        assert (await holder.call("take", "utc", 1)).error is None
        assert holder.passed == []
        assert served.inside.leasing.refused == {"page": 1}
        assert served.inside.service.rpc.refused == {"no_lease": 1}


def floor(inside: Inside) -> None:
    """Let earlier leases reach 12 s ahead."""
    inside.timeline.leases.floor = inside.wall.now() + 12 * TICKS_PER_SECOND


def steady_ahead(inside: Inside, seconds: float) -> None:
    """Set UTC back."""
    inside.take_steady()
    inside.wall.step(-seconds)


def unsynchronised(inside: Inside) -> None:
    inside.steady.withheld = "the clock is not synchronised"


def moved_away(inside: Inside) -> None:
    inside.disk.moved = "the folder was moved away"


def leased(inside: Inside, *, to: int, lanes: int) -> None:
    """Lease so many lanes, in turn to three users from *to* on, or to one."""
    for number in range(lanes):
        uid = to + number % 3 if lanes == RESERVED else to
        inside.timelines.lease(at=inside.clock.read(), uid=uid)


@pytest.mark.parametrize(
    ("prepare", "reason", "words", "seconds"),
    [
        (
            floor,
            "floor",
            "no lease before UTC has passed all that earlier leases may have used, in 12.000 s",
            # UTC may be set forward long before that, and so below.
            ASK_AGAIN_SECONDS,
        ),
        (
            partial(steady_ahead, seconds=0.5),
            "steady",
            "no lease before UTC has caught up with the steady timeline, in 0.500 s",
            1,
        ),
        (
            partial(steady_ahead, seconds=12),
            "steady",
            "no lease before UTC has caught up with the steady timeline, in 12.000 s",
            ASK_AGAIN_SECONDS,
        ),
        (
            lambda inside: inside.timeline.use_volatile("a test"),
            "volatile",
            "v1 and v6 come from a volatile node, which has no leases",
            1,
        ),
        (unsynchronised, "withheld", "no lease yet: the clock is not synchronised", 1),
        (
            moved_away,
            "save",
            "the state has to be saved first, which fails (the folder was moved away)",
            1,
        ),
        (
            partial(leased, to=os.geteuid(), lanes=PER_USER),
            "user",
            f"uid {os.geteuid()} has {PER_USER} leases, the most one user may have, counting those"
            f" that ended in the last {REACH:g} s; close connections",
            MOST_ASK_AGAIN,
        ),
        (
            partial(leased, to=os.geteuid() + 1, lanes=RESERVED),
            "lanes",
            f"all {RESERVED} lanes are leased, counting those whose lease ended in the last"
            f" {REACH:g} s",
            MOST_ASK_AGAIN,
        ),
        (lambda inside: inside.timelines.close(), "stopping", "the daemon is stopping", 1),
    ],
    ids=["floor", "steady", "far", "volatile", "withheld", "moved", "user", "lanes", "stop"],
)
async def test_a_refused_lease_says_why_and_when_to_ask_again(
    prepare: Callable[[Inside], object],
    reason: str,
    words: str,
    seconds: float,
    served: Serving,
    holder: Peer,
) -> None:
    prepare(served.inside)
    assert await refusal(holder) == (f"{words}; blocks serve meanwhile", seconds)
    assert served.inside.leasing.refused == {reason: 1}
    assert served.inside.service.rpc.refused == {"no_lease": 1}


async def test_a_refused_lease_leaves_the_one_that_is_held(
    page: Page, served: Serving, holder: Peer
) -> None:
    """A refused request changes nothing (P6)."""
    lease = await holder.lease()
    served.inside.timeline.leases.floor = served.inside.wall.now() + TICKS_PER_SECOND
    assert (await refusal(holder))[1] == 1
    assert tokens(page) == {lease.lane: lease.token}


async def test_a_refused_lease_is_answered_at_once(served: Serving) -> None:
    """As a block is, without a task: a user without a lane may have thousands of clients."""
    served.inside.timeline.leases.floor = served.inside.wall.now() + TICKS_PER_SECOND
    ask = rpc.Request(1, "lease", [])
    asking = Mock(uid=UID, unsent=b"", has_page=False)
    at_once(served.inside.service.answer(ask, asking))
    assert b"no_lease" in asking.unsent
    assert served.inside.leasing.refused == {"floor": 1}


async def test_the_token_is_cleared_before_anything_else(
    page: Page, monkeypatch: pytest.MonkeyPatch, served: Serving
) -> None:
    """Nobody can have the lane, nor the connection's place, while its holder could go on."""
    seen: list[dict[int, int]] = []
    leave = served.inside.admission.leave

    def noted(client: Client) -> None:
        seen.append(tokens(page))
        leave(client)

    monkeypatch.setattr(served.inside.admission, "leave", noted)
    async with served.connect() as other:
        await other.lease()
    await trio.testing.wait_all_tasks_blocked()
    assert seen == [{}]


async def test_a_step_back_ends_all_leases_before_anything_else(
    page: Page, served: Serving, holder: Peer
) -> None:
    await holder.lease()
    served.inside.wall.step(-1)
    await holder.call("take", "utc", 1)
    assert tokens(page) == {}
    assert served.inside.timeline.leases.floor == page.words[HORIZON_AT]


async def test_a_stop_leaves_the_leases_to_their_holders(
    page: Page, served: Serving, holder: Peer
) -> None:
    """They go on up to the horizon in the page while the next daemon starts."""
    async with served.connect() as other:
        leases = [await each.lease() for each in (holder, other)]
        served.acceptor.stop(drain=False)
        await served.ended.wait()
        await holder.ended()
        assert tokens(page) == {lease.lane: lease.token for lease in leases}


@pytest.fixture
async def host(page: Page, autojump_clock: MockClock) -> AsyncIterator[tuple[Inside, Peer]]:
    """The inside of a daemon that saves, and a client of it."""
    inside = Inside(page=page)
    async with inside.saving(), inside.talking() as holder:
        yield inside, holder


Host = tuple[Inside, Peer]


async def test_a_lease_on_an_idle_host_comes_with_a_horizon_that_can_be_used(
    page: Page, host: Host
) -> None:
    """The first request after an idle hour waits for a save, as one for a block does."""
    inside, holder = host
    await trio.sleep(HOUR)
    assert inside.saver.idle
    await holder.lease()
    assert page.words[HORIZON_AT] > inside.wall.now()


async def test_a_lease_on_an_idle_host_before_the_horizon_has_it_raised(host: Host) -> None:
    inside, holder = host
    inside.save_ahead(2 * HOUR)
    await trio.sleep(HOUR)
    assert inside.saver.idle
    assert inside.disk.begun == []
    await holder.lease()
    await trio.sleep(0.01)
    assert len(inside.disk.begun) == 1


@pytest.mark.parametrize("broken", [False, True], ids=["hangs", "fails"])
async def test_a_disk_in_trouble_keeps_no_lease_back(page: Page, host: Host, broken: bool) -> None:
    inside, holder = host
    await trio.sleep(HOUR)
    inside.disk.broken = broken
    gate = trio.Event()
    inside.disk.gate = None if broken else gate
    lease = await holder.lease()
    assert trio.current_time() == pytest.approx(HOUR if broken else HOUR + SOON_SECONDS)
    assert tokens(page) == {lease.lane: lease.token}
    assert page.words[HORIZON_AT] <= inside.wall.now()
    inside.disk.broken = False
    gate.set()
    await trio.sleep(0.2)
    assert page.words[HORIZON_AT] > inside.wall.now()


@pytest.mark.parametrize("name", ["in_use", b"in_use"])
async def test_word_of_use_raises_the_horizon_on_an_idle_host(
    page: Page, host: Host, name: str
) -> None:
    inside, holder = host
    await holder.lease()
    await trio.sleep(HOUR)
    saves = len(inside.disk.begun)
    await holder.send(notification(name))
    await trio.sleep(0.01)
    assert len(inside.disk.begun) == saves + 1
    assert page.words[HORIZON_AT] > inside.wall.now()
    assert (await holder.call("status", msgid=9)).msgid == 9


async def test_word_of_use_soon_after_a_save_causes_the_next_one(host: Host) -> None:
    """When it is due, although nobody says so again."""
    inside, holder = host
    await holder.lease()
    await trio.sleep(HOUR)
    await holder.send(IN_USE)
    await trio.sleep(1)
    saves = len(inside.disk.begun)
    await holder.send(IN_USE)
    await trio.sleep(20)
    assert len(inside.disk.begun) == saves + 1


async def test_holders_that_make_ids_cause_a_save_each_ten_seconds(host: Host) -> None:
    """However often they say so: a flood of notifications is as use is."""
    inside, holder = host
    await trio.sleep(60)
    await holder.lease()
    saves, begun = len(inside.disk.begun), trio.current_time()
    while trio.current_time() < begun + 100:
        await holder.send(IN_USE * 50)
        await trio.sleep(0.1)
    assert len(inside.disk.begun) - saves == pytest.approx(10, abs=1)


async def test_a_folder_that_was_moved_away_ends_the_leases_with_the_next_save(
    page: Page, host: Host
) -> None:
    """Holders send no requests, so it is the save that finds it; another daemon may start there."""
    inside, holder = host
    await holder.lease()
    inside.disk.moved = "the folder was moved away"
    await holder.send(IN_USE)
    await trio.sleep(0.1)
    assert tokens(page) == {}


async def test_a_disk_that_fails_ends_no_lease(page: Page, host: Host) -> None:
    inside, holder = host
    await trio.sleep(60)
    lease = await holder.lease()
    horizon = page.words[HORIZON_AT]
    inside.disk.broken = True
    await holder.send(IN_USE)
    await trio.sleep(60)
    assert (tokens(page), page.words[HORIZON_AT]) == ({lease.lane: lease.token}, horizon)
    inside.disk.broken = False
    await trio.sleep(10)
    assert page.words[HORIZON_AT] > horizon


async def test_a_lease_at_the_horizon_waits_for_a_save(page: Page, host: Host) -> None:
    """The tick of the horizon is the first that its holder may not use."""
    inside, holder = host
    await trio.sleep(60)
    await holder.lease()
    inside.disk.gate = trio.Event()
    inside.wall.step((page.words[HORIZON_AT] - inside.wall.now()) / TICKS_PER_SECOND)
    assert inside.wall.now() == page.words[HORIZON_AT]
    begun = trio.current_time()
    await holder.lease()
    assert trio.current_time() - begun == pytest.approx(SOON_SECONDS)
    inside.disk.gate.set()


async def test_other_notifications_do_nothing(host: Host) -> None:
    inside, holder = host
    await trio.sleep(HOUR)
    saves = len(inside.disk.begun)
    odd_ones: list[Any] = ["in_us", "take", 7, None, ["in_use"], {}]
    for odd in odd_ones:
        await holder.send(notification(odd))
    await trio.sleep(1)
    assert len(inside.disk.begun) == saves
    assert inside.service.rpc.requests == 6

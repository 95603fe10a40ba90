"""What a client gets over a connection: replies in either dialect, an error, or the end."""

from __future__ import annotations

import contextlib
import gc
import os
import tracemalloc
import uuid
from collections.abc import AsyncIterator
from dataclasses import asdict
from struct import pack, unpack

import msgpack
import pytest
import trio
from trio.testing import MockClock

from tests.daemon.fakes import (
    HOUR,
    Inside,
    Peer,
    TickingClock,
    meanwhile,
    message,
    notification,
    request,
)
from uuidd import version
from uuidd.core.timeline.fence import Fence
from uuidd.fleet.fences import static_status
from uuidd.server.settings import Limits

pytestmark = pytest.mark.usefixtures("autojump_clock")

HALF = request("take", "utc", 1)[:-3]


@pytest.fixture
async def inside(autojump_clock: MockClock) -> Inside:
    """A daemon's inside with an hour's horizon, so that no save is ever waited for."""
    return Inside(ahead=2 * HOUR)


@pytest.fixture
async def peer(inside: Inside) -> AsyncIterator[Peer]:
    """A client's end of a connection."""
    async with inside.talking() as peer:
        yield peer


async def ask(inside: Inside, data: bytes) -> bytes:
    """Return all that comes in reply over a new connection until the close."""
    async with inside.talking() as peer:
        await peer.send(data)
        return await peer.rest()


class Turns(trio.abc.Instrument):
    """Notes the most rpc requests that were answered without a turn for others."""

    def __init__(self, inside: Inside) -> None:
        self._tally = inside.service.rpc
        self._before = 0
        self.most = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Note what was answered so far."""
        self._before = self._tally.requests

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Note what this turn answered."""
        self.most = max(self.most, self._tally.requests - self._before)


async def test_a_caller_of_many_gives_others_their_turn(inside: Inside) -> None:
    """Of many requests that take 0.04 ms each, three are answered before others have their turn."""
    turns = Turns(inside)
    async with inside.talking(monotonic=TickingClock(step=0.00004)) as many:
        trio.lowlevel.add_instrument(turns)
        await many.send(b"".join(request("make", "v4", msgid=n) for n in range(500)))
        replies = await many.replies(500)
        trio.lowlevel.remove_instrument(turns)
    assert turns.most == 3
    assert [(reply.msgid, reply.error) for reply in replies] == [(n, None) for n in range(500)]


@pytest.mark.parametrize(
    "ignored",
    [
        pytest.param(notification("take", "utc", 1_000_000, True), id="a method"),
        pytest.param(message(2, b"nvim_set_client_info", ["x", {"a": 1}]), id="pynvim's greeting"),
        pytest.param(message(2, None, {1: 2}), id="nil"),
        pytest.param(message(1, 7, None, "x"), id="a response"),
    ],
)
async def test_what_wants_no_answer_is_ignored(inside: Inside, peer: Peer, ignored: bytes) -> None:
    before = inside.standing()
    await peer.send(17 * ignored + request("status", msgid=5))
    reply = await peer.reply()
    assert (reply.msgid, reply.error) == (5, None)
    assert inside.standing() == before
    assert (inside.service.rpc.requests, inside.service.rpc.ids) == (18, 0)
    assert inside.service.rpc.refused == {}
    await peer.end_sending()
    assert await peer.rest() == b""


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (message(0, 7, b"take", [b"utc", 1]), ""),
        (b"\x94\x00\x07\xa1\xff\x90", "unknown_method"),
        (request("Take", "utc", 1, msgid=7), "unknown_method"),
        (message(0, 7, "take", {"timeline": "utc"}), "bad_params"),
        (b"\x94\x00\x07\xa4take\x92\xa1\xff\x01", "bad_params"),
        (request("take", "utc", 1_000_001, msgid=7), "bad_params"),
        (request("make", "snowflake", msgid=7), "no_worker_id"),
        (request("status", 1, msgid=7), "bad_params"),
    ],
)
async def test_a_request_however_odd_is_answered(
    inside: Inside, peer: Peer, asked: bytes, code: str
) -> None:
    before = inside.standing()
    await peer.send(asked)
    reply = await peer.reply()
    assert (reply.msgid, reply.code) == (7, code)
    assert (inside.standing() == before) is bool(code)
    assert inside.service.rpc.ids == (0 if code else 1)
    assert inside.service.rpc.refused == ({code: 1} if code else {})
    assert (await peer.call("take", "utc", 1, msgid=8)).error is None


@pytest.mark.parametrize(
    ("malformed", "told"),
    [
        (b"\x94\x00\x03\xc1", "cannot be read: not MessagePack"),
        (message(0, 3, "take"), "not a MessagePack-RPC message"),
        (
            message(0, 3, "x" * 4000, ["x" * 1000]),
            "a request of 5010 bytes or more; at most 4096 are read",
        ),
    ],
)
@pytest.mark.parametrize("before", [b"", request("make", "v4", msgid=2)], ids=["alone", "behind"])
async def test_a_request_that_cannot_be_read_is_answered_before_the_end(
    inside: Inside, before: bytes, malformed: bytes, told: str
) -> None:
    unpacker = msgpack.Unpacker()
    unpacker.feed(await ask(inside, before + malformed))
    assert [*unpacker][-1] == [1, 3, f"bad_params: {told}; the connection is closed", None]
    assert trio.current_time() == 0
    assert inside.service.rpc.refused == {"malformed": 1}


async def test_the_first_byte_tells_the_dialect(inside: Inside) -> None:
    """Of all first bytes, 0 to 5 are libuuid's, four are rpc's, and any other is closed upon."""
    outcomes: dict[int, str] = {}
    for first in range(256):
        begun = trio.current_time()
        answer = await ask(inside, bytes([first]))
        late = trio.current_time() - begun
        outcomes[first] = "answered" if answer else f"closed after {late:g}"
    expected = dict.fromkeys(range(256), "closed after 0")
    expected |= dict.fromkeys((0, 1, 2, 3), "answered")
    expected |= dict.fromkeys((4, 5, 0x93, 0x94, 0xDC, 0xDD), "closed after 5")
    assert outcomes == expected
    assert inside.service.rpc.refused == {"malformed": 246, "too_late": 4}
    assert inside.service.libuuid.refused == {"too_late": 2}


@pytest.mark.parametrize("half", [HALF, b"\x04\x01\x00\x00"], ids=["rpc", "libuuid"])
async def test_a_caller_that_leaves_in_the_middle_of_a_request_is_not_late(
    inside: Inside, peer: Peer, half: bytes
) -> None:
    """Nobody waits for the rest of its request, so the end counts as no refusal."""
    await peer.send(half)
    await trio.testing.wait_all_tasks_blocked()
    await peer.end_sending()
    assert await peer.rest() == b""
    assert trio.current_time() == 0
    assert inside.service.rpc.refused == inside.service.libuuid.refused == {}


@pytest.mark.parametrize("asked", [3, 60], ids=["at once", "after a part of the replies"])
async def test_a_caller_that_leaves_has_no_unread_replies(
    inside: Inside, peer: Peer, asked: int
) -> None:
    """Replies that nobody is there to read count as no refusal, also if a part of them waits."""
    await peer.send(request("make", "v4", 1000) * asked)
    if asked > 3:
        await trio.testing.wait_all_tasks_blocked()
    peer.sock.close()
    await trio.testing.wait_all_tasks_blocked()
    assert inside.service.rpc.requests > 0
    assert inside.service.rpc.refused == {}


@pytest.mark.parametrize("leaves", [True, False], ids=["leaves", "reads nothing"])
async def test_a_request_whose_caller_is_gone_no_longer_counts_as_waiting(
    inside: Inside, leaves: bool
) -> None:
    """It waited behind a reply that was not read. Nobody waits for Python's garbage collector."""
    inside.use_up()
    whole = request("take", "utc", 1_000_000, True)
    gc.disable()
    try:
        async with inside.talking(TickingClock(), waiting_per_uid=1) as gone:
            await gone.send(request("make", "v4", 1000) + whole)
            await trio.testing.wait_all_tasks_blocked()
            if leaves:
                gone.sock.close()
            await trio.sleep(6)
        inside.use_up()
        async with inside.talking() as peer:
            await peer.send(whole)
            assert (await peer.reply()).error is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("slow", "late"),
    [
        (request("take", "utc", 1), False),
        (request("take", "utc", 1), True),
        (b"\xdd\x00\x00\x00\x04\x00\x01\xa4take", True),
        (b"\x04\x01\x00\x00", False),
    ],
    ids=["rpc", "after another", "with a long head", "libuuid"],
)
async def test_one_byte_a_second_ends_after_five_seconds(
    peer: Peer, slow: bytes, late: bool
) -> None:
    if late:
        await peer.call("status")
        await trio.sleep(100)
    begun = trio.current_time()

    async def drip() -> None:
        with contextlib.suppress(trio.BrokenResourceError):
            for byte in slow:
                await peer.send(bytes([byte]))
                await trio.sleep(0.99)

    async with meanwhile(drip):
        assert await peer.rest() == b""
        assert trio.current_time() == begun + 5


@pytest.mark.parametrize("read", [0, 1], ids=["nothing", "byte by byte"])
async def test_a_caller_that_hardly_reads_is_closed_upon_after_five_seconds(
    inside: Inside, peer: Peer, read: int
) -> None:
    asked = b"".join(request("make", "v1", 1000, msgid=n) for n in range(800))

    async def drip() -> None:
        while True:
            await trio.sleep(0.1)
            await peer.receive(read)

    tracemalloc.start()
    try:
        await peer.send(asked)
        async with meanwhile(drip):
            await trio.sleep(4.99)
            assert inside.service.rpc.refused == {}
            await trio.sleep(0.02)
            assert inside.service.rpc.refused == {"unread": 1}
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert inside.service.rpc.requests < 20
    assert peak < 1_000_000


async def test_a_caller_that_reads_slowly_but_in_time_is_served(inside: Inside, peer: Peer) -> None:
    """The 5 s are for a reply to be read, not for a whole connection."""
    async with trio.open_nursery() as nursery:
        asked = b"".join(request("make", "v4", 1000, msgid=n) for n in range(30))
        nursery.start_soon(peer.send, asked)
        for number in range(30):
            await trio.sleep(0.5)
            assert (await peer.reply()).msgid == number
    assert inside.service.rpc.refused == {}


async def test_a_take_gives_a_block_which_may_be_shorter_than_asked(
    inside: Inside, peer: Peer
) -> None:
    await peer.call("take", "utc", 1_000_000)
    await trio.sleep(0.001)
    result = (await peer.call("take", "utc", 1_000_000)).result
    assert trio.current_time() == 0.001
    assert set(result) == {*("first", "unix_ms", "tick_in_ms", "count", "clock_seq", "node")}
    assert result["count"] == 10_000
    assert result["first"] + 10_000 == inside.wall.now() + 1
    assert result["clock_seq"] == inside.open.clock_seq
    assert result["node"] == inside.open.node.to_bytes(6, "big")


async def test_status_tells_how_the_daemon_does() -> None:
    await trio.sleep(7)
    inside = Inside(
        worker=101, epoch=1_420_070_400_000, max_lead=7.5, rollback="wait", ahead=2 * HOUR
    )
    async with inside.talking() as peer:
        await peer.call("take", "utc", 100)
        await peer.call("nonsense")
        await trio.sleep(60)
        told = (await peer.call("status")).result
    del told["full_on"], told["clock"], told["leases"], told["clones"]
    assert told == {
        "version": version(),
        "pid": os.getpid(),
        "worker": static_status(Fence(101)),
        "uptime": 60.0,
        "node": f"0x{inside.timeline.node.value:012x}",
        "node_source": "random",
        "volatile": False,
        "unreachable": "",
        "connections": 1,
        "connections_highest": 1,
        "connections_rejected": 0,
        "requests": {
            "rpc": {"requests": 3, "ids": 100, "refused": {"unknown_method": 1}},
            "libuuid": {"requests": 0, "ids": 0, "refused": {}},
        },
        "fallback": {"ids": {}, "last_age": None},
        "limits": asdict(Limits()),
        "steady": {
            "next": inside.steady.next,
            "lead": 0.0,
            "max_lead": 7.5,
            "rollback": "wait",
            "held_for": 0.0,
            "horizon": inside.steady.horizon.limit,
            "horizon_in": 2 * HOUR - 60,
            "worker": 101,
            "epoch": 1_420_070_400_000,
        },
        "utc": {
            "generation": inside.open.number,
            "clock_seq": inside.open.clock_seq,
            "node": f"0x{inside.open.node:012x}",
            "lanes_in_use": 0,
            "next": max(inside.lanes),
            "lag": pytest.approx(60),
            "openings": 1,
            "steps_back": 0,
            "steps_forward": 0,
            "horizon": inside.timeline.horizon.limit,
            "horizon_in": pytest.approx(2 * HOUR - 60),
        },
        "saves": {
            "done": 1,
            "failed": 0,
            "failing": False,
            "trouble": "",
            "last_age": 60.0,
            "last_seconds": 0.0,
            "reach_seconds": 20.0,
            "under_way_seconds": 0.0,
        },
    }


async def test_status_shows_saves_and_steps_of_the_clock(inside: Inside) -> None:
    async with inside.saving():
        await trio.sleep(3 * HOUR)
        for step in (0, -100, +50):
            inside.wall.step(step)
            await inside.take_waiting()
        await trio.sleep(60)
        told = inside.report.status()
    assert 0 < told["saves"]["last_age"] <= 60
    steps = (told["utc"]["steps_back"], told["utc"]["steps_forward"])
    assert (steps, told["utc"]["openings"]) == ((1, 1), 2)


async def test_each_single_op_is_answered(inside: Inside) -> None:
    """With a length that counts the NUL of a text, or with one UUID: v1 of now, or v4."""
    text = f"{os.getpid()}\0".encode()
    assert await ask(inside, b"\x00") == pack("=i", len(text)) + text
    assert await ask(inside, b"\x01") == bytes.fromhex("02000000 3500")
    timed, drawn = await ask(inside, b"\x02"), await ask(inside, b"\x03")
    assert timed[:4] == drawn[:4] == bytes.fromhex("10000000")
    made = uuid.UUID(bytes=timed[4:])
    assert (made.version, made.time, made.node) == (1, inside.wall.now(), inside.open.node)
    assert uuid.UUID(bytes=drawn[4:]).version == 4


@pytest.mark.parametrize(("asked", "reserved"), [(1, 1), (1_000_000, 1_000_000), (0, 1), (-99, 1)])
async def test_bulk_time_uuid_reserves_all(inside: Inside, asked: int, reserved: int) -> None:
    reply = await ask(inside, b"\x04" + pack("=i", asked))
    size, first, echo = unpack("=i16si", reply)
    made = uuid.UUID(bytes=first)
    assert (size, echo, made.version) == (20, asked, 1)
    assert made.time + reserved == inside.wall.now() + 1
    assert inside.open.lanes[made.clock_seq & 15].next == made.time + reserved
    assert inside.service.libuuid.ids == reserved


@pytest.mark.parametrize(("asked", "given"), [(5, 5), (2**31 - 1, 63), (-1, 1), (0, 0)])
async def test_bulk_random_uuid_gives_what_fits(inside: Inside, asked: int, given: int) -> None:
    reply = await ask(inside, b"\x05" + pack("=i", asked))
    assert unpack("=ii", reply[:8]) == (4 + 16 * given, given)
    found = [uuid.UUID(bytes=reply[at : at + 16]) for at in range(8, len(reply), 16)]
    assert [each.version for each in found] == [4] * given
    assert len(set(found)) == given


async def test_a_refused_libuuid_request_moves_no_lane_and_is_closed_upon(inside: Inside) -> None:
    before = inside.standing()
    assert await ask(inside, b"\x04" + pack("=i", 1_000_001)) == b""
    assert inside.service.libuuid.refused == {"malformed": 1}
    assert inside.standing() == before


async def test_a_libuuid_request_without_room_is_closed_upon(inside: Inside) -> None:
    inside.use_up()
    inside.wall.stop()
    assert await ask(inside, b"\x04" + pack("=i", 1_000_000)) == b""
    assert trio.current_time() <= 0.2
    assert inside.service.libuuid.refused == {"busy": 1}

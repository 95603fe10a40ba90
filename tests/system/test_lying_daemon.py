"""A daemon that lies about leases: clients draw from blocks, in order, and no future ids."""

from __future__ import annotations

import fcntl
import gc
import itertools
import mmap
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgpack
import pytest

from tests.client.fakes import Server, result
from tests.judge import v7_tick
from tests.rig import PATIENCE, dice
from uuidd.core.timeline.generation import BLOCK_LANES
from uuidd.core.timeline.page import DUE_AT, HORIZON_AT, MAGIC_AT, PAGE_MAGIC, PAGE_WORDS, TOKENS_AT
from uuidd_client import Client
from uuidd_client.lease import SEALS, page_of
from uuidd_client.life import current
from uuidd_client.system import SYSTEM_CLOCK

FAR = 1 << 60
"""A tick in the year 5236."""

LANE = BLOCK_LANES
TOKEN = 77
GOOD = {"lane": LANE, "clock_seq": LANE, "node": b"liar!!", "token": TOKEN, "begin": 0}

DAY = 864_000_000_000

Reply = tuple[object, list[int]]
"""The result of a lease, and the descriptors that are passed with it."""


def page(
    *,
    size: int = 8 * PAGE_WORDS,
    seals: int = SEALS,
    magic: int = PAGE_MAGIC,
    horizon: int = FAR,
    due: int = FAR,
    token: int = TOKEN,
) -> tuple[int, mmap.mmap]:
    """Return the descriptor of a page, which allows all if it is a good one, and its memory."""
    fd = os.memfd_create("liar", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    memory = mmap.mmap(fd, size)
    words = memoryview(memory).cast("Q")
    for at, word in (
        (MAGIC_AT, magic),
        (HORIZON_AT, horizon),
        (DUE_AT, due),
        (TOKENS_AT + LANE, token),
    ):
        if at < len(words):
            words[at] = word
    words.release()
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd, memory


def with_page(result: object = GOOD, **words: int) -> Callable[[], Reply]:
    """Return a reply with this result and a page of these words."""
    return lambda: (result, [page(**words)[0]])


def a_file() -> Reply:
    """Return a reply with a file in the place of the page."""
    with tempfile.TemporaryFile() as file:
        file.write(bytes(8 * PAGE_WORDS))
        file.flush()
        return GOOD, [os.dup(file.fileno())]


def a_pipe() -> Reply:
    """Return a reply with both ends of a pipe."""
    return GOOD, list(os.pipe())


def hang_up() -> Reply:
    """Close the connection."""
    raise EOFError


LIES: dict[str, Callable[[], Reply]] = {
    "no page": lambda: (GOOD, []),
    "a file for a page": a_file,
    "a pipe for a page": a_pipe,
    "a page that can be shortened": with_page(seals=SEALS & ~fcntl.F_SEAL_SHRINK),
    "a page without seals": with_page(seals=0),
    "a short page": with_page(size=8),
    "an empty page": with_page(size=16, seals=SEALS),
    "a long page": with_page(size=1 << 16),
    "a page of another version": with_page(magic=PAGE_MAGIC + 1),
    "a page with a horizon of the past": with_page(horizon=1),
    "a page with another token": with_page(token=TOKEN + 1),
    "many pages": lambda: (GOOD, [page(magic=0)[0] for _ in range(10)]),
    "not a map": with_page([1, 2]),
    "a lane for blocks": with_page({**GOOD, "lane": 3, "clock_seq": 3}),
    "a clock_seq of another lane": with_page({**GOOD, "clock_seq": LANE + 1}),
    "a token that nobody has": with_page({**GOOD, "token": 0}, token=0),
    "a node of too many bytes": with_page({**GOOD, "node": b"a liar!"}),
    "a lease that begins tomorrow": lambda: (
        {**GOOD, "begin": SYSTEM_CLOCK.utc_tick() + DAY},
        [page()[0]],
    ),
    "nothing, and hangs up": hang_up,
}
"""What is said to a request for a lease."""


def liar(path: Path, reply: Callable[[], Reply]) -> Server:
    """Return a daemon that gives out blocks of now; *reply* replies to requests for a lease."""
    end = 0

    def block(request: bytes) -> bytes:
        nonlocal end
        _, _, _, (_, count, *_) = msgpack.unpackb(request)
        while (now := SYSTEM_CLOCK.utc_tick()) <= end:
            pass
        first = max(end, now + 1 - count)
        end = now + 1
        ticks = {"first": first, "count": end - first}
        return result(request, ticks | {"clock_seq": 5, "node": b"liar!!", "worker": 5, "epoch": 0})

    def lease(request: bytes, connection: socket.socket) -> bool:
        try:
            told, fds = reply()
        except EOFError:
            return False
        try:
            socket.send_fds(connection, [result(request, told)], fds)
        finally:
            for fd in fds:
                os.close(fd)
        return True

    return Server(path, block, lease)


@pytest.fixture(autouse=True)
def _leaves_nothing_open() -> Iterator[None]:
    """Fail if a test leaves a descriptor open."""
    fd, memory = page()
    # A life keeps the page that it was passed last: here this one, before and after.
    own = page_of(os.dup(fd))
    assert own is not None
    current().passed(own)
    gc.collect()
    before = os.listdir("/proc/self/fd")
    yield
    current().passed(own)
    gc.collect()
    assert os.listdir("/proc/self/fd") == before
    os.close(fd)
    memory.close()


def draw(client: Client, count: int) -> None:
    """Draw some v1 and v7; fail if they do not rise, or lie in the future."""
    ones, sevens = [], []
    for number in range(count):
        ones.append(client.uuid1().time)
        sevens.append(client.uuid7().bytes)
        now = SYSTEM_CLOCK.utc_tick()
        assert ones[-1] <= now
        assert v7_tick(int.from_bytes(sevens[-1], "big")) <= now
        if number % 20 == 0:
            # Bursts, of which each asks for more.
            time.sleep(0.003)
    assert all(one < next for one, next in itertools.pairwise(ones))
    assert all(one < next for one, next in itertools.pairwise(sevens))


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_about_a_lease_costs_no_id(lie: str, place: Path) -> None:
    """All come from blocks, and a lease is asked for once a second at most."""
    begun = time.monotonic()
    with (
        liar(place / "s", LIES[lie]) as server,
        Client(place / "s", fallback=False, max_age=0.002, timeout=5) as client,
    ):
        draw(client, 200)
        assert len(server.requests) > 10
        assert 1 <= server.asked <= 2 + time.monotonic() - begun


def test_a_page_of_noise_does_no_harm(place: Path) -> None:
    """Its words change at random all the time; ids come from the lane, or from blocks."""
    fd, memory = page()
    done = threading.Event()
    noise = dice()

    def scribble() -> None:
        words = memoryview(memory).cast("Q")
        while not done.is_set():
            words[HORIZON_AT] = noise.choice((0, SYSTEM_CLOCK.utc_tick() + 100, FAR, (1 << 64) - 1))
            words[DUE_AT] = noise.choice((0, SYSTEM_CLOCK.utc_tick(), FAR))
            words[TOKENS_AT + LANE] = noise.choice((TOKEN, TOKEN, TOKEN, 0))
        words.release()

    scribbling = threading.Thread(target=scribble)
    with (
        liar(place / "s", lambda: (GOOD, [os.dup(fd)])) as server,
        Client(place / "s", fallback=False, max_age=0.002, timeout=5) as client,
    ):
        scribbling.start()
        try:
            draw(client, 500)
        finally:
            done.set()
            scribbling.join(PATIENCE)
            os.close(fd)
            memory.close()
        assert server.asked

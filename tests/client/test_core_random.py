"""The random bytes that the C extension reads ahead: few, not for long, and each for one id."""

from __future__ import annotations

import itertools
import mmap
from collections.abc import Iterator
from random import Random

import pytest

from tests.client.cutters import BLOCK, FOREVER, Hand, core
from tests.client.fakes import START
from tests.client.lanes import Lanes
from tests.kinds import FORMS, MS, random_size

RANDOM = [kind for kind, form in FORMS if form == "bytes" and random_size(kind)]
MOST = 1024
"""Bytes that are read at once."""


class Reads:
    """A source of random bytes, and the *sizes* that were read; *all* is what it returned."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.all = b""
        self._random = Random(4)

    def __call__(self, size: int) -> bytes:
        """Return so many bytes."""
        self.sizes.append(size)
        part = self._random.randbytes(size)
        self.all += part
        return part


@pytest.fixture
def reads() -> Reads:
    """Return a source of random bytes."""
    return Reads()


@pytest.fixture
def lanes() -> Iterator[Lanes]:
    """Return what leases lanes."""
    lanes = Lanes()
    yield lanes
    lanes.close()


def drawn(hand: Hand, count: int) -> list[bytes]:
    """Return so many ids, a tick apart."""
    found = []
    for _ in range(count):
        hand.now += 1
        found.append(hand.one("bytes"))
    return found


def test_more_is_read_the_more_is_used(reads: Reads, lanes: Lanes) -> None:
    """Up to a kilobyte: it costs much to ask the system, and little to get more from it."""
    drawn(Hand("v7", random=reads).hold(lanes), 16 + 32 + 64 + 128 + 128 + 1)
    assert reads.sizes == [128, 256, 512, MOST, MOST, MOST]


@pytest.mark.parametrize("kind", RANDOM)
def test_whole_ids_are_read(reads: Reads, lanes: Lanes, kind: str) -> None:
    """Nothing of a read is left that is too little for an id."""
    hand, size = Hand(kind, random=reads), random_size(kind)
    if kind != "v4":
        hand.hold(lanes)
    drawn(hand, 300)
    assert all(read % size == 0 for read in reads.sizes)
    assert sum(reads.sizes[:-1]) < 300 * size <= sum(reads.sizes)


@pytest.mark.parametrize("kind", ["v4", "v7"])
def test_no_bits_are_used_twice(reads: Reads, lanes: Lanes, kind: str) -> None:
    """Each id has its own of those that were read."""
    hand = Hand(kind, random=reads)
    if kind == "v7":
        hand.hold(lanes)
    size = 16 if kind == "v4" else 8
    # Without version, variant and lane.
    tails = [id[-6:] for id in drawn(hand, 500)]
    known = [reads.all[at : at + size][-6:] for at in range(0, len(reads.all), size)]
    assert len(set(tails)) == 500
    assert set(tails) <= set(known)


@pytest.mark.parametrize("step", [-1, MS])
@pytest.mark.parametrize("kind", ["v4", "v7"])
def test_what_was_read_is_dropped_with_time(
    reads: Reads, lanes: Lanes, kind: str, step: int
) -> None:
    """After a millisecond, and with a step back: then the next read is a small one again."""
    hand = Hand(kind, random=reads)
    if kind == "v7":
        hand.hold(lanes)
    drawn(hand, 20)
    assert reads.sizes[0] == 128
    before = len(reads.sizes)
    hand.now += step - 30 if step < 0 else step
    hand.one("bytes")
    assert reads.sizes[before:] == [128]


def test_what_was_read_is_kept_for_a_millisecond(reads: Reads) -> None:
    """Not for less, as few as the ids may be."""
    hand = Hand("v4", random=reads)
    hand.one("bytes")
    hand.now += MS - 1
    hand.one("bytes")
    assert reads.sizes == [128]


def test_what_was_read_is_not_kept_longer_than_max_age(reads: Reads) -> None:
    """If that is less than a millisecond."""
    hand = Hand("v4", random=reads, max_age=0.0001)
    hand.one("bytes")
    hand.now += MS // 10
    hand.one("bytes")
    assert reads.sizes == [128, 128]


@pytest.mark.parametrize("kind", ["v4", "v7"])
def test_without_any_age_nothing_is_read_ahead(reads: Reads, lanes: Lanes, kind: str) -> None:
    """Each id reads its own."""
    hand = Hand(kind, random=reads, max_age=0)
    if kind == "v7":
        hand.hold(lanes)
    drawn(hand, 3)
    assert reads.sizes == [16 if kind == "v4" else 8] * 3


@pytest.mark.parametrize("kind", ["v4", "v7"])
def test_what_was_read_is_dropped_when_the_machine_was_cloned(
    reads: Reads, lanes: Lanes, kind: str
) -> None:
    """A clone has it too."""
    epochs = memoryview(bytearray(8)).cast("Q")
    hand = Hand(kind, random=reads)
    if kind == "v7":
        hand.hold(lanes)
    core.watch(epochs)
    drawn(hand, 3)
    assert reads.sizes == [128]
    epochs[0] += 1
    drawn(hand, 3)
    assert reads.sizes == [128, 128]


def test_what_was_read_is_dropped_when_there_is_another_page(reads: Reads) -> None:
    """From then on that of the new daemon tells of clones, and this may be of before one."""
    hand = Hand("v4", random=reads)
    drawn(hand, 3)
    core.watch(memoryview(bytearray(8)).cast("Q"))
    drawn(hand, 3)
    assert len(reads.sizes) == 2


def test_what_was_read_under_a_lease_ends_with_it(reads: Reads, lanes: Lanes) -> None:
    """Also if a block serves in its place."""
    hand = Hand("v7", random=reads).hold(lanes)
    drawn(hand, 2)
    lanes.revoke()
    hand.now += 1
    assert hand.one() is None
    hand.lend(START, 5)
    drawn(hand, 2)
    hand.hold(lanes)
    drawn(hand, 5)
    assert reads.sizes == [128] * 3


def test_what_was_read_ends_with_the_token_alone(reads: Reads, lanes: Lanes) -> None:
    """The token may come back, as with a copy of a machine."""
    hand = Hand("v7", random=reads).hold(lanes)
    drawn(hand, 2)
    assert hand.leased is not None
    lanes.words[hand.leased.at] += 1
    assert hand.one() is None
    lanes.words[hand.leased.at] -= 1
    drawn(hand, 2)
    assert reads.sizes == [128, 128]


@pytest.mark.parametrize("kind", RANDOM)
def test_what_was_used_is_wiped(reads: Reads, lanes: Lanes, kind: str) -> None:
    """Whoever reads the memory does not find the bits of ids that were made."""
    hand = Hand(kind, random=reads)
    if kind != "v4":
        hand.hold(lanes)
    size = random_size(kind)
    for _ in range(200):
        drawn(hand, 1)
        last = reads.sizes[-1]
        pool = bytes(hand.guard.memory[mmap.PAGESIZE :])
        left = pool.rstrip(b"\0")
        assert reads.all[-last:].startswith(left)
        assert last - len(left) >= size
        assert not any(pool[last:])


def test_what_is_read_ahead_is_wiped_in_a_forks_child(reads: Reads) -> None:
    """It is in memory that the kernel wipes there, and nowhere else in the cutter."""
    hand = Hand("v4", random=reads)
    drawn(hand, 1)
    assert hand.guard.memory[mmap.PAGESIZE :][: 128 - 16] == reads.all[:-16]


def test_what_is_dropped_is_wiped(reads: Reads) -> None:
    """No more is in memory than what was read last."""
    hand = Hand("v4", random=reads)
    drawn(hand, 10)
    hand.now += MS
    drawn(hand, 1)
    assert not any(hand.guard.memory[mmap.PAGESIZE + 128 :])


@pytest.mark.parametrize("kind", ["v4", "v7"])
def test_a_handler_that_draws_while_bytes_are_read_has_others(lanes: Lanes, kind: str) -> None:
    """It does not find what is being read, nor does it wait for it."""
    inner: list[bytes] = []
    random = Random(5)
    begun = itertools.count()

    def read(size: int) -> bytes:
        if next(begun) < 40:
            inner.append(hand.one("bytes"))
        hand.now += 1
        return random.randbytes(size)

    hand = Hand(kind, random=read)
    if kind == "v7":
        hand.hold(lanes)
    ids = drawn(hand, 100) + inner
    assert len(inner) == 40
    assert len({id[-6:] for id in ids}) == len(set(ids)) == 140


@pytest.mark.parametrize("found", [b"", b"\0" * 127, bytearray(128), "x" * 128, None])
def test_a_source_that_returns_something_else_is_an_error(found: object) -> None:
    """Nothing is made of it; the next read is a new one."""
    answers = [found]
    hand = Hand("v4", random=lambda count: answers.pop() if answers else b"\1" * count)  # type: ignore[arg-type, return-value]
    with pytest.raises(ValueError, match="source of random bytes"):
        hand.one()
    assert hand.one("bytes").endswith(b"\1" * 6)
    with pytest.raises(ValueError, match="source of random bytes"):
        Hand("v4", random=lambda _: found).cutter.many("uuid", 0, 5, BLOCK, True)  # type: ignore[arg-type, return-value]


def test_the_error_of_a_source_is_the_callers(lanes: Lanes) -> None:
    """As a signal handler's exception; the next id reads again."""
    errors = [KeyboardInterrupt()]

    def read(count: int) -> bytes:
        if errors:
            raise errors.pop()
        return b"\1" * count

    hand = Hand("v7", random=read).hold(lanes, end=FOREVER)
    with pytest.raises(KeyboardInterrupt):
        hand.one()
    assert hand.one("bytes").endswith(b"\1" * 6)

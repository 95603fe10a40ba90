"""The random bytes that the C extension reads ahead: few, not for long, and each for one id."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import pytest

from tests.client.cutters import Hand, core
from tests.client.test_core_cutter import memory_of
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


def hand_of(kind: str, random: Any, max_age: float = 0.1) -> Hand:
    """Return a cutter with a source for ids of a kind."""
    hand = Hand(core.Cutter, max_age, random)
    return hand.all() if kind == "v4" else hand.lane()


def drawn(hand: Hand, kind: str, count: int) -> list[bytes]:
    """Return so many ids, a tick apart."""
    found = []
    for _ in range(count):
        hand.now += 1
        found.append(hand.one(kind, "bytes"))
    return found


def test_more_is_read_the_more_is_used(reads: Reads) -> None:
    """Up to a kilobyte: it costs much to ask the system, and little to get more from it."""
    drawn(hand_of("v7", reads), "v7", 16 + 32 + 64 + 128 + 128 + 1)
    assert reads.sizes == [128, 256, 512, MOST, MOST, MOST]


@pytest.mark.parametrize("kind", RANDOM)
def test_whole_ids_are_read(reads: Reads, kind: str) -> None:
    size = random_size(kind)
    drawn(hand_of(kind, reads), kind, 300)
    assert all(read % size == 0 for read in reads.sizes)
    assert sum(reads.sizes[:-1]) < 300 * size <= sum(reads.sizes)


@pytest.mark.parametrize("kind", ["v4", "v7"])
def test_no_bits_are_used_twice(reads: Reads, kind: str) -> None:
    size = random_size(kind)
    # Without version, variant and lane.
    tails = [id[-6:] for id in drawn(hand_of(kind, reads), kind, 500)]
    known = [reads.all[at : at + size][-6:] for at in range(0, len(reads.all), size)]
    assert len(set(tails)) == 500
    assert set(tails) <= set(known)


@pytest.mark.parametrize(
    ("max_age", "step", "dropped"),
    [
        (0.1, -31, True),
        (0.1, MS - 1, False),
        (0.1, MS, True),
        (0.0001, MS // 10 - 1, False),
        (0.0001, MS // 10, True),
    ],
)
@pytest.mark.parametrize("kind", ["v4", "v7"])
def test_what_was_read_is_dropped_with_time(
    reads: Reads, kind: str, max_age: float, step: int, dropped: bool
) -> None:
    """After a millisecond or max_age, and with a step back: the next read is a small one again."""
    hand = hand_of(kind, reads, max_age)
    # The last one has the first bytes of the second read.
    drawn(hand, kind, 128 // random_size(kind) + 1)
    hand.now += step
    hand.one(kind, "bytes")
    assert reads.sizes == [128, 256, *[128] * dropped]


@pytest.mark.parametrize("kind", ["v4", "v7"])
def test_without_any_age_nothing_is_read_ahead(reads: Reads, kind: str) -> None:
    drawn(hand_of(kind, reads, 0), kind, 3)
    assert reads.sizes == [random_size(kind)] * 3


@pytest.mark.parametrize("kind", ["v4", "v7"])
def test_what_was_read_is_dropped_with_the_source(reads: Reads, kind: str) -> None:
    """It may be of before a clone of the machine. Another of the same places counts too."""
    hand = hand_of(kind, reads)
    drawn(hand, kind, 3)
    hand.cutter.source = hand.cutter.source
    drawn(hand, kind, 3)
    assert reads.sizes == [128, 128]


@pytest.mark.parametrize("kind", RANDOM)
def test_what_was_used_is_wiped(reads: Reads, kind: str) -> None:
    """Whoever reads the memory finds the bits of ids to come, and none of those that were made."""
    hand = hand_of(kind, reads)
    size, memory, last = random_size(kind), b"", b""
    for _ in range(200):
        drawn(hand, kind, 1)
        memory = memory_of(hand.cutter)
        last = reads.all[-reads.sizes[-1] :]
        pieces = [last[at : at + size] for at in range(0, len(last), size)]
        found = [piece in memory for piece in pieces]
        assert found == sorted(found, reverse=True)
        assert not found[-1]
    assert not any(
        reads.all[at : at + size] in memory for at in range(0, len(reads.all) - len(last), size)
    )


@pytest.mark.parametrize("drop", ["time", "source"])
def test_what_is_dropped_is_wiped(reads: Reads, drop: str) -> None:
    """No more is in memory than what was read last."""
    hand = hand_of("v4", reads)
    drawn(hand, "v4", 20)
    before = reads.all
    if drop == "time":
        hand.now += MS
        hand.one("v4")
    else:
        hand.cutter.source = None
    memory = memory_of(hand.cutter)
    assert not any(before[at : at + 4] in memory for at in range(0, len(before), 16))


@pytest.mark.parametrize("kind", ["v4", "v7"])
def test_a_handler_that_draws_while_bytes_are_read_has_others(kind: str) -> None:
    """It does not find what is being read, nor does it wait for it."""
    inner: list[bytes] = []
    random = Random(5)
    begun = itertools.count()

    def read(size: int) -> bytes:
        if next(begun) < 40:
            inner.append(hand.one(kind, "bytes"))
        hand.now += 1
        return random.randbytes(size)

    hand = hand_of(kind, read)
    ids = drawn(hand, kind, 100) + inner
    assert len(inner) == 40
    assert len({id[-6:] for id in ids}) == len(set(ids)) == 140


def test_a_source_that_changes_while_bytes_are_read_leaves_them_whole(reads: Reads) -> None:
    """They are used for the id that they were read for."""

    def read(size: int) -> bytes:
        hand.cutter.source = hand.cutter.source
        return reads(size)

    hand = hand_of("v4", read)
    assert hand.one("v4", "bytes")[-6:] == reads.all[-6:]


def test_after_an_error_bytes_are_read_once_more() -> None:
    """Those that were read before are used up, and what was not read is not used."""
    answers = [b"\1", b"", b"\2"]

    def read(size: int) -> bytes:
        byte = answers.pop(0)
        if not byte:
            raise ValueError("a test")
        return byte * size

    hand = hand_of("v4", read)
    drawn(hand, "v4", 8)
    with pytest.raises(ValueError, match="a test"):
        hand.one("v4")
    assert hand.one("v4", "bytes").endswith(b"\2" * 6)

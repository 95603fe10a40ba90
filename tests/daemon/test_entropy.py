from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uuidd.server.entropy import MAX_AGE, READ_AHEAD, Entropy


class Source:
    """Random bytes that repeat from test to test; *given* keeps what was read, a read an item."""

    def __init__(self) -> None:
        self.given: list[bytes] = []
        self._random = random.Random(1)

    def __call__(self, count: int) -> bytes:
        """Return *count* bytes."""
        self.given.append(self._random.randbytes(count))
        return self.given[-1]


@pytest.mark.parametrize("count", [0, 1, 16, READ_AHEAD, READ_AHEAD + 1, 3 * READ_AHEAD])
def test_take_gives_as_many_bytes_as_asked(count: int) -> None:
    assert len(Entropy().take(count)) == count


def test_32_uuids_take_one_read() -> None:
    source = Source()
    entropy = Entropy(source, lambda: 1000.0)
    taken = [entropy.take(16) for _ in range(READ_AHEAD // 16)]
    assert source.given == [b"".join(taken)]
    entropy.take(16)
    assert len(source.given) == 2


def test_bytes_that_do_not_suffice_are_dropped() -> None:
    """What is asked comes from one read: what was left of the one before is not used."""
    source = Source()
    entropy = Entropy(source, lambda: 1000.0)
    entropy.take(READ_AHEAD - 1)
    assert entropy.take(2) == source.given[1][:2]
    assert entropy.take(2) == source.given[1][2:4]


def test_more_than_is_read_ahead_is_read_by_itself() -> None:
    source = Source()
    entropy = Entropy(source, lambda: 1000.0)
    entropy.take(16)
    assert entropy.take(READ_AHEAD + 1) == source.given[1]
    assert entropy.take(16) == source.given[0][16:32]


@pytest.mark.parametrize("step", [MAX_AGE, 3600, -0.001, -3600])
def test_bytes_that_have_waited_are_dropped(step: float) -> None:
    """Past their age, or after a step of UTC, new ones are read: a clone of the machine differs."""
    source, now = Source(), 1000.0
    entropy = Entropy(source, lambda: now)
    entropy.take(16)
    now += step
    assert entropy.take(16) == source.given[1][:16]


@given(st.lists(st.integers(8, READ_AHEAD), max_size=40))
def test_no_byte_is_given_twice(counts: list[int]) -> None:
    source = Source()
    entropy = Entropy(source, lambda: 1000.0)
    end = 0
    for count in counts:
        taken = entropy.take(count)
        end = b"".join(source.given).index(taken, end) + count


@pytest.mark.parametrize("count", [1, 7, 8, 9, 10, 14, 47, 48, 122])
def test_bits_are_as_many_as_asked(count: int) -> None:
    assert Entropy(lambda length: b"\xff" * length).bits(count) == (1 << count) - 1


def test_bits_come_from_the_source() -> None:
    assert Entropy(lambda length: b"\xa5\xc0".ljust(length, b"\0")).bits(10) == 0b1010_0101_11


def test_two_processes_of_the_system_differ() -> None:
    assert Entropy().take(16) != Entropy().take(16)

"""Messages with something changed: some of their bytes, or one of their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgpack
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

Span = tuple[int, int]
"""Where a value begins and ends."""

LONGEST = 8192
"""Bytes of the longest input: twice the limit of a request."""

PLACES = 64
"""Of values, and of bytes, at which the same change is made."""

_DEEPEST = 32
"""Deeper than this no values are looked for."""

_WORD = re.compile(rb"[0-9A-Za-z_]+")


class Changes:
    """Strategies of changed *seeds*: *parts* of messages, or other bytes, take a place in them.

    *spans* tells where the values of a message are.
    """

    def __init__(
        self, seeds: Sequence[bytes], parts: Sequence[bytes], spans: Callable[[bytes], list[Span]]
    ) -> None:
        self._spans = spans
        # None is the size of any value. Most messages stay whole, for what is not is soon refused.
        sizes = st.one_of(st.none(), st.none(), st.none(), st.integers(0, 8), st.just(LONGEST))
        others = st.one_of(
            *[st.sampled_from(parts)] * 3,
            st.binary(max_size=4),
            st.sampled_from(seeds),
            st.builds(bytes.__mul__, st.sampled_from(parts), st.integers(2, 30)),
        )
        change = st.tuples(others, sizes, st.integers(0, 255))
        self.messages: SearchStrategy[bytes] = st.builds(
            self._with, st.sampled_from(seeds), st.lists(change, max_size=1)
        )
        """One message each, with one change at most."""
        self.many: SearchStrategy[list[bytes]] = st.builds(
            self._everywhere, self.messages, st.lists(others, min_size=1, max_size=4), sizes
        )
        """A message each, and those with one more change: each of some parts at each place."""

    def _with(self, data: bytes, changes: list[tuple[bytes, int | None, int]]) -> bytes:
        for part, size, place in changes:
            places = self._places(data, size)
            begin, end = places[place % len(places)]
            data = (data[:begin] + part + data[end:])[:LONGEST]
        return data

    def _everywhere(self, data: bytes, parts: list[bytes], size: int | None) -> list[bytes]:
        places = self._places(data, size)
        some = [data[:begin] + part + data[end:] for part in parts for begin, end in places]
        return [data, *(changed[:LONGEST] for changed in some)]

    def _places(self, data: bytes, size: int | None) -> list[Span]:
        """Return where values are, or *size* bytes; of a long message only some."""
        if size is None:
            return self._spans(data)[:PLACES] or [(0, len(data))]
        step = 1 + len(data) // PLACES
        return [(at, at + size) for at in range(0, len(data) + 1, step)]


def of_messagepack(data: bytes) -> list[Span]:
    """Return begin and end of each value in *data*, inner ones too; [] if not MessagePack."""
    unpacker = msgpack.Unpacker()
    unpacker.feed(data)
    found: list[Span] = []
    try:
        while unpacker.tell() < len(data):
            _value(unpacker, data, found, 0)
    except (msgpack.UnpackException, ValueError):
        return []
    return found


def of_words(data: bytes) -> list[Span]:
    """Return begin and end of each run of letters and digits, and of all of *data*."""
    return [*(match.span() for match in _WORD.finditer(data)), (0, len(data))]


def of_numbers(data: bytes) -> list[Span]:
    """Return begin and end of each four bytes."""
    return [(at, at + 4) for at in range(0, len(data), 4)]


def _value(unpacker: msgpack.Unpacker, data: bytes, found: list[Span], depth: int) -> None:
    """Skip the next value. Raises ValueError if it holds others too deep."""
    if depth > _DEEPEST:
        raise ValueError
    begin = unpacker.tell()
    head = data[begin : begin + 1]
    items = 0
    if b"\x80" <= head <= b"\x8f" or head in (b"\xde", b"\xdf"):
        items = 2 * unpacker.read_map_header()
    elif b"\x90" <= head <= b"\x9f" or head in (b"\xdc", b"\xdd"):
        items = unpacker.read_array_header()
    else:
        unpacker.skip()
    for _ in range(items):
        _value(unpacker, data, found, depth + 1)
    found.append((begin, unpacker.tell()))

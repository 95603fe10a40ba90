"""Where in a message its values are, so that one can be put in the place of another."""

from __future__ import annotations

import re

import msgpack

Span = tuple[int, int]

_DEEPEST = 32
"""Deeper than this no values are looked for."""

_WORD = re.compile(rb"[0-9A-Za-z_]+")


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

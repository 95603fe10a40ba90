"""Where in a message its values are, so that one can be put in the place of another."""

from __future__ import annotations

import re

Span = tuple[int, int]

_HEADS = {
    **dict.fromkeys((0xC0, 0xC2, 0xC3), (0, 0)),
    **{0xCC + power: (1 << power, 0) for power in range(4)},
    **{0xD0 + power: (1 << power, 0) for power in range(4)},
    **{0xCA + power: (4 << power, 0) for power in range(2)},
    **{0xD4 + power: (1 + (1 << power), 0) for power in range(5)},
    **{0xC4 + power: (0, 1 << power) for power in range(3)},
    **{0xC7 + power: (1, 1 << power) for power in range(3)},
    **{0xD9 + power: (0, 1 << power) for power in range(3)},
}
"""By the first byte of a value: bytes that follow, and bytes of a length that says how many more do
(https://github.com/msgpack/msgpack/blob/master/spec.md)."""

_ARRAYS, _MAPS = {0xDC: 2, 0xDD: 4}, {0xDE: 2, 0xDF: 4}

_DEEPEST = 32
"""Deeper than this no values are looked for."""

_WORD = re.compile(rb"[0-9A-Za-z_]+")


class _NoneFound(Exception):
    """These bytes hold no whole MessagePack, or too deep a one."""


def of_messagepack(data: bytes) -> list[Span]:
    """Return begin and end of each value in *data*, inner ones too; [] if not MessagePack."""
    found: list[Span] = []
    at = 0
    try:
        while at < len(data):
            at = _value(data, at, found, 0)
    except (_NoneFound, IndexError):
        return []
    return found


def of_words(data: bytes) -> list[Span]:
    """Return begin and end of each run of letters and digits, and of all of *data*."""
    return [*(match.span() for match in _WORD.finditer(data)), (0, len(data))]


def _value(data: bytes, begin: int, found: list[Span], depth: int) -> int:
    if depth > _DEEPEST:
        raise _NoneFound
    head, at = data[begin], begin + 1
    items = 0
    if head <= 0x7F or head >= 0xE0:
        pass
    elif head <= 0x8F:
        items = 2 * (head & 0x0F)
    elif head <= 0x9F:
        items = head & 0x0F
    elif head <= 0xBF:
        at += head & 0x1F
    elif width := _ARRAYS.get(head) or _MAPS.get(head):
        items = int.from_bytes(data[at : at + width], "big") * (2 if head in _MAPS else 1)
        at += width
    elif head in _HEADS:
        follow, width = _HEADS[head]
        at += width + follow + int.from_bytes(data[at : at + width], "big")
    else:
        raise _NoneFound
    for _ in range(items):
        at = _value(data, at, found, depth + 1)
    if at > len(data):
        raise _NoneFound
    found.append((begin, at))
    return at

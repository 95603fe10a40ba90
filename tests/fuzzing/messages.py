"""Values of MessagePack, encoded, to be put in the place of others."""

from __future__ import annotations

import math

import msgpack

from tests.fuzzing.corpus import BLOCK, DEEP, STEADY_BLOCK
from uuidd.core.ids.kinds import KINDS
from uuidd.core.wire.methods import FALLBACK_IDS, IN_USE, METHODS, TIMELINES

NAMES = [
    bytes([0xA0 + len(name)]) + name.encode()
    for name in (
        *METHODS,
        IN_USE,
        FALLBACK_IDS,
        *TIMELINES,
        *KINDS,
        "",
        "x",
        "Take",
        "v2",
        "\0",
        "\u00fc",
    )
]

_NUMBERS = (0, 1, 2, 3, 10, 63, 64, 127, 128, 255, 1000, 1001, 65535, 1_000_000, 1_000_001)

NUMBERS = [
    *map(msgpack.packb, (*_NUMBERS, -1, -32, -128, -(1 << 15), -(1 << 31), -(1 << 63))),
    *map(msgpack.packb, (1 << 31, (1 << 32) - 1, 1 << 32, (1 << 60) - 1, 1 << 60, (1 << 64) - 1)),
    # Longer than needed.
    *(b"\xce" + number.to_bytes(4, "big") for number in _NUMBERS),
]

VALUES = [
    *NAMES,
    *NUMBERS,
    *map(msgpack.packb, (None, False, True, 1.0, math.inf, math.nan, "x" * 32, "'" * 256)),
    *map(msgpack.packb, (b"", b"\x9f\x6b\xde\xce\xd8\x46", b"utc", bytes(256))),
    *map(msgpack.packb, ([], [[[]]], ["utc", 1], {}, {"x": None}, {"": None, "y": None})),
    # Two equal keys, heads that are longer than needed, a float of 32 bits, and nesting.
    b"\x82\xa1x\xc0\xa1x\xc0",
    b"\xdc\x00\x40" + b"\xc0" * 64,
    b"\xde\x00\x02\xa0\xc0\xa1y\xc0",
    b"\xca\x3f\x80\x00\x00",
    b"\x91" * 40 + b"\xc0",
    # Extensions: a timestamp of 32, 64 and 96 bits, and another.
    b"\xd6\xff\x00\x00\x00\x01",
    b"\xd7\xff\x00\x00\x00\x04\x00\x00\x00\x01",
    b"\xc7\x0c\xff\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01",
    b"\xd4\x01\x00",
    BLOCK,
    STEADY_BLOCK,
]
"""Values that are whole."""

PARTS = [
    *VALUES,
    *VALUES,
    b"\xc1",
    b"\xa2\xff\xfe",
    b"\xa3\xed\xa0\x80",
    b"\x81\x01\x02",
    b"\xd7\xff" + b"\xff" * 8,
    b"\xc7\x03\xff\x00\x00\x00",
    b"\xdc\x00\x41",
    b"\xdc\xff\xff",
    b"\xdd\xff\xff\xff\xff",
    b"\xdd\x00\x0f\xff\xff",
    b"\xde\xff\xff",
    b"\xdf\xff\xff\xff\xff",
    b"\xdb\xff\xff\xff\xff",
    b"\xc6\xff\xff\xff\xff",
    b"\xc9\xff\xff\xff\xff\x01",
    b"\x94\x00\x01",
    b"\x93\x02",
    DEEP[-300:],
]
"""Values, and what is none or not whole."""

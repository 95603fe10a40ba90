"""Ids that are only read: those of Apollo and NCS.

::

    Apollo's UID       | clock 32 (units of 262.144 ms) | counter 4 | reserved 8 | node 20 |
    NCS UUID           | clock 48 (units of 4 us) | reserved 16 | family 8 | host 56 |

They are the ancestors of the UUID. Both count from 1980-01-01T00:00:00Z. The UUID of
Apollo's Network Computing System is what variant 0 of RFC 9562 stands for (4.1): its family is 0 to
13, so its variant bit is 0.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from uuidd.core.ids.checks import check_bits
from uuidd.core.ids.ticks import unix_field

_CLOCK_TICKS = 40
_EPOCH_1980_MS = 315_532_800_000

APOLLO_TIME = unix_field("apollo", _CLOCK_TICKS << 16, 32, epoch_ms=_EPOCH_1980_MS)
NCS_TIME = unix_field("ncs", _CLOCK_TICKS, 48, epoch_ms=_EPOCH_1980_MS)

NCS_FAMILIES = {
    0: "unspec",
    1: "unix",
    2: "ip",
    3: "implink",
    4: "pup",
    5: "chaos",
    6: "ns",
    7: "nbs",
    8: "ecma",
    9: "datakit",
    10: "ccitt",
    11: "sna",
    12: "unspec2",
    13: "dds",
}
"""Address families, by the numbers of NCS's own header; the meaning of *host* depends on it."""

_NCS_TEXT = re.compile(r"([0-9a-f]{12})\.([0-9a-f]{2})((?:\.[0-9a-f]{2}){7})\Z")
_APOLLO_TEXT = re.compile(r"([0-9a-f]{8})\.([0-9a-f]{8})\Z")


class ApolloFields(NamedTuple):
    """The fields of Apollo's UID; *timestamp* counts 262.144 milliseconds since 1980."""

    timestamp: int
    counter: int
    reserved: int
    node: int


class NcsFields(NamedTuple):
    """The fields of an NCS UUID; *timestamp* counts 4 microseconds since 1980."""

    timestamp: int
    reserved: int
    family: int
    host: int


def apollo_fields(value: int) -> ApolloFields:
    """Return the fields of Apollo's UID. Raises ValueError if it has more than 64 bits."""
    check_bits("an Apollo UID", value, 64)
    return ApolloFields(value >> 32, value >> 28 & 0xF, value >> 20 & 0xFF, value & 0xFFFFF)


def apollo_to_text(value: int) -> str:
    """Return the text of Apollo's UID: 8 hex digits, a dot, 8 hex digits."""
    check_bits("an Apollo UID", value, 64)
    return f"{value >> 32:08x}.{value & 0xFFFF_FFFF:08x}"


def apollo_from_text(text: str) -> int:
    """Return the 64 bits of the text of Apollo's UID. Raises ValueError, naming any other text."""
    match = _APOLLO_TEXT.match(text.strip().lower())
    if match is None:
        raise ValueError(
            f"{text!r} is not an Apollo UID: it takes 8 hex digits, a dot and 8 hex digits"
        )
    return int(match[1] + match[2], 16)


def ncs_fields(value: int) -> NcsFields:
    """Return the fields of an NCS UUID. Raises ValueError if its variant bit is 1."""
    if check_bits("an NCS UUID", value, 128) >> 63 & 1:
        raise ValueError(f"0x{value:032x} is not an NCS UUID: its variant is another")
    return NcsFields(value >> 80, value >> 64 & 0xFFFF, value >> 56 & 0xFF, value & (1 << 56) - 1)


def ncs_to_text(value: int) -> str:
    """Return the text that NCS writes: 12 hex digits of time, the family, and 7 octets of host.

    Raises ValueError if the reserved bits are not zero, because the text has no place for them.
    """
    found = ncs_fields(value)
    if found.reserved:
        raise ValueError(f"reserved is {found.reserved}; it must be 0 in the text of an NCS UUID")
    host = found.host.to_bytes(7, "big").hex(".")
    return f"{found.timestamp:012x}.{found.family:02x}.{host}"


def ncs_from_text(text: str) -> int:
    """Return the 128 bits of an NCS UUID's text. Raises ValueError, naming any other text."""
    match = _NCS_TEXT.match(text.strip().lower())
    if match is None:
        raise ValueError(
            f"{text!r} is not an NCS UUID: it takes 12 hex digits, then 8 times a dot and 2 hex"
            " digits"
        )
    time, family, host = match.groups()
    # A family has 7 bits, so that the variant bit is 0.
    check_bits("family", int(family, 16), 7)
    return int(time + "0000" + family + host.replace(".", ""), 16)

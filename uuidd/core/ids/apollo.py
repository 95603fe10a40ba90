"""The ancestors of the UUID: Apollo's 64-bit UID, and the UUID of its Network Computing System.

Both count from 1980-01-01T00:00:00Z by a clock of 4 microseconds. The NCS UUID is what variant 0 of
RFC 9562 stands for (4.1): its family is 0 to 13, so its variant bit is 0.

::

    UID   | clock 32 (the high bits: 262.144 ms) | counter 4 | reserved 8 | node 20 |
    UUID  | clock 48 (4 us) | reserved 16 | family 8 | host 56 |
"""

from __future__ import annotations

import re
from typing import NamedTuple

from uuidd.core.ids.checks import check_bits
from uuidd.core.ids.ticks import TimeField, unix_field

CLOCK_TICKS = 40
EPOCH_MS = 315_532_800_000

NCS_TIME = unix_field("ncs", CLOCK_TICKS, 48, epoch_ms=EPOCH_MS)
UID_TIME: TimeField = unix_field("apollo", CLOCK_TICKS << 16, 32, epoch_ms=EPOCH_MS)

FAMILIES = {
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
"""Address families, by the numbers of NCS's own header; what *host* means depends on it."""

_NCS_TEXT = re.compile(r"([0-9a-f]{12})\.([0-9a-f]{2})((?:\.[0-9a-f]{2}){7})\Z")
_UID_TEXT = re.compile(r"([0-9a-f]{8})\.([0-9a-f]{8})\Z")


class NcsFields(NamedTuple):
    """What an NCS UUID is made of; *timestamp* counts 4 microseconds since 1980."""

    timestamp: int
    reserved: int
    family: int
    host: int


class UidFields(NamedTuple):
    """What a UID is made of; *timestamp* counts 262.144 milliseconds since 1980."""

    timestamp: int
    counter: int
    reserved: int
    node: int


def ncs(timestamp: int, family: int, host: int, reserved: int = 0) -> int:
    """Give the 128 bits of an NCS UUID.

    Raises ValueError, naming field, value and range, when one does not fit.
    """
    check_bits("timestamp", timestamp, 48)
    check_bits("reserved", reserved, 16)
    check_bits("host", host, 56)
    return timestamp << 80 | reserved << 64 | check_bits("family", family, 7) << 56 | host


def ncs_fields(value: int) -> NcsFields:
    """Give the fields of an NCS UUID. ValueError if its variant bit says that it is none."""
    if check_bits("an NCS UUID", value, 128) >> 63 & 1:
        raise ValueError(f"0x{value:032x} is not an NCS UUID: its variant is another")
    return NcsFields(value >> 80, value >> 64 & 0xFFFF, value >> 56 & 0xFF, value & (1 << 56) - 1)


def ncs_to_text(value: int) -> str:
    """Give the text that NCS wrote: 12 hex digits of time, the family, and 7 octets of host.

    Raises ValueError when the reserved bits are not zero: the text has no place for them.
    """
    found = ncs_fields(value)
    if found.reserved:
        raise ValueError(f"reserved is {found.reserved}; it must be 0, or an NCS UUID has no text")
    host = ".".join(f"{octet:02x}" for octet in found.host.to_bytes(7, "big"))
    return f"{found.timestamp:012x}.{found.family:02x}.{host}"


def ncs_from_text(text: str) -> int:
    """Give the 128 bits of an NCS UUID's text. ValueError, naming the text, if it is none."""
    match = _NCS_TEXT.match(text.strip().lower())
    if match is None:
        raise ValueError(f"{text!r} is not an NCS UUID: 12 hex digits, and eight times . and two")
    time, family, host = match.groups()
    return ncs(int(time, 16), int(family, 16), int(host.replace(".", ""), 16))


def uid(timestamp: int, counter: int, node: int, reserved: int = 0) -> int:
    """Give the 64 bits of a UID.

    Raises ValueError, naming field, value and range, when one does not fit.
    """
    check_bits("timestamp", timestamp, 32)
    check_bits("counter", counter, 4)
    check_bits("reserved", reserved, 8)
    return timestamp << 32 | counter << 28 | reserved << 20 | check_bits("node", node, 20)


def uid_fields(value: int) -> UidFields:
    """Give the fields of a UID. ValueError if it has more than 64 bits."""
    check_bits("a UID", value, 64)
    return UidFields(value >> 32, value >> 28 & 0xF, value >> 20 & 0xFF, value & 0xFFFFF)


def uid_to_text(value: int) -> str:
    """Give the text of a UID: twice 8 hex digits, with a dot between."""
    check_bits("a UID", value, 64)
    return f"{value >> 32:08x}.{value & 0xFFFF_FFFF:08x}"


def uid_from_text(text: str) -> int:
    """Give the 64 bits of a UID's text. ValueError, naming the text, if it is none."""
    match = _UID_TEXT.match(text.strip().lower())
    if match is None:
        raise ValueError(f"{text!r} is not an Apollo UID: twice 8 hex digits with a dot between")
    return int(match[1] + match[2], 16)

"""What the ids of each kind are, from the documents of the formats: tests compare ids with this.

Nothing here runs code of uuidd. Each kind has an entry in ``KINDS``. A layout names the pieces of
an id, the highest first: ``time[47:0]`` stands for the bits 47 to 0 of the field *time*. The place
of an id is a tick or, for Snowflakes, a slot, of which a millisecond has 4,096.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

if TYPE_CHECKING:
    from uuidd.core.ids.places import Origin

TICK, MS, SECOND = 1, 10_000, 10_000_000
"""Units of time, in ticks of 100 ns."""

UNIX = 0x01B2_1DD2_1381_4000
"""The tick of 1970-01-01, counted from 1582-10-15 (RFC 9562, 5.1)."""

TWITTER = 1_288_834_974_657
"""Twitter's epoch, from which Snowflakes count unless another is told, in Unix milliseconds."""

SLOTS = 4096
"""Snowflakes of a millisecond."""

LANE_BITS = 8

_DIGITS = "0123456789"
_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BASE62 = _DIGITS + _UPPER + _UPPER.lower()


class Piece(NamedTuple):
    """The bits *high* to *low*, both included, of a field."""

    field: str
    high: int
    low: int


@lru_cache
def pieces(layout: str) -> tuple[Piece, ...]:
    """Return the pieces of a layout."""
    found = re.findall(r"(\w+)\[(\d+):(\d+)\]", layout)
    return tuple(Piece(field, int(high), int(low)) for field, high, low in found)


@lru_cache
def sizes(layout: str) -> Mapping[str, int]:
    """Return how many bits each field of a layout has, in order of their first pieces."""
    found: dict[str, int] = {}
    for field, high, _ in pieces(layout):
        found[field] = max(high + 1, found.get(field, 0))
    return found


def packed(layout: str, fields: Mapping[str, int]) -> int:
    """Return the number that has these fields; a field that does not fit is an error."""
    for field, size in sizes(layout).items():
        assert 0 <= fields[field] < 1 << size, field
    value = 0
    for field, high, low in pieces(layout):
        size = high - low + 1
        value = value << size | fields[field] >> low & (1 << size) - 1
    return value


def unpacked(layout: str, value: int) -> dict[str, int]:
    """Return the fields of a number; more bits than the layout has are an error."""
    found = dict.fromkeys(sizes(layout), 0)
    for field, high, low in reversed(pieces(layout)):
        size = high - low + 1
        found[field] |= (value & (1 << size) - 1) << low
        value >>= size
    assert not value
    return found


class Kind(NamedTuple):
    """A kind that uuidd makes.

    In the *layout* of uuidd's ids, *time* counts units of *unit* ticks from the tick *epoch*, and
    *rest* is the number of the place within its unit. *published* is the layout that others know,
    if uuidd's uses bits that it leaves open. *version* is that of a UUID.

    The *forms* begin with the default. *alphabet* has the digits of a text, the lowest first; a
    UUID has none. A text has *width* characters, or as many as it needs if that is 0. *first* and
    *last* are the second in which the time begins, and that in which its last unit begins.
    """

    timeline: str
    forms: tuple[str, ...]
    layout: str
    published: str = ""
    version: int = 0
    unit: int = TICK
    epoch: int = 0
    first: str = ""
    last: str = ""
    alphabet: str = ""
    width: int = 36

    @property
    def bits(self) -> int:
        """The bits of an id."""
        return sum(high - low + 1 for _, high, low in pieces(self.layout))

    @property
    def size(self) -> int:
        """The bytes of an id."""
        return -(-self.bits // 8)

    @property
    def slots(self) -> int:
        """The places of a unit."""
        return SLOTS if self.timeline == "snowflake" else self.unit

    @property
    def method(self) -> str:
        """The name of the client's method and function for a kind that has a time."""
        return (
            f"uuid{self.version}"
            if self.version
            else next(kind for kind, found in KINDS.items() if found is self)
        )

    @property
    def type(self) -> type:
        """The type of an id in the default form."""
        return {"uuid": UUID, "text": str, "int": int}[self.forms[0]]

    def has(self, field: str) -> bool:
        """Return whether ids of uuidd have that field."""
        return field in sizes(self.layout)


_UUID = ("uuid", "text", "bytes")
_GREGORIAN: dict[str, Any] = {"first": "1582-10-15T00:00:00Z", "last": "5236-03-31T21:21:00Z"}
_UNIX_MS: dict[str, Any] = {
    "unit": MS,
    "epoch": UNIX,
    "first": "1970-01-01T00:00:00Z",
    "last": "+10889-08-02T05:31:50Z",
}

KINDS: Mapping[str, Kind] = {
    "v1": Kind(
        "utc",
        _UUID,
        "time[31:0] time[47:32] version[3:0] time[59:48] variant[1:0] clock_seq[13:0] node[47:0]",
        version=1,
        **_GREGORIAN,
    ),
    # The random bits are those at the same places of 16 random bytes.
    "v4": Kind(
        "",
        _UUID,
        "random[127:80] version[3:0] random[75:64] variant[1:0] random[61:0]",
        "random[121:74] version[3:0] random[73:62] variant[1:0] random[61:0]",
        version=4,
    ),
    "v6": Kind(
        "utc",
        _UUID,
        "time[59:28] time[27:12] version[3:0] time[11:0] variant[1:0] clock_seq[13:0] node[47:0]",
        version=6,
        **_GREGORIAN,
    ),
    "v7": Kind(
        "steady",
        _UUID,
        "time[47:0] version[3:0] rest[13:2] variant[1:0] rest[1:0] lane[7:0] random[51:0]",
        "ms[47:0] version[3:0] rand_a[11:0] variant[1:0] rand_b[61:0]",
        version=7,
        **_UNIX_MS,
    ),
    "snowflake": Kind(
        "snowflake",
        ("int", "text", "bytes"),
        "time[40:0] worker[9:0] rest[11:0]",
        unit=MS,
        epoch=UNIX + TWITTER * MS,
        first="2010-11-04T01:42:54Z",
        last="2080-07-10T17:30:30Z",
        alphabet=_DIGITS,
        width=0,
    ),
    "flake": Kind(
        "steady",
        ("text", "int", "bytes"),
        "time[63:0] node[47:0] rest[15:0]",
        **_UNIX_MS | {"last": "+584556019-04-03T14:25:51Z"},
        alphabet=_BASE62,
        width=0,
    ),
    "ulid": Kind(
        "steady",
        ("text", "uuid", "bytes"),
        "time[47:0] rest[13:0] lane[7:0] random[57:0]",
        "ms[47:0] random[79:0]",
        **_UNIX_MS,
        alphabet="0123456789ABCDEFGHJKMNPQRSTVWXYZ",
        width=26,
    ),
    "ksuid": Kind(
        "steady",
        ("text", "bytes"),
        "time[31:0] rest[23:0] lane[7:0] random[95:0]",
        "seconds[31:0] payload[127:0]",
        unit=SECOND,
        epoch=UNIX + 1_400_000_000 * SECOND,
        first="2014-05-13T16:53:20Z",
        last="2150-06-19T23:21:35Z",
        alphabet=_BASE62,
        width=27,
    ),
    "push_id": Kind(
        "steady",
        ("text",),
        "time[47:0] rest[13:0] lane[7:0] random[49:0]",
        "ms[47:0] random[71:0]",
        **_UNIX_MS,
        alphabet=f"-{_DIGITS}{_UPPER}_{_UPPER.lower()}",
        width=20,
    ),
}

FORMS = [(kind, form) for kind, found in KINDS.items() for form in found.forms]
TIMED = [kind for kind, found in KINDS.items() if found.timeline]
GREGORIAN = [kind for kind in TIMED if KINDS[kind].timeline == "utc"]
STEADY = [kind for kind in TIMED if KINDS[kind].timeline == "steady"]
LANED = [kind for kind, found in KINDS.items() if found.has("lane")]
"""The kinds whose random bits follow a lane."""
LEASED = [*GREGORIAN, *LANED]
"""The kinds that are made of leases. In v1 and v6 the lane is in the clock sequence."""
UNLEASED = [kind for kind in TIMED if kind not in LEASED]


# --- ids


def made(kind: str, place: int, origin: Origin, random: int = 0) -> int:
    """Return uuidd's id of a place and an origin; its random bits are the lowest ones of *random*.

    Without a lane in the origin, the lane's bits are random too.
    """
    entry = KINDS[kind]
    bits = sizes(entry.layout).get("random", 0)
    time, rest = divmod(place - places(kind, origin.epoch)[0], entry.slots)
    lane = random >> bits & (1 << LANE_BITS) - 1 if origin.lane is None else origin.lane
    fields = {
        "time": time,
        "rest": rest,
        "lane": lane,
        "random": random & (1 << bits) - 1,
        "clock_seq": origin.clock_seq,
        "node": origin.node,
        "worker": origin.worker or 0,
        "version": entry.version,
        "variant": 0b10,
    }
    return packed(entry.layout, fields)


def fields(kind: str, id: Any) -> dict[str, int]:
    """Return the fields of an id of uuidd's, in any form."""
    return unpacked(KINDS[kind].layout, number(kind, id))


class Gregorian(NamedTuple):
    """The fields of a v1 or v6."""

    tick: int
    clock_seq: int
    node: int


def gregorian(id: int) -> Gregorian:
    """Return the fields of a v1 or v6."""
    kind = f"v{id >> 76 & 0xF}"
    assert kind in GREGORIAN, f"{id:032x}"
    found = fields(kind, UUID(int=id))
    return Gregorian(found["time"], found["clock_seq"], found["node"])


def place(kind: str, id: Any, epoch: int = TWITTER) -> int:
    """Return the place of an id in any form; *epoch* is that of Snowflakes."""
    found = fields(kind, id)
    return places(kind, epoch)[0] + found["time"] * KINDS[kind].slots + found.get("rest", 0)


def tick(kind: str, id: Any, epoch: int = TWITTER) -> int:
    """Return the tick of an id in any form; *epoch* is that of Snowflakes."""
    return tick_of_place(kind, place(kind, id, epoch))


def tick_of_place(kind: str, place: int) -> int:
    """Return the tick that a place is on; a slot is on the first tick at or past its time."""
    if KINDS[kind].timeline != "snowflake":
        return place
    return UNIX - -place * MS // SLOTS


def places(kind: str, epoch: int = TWITTER) -> tuple[int, int]:
    """Return the half-open range of the places that the time field of a kind can hold."""
    entry = KINDS[kind]
    begin = epoch * SLOTS if entry.timeline == "snowflake" else entry.epoch
    return begin, begin + (entry.slots << sizes(entry.layout).get("time", 0))


def tail(kind: str, lane: int | None = None) -> int:
    """Return how many bits of an id are random: those of the lane too, if it has none."""
    bits = sum(
        high - low + 1 for field, high, low in pieces(KINDS[kind].layout) if field == "random"
    )
    return bits + (LANE_BITS if lane is None and kind in LANED else 0)


def random_size(kind: str, lane: int | None = None) -> int:
    """Return how many random bytes an id takes: as many as hold its bits, but 8 at least."""
    bits = tail(kind, lane)
    return bits and max(8, -(-bits // 8))


def bounds(kind: str, tick: int, epoch: int = TWITTER) -> tuple[int, int]:
    """Return the lowest and the highest number whose time is the unit of a tick."""
    entry = KINDS[kind]
    begin = tick_of_place(kind, places(kind, epoch)[0])
    fixed = {"time": (tick - begin) // entry.unit, "version": entry.version, "variant": 0b10}
    low = dict.fromkeys(sizes(entry.layout), 0) | fixed
    high = {field: (1 << size) - 1 for field, size in sizes(entry.layout).items()} | fixed
    return packed(entry.layout, low), packed(entry.layout, high)


# --- forms


def text(kind: str, value: int) -> str:
    """Return an id as text."""
    entry = KINDS[kind]
    if not entry.alphabet:
        return str(UUID(int=value))
    found = ""
    while value:
        value, digit = divmod(value, len(entry.alphabet))
        found = entry.alphabet[digit] + found
    return found.rjust(entry.width or 1, entry.alphabet[0])


def octets(kind: str, value: int) -> bytes:
    """Return an id as bytes."""
    return value.to_bytes(KINDS[kind].size, "big")


def apart(kind: str, made: list[Any] | bytes) -> list[Any]:
    """Return ids one by one, also those that are in one piece."""
    if isinstance(made, list):
        return made
    size = KINDS[kind].size
    return [made[at : at + size] for at in range(0, len(made), size)]


def number(kind: str, id: Any) -> int:
    """Return an id of any form as a number. A text that is not written as it should is an error."""
    if isinstance(id, UUID):
        return id.int
    if isinstance(id, bytes):
        assert len(id) == KINDS[kind].size
        return int.from_bytes(id, "big")
    if not isinstance(id, str):
        return int(id)
    value, alphabet = 0, KINDS[kind].alphabet
    if not alphabet:
        value = UUID(id).int
    for digit in alphabet and id:
        value = value * len(alphabet) + alphabet.index(digit)
    assert text(kind, value) == id
    return value

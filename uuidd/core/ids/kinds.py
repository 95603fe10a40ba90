"""The description of each kind of id: of those that are made, and of UUIDs that are only read.

All that is known of a kind is here but how its ids are made at once, which is in ``layouts``.
"""

from __future__ import annotations

from collections.abc import Mapping

from uuidd.core.ids import snowflake, uuids
from uuidd.core.ids.bases import BASE62, CROCKFORD, DECIMAL, PUSH, check_width, decode, encode
from uuidd.core.ids.checks import check_bits
from uuidd.core.ids.places import RUN, SLOTS, Places, in_runs
from uuidd.core.ids.ticks import TICK_BITS, TICKS_PER_MS, TICKS_PER_SECOND, TimeField, unix_field

_UUID = ("uuid", "text", "bytes")


class Kind:
    """A *kind* of id. Texts write its *name*, which is the kind itself for UUIDs.

    Its *timeline* is ``utc``, ``steady``, or empty for ids without a time. ``snowflake`` is that
    part of ``steady`` for which the host has a worker number.

    *forms* are the forms in which its ids can be made; the first is the default. Ids without forms
    are only read. *layout* lists the pieces of an id, the highest first: ``random[73:62]`` are the
    bits 73 to 62 of the field *random*. If a kind has a *time*, its field *timestamp* counts it.
    Errors call an id *called*.

    The last field of an id of ``steady``, its *tail*, begins with the number of its place in *rest*
    bits. Random bits follow, of which the first 8 may be the lane. A unit of time has so many
    *slots*. *digits* is the alphabet of the text, or empty for a UUID, and *width* the number of
    its characters, or 0 if a text is as long as it must be.
    """

    def __init__(
        self,
        kind: str,
        timeline: str = "",
        forms: tuple[str, ...] = (),
        layout: str = "",
        time: TimeField | None = None,
        name: str = "",
        *,
        digits: str = "",
        width: int = 0,
    ) -> None:
        self.kind, self.timeline, self.forms = kind, timeline, forms
        self.time, self.name, self.called = time, name or kind, f"a {name or 'UUID'}"
        self.digits, self.width = digits, width
        self.sizes: dict[str, int] = {}
        """The bits of each field but version and variant, in the order of their first pieces."""
        self._pieces: dict[str, list[tuple[int, int, int]]] = {}
        pieces = []
        for text in layout.split():
            field, _, span = text[:-1].partition("[")
            high, low = map(int, span.split(":"))
            pieces.append((field, high, low))
        self.bits = shift = sum(high - low + 1 for _, high, low in pieces)
        """The bits of an id."""
        for field, high, low in pieces:
            shift -= high - low + 1
            if field not in ("version", "variant"):
                self.sizes[field] = max(high + 1, self.sizes.get(field, 0))
            self._pieces.setdefault(field, []).append((low, (1 << high - low + 1) - 1, shift))
        self.size = -(-self.bits // 8)
        """The bytes of an id."""
        self.version = int(kind[1:]) if "version" in self._pieces else 0
        self._marks = self.version and uuids.stamp(0, self.version)
        self.slots = snowflake.SLOTS if timeline == "snowflake" else time.unit if time else 0
        is_random = not {"random", "payload"}.isdisjoint(self.sizes)
        self.tail = pieces[-1][0] if timeline in ("steady", "snowflake") else ""
        # Without random bits the number has all of the field.
        self.rest = (self.slots - 1).bit_length() if is_random else self.sizes.get(self.tail, 0)
        run = time.unit if time and timeline == "steady" else RUN
        self.places = SLOTS if timeline == "snowflake" else in_runs(run, random=is_random)
        """The places on which its ids sit."""
        self.leasable = timeline == "utc" or (timeline == "steady" and is_random)
        """Whether its ids have room for the number of a lane: in the clock sequence, or after it.

        Ids that are made of a lease need that.
        """

    @property
    def longest(self) -> int:
        """The characters of the longest text."""
        return self.width or len(encode((1 << self.bits) - 1, self.digits))

    def put(self, field: str, value: int) -> int:
        """Return the bits of an id that hold *value* in a field, which it must fit."""
        made = 0
        for low, mask, shift in self._pieces[field]:
            made |= (value >> low & mask) << shift
        return made

    def pack(self, *values: int) -> int:
        """Return the id of the values of all fields but version and variant, in their order.

        Raises ValueError, naming field, value and range, if one does not fit; TypeError if it is
        not an int.
        """
        made = self._marks
        for (field, bits), value in zip(self.sizes.items(), values, strict=True):
            made |= self.put(field, check_bits(field, value, bits))
        return made

    def unpack(self, value: int) -> dict[str, int]:
        """Return the fields of an id by name, without version and variant.

        Raises ValueError, naming the id, if it has too many bits or is of another version.
        """
        if self.version and uuids.version(value) != self.version:
            raise ValueError(f"{uuids.to_text(value)} is not a {self.kind}")
        check_bits(self.called, value, self.bits)
        found = dict.fromkeys(self.sizes, 0)
        for field in found:
            for low, mask, shift in self._pieces[field]:
                found[field] |= (value >> shift & mask) << low
        return found

    def bounds(self, raw: int) -> tuple[int, int]:
        """Return the lowest and the highest id whose timestamp is *raw*."""
        low = self._marks | self.put("timestamp", raw)
        return low, low | sum(self.put(field, -1) for field in self.sizes if field != "timestamp")

    def to_text(self, value: int) -> str:
        """Return the text of an id. Raises ValueError, naming the range, for too many bits."""
        if not self.digits:
            return uuids.to_text(value)
        return encode(check_bits(self.called, value, self.bits), self.digits, self.width)

    def from_text(self, text: str) -> int:
        """Return the id that a text writes. Only ULIDs may be in lower case.

        Raises ValueError, naming the text, for another length, another character, and a number of
        too many bits.
        """
        if not self.digits:
            return uuids.from_text(text)
        if self.width:
            check_width(text, self.width, self.name)
        # Only ASCII, because upper() turns a long s into S, and a sharp s into SS.
        if self.digits == CROCKFORD and text.isascii():
            text = text.upper()
        return decode(text, self.digits, self.name, self.bits)


_ALL = (
    Kind(
        "v1",
        "utc",
        _UUID,
        "timestamp[31:0] timestamp[47:32] version[3:0] timestamp[59:48]"
        " variant[1:0] clock_seq[13:0] node[47:0]",
        TimeField("v1", 1, 0, TICK_BITS),
    ),
    # The local id is in place of the low 32 bits of the tick, so a v2 counts some 7 minutes
    # (DCE 1.1, Authentication and Security).
    Kind(
        "v2",
        layout="local_id[31:0] timestamp[15:0] version[3:0] timestamp[27:16]"
        " variant[1:0] clock_seq[5:0] domain[7:0] node[47:0]",
        time=TimeField("v2", 1 << 32, 0, 28),
    ),
    Kind("v3", layout="md5[121:74] version[3:0] md5[73:62] variant[1:0] md5[61:0]"),
    Kind("v4", "", _UUID, "random[121:74] version[3:0] random[73:62] variant[1:0] random[61:0]"),
    Kind("v5", layout="sha1[121:74] version[3:0] sha1[73:62] variant[1:0] sha1[61:0]"),
    Kind(
        "v6",
        "utc",
        _UUID,
        "timestamp[59:28] timestamp[27:12] version[3:0] timestamp[11:0]"
        " variant[1:0] clock_seq[13:0] node[47:0]",
        TimeField("v6", 1, 0, TICK_BITS),
    ),
    # RFC 9562, 6.2, method 3: the tick is in rand_a and the top 2 bits of rand_b, unscaled.
    Kind(
        "v7",
        "steady",
        _UUID,
        "timestamp[47:0] version[3:0] random[73:62] variant[1:0] random[61:0]",
        unix_field("v7", TICKS_PER_MS, 48),
    ),
    Kind("v8", layout="custom_a[47:0] version[3:0] custom_b[11:0] variant[1:0] custom_c[61:0]"),
    # Its time counts from an epoch that the host sets; this is Twitter's.
    Kind(
        "snowflake",
        "snowflake",
        ("int", "text", "bytes"),
        "timestamp[40:0] worker[9:0] sequence[11:0]",
        snowflake.time_field(),
        "Snowflake",
        digits=DECIMAL,
    ),
    # First made at Boundary, whose worker is a network address. Texts of equal length sort as
    # numbers.
    Kind(
        "flake",
        "steady",
        ("text", "int", "bytes"),
        "timestamp[63:0] node[47:0] sequence[15:0]",
        unix_field("flake", TICKS_PER_MS, 64),
        "Flake",
        digits=BASE62,
    ),
    # It has the bits of a UUID, so that one converts to the other by its text alone.
    Kind(
        "ulid",
        "steady",
        ("text", "uuid", "bytes"),
        "timestamp[47:0] random[79:0]",
        unix_field("ulid", TICKS_PER_MS, 48),
        "ULID",
        digits=CROCKFORD,
        width=26,
    ),
    # First made at Segment. The highest is aWgEPTl1tmebfsQzFP4bxwgy80V.
    Kind(
        "ksuid",
        "steady",
        ("text", "bytes"),
        "timestamp[31:0] payload[127:0]",
        unix_field("ksuid", TICKS_PER_SECOND, 32, epoch_ms=1_400_000_000_000),
        "KSUID",
        digits=BASE62,
        width=27,
    ),
    # First made at Firebase.
    Kind(
        "push_id",
        "steady",
        ("text",),
        "timestamp[47:0] random[71:0]",
        unix_field("push_id", TICKS_PER_MS, 48),
        "Push ID",
        digits=PUSH,
        width=20,
    ),
)

FORMATS: Mapping[str, Kind] = {each.kind: each for each in _ALL}
"""Each kind that we make or read: UUIDs by version, then the others."""

KINDS: Mapping[str, Kind] = {kind: found for kind, found in FORMATS.items() if found.forms}
"""Each kind that the daemon and the client make."""

PLACES: Mapping[str, Places] = {kind: found.places for kind, found in KINDS.items()}
"""The places of each kind."""

TIMES: Mapping[str, TimeField] = {
    kind: found.time
    for kind, found in KINDS.items()
    if found.time is not None and found.timeline != "snowflake"
}
"""The time field of each kind that has one, but for Snowflakes, which have theirs from an epoch
that the host sets. v1 and v6 hold the tick itself."""


def time_fields(epoch: int) -> dict[str, TimeField]:
    """Return the time field of each kind that has a time, in the order of ``KINDS``.

    *epoch*, in Unix milliseconds, is that of Snowflakes.
    """
    fields = {**TIMES, "snowflake": snowflake.time_field(epoch)}
    return {kind: fields[kind] for kind in KINDS if kind in fields}

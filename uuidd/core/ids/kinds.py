"""The description of each kind of id that the daemon and the client make.

All that is known of a kind is here but how its ids are made at once, which is in ``layouts``.
"""

from __future__ import annotations

from collections.abc import Mapping

from uuidd.core.ids import snowflake
from uuidd.core.ids.bases import BASE62, CROCKFORD, PUSH
from uuidd.core.ids.places import (
    RUN,
    SLOTS,
    Places,
    on_ticks,
    room_in_ms,
    room_in_run,
    room_in_second,
)
from uuidd.core.ids.ticks import TICK_BITS, TICKS_PER_MS, TICKS_PER_SECOND, TimeField, unix_field
from uuidd.core.typed import NamedTuple

_UUID = ("uuid", "text", "bytes")
_IN_RUNS = on_ticks(room_in_run, random=False)
_IN_MS = on_ticks(room_in_ms, random=True)


class Kind(NamedTuple):
    """A kind's *timeline*, which is ``utc``, ``steady``, or empty for ids without a time.

    ``snowflake`` is that part of ``steady`` for which the host has a worker number.

    *forms* are the forms in which its ids can be made; the first is the default. *places* are those
    on which its ids sit. Errors call an id *called*. *layout* lists its pieces, the highest first:
    ``random[73:62]`` are the bits 73 to 62 of the field *random*. If a kind has a *time*, its field
    *timestamp* counts it.

    The last field of an id that we make begins with the number of its place in *rest* bits. Random
    bits follow, of which the first 8 may be the lane. *digits* is the alphabet of the text, or
    empty for a UUID, and *width* the number of its characters, or 0 if a text is as long as it must
    be.
    """

    timeline: str = ""
    forms: tuple[str, ...] = ()
    places: Places = _IN_RUNS
    layout: str = ""
    time: TimeField | None = None
    called: str = "a UUID"
    rest: int = 0
    digits: str = ""
    width: int = 0

    @property
    def leasable(self) -> bool:
        """Whether its ids have room for the number of a lane: in the clock sequence, or after it.

        Ids that are made of a lease need that.
        """
        return self.timeline == "utc" or (self.timeline == "steady" and self.places.random)


KINDS: Mapping[str, Kind] = {
    "v1": Kind(
        "utc",
        _UUID,
        _IN_RUNS,
        "timestamp[31:0] timestamp[47:32] version[3:0] timestamp[59:48]"
        " variant[1:0] clock_seq[13:0] node[47:0]",
        TimeField("v1", 1, 0, TICK_BITS),
    ),
    "v4": Kind(
        "",
        _UUID,
        on_ticks(lambda _: RUN, random=True),
        "random[121:74] version[3:0] random[73:62] variant[1:0] random[61:0]",
        None,
    ),
    "v6": Kind(
        "utc",
        _UUID,
        _IN_RUNS,
        "timestamp[59:28] timestamp[27:12] version[3:0] timestamp[11:0]"
        " variant[1:0] clock_seq[13:0] node[47:0]",
        TimeField("v6", 1, 0, TICK_BITS),
    ),
    # RFC 9562, 6.2, method 3: the tick is in rand_a and the top 2 bits of rand_b, unscaled.
    "v7": Kind(
        "steady",
        _UUID,
        _IN_MS,
        "timestamp[47:0] version[3:0] random[73:62] variant[1:0] random[61:0]",
        unix_field("v7", TICKS_PER_MS, 48),
        rest=14,
    ),
    # Its time counts from an epoch that the host sets; this is Twitter's.
    "snowflake": Kind(
        "snowflake",
        ("int", "text", "bytes"),
        SLOTS,
        "timestamp[40:0] worker[9:0] sequence[11:0]",
        snowflake.time_field(),
        "a Snowflake",
        rest=snowflake.SEQUENCE_BITS,
        digits=snowflake.ALPHABETS["decimal"],
    ),
    # First made at Boundary, whose worker is a network address. Texts of equal length sort as
    # numbers.
    "flake": Kind(
        "steady",
        ("text", "int", "bytes"),
        on_ticks(room_in_ms, random=False),
        "timestamp[63:0] node[47:0] sequence[15:0]",
        unix_field("flake", TICKS_PER_MS, 64),
        "a Flake",
        rest=16,
        digits=BASE62,
    ),
    # It has the bits of a UUID, so that one converts to the other by its text alone.
    "ulid": Kind(
        "steady",
        ("text", "uuid", "bytes"),
        _IN_MS,
        "timestamp[47:0] random[79:0]",
        unix_field("ulid", TICKS_PER_MS, 48),
        "a ULID",
        rest=14,
        digits=CROCKFORD,
        width=26,
    ),
    # First made at Segment. The highest is aWgEPTl1tmebfsQzFP4bxwgy80V.
    "ksuid": Kind(
        "steady",
        ("text", "bytes"),
        on_ticks(room_in_second, random=True),
        "timestamp[31:0] payload[127:0]",
        unix_field("ksuid", TICKS_PER_SECOND, 32, epoch_ms=1_400_000_000_000),
        "a KSUID",
        rest=24,
        digits=BASE62,
        width=27,
    ),
    # First made at Firebase.
    "push_id": Kind(
        "steady",
        ("text",),
        _IN_MS,
        "timestamp[47:0] random[71:0]",
        unix_field("push_id", TICKS_PER_MS, 48),
        "a Push ID",
        rest=14,
        digits=PUSH,
        width=20,
    ),
}

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

"""How ids of each kind are taken apart and put together, as its description says."""

from __future__ import annotations

from collections.abc import Mapping

from uuidd.core.ids import snowflake, uuids
from uuidd.core.ids.bases import CROCKFORD, check_width, decode, encode
from uuidd.core.ids.checks import check_bits
from uuidd.core.ids.kinds import KINDS, Kind
from uuidd.core.ids.ticks import TimeField

MARKS = ("version", "variant")
"""The fields that are the same in all UUIDs of a kind."""


class Format:
    """The ids of one *kind*, whose attributes are those of *found*.

    *tail* is the last field of an id of ours. A unit of time has so many *places*.
    """

    def __init__(self, kind: str, found: Kind) -> None:
        self.kind, self.called, self.time = kind, found.called, found.time
        self.digits, self.width, self.rest = found.digits, found.width, found.rest
        self.sizes: dict[str, int] = {}
        """The bits of each field, in the order of their first pieces."""
        self._pieces: dict[str, list[tuple[int, int, int]]] = {}
        pieces = [_piece(text) for text in found.layout.split()]
        self.bits = shift = sum(high - low + 1 for _, high, low in pieces)
        for field, high, low in pieces:
            shift -= high - low + 1
            self.sizes[field] = max(high + 1, self.sizes.get(field, 0))
            self._pieces.setdefault(field, []).append((low, (1 << high - low + 1) - 1, shift))
        self.tail = pieces[-1][0] if found.rest else ""
        self.places = found.time.unit if found.time else 0
        if found.timeline == "snowflake":
            self.places = snowflake.SLOTS
        self.version = int(kind[1:]) if "version" in self.sizes else 0
        self._marks = self.version and uuids.stamp(0, self.version)

    @property
    def size(self) -> int:
        """The bytes of an id."""
        return -(-self.bits // 8)

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
        fields = [field for field in self.sizes if field not in MARKS]
        made = self._marks
        for field, value in zip(fields, values, strict=True):
            made |= self.put(field, check_bits(field, value, self.sizes[field]))
        return made

    def unpack(self, value: int) -> dict[str, int]:
        """Return the fields of an id by name, without version and variant.

        Raises ValueError, naming the id, if it has too many bits or is of another version.
        """
        if self.version and uuids.version(value) != self.version:
            raise ValueError(f"{uuids.to_text(value)} is not a {self.kind}")
        check_bits(self.called, value, self.bits)
        found = {}
        for field in self.sizes:
            if field not in MARKS:
                found[field] = 0
                for low, mask, shift in self._pieces[field]:
                    found[field] |= (value >> shift & mask) << low
        return found

    def bounds(self, raw: int) -> tuple[int, int]:
        """Return the lowest and the highest id whose timestamp is *raw*."""
        low = self._marks | self.put("timestamp", raw)
        fixed = ("timestamp", *MARKS)
        return low, low | sum(self.put(field, -1) for field in self.sizes if field not in fixed)

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
        name = self.called.partition(" ")[2]
        if self.width:
            check_width(text, self.width, name)
        # Only ASCII, because upper() turns a long s into S, and a sharp s into SS.
        if self.digits == CROCKFORD and text.isascii():
            text = text.upper()
        return decode(text, self.digits, name, self.bits)


def _piece(text: str) -> tuple[str, int, int]:
    """Return the field, the highest and the lowest bit of a piece of a layout."""
    field, _, span = text[:-1].partition("[")
    high, _, low = span.partition(":")
    return field, int(high), int(low)


_READ_ONLY = {
    # The local id is in place of the low 32 bits of the tick, so a v2 counts some 7 minutes
    # (DCE 1.1, Authentication and Security).
    "v2": Kind(
        layout="local_id[31:0] timestamp[15:0] version[3:0] timestamp[27:16]"
        " variant[1:0] clock_seq[5:0] domain[7:0] node[47:0]",
        time=TimeField("v2", 1 << 32, 0, 28),
    ),
    "v3": Kind(layout="md5[121:74] version[3:0] md5[73:62] variant[1:0] md5[61:0]"),
    "v5": Kind(layout="sha1[121:74] version[3:0] sha1[73:62] variant[1:0] sha1[61:0]"),
    "v8": Kind(layout="custom_a[47:0] version[3:0] custom_b[11:0] variant[1:0] custom_c[61:0]"),
}

FORMATS: Mapping[str, Format] = {
    each.kind: each
    for each in sorted(
        (Format(kind, found) for kind, found in {**KINDS, **_READ_ONLY}.items()),
        key=lambda each: each.version or 16,
    )
}
"""The format of each kind that we make or read: UUIDs by version, then the others."""

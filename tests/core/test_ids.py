from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import date
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uuidd.core.ids import checks, uuids, versions
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH

TICKS = st.integers(0, (1 << 60) - 1)
CLOCK_SEQS = st.integers(0, (1 << 14) - 1)
NODES = st.integers(0, (1 << 48) - 1)
V4_RANDOM = st.integers(0, (1 << 122) - 1)
VALUES = st.integers(0, (1 << 128) - 1)

RFC_TICK = 138648505420000000
UUIDJS_TICK = UNIX_EPOCH + 1321651533573 * 10_000 + 5432

# Published: RFC 9562 A.1 and A.5, and uuidjs/uuid v14.0.1, src/test/v1.test.ts and v6.test.ts.
V1_VECTORS = [
    (RFC_TICK, 13256, 0x9F6BDECED846, "c232ab00-9414-11ec-b3c8-9f6bdeced846"),
    (UUIDJS_TICK, 14428, 0x61CD3CBB3210, "d9428888-122b-11e1-b85c-61cd3cbb3210"),
]
V6_VECTORS = [
    (RFC_TICK, 13256, 0x9F6BDECED846, "1ec9414c-232a-6b00-b3c8-9f6bdeced846"),
    (UUIDJS_TICK, 14428, 0x61CD3CBB3210, "1e1122bd-9428-6888-b85c-61cd3cbb3210"),
]
# Published: RFC 9562 A.3, the 128 random bits before version and variant are put over six of them.
V4_RANDOM_HEX = 0x919108F752D133205BACF847DB4148A8
V4_TEXT = "919108f7-52d1-4320-9bac-f847db4148a8"

TEXT = "c232ab00-9414-11ec-b3c8-9f6bdeced846"
VALUE = 0xC232AB00941411ECB3C89F6BDECED846


# --- vectors


@pytest.mark.parametrize(("tick", "clock_seq", "node", "text"), V1_VECTORS)
def test_v1_gives_the_published_uuids(tick: int, clock_seq: int, node: int, text: str) -> None:
    """v1 lays a published case's fields out as published."""
    assert uuids.to_text(versions.v1(tick, clock_seq, node)) == text


@pytest.mark.parametrize(("tick", "clock_seq", "node", "text"), V6_VECTORS)
def test_v6_gives_the_published_uuids(tick: int, clock_seq: int, node: int, text: str) -> None:
    """v6 lays a published case's fields out as published."""
    assert uuids.to_text(versions.v6(tick, clock_seq, node)) == text


@pytest.mark.parametrize(("tick", "clock_seq", "node", "text"), V1_VECTORS + V6_VECTORS)
def test_fields_reads_the_published_uuids(tick: int, clock_seq: int, node: int, text: str) -> None:
    """The fields of a published v1 or v6 are the published ones."""
    assert versions.gregorian_fields(uuids.from_text(text)) == (tick, clock_seq, node)


def test_v4_gives_the_published_uuid() -> None:
    """v4 of RFC 9562's random bits, the six that are written over left out, is its example."""
    kept = V4_RANDOM_HEX >> 80 << 74 | (V4_RANDOM_HEX >> 64 & 0xFFF) << 62
    kept |= V4_RANDOM_HEX & (1 << 62) - 1
    assert uuids.to_text(versions.v4(kept)) == V4_TEXT


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("00000000-0000-1000-8000-000000000000", 1),
        ("00000000-0000-1000-0000-000000000000", None),
        ("ffffffff-ffff-8fff-bfff-ffffffffffff", 8),
        ("01ee836c-e7c9-619d-929a-525400475911", 6),
        ("018bd12c-58b0-7683-8a5b-8752d0e86651", 7),
        ("00000000-0000-1000-c000-000000000000", None),
    ],
)
def test_version_reads_version_and_variant(text: str, version: int | None) -> None:
    """The version of a UUID is its own only under the RFC's variant; else it has none."""
    assert uuids.version(uuids.from_text(text)) == version


def test_the_unix_epoch_is_counted_from_the_gregorian_reform() -> None:
    """The tick of 1970 is the number of 100 ns intervals since 1582-10-15."""
    days = (date(1970, 1, 1) - date(1582, 10, 15)).days
    assert days * 86_400 * TICKS_PER_SECOND == UNIX_EPOCH


# --- round trips


@given(TICKS, CLOCK_SEQS, NODES)
def test_v1_gives_its_fields_back(tick: int, clock_seq: int, node: int) -> None:
    """Every tick, clock_seq and node that fit go into a v1 and come out of it."""
    assert versions.gregorian_fields(versions.v1(tick, clock_seq, node)) == (tick, clock_seq, node)


@given(TICKS, CLOCK_SEQS, NODES)
def test_v6_gives_its_fields_back(tick: int, clock_seq: int, node: int) -> None:
    """Every tick, clock_seq and node that fit go into a v6 and come out of it."""
    assert versions.gregorian_fields(versions.v6(tick, clock_seq, node)) == (tick, clock_seq, node)


@given(TICKS, CLOCK_SEQS, NODES)
def test_v1_is_read_alike_by_pythons_uuid(tick: int, clock_seq: int, node: int) -> None:
    """Python's uuid finds the same fields, version and variant in a v1."""
    other = uuid.UUID(int=versions.v1(tick, clock_seq, node))
    assert (other.time, other.clock_seq, other.node) == (tick, clock_seq, node)
    assert (other.version, other.variant) == (1, uuid.RFC_4122)


@given(TICKS, CLOCK_SEQS, NODES)
def test_v6_has_version_6_and_the_rfcs_variant(tick: int, clock_seq: int, node: int) -> None:
    """No field of a v6 reaches into its version or variant."""
    other = uuid.UUID(int=versions.v6(tick, clock_seq, node))
    assert (other.version, other.variant) == (6, uuid.RFC_4122)


@given(V4_RANDOM)
def test_v4_gives_its_random_bits_back(random: int) -> None:
    """All 122 random bits go into a v4 and come out, and it is one to Python's uuid as well."""
    value = versions.v4(random)
    assert versions.v4_bits(value) == random
    assert (uuid.UUID(int=value).version, uuid.UUID(int=value).variant) == (4, uuid.RFC_4122)


@given(VALUES)
def test_text_gives_any_128_bits_back(value: int) -> None:
    """Any 128 bits have one text, Python's, and are read back from it."""
    text = uuids.to_text(value)
    assert text == str(uuid.UUID(int=value))
    assert uuids.from_text(text) == value


# --- v1 and v6


@given(TICKS, CLOCK_SEQS, NODES)
def test_v1_and_v6_turn_into_each_other(tick: int, clock_seq: int, node: int) -> None:
    """A v1 and the v6 of the same fields turn into each other."""
    one, six = versions.v1(tick, clock_seq, node), versions.v6(tick, clock_seq, node)
    assert versions.v1_to_v6(one) == six
    assert versions.v6_to_v1(six) == one


@given(TICKS, TICKS, CLOCK_SEQS, CLOCK_SEQS, NODES, NODES)
def test_v6_sorts_by_tick_as_bytes(
    tick: int, other_tick: int, seq: int, other_seq: int, node: int, other_node: int
) -> None:
    """Of two v6 with different ticks the earlier sorts first, as bytes and as text."""
    one, other = versions.v6(tick, seq, node), versions.v6(other_tick, other_seq, other_node)
    if tick != other_tick:
        assert (one.to_bytes(16) < other.to_bytes(16)) == (tick < other_tick)
        assert (uuids.to_text(one) < uuids.to_text(other)) == (tick < other_tick)


@given(st.integers(0, (1 << 60) - 2), CLOCK_SEQS, NODES)
def test_v6_of_the_next_tick_sorts_next(tick: int, clock_seq: int, node: int) -> None:
    """One tick later is enough to sort later, whatever bit of the tick changes."""
    one, other = versions.v6(tick, clock_seq, node), versions.v6(tick + 1, clock_seq, node)
    assert one.to_bytes(16) < other.to_bytes(16)


# --- what is refused


@pytest.mark.parametrize("make", [versions.v1, versions.v6])
@pytest.mark.parametrize(
    ("name", "bits", "place"), [("tick", 60, 0), ("clock_seq", 14, 1), ("node", 48, 2)]
)
@pytest.mark.parametrize("excess", ["one too many", "negative"])
def test_a_field_that_does_not_fit_is_refused(
    make: Callable[..., int], name: str, bits: int, place: int, excess: str
) -> None:
    """A field out of range is refused, never cut; the error names field, value and range."""
    values = [0, 0, 0]
    values[place] = 1 << bits if excess == "one too many" else -1
    with pytest.raises(ValueError, match=f"^{name} is {values[place]}; .* 0 to {(1 << bits) - 1} "):
        make(*values)


@pytest.mark.parametrize("make", [versions.v1, versions.v6])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_highest_value_of_a_field_fits(make: Callable[..., int], place: int) -> None:
    """The last value in range is taken, and leaves the other fields at zero."""
    values = [0, 0, 0]
    values[place] = (1 << (60, 14, 48)[place]) - 1
    assert list(versions.gregorian_fields(make(*values))) == values


@pytest.mark.parametrize("value", [1 << 122, -1])
def test_random_bits_that_do_not_fit_are_refused(value: int) -> None:
    """v4 takes 122 random bits and refuses more, naming field, value and range."""
    with pytest.raises(ValueError, match=f"^random is {value}; .* 0 to {(1 << 122) - 1} "):
        versions.v4(value)


@pytest.mark.parametrize("value", [True, 1.0, "1", None])
def test_a_field_that_is_no_int_is_refused(value: object) -> None:
    """Only an int is one: not a bool, not a whole float."""
    with pytest.raises(TypeError, match=r"^tick is .*; it must be an int$"):
        versions.v1(cast("int", value), 0, 0)


def test_check_gives_the_value_back() -> None:
    """A value that fits comes back as it is."""
    assert checks.check_bits("worker", 1023, 10) == 1023


@pytest.mark.parametrize("value", [1 << 128, -1])
@pytest.mark.parametrize("read", [uuids.to_text, uuids.version, versions.gregorian_fields])
def test_what_is_not_128_bits_is_no_uuid(read: Callable[[int], object], value: int) -> None:
    """Nothing is read out of a value that is no 128 bits."""
    with pytest.raises(ValueError, match=f"^a UUID is {value}; "):
        read(value)


def test_fields_refuses_another_version_by_name() -> None:
    """A v4 has no tick; the error says which UUID and what it is."""
    with pytest.raises(ValueError, match=f"^{V4_TEXT} is a v4; "):
        versions.gregorian_fields(uuids.from_text(V4_TEXT))


def test_fields_refuses_another_variant_by_name() -> None:
    """A UUID of another variant has no tick, whatever its version bits look like."""
    with pytest.raises(ValueError, match=r"^00000000-0000-1000-0000-000000000000 is of another "):
        versions.gregorian_fields(0x1000 << 64)


@pytest.mark.parametrize(
    ("turn", "text", "needed"),
    [
        (versions.v1_to_v6, V6_VECTORS[0][3], "v1"),
        (versions.v6_to_v1, V1_VECTORS[0][3], "v6"),
        (versions.v4_bits, V1_VECTORS[0][3], "v4"),
    ],
)
def test_a_conversion_takes_its_own_version_only(
    turn: Callable[[int], int], text: str, needed: str
) -> None:
    """A UUID of another version is not taken for the one that is converted."""
    with pytest.raises(ValueError, match=f"^{text} is not a {needed}$"):
        turn(uuids.from_text(text))


# --- text


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.upper(),
        TEXT.replace("-", ""),
        TEXT.replace("-", "").upper(),
        f"{{{TEXT}}}",
        f"{{{TEXT.replace('-', '')}}}",
        f"urn:uuid:{TEXT}",
        f"URN:UUID:{TEXT.upper()}",
    ],
)
def test_the_usual_text_forms_are_taken(text: str) -> None:
    """Plain, hyphenated, in braces, as a URN, in either case: all give the same 128 bits."""
    assert uuids.from_text(text) == VALUE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "urn:uuid:",
        TEXT[:-1],
        TEXT + "0",
        TEXT.replace("-", "") + "0",  # google/uuid refuses 33 digits too
        TEXT[:-1] + "g",
        "{" + TEXT,
        TEXT + "}",
        "{{" + TEXT + "}}",
        "urn:" + TEXT,
        TEXT.replace("-", "", 1),
        TEXT.replace("-", "_"),
        TEXT.replace("c232ab00-9414", "c232ab009-414"),
        TEXT.replace("c232", "0xc2"),
        TEXT.replace("-", "")[:-2] + "_0",
        TEXT.replace("0", "\N{ARABIC-INDIC DIGIT ZERO}"),
        TEXT[:-1] + "\N{FULLWIDTH LATIN SMALL LETTER A}",
    ],
)
def test_any_other_text_is_refused_and_named(text: str) -> None:
    """Any other text is refused, and the error repeats it."""
    with pytest.raises(ValueError, match="is not a UUID") as caught:
        uuids.from_text(text)
    assert repr(text) in str(caught.value)


@given(st.text())
def test_any_text_is_a_uuid_or_a_value_error(text: str) -> None:
    """Text gives 128 bits or ValueError, and no third thing."""
    try:
        value = uuids.from_text(text)
    except ValueError:
        return
    assert 0 <= value < 1 << 128

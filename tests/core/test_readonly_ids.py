"""Kinds that are only read, v2, Sonyflake and uid-generator, and the two of Apollo."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uuidd.core.ids import uuids, versions
from uuidd.core.ids.inspect import foreign

# --- v2


@given(
    st.integers(0, (1 << 60) - 1),
    st.integers(0, (1 << 14) - 1),
    st.integers(0, (1 << 48) - 1),
    st.integers(0, (1 << 32) - 1),
    st.integers(0, 255),
)
def test_a_v2_is_a_v1_with_a_local_id_and_a_domain(
    tick: int, clock_seq: int, node: int, local_id: int, domain: int
) -> None:
    """The local id stands in place of time_low, the domain of the clock sequence's low byte."""
    value = versions.v1(tick, clock_seq & ~0xFF | domain, node)
    value = value & (1 << 96) - 1 | local_id << 96
    found = versions.v2_fields(value ^ 0x3 << 76)
    assert found == (tick >> 32, domain, local_id, clock_seq >> 8, node)
    assert (
        versions.V2_TIME.tick(found.timestamp)
        <= tick
        < versions.V2_TIME.tick(found.timestamp) + (1 << 32)
    )


def test_a_v2_of_a_user() -> None:
    """As DCE's uuidgen would give for user 1000: 0x3e8."""
    value = uuids.from_text("000003e8-9414-21ec-b300-9f6bdeced846")
    found = versions.v2_fields(value)
    assert (found.local_id, versions.V2_DOMAINS[found.domain]) == (1000, "person")
    assert (found.timestamp, found.clock_seq) == (0x1EC9414, 0x33)
    assert found.node == 0x9F6BDECED846


@pytest.mark.parametrize(
    "text", ["c232ab00-9414-11ec-b3c8-9f6bdeced846", "c232ab00-9414-21ec-c3c8-9f6bdeced846"]
)
def test_no_v2_is_refused(text: str) -> None:
    """Another version, and another variant, are named."""
    with pytest.raises(ValueError, match=f"^{text} is not a v2$"):
        versions.v2_fields(uuids.from_text(text))


# --- Sonyflake


@given(st.integers(0, (1 << 39) - 1), st.integers(0, 255), st.integers(0, 65535))
def test_a_sonyflake_gives_its_fields(timestamp: int, sequence: int, machine: int) -> None:
    """Time, sequence and machine, in this order."""
    value = timestamp << 24 | sequence << 16 | machine
    assert foreign.sonyflake_fields(value) == (timestamp, sequence, machine)


# --- uid-generator


@given(
    st.integers(0, 63).flatmap(
        lambda time: st.integers(0, 63 - time).map(
            lambda worker: (time, worker, 63 - time - worker)
        )
    ),
    st.integers(0, (1 << 63) - 1),
)
def test_a_uid_is_read_by_any_layout(bits: tuple[int, int, int], value: int) -> None:
    """The three fields make up the id again, and each fits into its bits."""
    found = foreign.uidgenerator_fields(value, bits)
    time, worker, sequence = bits
    assert found.timestamp << worker + sequence | found.worker << sequence | found.sequence == value
    assert found.timestamp >> time == found.worker >> worker == found.sequence >> sequence == 0


@pytest.mark.parametrize("bits", [(28, 22, 12), (28, 22, 14), (64, -1, 0), (-1, 32, 32)])
def test_a_layout_of_other_than_63_bits_is_refused(bits: tuple[int, int, int]) -> None:
    """The sign bit is no part of it, and no field has fewer than no bits."""
    with pytest.raises(ValueError, match=r"^bits are \(.*\); time, worker and sequence must have"):
        foreign.uidgenerator_fields(0, bits)


@pytest.mark.parametrize("read", [foreign.sonyflake_fields, foreign.uidgenerator_fields])
def test_the_sign_bit_is_no_part_of_an_id(read: Callable[[int], object]) -> None:
    """Both have 63 bits, and no id is below zero."""
    read((1 << 63) - 1)
    for value in (-1, 1 << 63):
        with pytest.raises(
            ValueError, match=rf"^an? .* is {value}; it must be 0 to {(1 << 63) - 1} "
        ):
            read(value)


# --- Apollo


def test_an_ncs_uuid_in_the_text_of_its_time() -> None:
    """12 digits of time, the family, seven octets of host."""
    text = "34dc23469000.0d.00.00.7c.5f.00.00.00"
    value = foreign.ncs_from_text(text)
    assert foreign.ncs_to_text(value) == text
    assert foreign.ncs_from_text(text.upper()) == value
    found = foreign.ncs_fields(value)
    assert found == (0x34DC23469000, 0, 13, 0x00007C5F000000)
    assert foreign.NCS_FAMILIES[found.family] == "dds"
    assert uuids.to_text(value) == "34dc2346-9000-0000-0d00-007c5f000000"
    assert uuids.version(value) is None


def test_the_families_are_those_of_ncs() -> None:
    """14 numbers without a gap; the two in use were ip, 2, and dds, 13."""
    assert list(foreign.NCS_FAMILIES) == list(range(14))
    assert (foreign.NCS_FAMILIES[2], foreign.NCS_FAMILIES[13]) == ("ip", "dds")


@given(st.integers(0, (1 << 48) - 1), st.integers(0, (1 << 7) - 1), st.integers(0, (1 << 56) - 1))
def test_an_ncs_text_comes_back(timestamp: int, family: int, host: int) -> None:
    """All that has a text is read back from it."""
    value = timestamp << 80 | family << 56 | host
    assert foreign.ncs_from_text(foreign.ncs_to_text(value)) == value


def test_an_ncs_uuid_with_reserved_bits_has_no_text() -> None:
    """The text has no place for them, and drops nothing in silence."""
    with pytest.raises(ValueError, match=r"^reserved is 1; it must be 0"):
        foreign.ncs_to_text(1 << 64 | 2 << 56)


@pytest.mark.parametrize("text", ["00000000-0000-0000-8000-000000000000", "f" * 32])
def test_another_variant_is_no_ncs_uuid(text: str) -> None:
    """The highest bit of the family is the variant's."""
    with pytest.raises(ValueError, match=r"is not an NCS UUID: its variant is another$"):
        foreign.ncs_fields(uuids.from_text(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "34dc23469000",
        "34dc23469000.0d.00.00.7c.5f.00.00",
        "34dc23469000.0d.00.00.7c.5f.00.00.00.00",
        "34dc2346900.0d.00.00.7c.5f.00.00.00",
        "34dc2346900g.0d.00.00.7c.5f.00.00.00",
        "34dc23469000:0d:00:00:7c:5f:00:00:00",
        "34dc23469000.d.00.00.7c.5f.00.00.00",
    ],
)
def test_no_ncs_text_is_refused(text: str) -> None:
    """The error repeats it, and says how one looks."""
    with pytest.raises(ValueError, match="is not an NCS UUID: it takes 12 hex digits") as caught:
        foreign.ncs_from_text(text)
    assert repr(text) in str(caught.value)


def test_a_family_above_127_is_refused_in_a_text() -> None:
    """Its high bit would be another variant."""
    with pytest.raises(ValueError, match=r"^family is 128; it must be 0 to 127 "):
        foreign.ncs_from_text("34dc23469000.80.00.00.7c.5f.00.00.00")


def test_a_uid_in_its_text() -> None:
    """Twice eight digits; the counter and the node are in the second half."""
    value = foreign.apollo_from_text("34DC2346.90007C5F")
    assert foreign.apollo_to_text(value) == "34dc2346.90007c5f"
    assert foreign.apollo_fields(value) == (0x34DC2346, 9, 0, 0x07C5F)


@pytest.mark.parametrize("text", ["34dc234690007c5f", "34dc2346.90007c5", "34dc2346-90007c5f"])
def test_no_uid_text_is_refused(text: str) -> None:
    """The error repeats it."""
    with pytest.raises(ValueError, match=f"^'{text}' is not an Apollo UID: "):
        foreign.apollo_from_text(text)

"""Ids that are only read: the two of Apollo."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uuidd.core.ids import uuids
from uuidd.core.ids.inspect import foreign


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
    """The text has no place for them, and they are not dropped."""
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
def test_any_other_text_of_ncs_is_refused(text: str) -> None:
    """The error repeats it, and says how an NCS UUID is written."""
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
def test_any_other_text_of_a_uid_is_refused(text: str) -> None:
    """The error repeats it."""
    with pytest.raises(ValueError, match=f"^'{text}' is not an Apollo UID: "):
        foreign.apollo_from_text(text)

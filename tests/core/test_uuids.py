"""UUIDs: version and variant, v1 against v6, names, GUIDs, and their text; nodes as text.

What holds for each kind of id alike is in ``test_families``, published values in ``test_vectors``.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uuidd.core.ids import nodes, uuids, versions
from uuidd.core.ids.formats import FORMATS
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH

TICKS = st.integers(0, (1 << 60) - 1)
CLOCK_SEQS = st.integers(0, (1 << 14) - 1)
NODES = st.integers(0, (1 << 48) - 1)
VALUES = st.integers(0, (1 << 128) - 1)

V1 = "c232ab00-9414-11ec-b3c8-9f6bdeced846"
V4 = "919108f7-52d1-4320-9bac-f847db4148a8"
V6 = "1ec9414c-232a-6b00-b3c8-9f6bdeced846"
VALUE = 0xC232AB00941411ECB3C89F6BDECED846


# --- version and variant


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
def test_only_the_rfcs_variant_has_versions(text: str, version: int | None) -> None:
    assert uuids.version(uuids.from_text(text)) == version


@given(TICKS, CLOCK_SEQS, NODES)
def test_pythons_uuid_reads_the_same_fields(tick: int, clock_seq: int, node: int) -> None:
    one = uuid.UUID(int=versions.v1(tick, clock_seq, node))
    six = uuid.UUID(int=versions.v6(tick, clock_seq, node))
    assert (one.time, one.clock_seq, one.node) == (tick, clock_seq, node)
    assert (one.version, six.version) == (1, 6)
    assert one.variant == six.variant == uuid.RFC_4122


@given(st.integers(0, (1 << 122) - 1))
def test_a_v4_is_one_to_pythons_uuid(random: int) -> None:
    other = uuid.UUID(int=versions.v4(random))
    assert (other.version, other.variant) == (4, uuid.RFC_4122)


def test_the_unix_epoch_is_counted_from_the_gregorian_reform() -> None:
    """The tick of 1970 is the number of 100 ns intervals since 1582-10-15."""
    days = (date(1970, 1, 1) - date(1582, 10, 15)).days
    assert days * 86_400 * TICKS_PER_SECOND == UNIX_EPOCH


@pytest.mark.parametrize("value", [1 << 128, -1])
@pytest.mark.parametrize("read", [uuids.version, uuids.guid_swapped])
def test_more_than_128_bits_are_refused(read: Callable[[int], object], value: int) -> None:
    with pytest.raises(ValueError, match=rf"^a (UU|GU)ID is {value}; it must be 0 to "):
        read(value)


# --- v1 and v6


@given(TICKS, CLOCK_SEQS, NODES)
def test_v1_and_v6_convert_to_each_other(tick: int, clock_seq: int, node: int) -> None:
    one, six = versions.v1(tick, clock_seq, node), versions.v6(tick, clock_seq, node)
    assert versions.v1_to_v6(one) == six
    assert versions.v6_to_v1(six) == one


def test_another_version_has_no_tick() -> None:
    with pytest.raises(ValueError, match=f"^{V4} is a v4; "):
        versions.gregorian_fields(uuids.from_text(V4))
    with pytest.raises(ValueError, match=r"^00000000-0000-1000-0000-000000000000 is of another "):
        versions.gregorian_fields(0x1000 << 64)


@pytest.mark.parametrize(
    ("convert", "text", "needed"),
    [
        (versions.v1_to_v6, V6, "v1"),
        (versions.v6_to_v1, V1, "v6"),
    ],
)
def test_another_version_is_refused(convert: Callable[[int], int], text: str, needed: str) -> None:
    with pytest.raises(ValueError, match=f"^{text} is not a {needed}$"):
        convert(uuids.from_text(text))


# --- v2

V2 = FORMATS["v2"]


@given(TICKS, CLOCK_SEQS, NODES, st.integers(0, (1 << 32) - 1), st.integers(0, 255))
def test_a_v2_is_a_v1_with_a_local_id_and_a_domain(
    tick: int, clock_seq: int, node: int, local_id: int, domain: int
) -> None:
    """The local id is in place of time_low, the domain in place of the clock_seq's low byte."""
    value = versions.v1(tick, clock_seq & ~0xFF | domain, node)
    value = value & (1 << 96) - 1 | local_id << 96
    found = V2.unpack(value ^ 0x3 << 76)
    assert tuple(found.values()) == (local_id, tick >> 32, clock_seq >> 8, domain, node)
    assert V2.time is not None
    assert 0 <= tick - V2.time.tick(found["timestamp"]) < 1 << 32


# --- v3 and v5


@given(VALUES, st.text())
def test_a_name_is_text_or_its_bytes(namespace: int, name: str) -> None:
    """Text is its UTF-8, so both give one UUID, of the right version."""
    encoded = name.encode("utf-8", "surrogatepass")
    for make, version in ((versions.v3, 3), (versions.v5, 5)):
        value = make(namespace, encoded)
        assert uuids.version(value) == version
        if encoded.decode("utf-8", "replace") == name:
            assert make(namespace, name) == value


@pytest.mark.parametrize("namespace", [-1, 1 << 128])
def test_a_namespace_of_too_many_bits_is_refused(namespace: int) -> None:
    for make in (versions.v3, versions.v5):
        with pytest.raises(ValueError, match=f"^namespace is {namespace}; it must be 0 to "):
            make(namespace, "name")


@pytest.mark.parametrize("name", ["dns", "url", "oid", "x500"])
def test_a_namespace_is_a_name_or_a_uuid(name: str) -> None:
    """In any case, and in any form that a UUID has."""
    value = versions.NAMESPACES[name]
    assert versions.namespace(name) == versions.namespace(name.upper()) == value
    assert versions.namespace(f"urn:uuid:{uuids.to_text(value)}") == value


@pytest.mark.parametrize("text", ["", "dn", "dns ", "6ba7b810"])
def test_an_unknown_namespace_is_refused(text: str) -> None:
    message = f"^namespace is {text!r}; it must be a UUID or one of dns, url, oid, x500$"
    with pytest.raises(ValueError, match=message):
        versions.namespace(text)


# --- text


@given(VALUES)
def test_the_text_is_pythons(value: int) -> None:
    assert uuids.to_text(value) == str(uuid.UUID(int=value))


@pytest.mark.parametrize(
    "text",
    [
        V1,
        V1.upper(),
        V1.replace("-", ""),
        V1.replace("-", "").upper(),
        f"{{{V1}}}",
        f"{{{V1.replace('-', '')}}}",
        f"urn:uuid:{V1}",
        f"URN:UUID:{V1.upper()}",
    ],
)
def test_the_usual_forms_are_read(text: str) -> None:
    """Plain, hyphenated, in braces, as a URN, in either case."""
    assert uuids.from_text(text) == VALUE


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "urn:uuid:",
        V1.replace("-", "") + "0",  # google/uuid refuses 33 digits too
        "{" + V1,
        V1 + "}",
        "{" + V1 + "0",
        "0" + V1 + "}",
        "{{" + V1 + "}}",
        "urn:" + V1,
        V1.replace("-", "", 1),
        V1.replace("-", "_"),
        V1.replace("c232ab00-9414", "c232ab009-414"),
        V1.replace("c232", "0xc2"),
        V1.replace("-", "")[:-2] + "_0",
        V1.replace("0", "\N{ARABIC-INDIC DIGIT ZERO}"),
        V1[:-1] + "\N{FULLWIDTH LATIN SMALL LETTER A}",
    ],
)
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a UUID") as caught:
        uuids.from_text(text)
    assert repr(text) in str(caught.value)


def test_a_guid_has_the_bytes_of_its_first_three_groups_reversed() -> None:
    """The last eight bytes stay; swapped twice, a GUID is the UUID again."""
    value = uuids.from_text("00112233-4455-6677-8899-aabbccddeeff")
    assert uuids.to_text(uuids.guid_swapped(value)) == "33221100-5544-7766-8899-aabbccddeeff"
    assert uuids.guid_swapped(uuids.guid_swapped(value)) == value


# --- nodes


@given(NODES)
def test_a_node_is_read_in_every_form(value: int) -> None:
    """An int, with colons, with hyphens, as 12 digits, after 0x, in either case."""
    text = nodes.to_text(value)
    plain = text.replace(":", "")
    for form in (text, text.replace(":", "-"), plain, f"0x{plain}", text.upper(), f" {text}\n"):
        assert nodes.node(form) == value
    assert nodes.node(value) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0x",
        "44:88:99:36:57",
        "44:88:99:36:57:32:01",
        "44:88:99:36:57:3",
        "44:88:99:36:57:3g",
        "44:88:99-36-57-32",
        "0x44:88:99:36:57:32",
        "4488.9936.5732",
        "4:88:99:36:57:32",
        "44:8:99::36:57:32",
        "44889936573",
        "4488993657321",
        "\u066448899365732",
    ],
)
def test_any_other_text_of_a_node_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="; it must be six octets in hex") as caught:
        nodes.node(text)
    assert str(caught.value).startswith(f"node is {text!r}; ")


@pytest.mark.parametrize("value", [-1, 1 << 48])
def test_a_node_of_too_many_bits_is_refused(value: int) -> None:
    for call in (nodes.node, nodes.to_text):
        with pytest.raises(ValueError, match=f"^node is {value}; it must be 0 to {(1 << 48) - 1} "):
            call(value)


@pytest.mark.parametrize("value", [True, 1.0, None])
def test_a_node_that_is_neither_int_nor_text_is_refused(value: int) -> None:
    with pytest.raises(TypeError, match=f"^node is {value}; it must be an int$"):
        nodes.node(value)

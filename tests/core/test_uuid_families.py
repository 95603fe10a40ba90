"""Name-based UUIDs, GUIDs, nodes as text; the neighbours of ULIDs and KSUIDs; digits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uuidd.core.ids import bases, nodes, ulid, uuids, versions

VALUES = st.integers(0, (1 << 128) - 1)

# --- v3, v5


@given(VALUES, st.text())
def test_a_name_is_taken_as_text_or_as_its_bytes(namespace: int, name: str) -> None:
    """Text is its UTF-8, so both give one UUID, of the right version."""
    encoded = name.encode("utf-8", "surrogatepass")
    for make, version in ((versions.v3, 3), (versions.v5, 5)):
        value = make(namespace, encoded)
        assert uuids.version(value) == version
        if encoded.decode("utf-8", "replace") == name:
            assert make(namespace, name) == value


@pytest.mark.parametrize("namespace", [-1, 1 << 128])
def test_a_namespace_of_too_many_bits_is_refused(namespace: int) -> None:
    """The error names it."""
    for make in (versions.v3, versions.v5):
        with pytest.raises(ValueError, match=f"^namespace is {namespace}; it must be 0 to "):
            make(namespace, "name")


@pytest.mark.parametrize("name", ["dns", "url", "oid", "x500"])
def test_a_namespace_goes_by_name_or_as_a_uuid(name: str) -> None:
    """In any case, and in any form that a UUID has."""
    value = versions.NAMESPACES[name]
    assert versions.namespace(name) == versions.namespace(name.upper()) == value
    assert versions.namespace(uuids.to_text(value)) == value
    assert versions.namespace(f"urn:uuid:{uuids.to_text(value)}") == value


@pytest.mark.parametrize("text", ["", "dn", "dns ", "6ba7b810"])
def test_an_unknown_namespace_is_refused(text: str) -> None:
    """The error repeats it, and lists the names."""
    message = f"^namespace is {text!r}; it must be a UUID or one of dns, url, oid, x500$"
    with pytest.raises(ValueError, match=message):
        versions.namespace(text)


# --- GUIDs


@given(VALUES)
def test_swapping_twice_changes_nothing(value: int) -> None:
    """UUID to GUID bytes and back."""
    assert uuids.guid_swapped(uuids.guid_swapped(value)) == value


def test_the_bytes_of_the_first_three_groups_are_turned_round() -> None:
    """The last eight bytes stay."""
    value = uuids.from_text("00112233-4455-6677-8899-aabbccddeeff")
    assert uuids.to_text(uuids.guid_swapped(value)) == "33221100-5544-7766-8899-aabbccddeeff"


@pytest.mark.parametrize("value", [-1, 1 << 128])
def test_no_guid_has_more_than_128_bits(value: int) -> None:
    """The error names the value and the range."""
    with pytest.raises(ValueError, match=f"^a GUID is {value}; it must be 0 to "):
        uuids.guid_swapped(value)


# --- nodes


@given(st.integers(0, (1 << 48) - 1))
def test_a_node_is_read_in_every_form(value: int) -> None:
    """An int, with colons, with hyphens, as 12 digits, after 0x, in either case."""
    text = nodes.to_text(value)
    plain = text.replace(":", "")
    for given_as in (text, text.replace(":", "-"), plain, f"0x{plain}", text.upper(), f" {text}\n"):
        assert nodes.node(given_as) == value
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
        "4488.9936.5732",
        "4:88:99:36:57:32",
        "44889936573",
        "4488993657321",
        "\u066448899365732",
    ],
)
def test_no_node_is_refused(text: str) -> None:
    """The error repeats it, and says how one looks."""
    with pytest.raises(ValueError, match="; it must be six octets in hex") as caught:
        nodes.node(text)
    assert str(caught.value).startswith(f"node is {text!r}; ")


@pytest.mark.parametrize("value", [-1, 1 << 48])
def test_a_node_of_too_many_bits_is_refused(value: int) -> None:
    """Read or written, the error names field, value and range."""
    for call in (nodes.node, nodes.to_text):
        with pytest.raises(ValueError, match=f"^node is {value}; it must be 0 to {(1 << 48) - 1} "):
            call(value)


@pytest.mark.parametrize("value", [True, 1.0, None])
def test_a_node_that_is_neither_int_nor_text_is_refused(value: int) -> None:
    """Not a bool, not a float."""
    with pytest.raises(TypeError, match=f"^node is {value}; it must be an int$"):
        nodes.node(value)


# --- ULIDs


@given(VALUES)
def test_a_ulid_and_a_uuid_are_two_texts_of_one_value(value: int) -> None:
    """From the one text to the other and back."""
    as_ulid = ulid.to_text(uuids.from_text(uuids.to_text(value)))
    assert uuids.from_text(uuids.to_text(ulid.from_text(as_ulid))) == value


@given(VALUES)
def test_a_ulid_is_read_in_lower_case_too(value: int) -> None:
    """Crockford's base 32 has no case."""
    assert ulid.from_text(ulid.to_text(value).lower()) == value


@pytest.mark.parametrize("letter", "ILOU\N{LATIN SMALL LETTER LONG S}")
def test_letters_that_a_ulid_has_not_are_refused(letter: str) -> None:
    """I, L, O and U are in no ULID; nor is a long s, whose capital is S."""
    text = "0" * 25 + letter
    with pytest.raises(ValueError, match=f"^'{text}' is not a ULID: '{letter}' at 25 is not in "):
        ulid.from_text(text)


def test_a_letter_with_a_capital_of_two_is_no_way_to_27_characters() -> None:
    """A sharp s, in capitals, is SS."""
    text = "0" * 25 + "\N{LATIN SMALL LETTER SHARP S}"
    with pytest.raises(ValueError, match=r"is not a ULID: .* at 25 is not in "):
        ulid.from_text(text)


# --- KSUIDs


# --- digits


@pytest.mark.parametrize(
    "alphabet", [bases.BASE62, bases.BASE58, bases.BASE32, bases.CROCKFORD, bases.PUSH]
)
@given(value=st.integers(0, (1 << 200) - 1), width=st.integers(0, 50))
def test_digits_come_back(alphabet: str, value: int, width: int) -> None:
    """In each alphabet, with zeros before or without."""
    text = bases.encode(value, alphabet, width)
    assert bases.decode(text, alphabet, "number", 200) == value
    assert len(text) >= max(width, 1)
    if len(text) > max(width, 1):
        assert text[0] != alphabet[0]


@pytest.mark.parametrize(
    ("alphabet", "count"),
    [
        (bases.BASE62, 62),
        (bases.BASE58, 58),
        (bases.BASE32, 32),
        (bases.CROCKFORD, 32),
        (bases.PUSH, 64),
    ],
)
def test_an_alphabet_has_each_of_its_digits_once(alphabet: str, count: int) -> None:
    """So that a text means one number."""
    assert len(alphabet) == len(set(alphabet)) == count


def test_a_number_below_zero_has_no_digits() -> None:
    """The error names it."""
    with pytest.raises(ValueError, match=r"^the number is -1; it must be 0 or more$"):
        bases.encode(-1, bases.BASE62)


def test_zeros_before_a_number_are_taken() -> None:
    """However many: they make nothing higher."""
    assert bases.decode("0" * 1000 + "10", bases.BASE62, "number", 8) == 62

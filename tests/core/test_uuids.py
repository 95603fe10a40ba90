"""UUIDs: version and variant, v1 against v6, names, GUIDs, and their text; nodes as text.

What holds for each kind of id alike is in ``test_families``, published values in ``test_vectors``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uuidd.core.ids import nodes, uuids, versions
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH

TICKS = st.integers(0, (1 << 60) - 1)
CLOCK_SEQS = st.integers(0, (1 << 14) - 1)
NODES = st.integers(0, (1 << 48) - 1)
VALUES = st.integers(0, (1 << 128) - 1)

V1 = "c232ab00-9414-11ec-b3c8-9f6bdeced846"
V4 = "919108f7-52d1-4320-9bac-f847db4148a8"
VALUE = 0xC232AB00941411ECB3C89F6BDECED846


def test_the_unix_epoch_is_counted_from_the_gregorian_reform() -> None:
    days = (date(1970, 1, 1) - date(1582, 10, 15)).days
    assert days * 86_400 * TICKS_PER_SECOND == UNIX_EPOCH


@pytest.mark.parametrize("value", [1 << 128, -1])
@pytest.mark.parametrize("read", [uuids.version, uuids.guid_swapped])
def test_more_than_128_bits_are_refused(read: Callable[[int], object], value: int) -> None:
    with pytest.raises(ValueError, match=rf"^a (UU|GU)ID is {value}; it must be 0 to "):
        read(value)


def test_another_version_has_no_v6() -> None:
    with pytest.raises(ValueError, match=f"^{V4} is not a v1$"):
        versions.v1_to_v6(uuids.from_text(V4))


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
    value = versions.NAMESPACES[name]
    assert versions.namespace(name) == versions.namespace(name.upper()) == value
    assert versions.namespace(f"urn:uuid:{uuids.to_text(value)}") == value


@pytest.mark.parametrize("text", ["", "dn", "dns ", "6ba7b810"])
def test_an_unknown_namespace_is_refused(text: str) -> None:
    message = f"^namespace is {text!r}; it must be a UUID or one of dns, url, oid, x500$"
    with pytest.raises(ValueError, match=message):
        versions.namespace(text)


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


@given(NODES)
def test_a_node_is_read_in_every_form(value: int) -> None:
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

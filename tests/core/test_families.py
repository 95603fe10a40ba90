"""What holds for each kind of id alike: its fields, its text and its order; and digits."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import kinds
from tests.kinds import KINDS
from uuidd.core.ids import bases, uuids, versions
from uuidd.core.ids.kinds import FORMATS


class Part(NamedTuple):
    """A field of an id, and its range, both ends included."""

    name: str
    low: int
    high: int


class Family(NamedTuple):
    """What makes an id of a *layout* of its fields.

    *fields* returns what *make* takes. *names* are what errors call the fields, if these are not
    the names of the parameters.
    """

    kind: str
    layout: str
    make: Callable[..., int]
    fields: Callable[[int], tuple[int, ...]]
    names: str = ""

    @property
    def parts(self) -> list[Part]:
        """The fields that *make* takes, with the names of its parameters."""
        sizes = [size for field, size in kinds.sizes(self.layout).items() if field not in FIXED]
        names = self.names.split() or inspect.signature(self.make).parameters
        return [Part(name, 0, (1 << size) - 1) for name, size in zip(names, sizes, strict=True)]

    def packed(self, *parts: int) -> int:
        """Return the id that *make* is to return."""
        names = [field for field in kinds.sizes(self.layout) if field not in FIXED]
        fixed = {"version": int(self.kind[1:]) if self.kind[0] == "v" else 0, "variant": 0b10}
        return kinds.packed(self.layout, dict(zip(names, parts, strict=True)) | fixed)


FIXED = ("version", "variant")


def described(kind: str, names: str, layout: str = "") -> Family:
    """Return the family of a kind's description, whose fields have these names."""
    form = FORMATS[kind]
    return Family(
        kind,
        layout or KINDS[kind].published or KINDS[kind].layout,
        form.pack,
        lambda value: tuple(form.unpack(value).values()),
        names=names,
    )


FAMILIES = [
    *(
        described(kind, "tick clock_seq node")._replace(make=partial(versions.gregorian, kind))
        for kind in ("v1", "v6")
    ),
    described("v1", "timestamp clock_seq node"),
    described(
        "v2",
        "local_id timestamp clock_seq domain node",
        "local_id[31:0] timestamp[15:0] version[3:0] timestamp[27:16]"
        " variant[1:0] clock_seq[5:0] domain[7:0] node[47:0]",
    ),
    described("v4", "random"),
    described("v6", "timestamp clock_seq node"),
    described(
        "v7",
        "timestamp random",
        "ms[47:0] version[3:0] random[73:62] variant[1:0] random[61:0]",
    ),
    described(
        "v8",
        "custom_a custom_b custom_c",
        "custom_a[47:0] version[3:0] custom_b[11:0] variant[1:0] custom_c[61:0]",
    ),
    described("flake", "timestamp node sequence"),
    described("ulid", "timestamp random"),
    described("push_id", "timestamp random"),
    described("ksuid", "timestamp payload"),
    described("snowflake", "timestamp worker sequence"),
]


EACH = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.kind)
EACH_PART = pytest.mark.parametrize(
    ("family", "place"),
    [
        pytest.param(family, place, id=f"{family.kind}-{part.name}")
        for family in FAMILIES
        for place, part in enumerate(family.parts)
    ],
)


class Writing(NamedTuple):
    """How a kind of *bits* bits is written; *name* is its name in errors, *width* its one width."""

    to_text: Callable[[int], str]
    from_text: Callable[[str], int]
    bits: int
    name: str
    width: int | None = None


def of_kind(kind: str, name: str) -> Writing:
    """How a kind is written that uuidd makes."""
    found, form = KINDS[kind], FORMATS[kind]
    return Writing(form.to_text, form.from_text, found.bits, name, found.width or None)


WRITINGS = {
    "v4": of_kind("v4", "UUID"),
    "flake": of_kind("flake", "Flake"),
    "ulid": of_kind("ulid", "ULID"),
    "push_id": of_kind("push_id", "Push ID"),
    "ksuid": of_kind("ksuid", "KSUID"),
    "snowflake": of_kind("snowflake", "Snowflake"),
}

EACH_WRITING = pytest.mark.parametrize("writing", WRITINGS.values(), ids=WRITINGS.keys())


def lows(family: Family) -> list[Any]:
    """The lowest value of each part."""
    return [part.low for part in family.parts]


@EACH
@given(data=st.data())
def test_fields_come_back(family: Family, data: st.DataObject) -> None:
    parts = tuple(data.draw(st.integers(part.low, part.high)) for part in family.parts)
    made = family.make(*parts)
    assert family.fields(made) == parts
    assert made == family.packed(*parts)


@EACH_PART
def test_a_field_fits_up_to_the_ends_of_its_range(family: Family, place: int) -> None:
    name, low, high = family.parts[place]
    parts = lows(family)
    for end in (low, high):
        parts[place] = end
        assert family.fields(family.make(*parts)) == tuple(parts)
    for beyond in (low - 1, high + 1):
        parts[place] = beyond
        with pytest.raises(ValueError, match=rf"^{name} is {beyond}; .*{low} to {high}( |$)"):
            family.make(*parts)


@EACH_PART
@pytest.mark.parametrize("value", [True, 1.0, "1", None])
def test_a_field_that_is_not_an_int_is_refused(family: Family, place: int, value: object) -> None:
    parts = lows(family)
    parts[place] = value
    with pytest.raises(TypeError, match=rf"^{family.parts[place].name} is .*; it must be an int$"):
        family.make(*parts)


@pytest.mark.parametrize(
    "family",
    [family for family in FAMILIES if family.kind not in ("v1", "v2", "v4")],
    ids=lambda family: family.kind,
)
@given(data=st.data())
def test_ids_sort_by_their_time(family: Family, data: st.DataObject) -> None:
    """The time comes first: one unit later is higher, whatever the other fields are."""
    first, *rest = family.parts
    time = data.draw(st.integers(first.low, first.high - 1))
    later = data.draw(st.just(time + 1) | st.integers(time + 1, first.high))
    one, other = ([data.draw(st.integers(part.low, part.high)) for part in rest] for _ in "12")
    assert family.make(time, *one) < family.make(later, *other)
    highest = [part.high for part in rest]
    assert family.make(time, *highest) < family.make(time + 1, *lows(family)[1:])


@EACH
def test_a_value_of_too_many_bits_is_not_read(family: Family) -> None:
    read, count = family.fields, sum(kinds.sizes(family.layout).values())
    for value in (-1, 1 << count):
        with pytest.raises(ValueError, match=rf"^an? .* is {value}; it must be 0 to "):
            read(value)
    for other in (True, 1.0):
        with pytest.raises(TypeError, match=rf"^an? .* is {other}; it must be an int$"):
            read(other)  # type: ignore[arg-type]  # that is what is tested


@pytest.mark.parametrize("version", range(1, 9))
def test_another_version_is_not_read(version: int) -> None:
    read = FORMATS[f"v{version}"].unpack
    for other in {*range(16)} - {version}:
        value = uuids.stamp(0, other)
        with pytest.raises(ValueError, match=f"^{uuids.to_text(value)} is not a v{version}$"):
            read(value)
    with pytest.raises(ValueError, match=f"is not a v{version}$"):
        read(version << 76)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in WRITINGS])
@given(data=st.data())
def test_a_text_has_the_digits_of_the_kinds_alphabet(kind: str, data: st.DataObject) -> None:
    value = data.draw(st.integers(0, (1 << KINDS[kind].bits) - 1))
    text = kinds.text(kind, value)
    assert WRITINGS[kind].to_text(value) == text
    assert WRITINGS[kind].from_text(text) == value
    if kind == "ulid":
        assert WRITINGS[kind].from_text(text.lower()) == value


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in WRITINGS])
def test_a_value_past_the_ends_of_its_range_has_no_text(kind: str) -> None:
    writing = WRITINGS[kind]
    highest = (1 << writing.bits) - 1
    for value in (-1, highest + 1):
        message = rf"^an? {writing.name} is {value}; .* 0 to {highest} "
        with pytest.raises(ValueError, match=message):
            writing.to_text(value)


@EACH_WRITING
@pytest.mark.parametrize("character", ["!", " ", "\N{LATIN SMALL LETTER LONG S}", "\N{SNOWMAN}"])
def test_a_character_of_no_alphabet_is_refused(writing: Writing, character: str) -> None:
    """At any place; the error repeats the text. So is a text without a character."""
    good = writing.to_text((1 << writing.bits) - 1)
    for place in range(len(good)):
        bad = good[:place] + character + good[place + 1 :]
        if bad.strip() != bad and writing.width in (17, 36):
            continue  # whitespace around these is ignored, and then a digit is missing
        with pytest.raises(ValueError, match=f"is not an? .*{writing.name}") as caught:
            writing.from_text(bad)
        assert repr(bad) in str(caught.value)
    with pytest.raises(ValueError, match=writing.name):
        writing.from_text("")


@EACH_WRITING
def test_a_text_one_too_long_or_too_short_is_refused(writing: Writing) -> None:
    highest = writing.to_text((1 << writing.bits) - 1)
    wrong = [highest + highest[-1]]
    if writing.width is not None:
        wrong += [highest[:-1], "0" + highest]
    for text in wrong:
        with pytest.raises(ValueError, match=f"is not an? .*{writing.name}") as caught:
            writing.from_text(text)
        assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "alphabet"),
    [
        *((kind, KINDS[kind].alphabet) for kind in ("flake", "ulid", "ksuid")),
        ("snowflake", bases.DECIMAL),
    ],
)
def test_the_text_after_the_highest_is_refused(kind: str, alphabet: str) -> None:
    writing = WRITINGS[kind]
    text = bases.encode(1 << writing.bits, alphabet)
    assert writing.width in (None, len(text))
    with pytest.raises(ValueError, match=f"^'{text}' is not an? .*more than {writing.bits} bits"):
        writing.from_text(text)


@pytest.mark.parametrize(
    "letter", [*"ILOU", "\N{LATIN SMALL LETTER LONG S}", "\N{LATIN SMALL LETTER SHARP S}"]
)
def test_letters_that_no_ulid_has_are_refused(letter: str) -> None:
    text = "0" * 25 + letter
    with pytest.raises(ValueError, match=f"^'{text}' is not a ULID: '{letter}' at 25 is not in "):
        WRITINGS["ulid"].from_text(text)


ALPHABETS = {
    bases.BASE62: 62,
    bases.DECIMAL: 10,
    bases.CROCKFORD: 32,
    bases.PUSH: 64,
}


@pytest.mark.parametrize("alphabet", ALPHABETS)
@given(value=st.integers(0, (1 << 200) - 1), width=st.integers(0, 50))
def test_digits_come_back(alphabet: str, value: int, width: int) -> None:
    assert len(alphabet) == len(set(alphabet)) == ALPHABETS[alphabet]
    text = bases.encode(value, alphabet, width)
    assert bases.decode(text, alphabet, "number", 200) == value
    assert bases.decode(alphabet[0] * 1000 + text, alphabet, "number", 200) == value
    assert len(text) >= max(width, 1)
    if len(text) > max(width, 1):
        assert text[0] != alphabet[0]


def test_a_number_below_zero_has_no_digits() -> None:
    with pytest.raises(ValueError, match=r"^the number is -1; it must be 0 or more$"):
        bases.encode(-1, bases.BASE62)

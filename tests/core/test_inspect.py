"""Any id's text, read as each kind that it may be."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kinds import GREGORIAN, KINDS, MS, STEADY, fields, made, places
from tests.kinds import text as written
from uuidd.core.ids import times, uuids, versions
from uuidd.core.ids.inspect import (
    FROM,
    INSPECTED_KINDS,
    LONGEST,
    ORDER,
    UNTIL,
    Reading,
    readings,
)
from uuidd.core.ids.places import Origin

V1 = "c232ab00-9414-11ec-b3c8-9f6bdeced846"
V7 = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
ULID = "01ARYZ6S41TSV4RRFFQ69G5FAV"
KSUID = "0uk1HcdvF0p8C20KtTfdRSB9XIm"
PUSH_ID = "-JhLeOlGIEjaIOFHR0xd"
FLAKE = "8HFaR8qWtRlGDHnO57"
SNOWFLAKE = 856165981072306191


def kinds(text: str) -> list[str]:
    """Return the kinds of the readings of a text."""
    return [reading.kind for reading in readings(text)]


def only(
    text: str, kind: str | None = None, epoch: int | None = None, *, raw: bool = False
) -> Reading:
    """Return the one reading of a text."""
    (found,) = readings(text, kind=kind, epoch=epoch, raw=raw)
    return found


RFC = {"variant": "RFC 9562"}

FIELDS: list[tuple[str, str | None, dict[str, int | str]]] = [
    (
        V1,
        "v1",
        {
            "version": 1,
            **RFC,
            "time": "2022-02-22T19:22:22.0000000Z",
            "timestamp": 138648505420000000,
            "clock_seq": 13256,
            "node": "9f:6b:de:ce:d8:46",
            "node_is": "random",
            "full_on": "5236-03-31",
        },
    ),
    (
        "000003e8-9414-21ec-b300-9f6bdeced846",
        "v2",
        {
            "version": 2,
            **RFC,
            "time": "2022-02-22T19:16:56.1899520Z",
            "timestamp": 0x1EC9414,
            "clock_seq": 0x33,
            "node": "9f:6b:de:ce:d8:46",
            "domain": "person",
            "local_id": 1000,
            "node_is": "random",
            "full_on": "5236-03-31",
        },
    ),
    ("5df41881-3aed-3515-88a7-2f4a814cf09e", "v3", {"version": 3, **RFC}),
    (
        "919108f7-52d1-4320-9bac-f847db4148a8",
        "v4",
        {"version": 4, **RFC, "random": "0x2464423dd4b44c81bacf847db4148a8"},
    ),
    ("2ed6657d-e927-568b-95e1-2665a8aea6a2", "v5", {"version": 5, **RFC}),
    (
        "2489e9ad-2ee2-8e00-8ec9-32d5f69181c0",
        "v8",
        {
            "version": 8,
            **RFC,
            "custom_a": "0x2489e9ad2ee2",
            "custom_b": "0xe00",
            "custom_c": "0x0ec932d5f69181c0",
        },
    ),
    ("00000000-0000-0000-0000-000000000000", "nil", {}),
    ("333a2276-d000-0000-0d00-00809c000000", "unknown", {"variant": "NCS"}),
    ("00000000-0000-9000-8000-000000000000", "unknown", {"version": 9, **RFC}),
    ("00000000-0000-0000-8000-000000000000", "unknown", {"version": 0, **RFC}),
    ("ffffffff-ffff-ffff-8000-000000000000", "unknown", {"version": 15, **RFC}),
    ("00000000-0000-0900-c000-000000000046", "unknown", {"variant": "Microsoft"}),
    ("00000000-0000-0900-e000-000000000046", "unknown", {"variant": "future"}),
    (
        KSUID,
        "ksuid",
        {
            "time": "2017-10-10T05:01:40Z",
            "timestamp": 107611700,
            "payload": "BA1C205D6177F0992D15EE606AE32238",
            "full_on": "2150-06-19",
        },
    ),
    (
        FLAKE,
        "flake",
        {
            "time": "2012-01-12T22:56:53.776Z",
            "timestamp": 1326409013776,
            "node": "10:9a:dd:5e:0e:8f",
            "sequence": 5,
            "tick": 5,
            "node_is": "a network address",
            "full_on": "+584556019-04-03",
        },
    ),
]
"""Published ids, with their kinds and all their fields."""


@pytest.mark.parametrize(("text", "kind", "fields"), FIELDS)
def test_an_id_has_the_fields_of_its_kind(text: str, kind: str, fields: dict[str, Any]) -> None:
    """In the order in which they are shown, and with the text as its kind writes it."""
    found = only(text)
    assert (found.kind, found.text) == (kind, text)
    assert list(found.fields.items()) == list(fields.items())


@pytest.mark.parametrize(
    "text",
    [V1.upper(), f"{{{V1}}}", f"urn:uuid:{V1}", f" {V1}\n", V1.replace("-", ""), f"URN:UUID:{V1}"],
)
def test_a_uuid_is_read_in_any_form(text: str) -> None:
    """Its text is the plain one."""
    assert (only(text).kind, only(text).text) == ("v1", V1)


@pytest.mark.parametrize(
    ("text", "kind", "epoch", "fields"),
    [
        (
            "1169786042799259000",
            "snowflake",
            None,
            {
                "time": "2019-09-06T01:35:00.834Z",
                "timestamp": 1567733700834 - 1288834974657,
                "worker": 39,
                "sequence": 3448,
                "full_on": "2080-07-10",
            },
        ),
        ("4194304", "snowflake", 1_700_000_000_000, {"time": "2023-11-14T22:13:20.001Z"}),
    ],
)
def test_a_kind_with_an_epoch_is_read_by_it(
    text: str, kind: str, epoch: int | None, fields: dict[str, Any]
) -> None:
    """By the one that is passed, or else by Twitter's."""
    found = only(text, kind, epoch)
    assert found.fields.items() >= fields.items()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1ec9414c-232a-6b00-b3c8-9f6bdeced846", "v6"),
        (V7, "v7"),
        ("ffffffff-ffff-ffff-ffff-ffffffffffff", "max"),
        ("00000000-0000-1000-8000-000000000000", "v1"),
        ("00000000-0000-1000-0000-000000000000", "unknown"),
        ("ffffffff-ffff-8fff-bfff-ffffffffffff", "v8"),
        (ULID, "ulid"),
        (ULID.lower(), "ulid"),
        ("7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "ulid"),
        ("aWgEPTl1tmebfsQzFP4bxwgy80V", "ksuid"),
        (PUSH_ID, "push_id"),
        ("zzzzzzzzzzzzzzzzzzzz", "push_id"),
        ("24467927614188555520896788267013", "flake"),
        ("0669F7EFB5A1CD34B5F99D1154FB6853345C9735", "ksuid"),
        ("0x0669F7EFB5A1CD34B5F99D1154FB6853345C9735", "ksuid"),
        ("b8wjm1zroyyyy", "snowflake"),
    ],
)
def test_a_text_with_a_shape_has_one_reading(text: str, kind: str) -> None:
    """Published ids of all kinds, also those at the end of their time."""
    assert kinds(text) == [kind]


def test_the_source_of_a_node_is_shown() -> None:
    """A node without the multicast bit is a network address."""
    value = versions.v6(138648505420000000, 1, 0x448899365732)
    fields = only(uuids.to_text(value)).fields
    assert fields["node"] == "44:88:99:36:57:32"
    assert fields["node_is"] == "a network address"


def test_a_v7_of_ours_shows_its_tick_and_lane() -> None:
    """Another generator's shows none."""
    value = made("v7", versions.V7_TIME.tick(1645557742000) + 1234, Origin(0, lane=0xA5), 5)
    fields = only(uuids.to_text(value)).fields
    assert fields["time"] == "2022-02-22T19:22:22.000Z"
    assert fields["timestamp"] == 1645557742000
    assert (fields["tick"], fields["lane"]) == (1234, 0xA5)
    assert not {"tick", "lane"} & only(V7).fields.keys()


def test_the_last_tick_of_a_millisecond_is_a_tick_and_the_next_number_is_not() -> None:
    """9999 is shown, 10000 can only be another generator's random bits."""
    assert only(written("ulid", 9999 << 66)).fields["tick"] == 9999
    assert "tick" not in only(written("ulid", 10000 << 66)).fields


def test_bytes_in_microsofts_order_are_a_guid() -> None:
    """If only the swapped bytes are a UUID of a version; the text is that UUID's."""
    found = only("00ab32c21494ec11b3c89f6bdeced846")
    assert (found.kind, found.text) == ("guid", V1)
    assert found.fields == only(V1).fields


def test_bytes_of_a_uuid_are_a_guid_only_by_request() -> None:
    """Here both orders are of version 4, and the plain one is more likely."""
    value = 0x919108F752D14342_9BACF847DB4148A8
    text = f"{value:032x}"
    assert "guid" not in kinds(text)
    assert only(text, "guid").text == uuids.to_text(uuids.guid_swapped(value))


def test_a_ulid_stored_as_a_uuid_is_found() -> None:
    """The text is that of a UUID, of a variant that fits by chance; its time is plausible."""
    spelled, found = readings("01563df3-6481-d676-4c61-efb99302bd5b")
    assert (spelled.kind, found.kind, found.text) == ("unknown", "ulid", ULID)
    assert kinds("01563df36481d6764c61efb99302bd5b") == ["ulid"]


def test_a_v7_may_be_a_ulid_as_bytes_only() -> None:
    """Hyphens are a UUID's; bytes say nothing of their kind."""
    assert kinds(V7) == ["v7"]
    assert kinds(V7.replace("-", "")) == ["v7", "ulid"]
    assert kinds(str(int(V7.replace("-", ""), 16))) == ["v7", "ulid"]


def test_a_flake_with_the_mark_of_a_uuid_is_more_likely_a_flake() -> None:
    """Its 64 bits of time are rarely plausible by chance, the six bits of a mark often are."""
    value = (1326409007104 & ~0xF000 | 0x4000) << 64 | 0x810000000001 << 16 | 5
    assert kinds(f"{value:032x}") == ["flake", "v4"]


def test_a_whole_number_of_more_than_128_bits_may_be_a_ksuid() -> None:
    """If its time is one at which KSUIDs are made."""
    value = 0x0669F7EFB5A1CD34B5F99D1154FB6853345C9735
    assert [reading.kind for reading in readings(str(value))] == ["ksuid"]


def test_a_whole_number_of_63_bits_may_be_a_snowflake() -> None:
    """Its fields are those of a published id."""
    found = readings(str(SNOWFLAKE))
    assert [reading.kind for reading in found] == ["snowflake"]
    assert {reading.text for reading in found} == {str(SNOWFLAKE)}
    assert found[0].fields == {
        "time": "2017-04-23T15:20:51.339Z",
        "timestamp": 204125876682,
        "worker": 363,
        "datacenter_id": 11,
        "worker_id": 11,
        "sequence": 15,
        "full_on": "2080-07-10",
    }
    assert kinds(hex(SNOWFLAKE)) == kinds(str(SNOWFLAKE))


def test_a_number_with_the_mark_of_a_uuid_by_chance_is_refused() -> None:
    """Its first 32 bits are zero, which a UUID's hardly ever are."""
    with pytest.raises(ValueError, match="is not an id"):
        readings(str(0x94141_1EC_B3C8_9F6BDECED846))


def test_a_snowflake_is_read_by_the_epoch_that_is_passed() -> None:
    """Discord's example, whose worker is our datacenter_id."""
    found = readings("175928847299117063", epoch=1420070400000)
    assert found[0].fields["time"] == "2016-04-30T11:18:25.796Z"
    assert (found[0].fields["datacenter_id"], found[0].fields["sequence"]) == (1, 7)


def test_a_snowflake_in_letters_has_a_reading_for_each_base() -> None:
    """The published text in base 58 can be read in base 62 too."""
    first, second = readings("4jgmnx8Js8A")
    assert (first.text, first.fields["base"]) == ("1428076403798048768", "base58")
    assert second.fields["base"] == "base62"
    assert only("b8wjm1zroyyyy").text == "1427970479175499776"


def test_a_snowflake_in_letters_has_these_readings_too_if_its_kind_is_named() -> None:
    """Where several bases are possible, the kind does not say which it is."""
    assert readings("4jgmnx8Js8A", kind="snowflake") == readings("4jgmnx8Js8A")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "xyz",
        "-1",
        "1.5",
        "deadbeef",
        "hello world",
        "\u0663" * 32,
        "0\u017fARYZ6S41TSV4RRFFQ69G5FAV",
        "1112316766490855473152",
        "80000000000000000000000000",
        "ZZZZZZZZZZZZZZZZZZZZZZZZZZ",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "aWgEPTl1tmebfsQzFP4bxwgy80!",
        "c232ab00-9414-11ec-b3c8-9f6bdeced84",
        "{f47ac10b-58cc-0372-8567-0e02b2c3d479",
        "f47ac10b58cc037285670e02b2c3d4790",
        "333a2276d000.0d.00.00.80.9c.00.00",
        "333a2276.d0000d0",
        "0x",
        "0xg",
        "9" * 60,
        "8.56166e+17",
        "z" * 22,
        str(1 << 160),
        "a\nb",
    ],
)
def test_any_other_text_is_refused(text: str) -> None:
    """Too high, too short, or in no kind's form; the error is one line that repeats it."""
    with pytest.raises(ValueError, match="is not ") as refused:
        readings(text)
    message = str(refused.value)
    assert repr(text.strip()) in message
    assert "\n" not in message


def test_a_time_out_of_this_century_is_not_plausible() -> None:
    """1999 and 2100 are out, the first and last milliseconds between are in."""
    first, last = ((tick - versions.V7_TIME.epoch) // 10_000 for tick in (FROM, UNTIL))
    assert times.day(FROM) == "2000-01-01"
    assert times.day(UNTIL) == "2100-01-01"
    inside = [f"{ms << 80 | 0xC << 60:032x}" for ms in (first, last - 1)]
    outside = [f"{ms << 80 | 0xC << 60:032x}" for ms in (first - 1, last)]
    assert [kinds(text) for text in inside] == [["ulid"], ["ulid"]]
    assert all("ulid" not in kinds(text) for text in outside)


def test_an_overlong_text_shows_only_its_beginning() -> None:
    """A hundred characters are read, more are not."""
    with pytest.raises(ValueError, match="more than 100 characters") as refused:
        readings("a" * (LONGEST + 1))
    assert len(str(refused.value)) < 120
    with pytest.raises(ValueError, match="is not an id: it must be"):
        readings("a" * LONGEST)


@pytest.mark.parametrize(
    ("text", "kind", "why"),
    [
        (V1, "v4", "is not of kind v4: it is of kind v1"),
        (V1, "nil", "is not of kind nil: it is of kind v1"),
        ("00000000-0000-9000-8000-000000000000", "v1", "is not of kind v1: it is version 9"),
        (V1, "ksuid", "is not a KSUID"),
        (V1, "push_id", "is not a Push ID"),
        (V1, "snowflake", "is not of kind snowflake: it is not an integer"),
        (str(1 << 63), "snowflake", "is not of kind snowflake: it has more than 63 bits"),
        ("zzzzzzzzzzzzzzzzz", "snowflake", "is not of kind snowflake: in no base"),
        (str(1 << 128), "ulid", "is not of kind ulid: it has more than 128 bits"),
        ("f" * 40, "v4", "is not of kind v4: it has more than 128 bits"),
        (V1, "v9", "kind is 'v9'; it must be one of v1, "),
    ],
)
def test_a_text_that_cannot_be_of_its_kind_is_refused(text: str, kind: str, why: str) -> None:
    """The error says what it is instead, or what is missing."""
    with pytest.raises(ValueError, match=why):
        readings(text, kind=kind, raw=True)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("123", "ksuid"),
        ("0", "ulid"),
        ("f" * 40, "ksuid"),
        (V1, "ulid"),
        (V1, "flake"),
        (str(int(V7.replace("-", ""), 16)), "v7"),
        ("7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "max"),
        ("0x7fffffffffffffff", "snowflake"),
    ],
)
def test_a_kind_is_read_as_its_own_tools_read_it(text: str, kind: str) -> None:
    """What they refuse is refused, unless the caller allows raw bits in any form."""
    with pytest.raises(ValueError, match=f"is not written as a {kind} is; raw=True"):
        readings(text, kind=kind)
    assert only(text, kind, raw=True).kind == kind


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        (V1, "cassandra", "v1"),
        ("z", "flake", "flake"),
        ("24467927614188555520896788267013", "flake", "flake"),
        ("1", "ksuid", "ksuid"),
        (PUSH_ID, "push_id", "push_id"),
    ],
)
def test_a_kind_that_the_caller_names_is_the_only_reading(text: str, kind: str, found: str) -> None:
    """Whether its time is plausible or not."""
    assert next(iter({reading.kind for reading in readings(text, kind=kind, raw=True)})) == found


def test_an_epoch_for_a_kind_without_one_is_refused() -> None:
    """So is one that is out of range."""
    with pytest.raises(ValueError, match="epoch is 5; the epoch of a v1 is fixed"):
        readings(V1, kind="v1", epoch=5)
    with pytest.raises(ValueError, match="epoch is -1; it must be 0 to 281474976710655"):
        readings("1", epoch=-1)


def test_a_text_is_a_str() -> None:
    """An int is refused."""
    with pytest.raises(TypeError, match="text is 5; it must be a str"):
        readings(5)  # type: ignore[arg-type]  # what a caller without types does


TICKS = st.integers(FROM, UNTIL - 1)


@pytest.mark.parametrize("kind", [*GREGORIAN, *STEADY])
@given(tick=TICKS, node=st.integers(0, (1 << 48) - 1), random=st.integers(0, (1 << 104) - 1))
def test_each_kind_of_ours_is_read_as_what_it_is(
    kind: str, tick: int, node: int, random: int
) -> None:
    """Its own text is first read as its kind, with the time that it was made of."""
    tick = max(tick, places(kind)[0])
    id = made(kind, tick, Origin(node, 5, lane=None), random)
    found = readings(written(kind, id))[0]
    assert (found.kind, found.text) == (kind, written(kind, id))
    assert found.fields["time"] == times.text(tick, KINDS[kind].unit)
    told = fields(kind, id)
    if KINDS[kind].unit == MS:
        assert found.fields["tick"] == told["rest"]
        assert found.fields.get("lane") == told.get("lane")


@given(st.text(max_size=48) | st.from_regex(r"[0-9a-fxA-Z.{}:-]{1,45}", fullmatch=True))
def test_any_text_has_readings_or_is_refused(text: str) -> None:
    """There is no third outcome, with any kind; fields come in one order."""
    for kind, raw in itertools.product((None, *INSPECTED_KINDS), (False, True)):
        try:
            found = readings(text, kind=kind, raw=raw)
        except ValueError:
            continue
        assert found
        for reading in found:
            names = list(reading.fields)
            assert names == [name for name in ORDER if name in names]
            assert reading.text


@given(st.integers(0, (1 << 160) - 1))
def test_any_number_is_read_without_harm(value: int) -> None:
    """As an integer and as bytes; the text of each reading is read as that kind again."""
    for text in (str(value), hex(value), f"{value >> 32:032x}", f"{value:040x}"):
        try:
            found = readings(text)
        except ValueError:
            continue
        for reading in found:
            names = list(reading.fields)
            assert names == [name for name in ORDER if name in names]
            kind = None if reading.kind == "unknown" else reading.kind
            again = "v" + str(reading.fields["version"]) if kind == "guid" else kind
            assert again in {one.kind for one in readings(reading.text, kind=again)} | {None}

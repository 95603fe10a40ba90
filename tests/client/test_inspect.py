"""What ids of any origin are made of: for a program, and as ``uuidctl inspect`` shows it."""

from __future__ import annotations

import itertools
import json
import os
import select
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.client.conftest import Uuidctl
from tests.client.fakes import UUIDCTL
from tests.kinds import GREGORIAN, KINDS, MS, STEADY, fields, made, places
from tests.kinds import text as written
from tests.rig import PATIENCE
from uuidd.core.ids import times, uuids
from uuidd.core.ids.kinds import TIMES
from uuidd.core.ids.places import Origin
from uuidd_client.readings import FROM, INSPECTED_KINDS, LONGEST, UNTIL, Reading, inspect

V1 = "c232ab00-9414-11ec-b3c8-9f6bdeced846"
V7 = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
ULID = "01ARYZ6S41TSV4RRFFQ69G5FAV"
KSUID = "0uk1HcdvF0p8C20KtTfdRSB9XIm"
PUSH_ID = "-JhLeOlGIEjaIOFHR0xd"
SNOWFLAKE = 856165981072306191
BOTH_V4 = 0x919108F752D14342_9BACF847DB4148A8


def kinds(text: str) -> list[str]:
    return [reading.kind for reading in inspect(text)]


def only(
    text: str, kind: str | None = None, epoch: int | None = None, *, raw: bool = False
) -> Reading:
    """Return the one reading of a text."""
    (found,) = inspect(text, kind=kind, epoch=epoch, raw=raw)
    return found


SCREENS = """\
> C232AB00-9414-11EC-B3C8-9F6BDECED846
c232ab00-9414-11ec-b3c8-9f6bdeced846
  kind       v1
  variant    RFC 9562
  time       2022-02-22T19:22:22.0000000Z
  timestamp  138648505420000000
  clock_seq  13256
  node       9f:6b:de:ce:d8:46 (random)
  full_on    5236-03-31
> 000003e8-9414-21ec-b300-9f6bdeced846
000003e8-9414-21ec-b300-9f6bdeced846
  kind       v2
  variant    RFC 9562
  time       2022-02-22T19:16:56.1899520Z
  timestamp  32281620
  local_id   1000
  clock_seq  51
  domain     person
  node       9f:6b:de:ce:d8:46 (random)
  full_on    5236-03-31
> 5df41881-3aed-3515-88a7-2f4a814cf09e
5df41881-3aed-3515-88a7-2f4a814cf09e
  kind     v3
  variant  RFC 9562
> 919108f7-52d1-4320-9bac-f847db4148a8
919108f7-52d1-4320-9bac-f847db4148a8
  kind     v4
  variant  RFC 9562
  random   0x2464423dd4b44c81bacf847db4148a8
> 2ed6657d-e927-568b-95e1-2665a8aea6a2
2ed6657d-e927-568b-95e1-2665a8aea6a2
  kind     v5
  variant  RFC 9562
> 1ec9414c-232a-6b00-8001-448899365732
1ec9414c-232a-6b00-8001-448899365732
  kind       v6
  variant    RFC 9562
  time       2022-02-22T19:22:22.0000000Z
  timestamp  138648505420000000
  clock_seq  1
  node       44:88:99:36:57:32 (a network address)
  full_on    5236-03-31
> 017f22e279b07cc398c4dc0c0c07398f
017f22e2-79b0-7cc3-98c4-dc0c0c07398f
  kind       v7
  variant    RFC 9562
  time       2022-02-22T19:22:22.000Z
  timestamp  1645557742000
  random     0x330d8c4dc0c0c07398f
  full_on    +10889-08-02
or, as a ulid: 01FWHE4YDGFK1SHH6W1G60EECF
  time       2022-02-22T19:22:22.000Z
  timestamp  1645557742000
  random     0x7cc398c4dc0c0c07398f
  tick       7984
  lane       230
  uuid       017f22e2-79b0-7cc3-98c4-dc0c0c07398f
  full_on    +10889-08-02
> 017f22e2-79b0-7134-a970-000000000005
017f22e2-79b0-7134-a970-000000000005
  kind       v7
  variant    RFC 9562
  time       2022-02-22T19:22:22.000Z
  timestamp  1645557742000
  random     0x04d2970000000000005
  tick       1234
  lane       151
  full_on    +10889-08-02
> 2489e9ad-2ee2-8e00-8ec9-32d5f69181c0
2489e9ad-2ee2-8e00-8ec9-32d5f69181c0
  kind      v8
  variant   RFC 9562
  custom_a  0x2489e9ad2ee2
  custom_b  0xe00
  custom_c  0x0ec932d5f69181c0
> 00000000-0000-0000-0000-000000000000
00000000-0000-0000-0000-000000000000
  kind  nil
> 00000000-0000-9000-8000-000000000000
00000000-0000-9000-8000-000000000000
  kind     unknown
  version  9
  variant  RFC 9562
> 00ab32c21494ec11b3c89f6bdeced846
c232ab00-9414-11ec-b3c8-9f6bdeced846
  kind       guid
  version    1
  variant    RFC 9562
  time       2022-02-22T19:22:22.0000000Z
  timestamp  138648505420000000
  clock_seq  13256
  node       9f:6b:de:ce:d8:46 (random)
  full_on    5236-03-31
> 01563df3-6481-d676-4c61-efb99302bd5b
01563df3-6481-d676-4c61-efb99302bd5b
  kind     unknown
  variant  NCS
or, as a ulid: 01ARYZ6S41TSV4RRFFQ69G5FAV
  time       2016-07-30T22:36:16.385Z
  timestamp  1469918176385
  random     0xd6764c61efb99302bd5b
  uuid       01563df3-6481-d676-4c61-efb99302bd5b
  full_on    +10889-08-02
> 0uk1HcdvF0p8C20KtTfdRSB9XIm
0uk1HcdvF0p8C20KtTfdRSB9XIm
  kind       ksuid
  time       2017-10-10T05:01:40Z
  timestamp  107611700
  payload    BA1C205D6177F0992D15EE606AE32238
  full_on    2150-06-19
> 8HFaR8qWtRlGDHnO57
8HFaR8qWtRlGDHnO57
  kind       flake
  time       2012-01-12T22:56:53.776Z
  timestamp  1326409013776
  node       10:9a:dd:5e:0e:8f (a network address)
  sequence   5
  tick       5
  full_on    +584556019-04-03
> -JhLeOlGIEjaIOFHR0xd
-JhLeOlGIEjaIOFHR0xd
  kind       push_id
  time       2015-02-04T22:15:31.153Z
  timestamp  1423088131153
  random     0x4cfbe64d9412701f69
  tick       4926
  lane       249
  full_on    +10889-08-02
> 856165981072306191
856165981072306191
  kind           snowflake
  time           2017-04-23T15:20:51.339Z
  timestamp      204125876682
  worker         363
  datacenter_id  11
  worker_id      11
  sequence       15
  full_on        2080-07-10
"""
"""Published ids and some of ours: after "> " the id as it is given, then all that is shown."""

SHOWN: dict[str, str] = dict(each.split("\n", 1) for each in SCREENS.split("> ")[1:])

TWO = f"{SHOWN[KSUID]}\n{SHOWN[V1.upper()]}"


@pytest.mark.parametrize("given", SHOWN)
def test_an_id_is_shown_with_all_its_fields_aligned(uuidctl: Uuidctl, given: str) -> None:
    assert uuidctl("inspect", given) == (0, SHOWN[given], "")


@pytest.mark.parametrize(
    "text",
    [V1.upper(), f"{{{V1}}}", f"urn:uuid:{V1}", f" {V1}\n", V1.replace("-", ""), f"URN:UUID:{V1}"],
)
def test_a_uuid_is_read_in_any_form(text: str) -> None:
    assert (only(text).kind, only(text).text) == ("v1", V1)


@pytest.mark.parametrize(
    ("text", "epoch", "time"),
    [
        # Discord's example.
        ("175928847299117063", 1420070400000, "2016-04-30T11:18:25.796Z"),
        ("1169786042799259000", None, "2019-09-06T01:35:00.834Z"),
    ],
)
@pytest.mark.parametrize("kind", [None, "snowflake"])
def test_a_snowflake_is_read_by_the_epoch_that_is_passed_or_twitters(
    text: str, epoch: int | None, time: str, kind: str | None
) -> None:
    assert inspect(text, kind=kind, epoch=epoch)[0].fields["time"] == time


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1ec9414c-232a-6b00-b3c8-9f6bdeced846", "v6"),
        ("ffffffff-ffff-ffff-ffff-ffffffffffff", "max"),
        ("00000000-0000-1000-8000-000000000000", "v1"),
        ("00000000-0000-1000-0000-000000000000", "unknown"),
        ("ffffffff-ffff-8fff-bfff-ffffffffffff", "v8"),
        (ULID.lower(), "ulid"),
        ("7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "ulid"),
        ("aWgEPTl1tmebfsQzFP4bxwgy80V", "ksuid"),
        ("zzzzzzzzzzzzzzzzzzzz", "push_id"),
        ("24467927614188555520896788267013", "flake"),
        ("0669F7EFB5A1CD34B5F99D1154FB6853345C9735", "ksuid"),
        ("0x0669F7EFB5A1CD34B5F99D1154FB6853345C9735", "ksuid"),
        (str(0x0669F7EFB5A1CD34B5F99D1154FB6853345C9735), "ksuid"),
        (str(SNOWFLAKE), "snowflake"),
        (hex(SNOWFLAKE), "snowflake"),
        # Hyphens are a UUID's; bytes say nothing of their kind.
        (V7, "v7"),
        (V7.replace("-", ""), "v7 ulid"),
        (str(int(V7.replace("-", ""), 16)), "v7 ulid"),
        # 64 bits of time are rarely plausible by chance, the six bits of a mark often are.
        ("00000134d42340008100000000010005", "flake v4"),
        # As a GUID these bytes would be a v4 too, and the plain order is more likely.
        (f"{BOTH_V4:032x}", "v4"),
        # Digits may be a text of a kind, and an integer.
        (f"00{SNOWFLAKE}", "push_id snowflake"),
        (f"00000000{SNOWFLAKE}", "ulid snowflake"),
        # 32 digits are bytes; those of an integer, which is a v6 here, begin with no zero.
        ("03122421327502327987514916129819", "ulid"),
    ],
)
def test_a_text_is_read_as_its_likely_kinds(text: str, found: str) -> None:
    assert " ".join(kinds(text)) == found


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("00000000-0000-0000-8000-000000000000", {"version": 0, "variant": "RFC 9562"}),
        ("ffffffff-ffff-ffff-8000-000000000000", {"version": 15, "variant": "RFC 9562"}),
        ("333a2276-d000-0000-0d00-00809c000000", {"variant": "NCS"}),
        ("00000000-0000-0900-c000-000000000046", {"variant": "Microsoft"}),
        ("00000000-0000-0900-e000-000000000046", {"variant": "future"}),
    ],
)
def test_a_uuid_that_is_not_in_use_shows_its_mark(text: str, fields: dict[str, Any]) -> None:
    assert (only(text).kind, only(text).fields) == ("unknown", fields)


def test_the_last_tick_of_a_millisecond_is_a_tick_and_the_next_number_is_not() -> None:
    assert only(written("ulid", 9999 << 66)).fields["tick"] == 9999
    assert "tick" not in only(written("ulid", 10000 << 66)).fields


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("ulid", "00000000000000000000000005"),
        ("flake", "5"),
        ("ksuid", "000000000000000000000000005"),
        ("snowflake", "5"),
        ("push_id", "-------------------4"),
    ],
)
def test_an_int_is_the_bits_of_the_kind_that_is_named(kind: str, text: str) -> None:
    assert [(each.value, each.text) for each in inspect(5, kind=kind)] == [(5, text)]


@pytest.mark.parametrize(
    ("number", "kind", "why"),
    [
        (5, "v1", "is not of kind v1: it is variant NCS"),
        (1 << 120, "push_id", "is not of kind push_id: it has more than 120 bits"),
        (1 << 97, None, "is not an id: it must be a UUID"),
    ],
)
def test_an_int_that_is_refused_is_named_as_it_was_given(
    number: int, kind: str | None, why: str
) -> None:
    with pytest.raises(ValueError, match=f"^{number} {why}"):
        inspect(number, kind=kind)


def test_the_digits_of_a_flake_are_an_integer_and_no_bytes_in_hex() -> None:
    digits = "24467927614188555520896788267013"
    assert only(digits, "flake", raw=True).value == int(digits)
    assert only(digits, "ulid", raw=True).value == int(digits, 16)


def test_a_text_that_is_longer_than_a_flake_is_its_bits() -> None:
    """Though it may be a Flake with zeros before it."""
    text = f"{'0' * 20}{5:012x}"
    assert only(text, "flake", raw=True).value == 5
    with pytest.raises(ValueError, match="is not written as a flake is"):
        inspect(text, kind="flake")


def test_bytes_of_a_uuid_are_a_guid_by_request() -> None:
    assert only(f"{BOTH_V4:032x}", "guid").text == uuids.to_text(uuids.guid_swapped(BOTH_V4))


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "a\nb", "hello world", "\u0663" * 32, "9" * 60, "z" * 22, str(1 << 160)),
        *(
            "xyz",
            "4jgmnx8Js8A",
            "-1",
            "1.5",
            "deadbeef",
            "0x",
            "0xg",
            "8.56166e+17",
            "1112316766490855473152",
        ),
        *("80000000000000000000000000", "ZZZZZZZZZZZZZZZZZZZZZZZZZZ", f"0\u017f{ULID[2:]}"),
        *("aaaaaaaaaaaaaaaaaaaaaaaaaaa", "aWgEPTl1tmebfsQzFP4bxwgy80!", V1[:-1], f"{{{V1}"),
        *("f47ac10b58cc037285670e02b2c3d4790", "333a2276d000.0d.00.00.80.9c.00.00"),
        "333a2276.d0000d0",
        # The mark of a UUID by chance: the first 32 bits are zero, which a UUID's hardly ever are.
        str(0x94141_1EC_B3C8_9F6BDECED846),
    ],
)
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not ") as refused:
        inspect(text)
    message = str(refused.value)
    assert repr(text.strip()) in message
    assert "\n" not in message


def test_a_time_out_of_this_century_is_not_plausible() -> None:
    first, last = ((tick - TIMES["v7"].epoch) // 10_000 for tick in (FROM, UNTIL))
    assert times.day(FROM) == "2000-01-01"
    assert times.day(UNTIL) == "2100-01-01"
    inside = [f"{ms << 80 | 0xC << 60:032x}" for ms in (first, last - 1)]
    outside = [f"{ms << 80 | 0xC << 60:032x}" for ms in (first - 1, last)]
    assert [kinds(text) for text in inside] == [["ulid"], ["ulid"]]
    assert all("ulid" not in kinds(text) for text in outside)


def test_an_overlong_text_shows_only_its_beginning() -> None:
    with pytest.raises(ValueError, match="more than 100 characters") as refused:
        inspect("a" * (LONGEST + 1))
    assert len(str(refused.value)) < 120
    with pytest.raises(ValueError, match="is not an id: it must be"):
        inspect("a" * LONGEST)


@pytest.mark.parametrize(
    ("text", "kind", "why"),
    [
        (V1, "v4", "is not of kind v4: it is of kind v1"),
        (V1, "nil", "is not of kind nil: it is of kind v1"),
        ("00000000-0000-9000-8000-000000000000", "v1", "is not of kind v1: it is version 9"),
        (V1, "ksuid", "is not a KSUID"),
        (V1, "push_id", "is not a Push ID"),
        ("0x", "push_id", "is not a Push ID: it has 2 characters, not 20"),
        ("1" * 40, "push_id", "is not of kind push_id: it has more than 120 bits"),
        (V1, "snowflake", "is not a Snowflake: 'c' at 0 is not in 0123456789"),
        (str(1 << 63), "snowflake", "is not of kind snowflake: it has more than 63 bits"),
        (str(1 << 128), "ulid", "is not of kind ulid: it has more than 128 bits"),
        ("f" * 40, "v4", "is not of kind v4: it has more than 128 bits"),
        (V1, "v9", "kind is 'v9'; it must be one of v1, "),
    ],
)
def test_a_text_that_cannot_be_of_its_kind_is_refused(text: str, kind: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        inspect(text, kind=kind, raw=True)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("123", "ksuid"),
        ("123", "push_id"),
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
        inspect(text, kind=kind)
    assert only(text, kind, raw=True).kind == kind


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        (V1, "cassandra", "v1"),
        ("4194304", "snowflake", "snowflake"),
        ("z", "flake", "flake"),
        ("24467927614188555520896788267013", "flake", "flake"),
        ("1", "ksuid", "ksuid"),
        (PUSH_ID, "push_id", "push_id"),
    ],
)
def test_a_kind_that_the_caller_names_is_the_only_reading(text: str, kind: str, found: str) -> None:
    assert {reading.kind for reading in inspect(text, kind=kind, raw=True)} == {found}


def test_an_epoch_for_a_kind_without_one_is_refused() -> None:
    with pytest.raises(ValueError, match="epoch is 5; the epoch of a v1 is fixed"):
        inspect(V1, kind="v1", epoch=5)
    with pytest.raises(ValueError, match="epoch is -1; it must be 0 to 281474976710655"):
        inspect("1", epoch=-1)


TICKS = st.integers(FROM, UNTIL - 1)


@pytest.mark.parametrize("kind", [*GREGORIAN, *STEADY])
@given(tick=TICKS, node=st.integers(0, (1 << 48) - 1), random=st.integers(0, (1 << 104) - 1))
def test_each_kind_of_ours_is_read_as_what_it_is(
    kind: str, tick: int, node: int, random: int
) -> None:
    tick = max(tick, places(kind)[0])
    id = made(kind, tick, Origin(node, 5, lane=None), random)
    found = inspect(written(kind, id))[0]
    assert (found.kind, found.text) == (kind, written(kind, id))
    assert found.fields["time"] == times.text(tick, KINDS[kind].unit)
    told = fields(kind, id)
    if KINDS[kind].unit == MS:
        assert found.fields["tick"] == told["rest"]
        assert found.fields.get("lane") == told.get("lane")


@given(st.text(max_size=48) | st.from_regex(r"[0-9a-fxA-Z.{}:-]{1,45}", fullmatch=True))
def test_any_text_has_readings_or_is_refused(text: str) -> None:
    for kind, raw in itertools.product((None, *INSPECTED_KINDS), (False, True)):
        try:
            found = inspect(text, kind=kind, raw=raw)
        except ValueError:
            continue
        assert found
        for reading in found:
            assert reading.text


@given(st.integers(0, (1 << 160) - 1))
def test_any_number_is_read_without_harm(value: int) -> None:
    for text in (str(value), hex(value), f"{value >> 32:032x}", f"{value:040x}"):
        try:
            found = inspect(text)
        except ValueError:
            continue
        for reading in found:
            kind = None if reading.kind == "unknown" else reading.kind
            again = "v" + str(reading.fields["version"]) if kind == "guid" else kind
            assert again in {one.kind for one in inspect(reading.text, kind=again)} | {None}


def test_several_ids_have_an_empty_line_between_them(uuidctl: Uuidctl) -> None:
    assert uuidctl("inspect", KSUID, V1.upper()) == (0, TWO, "")


PUSH_IDS = ["-JhLeOlGIEjaIOFHR0xd", "-kind-is-no-option--", "--json-is-no-option-"]


@pytest.mark.parametrize("given", PUSH_IDS)
def test_a_push_id_is_an_id_although_it_begins_with_a_hyphen(uuidctl: Uuidctl, given: str) -> None:
    """Its letters may begin as an option does; options before and after it are options."""
    status, out, err = uuidctl("inspect", given)
    assert (status, err) == (0, "")
    assert out.startswith(f"{given}\n  kind       push_id\n")
    assert uuidctl("inspect", "--", given)[1] == out
    assert uuidctl("inspect", "-k", "push_id", given, V1)[2].startswith(
        f"uuidctl: {V1!r} is not a Push ID"
    )
    _, both, _ = uuidctl("inspect", V1, given, "--json")
    assert [one["id"] for one in json.loads(both)] == [V1, given]


def test_a_kind_is_read_as_bits_when_asked_to(uuidctl: Uuidctl) -> None:
    status, out, err = uuidctl("inspect", "--kind", "ksuid", "123")
    assert (status, out) == (1, "")
    assert err == (
        "uuidctl: '123' is not written as a ksuid is; raw=True (--raw) also accepts an"
        " integer, or bytes in hex\n"
    )
    status, out, err = uuidctl("inspect", "--kind", "ksuid", "--raw", "123")
    assert (status, err) == (0, "")
    assert out.startswith("00000000000000000000000001z\n")


@pytest.mark.parametrize(
    "wrong",
    ["xyz", "", "c232ab00-9414-11ec-b3c8-9f6bdeced84", "a\nb", "\udcff", "\u0663" * 32, "a" * 9999],
)
def test_one_that_is_no_id_refuses_all(uuidctl: Uuidctl, wrong: str) -> None:
    status, out, err = uuidctl("inspect", V1, wrong)
    assert (status, out) == (1, "")
    (line,) = err.splitlines()
    assert line.startswith("uuidctl: ")
    assert "is not a" in line
    assert len(line) < 250


def test_json_is_one_array(uuidctl: Uuidctl) -> None:
    _, out, _ = uuidctl("inspect", "--json", V1.upper(), KSUID)
    first, second = json.loads(out)
    assert first["id"] == V1.upper()
    assert first["readings"] == [
        {
            "kind": "v1",
            "version": 1,
            "variant": "RFC 9562",
            "time": "2022-02-22T19:22:22.0000000Z",
            "timestamp": "138648505420000000",
            "clock_seq": 13256,
            "node": "9f:6b:de:ce:d8:46",
            "node_is": "random",
            "full_on": "5236-03-31",
        }
    ]
    assert [reading["kind"] for reading in second["readings"]] == ["ksuid"]


@pytest.mark.parametrize(
    ("options", "given", "shown"),
    [
        # One a line, with any end of line or none; blank lines are nothing.
        ([], f"{KSUID}\r\n\n   \n {V1.upper()} ".encode(), TWO),
        ([], b"", ""),
        (["--json"], b"\n\n", ""),
    ],
)
def test_ids_come_from_standard_input(
    uuidctl: Uuidctl, options: list[str], given: bytes, shown: str
) -> None:
    assert uuidctl("inspect", "-", *options, stdin=given) == (0, shown, "")


def test_standard_input_as_json_is_an_object_a_line(uuidctl: Uuidctl) -> None:
    status, out, _ = uuidctl("inspect", "--json", "-", stdin=f"{V1}\n{SNOWFLAKE}\n".encode())
    first, second = map(json.loads, out.splitlines())
    assert (status, first["id"], second["id"]) == (0, V1, str(SNOWFLAKE))
    assert first["readings"][0]["timestamp"] == "138648505420000000"
    assert second["readings"][0]["timestamp"] == 204125876682


def test_a_bad_line_of_standard_input_is_told_by_its_number(uuidctl: Uuidctl) -> None:
    lines = [b"xyz", b"", KSUID.encode(), b"\xff\xfe", b"a" * 10_000, V1.encode(), b"\x00"]
    status, out, err = uuidctl("inspect", "-", stdin=b"\n".join(lines))
    assert (status, out) == (1, TWO)
    told = err.splitlines()
    assert told[0].startswith("uuidctl: line 1: 'xyz' is not an id: ")
    assert told[1].startswith("uuidctl: line 4: '\\udcff\\udcfe' is not an id: ")
    assert told[2].startswith(f"uuidctl: line 5: '{'a' * 40}")
    assert told[3].startswith("uuidctl: line 7: '\\x00' is not an id: ")
    assert len(told) == 4


@pytest.mark.parametrize("length", [4094, 4095, 4096, 4097, 8191, 8192, 8193])
def test_a_huge_line_is_one_line(uuidctl: Uuidctl, length: int) -> None:
    given = b"a" * length + b"\n" + KSUID.encode() + b"\n"
    status, out, err = uuidctl("inspect", "-", stdin=given)
    assert (status, out) == (1, SHOWN[KSUID])
    (line,) = err.splitlines()
    assert line.startswith("uuidctl: line 1: ")
    assert len(line) < 130


def test_a_kind_is_asked_of_each_line(uuidctl: Uuidctl) -> None:
    status, out, err = uuidctl("inspect", "-k", "ulid", "-", stdin=f"{ULID}\n{KSUID}\n".encode())
    assert status == 1
    assert out.startswith(f"{ULID}\n  kind       ulid\n")
    assert err.startswith(f"uuidctl: line 2: {KSUID!r} is not a")


def failing(_: int) -> bytes:
    """Fail as a file on a broken disk does."""
    raise OSError(5, "Input/output error")


@pytest.mark.parametrize(
    ("stdin", "why"),
    [
        # Python has no file for it then.
        (None, "it is closed"),
        (SimpleNamespace(buffer=SimpleNamespace(readline=failing)), "Input/output error"),
    ],
)
def test_a_standard_input_that_cannot_be_read_is_told(
    uuidctl: Uuidctl, monkeypatch: pytest.MonkeyPatch, stdin: object, why: str
) -> None:
    monkeypatch.setattr("sys.stdin", stdin)
    refusal = f"uuidctl: standard input cannot be read: {why}\n"
    assert uuidctl("inspect", "-") == (1, "", refusal)


@pytest.mark.process
def test_an_id_is_shown_before_the_next_is_given() -> None:
    with subprocess.Popen(
        [*UUIDCTL, "inspect", "--json", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for text in (V1, ULID):
            process.stdin.write(f"{text}\n")
            process.stdin.flush()
            assert select.select([process.stdout], [], [], PATIENCE)[0]
            assert json.loads(process.stdout.readline())["id"] == text
        process.stdin.close()
        assert process.wait(PATIENCE) == 0

"""``uuidctl bounds``."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.client.conftest import Uuidctl
from uuidd.core.ids.bounds import BOUNDED_KINDS

Shown = Callable[..., str]


@pytest.fixture
def shown(uuidctl: Uuidctl) -> Shown:
    """Return what ``uuidctl bounds`` prints, which has to succeed."""

    def run(*arguments: str) -> str:
        status, out, err = uuidctl("bounds", *arguments)
        assert (status, err) == (0, "")
        return out

    return run


def test_it_prints_both_ids_and_the_time_that_they_hold(shown: Shown) -> None:
    """Aligned, with the digits of the unit, so that one sees that it is held whole."""
    assert shown("v7", "2022-02-22T19:22:22Z") == (
        "low   017f22e2-79b0-7000-8000-000000000000  from 2022-02-22T19:22:22.000Z\n"
        "high  017f22e2-79b0-7fff-bfff-ffffffffffff  to the end of 2022-02-22T19:22:22.000Z\n"
    )


def test_ids_of_unlike_length_are_aligned(shown: Shown) -> None:
    """A Snowflake's decimal digits are as many as it needs."""
    assert shown("snowflake", "2010-11-04T01:42:54.657Z", "--unit", "s") == (
        "low   0           from 2010-11-04T01:42:54Z\n"
        "high  1438646271  to the end of 2010-11-04T01:42:54Z\n"
    )


def test_two_times_are_held_from_the_first_to_the_end_of_the_last(shown: Shown) -> None:
    """Whatever the offsets they are written with."""
    assert shown(
        "v7", "2022-02-22T14:22:22-05:00", "2022-02-22t20:22:23.5+01:00", "--unit", "s"
    ) == (
        "low   017f22e2-79b0-7000-8000-000000000000  from 2022-02-22T19:22:22Z\n"
        "high  017f22e2-817f-7fff-bfff-ffffffffffff  to the end of 2022-02-22T19:22:23Z\n"
    )


@pytest.mark.parametrize(
    ("kind", "time", "low"),
    [
        ("v7", "1645557742000", "017f22e2-79b0-7000-8000-000000000000"),
        ("v6", "139953654001234560", "1f1371b5-7c2f-6280-8000-000000000000"),
        ("cassandra", "0", "00000000-0000-1000-8080-808080808080"),
        ("ulid", "281474976710655", "7ZZZZZZZZZ0000000000000000"),
        ("ksuid", "1400000000", "000000000000000000000000000"),
        ("push_id", "0", "--------------------"),
        ("flake", "0", "0"),
        ("snowflake", "1288834974658", "4194304"),
    ],
)
def test_an_integer_is_in_the_kinds_unit(shown: Shown, kind: str, time: str, low: str) -> None:
    """Ticks, seconds or milliseconds; and each kind is written in its own way."""
    assert shown(kind, time).split()[1] == low


def test_json_holds_the_same(shown: Shown) -> None:
    """Ids are texts there, Snowflakes too, because they pass 2**53."""
    assert json.loads(
        shown("snowflake", "1645557742000", "1645557743000", "--epoch", "1600000000000", "--json")
    ) == {
        "kind": "snowflake",
        "unit": "ms",
        "from": "2022-02-22T19:22:22.000Z",
        "to": "2022-02-22T19:22:23.000Z",
        "low": str(45_557_742_000 << 22),
        "high": str((45_557_743_001 << 22) - 1),
    }


def test_a_ulid_is_written_as_a_uuid_if_wanted(shown: Shown) -> None:
    """For a database that keeps ULIDs in its type for UUIDs."""
    low, high = (line.split()[1] for line in shown("ulid", "1645557742000", "--uuid").splitlines())
    assert low == "017f22e2-79b0-0000-0000-000000000000"
    assert high == "017f22e2-79b0-ffff-ffff-ffffffffffff"


@pytest.mark.parametrize(
    ("time", "tick"),
    [
        ("2022-02-22T19:22:22.1234567Z", "2022-02-22T19:22:22.1234567Z"),
        ("2022-02-22 19:22:22.12Z", "2022-02-22T19:22:22.1200000Z"),
        ("2022-02-22T19:22:22.123456700000Z", "2022-02-22T19:22:22.1234567Z"),
    ],
)
def test_each_tick_can_be_told(shown: Shown, time: str, tick: str) -> None:
    """The times that we print, with seven digits, are read back; none is cut."""
    assert json.loads(shown("v6", time, "--json"))["from"] == tick


def test_a_tick_lies_in_a_coarser_kinds_unit(shown: Shown) -> None:
    """The seventh digit says nothing there that the unit does not hold."""
    assert (
        json.loads(shown("v7", "2022-02-22T19:22:22.1239999Z", "--json"))["from"]
        == "2022-02-22T19:22:22.123Z"
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["v1", "0"], "no bounds: use cassandra"),
        (["v8", "0"], "kind is 'v8'; it must be one of v6"),
        (["v7", "-5"], "time is -5; the time of a v7 is from 1970"),
        (["v7", "2022-02-22"], "has no offset from UTC; add Z"),
        (["v7", "2022-02-22T19:22:22"], "has no offset from UTC; add Z"),
        (["v7", "now"], "'now' is not a time"),
        (["v7", "2022-02-22Z"], "; it must be like 2022-02-22T19:22:22Z, or an integer"),
        (["v7", "2022-02-29T19:22:22Z"], "'2022-02-29T19:22:22Z' is not a time (day is out"),
        (["v7", "2022-02-22T19:22:22+25:00"], "is not a time (offset"),
        (["v6", "2022-02-22T19:22:22.12345678Z"], "finer than a tick"),
        (["v6", "1582-10-14T00:00:00Z"], "the time of a v6 is from 1582-10-15"),
        (["v7", "1.5"], "'1.5' is not a time"),
        (["v7", "٣"], "'٣' is not a time"),
        (["v7", "9" * 5000], "is not a time"),
        (["ulid", "5", "4"], "until is 4, which is before time, 5"),
        (["ksuid", "1645557742", "--unit", "ms"], "finer than the time of a ksuid"),
        (["v7", "5", "--epoch", "3"], "epoch is 3; only a snowflake has one"),
        (["ksuid", "1645557742", "--uuid"], "a ksuid does not have 128 bits"),
    ],
)
def test_a_wrong_value_is_one_line(uuidctl: Uuidctl, arguments: list[str], reason: str) -> None:
    """It says which and why."""
    status, out, err = uuidctl("bounds", *arguments)
    assert (status, out) == (1, "")
    (line,) = err.splitlines()
    assert reason in line


def test_the_help_names_all_kinds(shown: Shown) -> None:
    """So that no one has to guess them."""
    out = shown("--help")
    assert all(kind in out for kind in BOUNDED_KINDS)

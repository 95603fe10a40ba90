"""``uuidctl bounds``, by itself."""

from __future__ import annotations

import argparse
import json

import pytest

from uuidd.core.ids.bounds import BOUNDED_KINDS
from uuidd_client.command import bounds
from uuidd_client.command.common import CommandError


def run(*arguments: str) -> None:
    """Run the command, alone in a parser."""
    parser = argparse.ArgumentParser(prog="uuidctl")
    bounds.add_to(parser.add_subparsers(required=True))
    given = parser.parse_args(["bounds", *arguments])
    assert given.do(given) == 0


def test_it_prints_both_ids_and_the_time_that_they_hold(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Aligned, with the digits of the unit, so that one sees that it is held whole."""
    run("v7", "2022-02-22T19:22:22Z")
    assert capsys.readouterr().out == (
        "low   017f22e2-79b0-7000-8000-000000000000  from 2022-02-22T19:22:22.000Z\n"
        "high  017f22e2-79b0-7fff-bfff-ffffffffffff  to the end of 2022-02-22T19:22:22.000Z\n"
    )


def test_ids_of_unlike_length_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    """A Snowflake's decimal digits are as many as it needs."""
    run("snowflake", "2010-11-04T01:42:54.657Z", "--unit", "s")
    assert capsys.readouterr().out == (
        "low   0           from 2010-11-04T01:42:54Z\n"
        "high  1438646271  to the end of 2010-11-04T01:42:54Z\n"
    )


def test_two_times_are_held_from_the_first_to_the_end_of_the_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whatever the offsets they are written with."""
    run("v7", "2022-02-22T14:22:22-05:00", "2022-02-22t20:22:23.5+01:00", "--unit", "s")
    assert capsys.readouterr().out == (
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
def test_an_integer_is_in_the_kinds_unit(
    capsys: pytest.CaptureFixture[str], kind: str, time: str, low: str
) -> None:
    """Ticks, seconds or milliseconds; and each kind is written in its own way."""
    run(kind, time)
    assert capsys.readouterr().out.split()[1] == low


def test_json_holds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """Ids are texts there, Snowflakes too, for they pass 2**53."""
    run("snowflake", "1645557742000", "1645557743000", "--epoch", "1600000000000", "--json")
    assert json.loads(capsys.readouterr().out) == {
        "kind": "snowflake",
        "unit": "ms",
        "from": "2022-02-22T19:22:22.000Z",
        "to": "2022-02-22T19:22:23.000Z",
        "low": str(45_557_742_000 << 22),
        "high": str((45_557_743_001 << 22) - 1),
    }


def test_a_ulid_is_written_as_a_uuid_if_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    """For a database that keeps ULIDs in its type for UUIDs."""
    run("ulid", "1645557742000", "--uuid")
    low, high = (line.split()[1] for line in capsys.readouterr().out.splitlines())
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
def test_each_tick_can_be_told(capsys: pytest.CaptureFixture[str], time: str, tick: str) -> None:
    """The times that we print, with seven digits, are read back; none is cut."""
    run("v6", time, "--json")
    assert json.loads(capsys.readouterr().out)["from"] == tick


def test_a_tick_lies_in_a_coarser_kinds_unit(capsys: pytest.CaptureFixture[str]) -> None:
    """The seventh digit says nothing there that the unit does not hold."""
    run("v7", "2022-02-22T19:22:22.1239999Z", "--json")
    assert json.loads(capsys.readouterr().out)["from"] == "2022-02-22T19:22:22.123Z"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["v1", "0"], r"no bounds: use cassandra"),
        (["v8", "0"], r"kind is 'v8'; it must be one of v6"),
        (["v7", "-5"], r"time is -5; the time of a v7 is from 1970"),
        (["v7", "2022-02-22"], r"'2022-02-22' is not a time; it must be like"),
        (["v7", "2022-02-22T19:22:22"], r"has no offset from UTC; add Z"),
        (["v7", "2022-02-29T19:22:22Z"], r"'2022-02-29T19:22:22Z' is not a time: day is out"),
        (["v7", "2022-02-22T19:22:22+25:00"], r"is not a time: "),
        (["v6", "2022-02-22T19:22:22.12345678Z"], r"finer than a tick"),
        (["v6", "1582-10-14T00:00:00Z"], r"the time of a v6 is from 1582-10-15"),
        (["v7", "1.5"], r"'1.5' is not a time"),
        (["v7", "٣"], r"'٣' is not a time"),
        (["v7", "9" * 5000], r"is not a time"),
        (["ulid", "5", "4"], r"until is 4, which is before time, 5"),
        (["ksuid", "1645557742", "--unit", "ms"], r"finer than the time of a ksuid"),
        (["v7", "5", "--epoch", "3"], r"epoch is 3; only a snowflake has one"),
        (["ksuid", "1645557742", "--uuid"], r"a ksuid does not have 128 bits"),
    ],
)
def test_a_wrong_value_is_one_line(arguments: list[str], reason: str) -> None:
    """It says which and why."""
    with pytest.raises(CommandError, match=reason) as refused:
        run(*arguments)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "arguments", [[], ["v7"], ["v7", "1", "2", "3"], ["v7", "1", "--unit", "day"]]
)
def test_wrong_usage_is_argparses(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """With the status that it has."""
    with pytest.raises(SystemExit, match="2"):
        run(*arguments)
    assert "usage: uuidctl" in capsys.readouterr().err


def test_the_help_names_all_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    """So that no one has to guess them."""
    with pytest.raises(SystemExit, match="0"):
        run("--help")
    out = capsys.readouterr().out
    assert all(kind in out for kind in BOUNDED_KINDS)

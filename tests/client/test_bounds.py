"""The bounds of times, as the library returns them and as ``uuidctl bounds`` shows them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import kinds
from tests.client.conftest import Uuidctl
from tests.documents import text
from tests.kinds import KINDS, UNIX
from uuidd.core.ids import snowflake, versions
from uuidd_client.times import BOUNDED_KINDS, UNITS, bounded_field_of, bounds, sort_key

TIME = datetime(2022, 2, 22, 19, 22, 22, 123456, tzinfo=UTC)
SECOND = 138648505420000000
TICK = SECOND + 1_234_560
MS = 1_645_557_742_123

# A KSUID begins in 2014 and a Snowflake's second is cut by its epoch, so a time that all can tell.
TICKS = st.integers(138_000_000_000_000_000, 145_000_000_000_000_000)

OWN = [kind for kind in BOUNDED_KINDS if kind in KINDS]


def of_number(kind: str, value: int) -> Any:
    """Return the id of a number, of the kind's own type."""
    if kind == "cassandra" or KINDS[kind].type is UUID:
        return UUID(int=value)
    return value if KINDS[kind].type is int else kinds.text(kind, value)


def extremes(kind: str, tick: int) -> list[Any]:
    """Return the ids of *kind* in the unit of a tick whose every other bit is zero, and one."""
    if kind == "cassandra":
        lowest = versions.gregorian("v1", tick, 0x0080, 0x808080808080)
        highest = versions.gregorian("v1", tick, 0x3F7F, 0x7F7F7F7F7F7F)
    else:
        lowest, highest = kinds.bounds(kind, tick)
    return [of_number(kind, lowest), of_number(kind, highest)]


def in_unit(kind: str, tick: int) -> int:
    """Return the int for a tick in the unit of a kind."""
    field = bounded_field_of(kind)
    return tick if field.unit == 1 else (tick - UNIX) // field.unit


@pytest.mark.parametrize("kind", BOUNDED_KINDS)
@given(tick=TICKS, unit=st.sampled_from([None, *UNITS]))
def test_only_the_ids_of_a_unit_are_within_its_bounds(
    kind: str, tick: int, unit: str | None
) -> None:
    field = bounded_field_of(kind)
    ticks = field.unit if unit is None else UNITS[unit]
    if ticks < field.unit:
        return
    low, high = (sort_key(kind, id) for id in bounds(kind, in_unit(kind, tick), unit=unit))
    first = tick - tick % ticks
    within = extremes(kind, first) + extremes(kind, first + ticks - 1)
    assert all(low <= sort_key(kind, id) <= high for id in within)
    assert all(sort_key(kind, id) < low for id in extremes(kind, first - 1))
    assert all(sort_key(kind, id) > high for id in extremes(kind, first + ticks))


@pytest.mark.parametrize("kind", BOUNDED_KINDS)
def test_until_includes_both_units(kind: str) -> None:
    later = TIME.replace(minute=30)
    low, _ = bounds(kind, TIME, unit="s")
    _, high = bounds(kind, later, unit="s")
    assert bounds(kind, TIME, later, unit="s") == (low, high)
    assert bounds(kind, TIME, TIME) == bounds(kind, TIME)


@pytest.mark.parametrize("kind", OWN)
def test_an_integer_has_the_unit_that_the_document_says(kind: str) -> None:
    guide = " ".join(text("client/README.md").split())
    told = re.findall(r"ticks of 100 ns since 1582-10-15 for (.*?), Unix seconds for KSUIDs", guide)
    in_ticks = re.findall(r"\w+", " ".join(told))
    number = TICK if kind in in_ticks else MS // 1000 if kind == "ksuid" else MS
    assert bounds(kind, number) == bounds(kind, TIME)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (
        "v7",
        {"unit": "us"},
        "unit is 'us', which is finer than the time of a v7; it must be ms or s",
    ),
    ("ksuid", {"unit": "ms"}, "which is finer than the time of a ksuid; it must be s"),
    ("v6", {"unit": "minute"}, "unit is 'minute'; it must be one of tick, us, ms, s"),
    ("v1", {}, r"no bounds: use cassandra .*, or v6 for ids that uuid_v1_to_v6 .* has converted"),
    ("v7", {"epoch": 5}, "epoch is 5; only a snowflake has one"),
    ("cassandra", {"time": -1}, "the time of a cassandra is from 1582-10-15"),
    *(
        (kind, {"until": TIME.replace(microsecond=0), "unit": "s"}, "until is .*, which is before")
        for kind in BOUNDED_KINDS
    ),
]


@pytest.mark.parametrize(("kind", "given", "message"), REFUSED)
def test_what_has_no_bounds_is_refused(kind: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bounds(kind, **{"time": TIME, **given})


@pytest.mark.parametrize("kind", BOUNDED_KINDS)
def test_the_first_and_the_last_second_are_cut_at_the_ends_of_the_field(kind: str) -> None:
    field = bounded_field_of(kind)
    ends = (in_unit(kind, field.epoch), in_unit(kind, field.end - field.unit))
    assert bounds(kind, *ends, unit="s") == bounds(kind, *ends)
    begin = max(field.epoch, (field.end - 1) // UNITS["s"] * UNITS["s"])
    assert bounds(kind, ends[1], unit="s") == bounds(kind, in_unit(kind, begin), ends[1])


def test_a_snowflakes_bounds_count_from_its_epoch() -> None:
    """Its units are those of UTC, with any epoch."""
    assert bounds("snowflake", snowflake.TWITTER_EPOCH)[0] == 0
    assert bounds("snowflake", MS, epoch=MS) == (0, (1 << 22) - 1)
    assert bounds("snowflake", 0, 999, unit="s", epoch=0) == (0, (1000 << 22) - 1)
    low, high = bounds("snowflake", MS, unit="s", epoch=MS - 5123)
    assert (low >> 22, high >> 22) == (5000, 5999)
    assert bounds("snowflake", MS, unit="s", epoch=MS - 3)[0] == 0


@pytest.fixture
def shown(uuidctl: Uuidctl) -> Callable[..., str]:
    """Return what gives the output of ``uuidctl bounds``, which has to succeed."""

    def run(*arguments: str) -> str:
        status, out, err = uuidctl("bounds", *arguments)
        assert (status, err) == (0, "")
        return out

    return run


SCREENS = """\
> v7 2022-02-22T19:22:22Z
low   017f22e2-79b0-7000-8000-000000000000  from 2022-02-22T19:22:22.000Z
high  017f22e2-79b0-7fff-bfff-ffffffffffff  to the end of 2022-02-22T19:22:22.000Z
> snowflake 2010-11-04T01:42:54.657Z --unit s
low   0           from 2010-11-04T01:42:54Z
high  1438646271  to the end of 2010-11-04T01:42:54Z
> v7 2022-02-22T14:22:22-05:00 2022-02-22t20:22:23.5+01:00 --unit s
low   017f22e2-79b0-7000-8000-000000000000  from 2022-02-22T19:22:22Z
high  017f22e2-817f-7fff-bfff-ffffffffffff  to the end of 2022-02-22T19:22:23Z
> ulid 1645557742000 --uuid
low   017f22e2-79b0-0000-0000-000000000000  from 2022-02-22T19:22:22.000Z
high  017f22e2-79b0-ffff-ffff-ffffffffffff  to the end of 2022-02-22T19:22:22.000Z
> v6 0 --uuid
low   00000000-0000-6000-8000-000000000000  from 1582-10-15T00:00:00.0000000Z
high  00000000-0000-6000-bfff-ffffffffffff  to the end of 1582-10-15T00:00:00.0000000Z
"""
"""After "> " the arguments, then all that is printed.

A Snowflake has as many digits as it needs. With --uuid a ULID is for a database that keeps ULIDs in
its type for UUIDs; a UUID is one already.
"""


@pytest.mark.parametrize("screen", SCREENS.split("> ")[1:])
def test_it_prints_both_ids_and_the_whole_units_that_they_hold(
    shown: Callable[..., str], screen: str
) -> None:
    arguments, _, lines = screen.partition("\n")
    assert shown(*arguments.split()) == lines


def test_json_holds_the_same(shown: Callable[..., str]) -> None:
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


@pytest.mark.parametrize(
    ("kind", "time", "tick"),
    [
        ("v6", "2022-02-22T19:22:22.1234567Z", "2022-02-22T19:22:22.1234567Z"),
        ("v6", "2022-02-22 19:22:22.12Z", "2022-02-22T19:22:22.1200000Z"),
        ("v6", "2022-02-22T19:22:22.123456700000Z", "2022-02-22T19:22:22.1234567Z"),
        ("v7", "2022-02-22T19:22:22.1239999Z", "2022-02-22T19:22:22.123Z"),
    ],
)
def test_the_seventh_digit_counts_where_the_unit_holds_it(
    shown: Callable[..., str], kind: str, time: str, tick: str
) -> None:
    assert json.loads(shown(kind, time, "--json"))["from"] == tick


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["v1", "0"], "no bounds: use cassandra"),
        (["v7", "-5"], "time is -5; the time of a v7 is from 1970"),
        (["v7", "2022-02-22"], "has no offset from UTC; it must be like 2022-02-22T19:22:22Z, or"),
        (["v7", "2022-02-22T19:22:22"], "has no offset from UTC; it must be like 2022-02-22T19"),
        (["v7", "now"], "'now' is not a time; it must be like 2022-02-22T19:22:22Z"),
        (["v7", "2022-02-22Z"], "; it must be like 2022-02-22T19:22:22Z, or an integer"),
        (["v7", "2022-02-29T19:22:22Z"], "'2022-02-29T19:22:22Z' is not a time (day is out"),
        (["v7", "2022-02-22T19:22:22+25:00"], "is not a time (offset"),
        (["v6", "2022-02-22T19:22:22.12345678Z"], "finer than a tick"),
        (["v7", "1.5"], "'1.5' is not a time"),
        (["v7", "٣"], "'٣' is not a time"),
        (["v7", "9" * 5000], "is not a time"),
        (["ksuid", "1645557742", "--uuid"], "a ksuid does not have 128 bits"),
    ],
)
def test_a_wrong_value_is_one_line(uuidctl: Uuidctl, arguments: list[str], reason: str) -> None:
    status, out, err = uuidctl("bounds", *arguments)
    assert (status, out) == (1, "")
    (line,) = err.splitlines()
    assert reason in line

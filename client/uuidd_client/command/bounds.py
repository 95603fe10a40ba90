"""``uuidctl bounds``: shows the lowest and the highest id of a time."""

from __future__ import annotations

import argparse
import json
import re
from datetime import datetime
from typing import Any
from uuid import UUID

from uuidd.core.ids import snowflake
from uuidd.core.ids.ticks import TimeField
from uuidd.core.ids.times import Time, text, tick_of
from uuidd_client import times
from uuidd_client.command.common import CommandError


def add_to(commands: Any) -> None:
    """Add the command to an argparse parser's commands."""
    command = commands.add_parser(
        "bounds",
        help="show the lowest and the highest id of a span of time",
        description="Show the lowest and the highest possible id of a unit of time, such as one"
        " second, or of the span from one time to another. Both ids belong to the span.",
    )
    command.add_argument(
        "kind",
        metavar="KIND",
        help=f"the kind of id: {', '.join(times.BOUNDED_KINDS)} (v1 in Cassandra's order)",
    )
    command.add_argument(
        "time",
        metavar="TIME",
        help="the time, as 2022-02-22T19:22:22Z (ISO 8601), or an integer: Unix seconds for ksuid,"
        " ticks of 100 ns since 1582-10-15 for v6 and cassandra, Unix milliseconds for the others",
    )
    command.add_argument(
        "until",
        metavar="TIME",
        nargs="?",
        help="a second time, the end of the span (default: the first TIME)",
    )
    command.add_argument(
        "--unit",
        choices=tuple(times.UNITS),
        help="extend the span to whole units: a time becomes the whole second, for example"
        " (default: the unit in which the kind counts time)",
    )
    command.add_argument(
        "--epoch",
        type=int,
        default=snowflake.TWITTER_EPOCH,
        metavar="MS",
        help="epoch of a snowflake, in Unix milliseconds (default: %(default)s)",
    )
    command.add_argument(
        "--uuid", action="store_true", help="write the ids as UUIDs; only for kinds of 128 bits"
    )
    command.add_argument("--json", action="store_true", help="print one JSON object")
    command.set_defaults(do=_do)


def _do(given: argparse.Namespace) -> int:
    try:
        field = times.bounded_field_of(given.kind, given.epoch)
        ends = [read(each, field) for each in (given.time, given.until) if each is not None]
        unit = times.unit_of(given.unit, field)
        ids = times.bounds(given.kind, *ends, unit=unit, epoch=given.epoch)
        lowest, highest = (str(_as_uuid(given.kind, id) if given.uuid else id) for id in ids)
    except ValueError as error:
        raise CommandError(str(error)) from error
    # With the digits of the unit, each is the begin of its unit.
    first, last = (text(tick_of(each, field), times.UNITS[unit]) for each in (ends[0], ends[-1]))
    if given.json:
        names = {"kind": given.kind, "unit": unit, "from": first, "to": last}
        print(json.dumps({**names, "low": lowest, "high": highest}))
    else:
        # A Flake's and a Snowflake's text is as long as it must be.
        width = len(highest)
        print(f"low   {lowest:<{width}}  from {first}")
        print(f"high  {highest}  to the end of {last}")
    return 0


def _as_uuid(kind: str, id: UUID | str | int) -> UUID:
    if isinstance(id, UUID):
        return id
    bits = times.sort_key(kind, id)
    if len(bits) != 16:
        raise ValueError(f"--uuid is given, but a {kind} does not have 128 bits")
    return UUID(bytes=bits)


def read(given: str, field: TimeField) -> Time:
    """Return the time of an argument: ISO 8601, or an integer in the unit of *field*.

    Raises ValueError, naming the text, for anything else, for a time without an offset, and for a
    time finer than a tick.
    """
    if re.fullmatch("-?[0-9]{1,40}", given):
        return int(given)
    try:
        time = datetime.fromisoformat(given.upper())
    except ValueError as error:
        # "Invalid isoformat string" would only repeat the text, in upper case.
        why = "" if "isoformat" in str(error) else f" ({error})"
        raise ValueError(
            f"{given!r} is not a time{why}; it must be like 2022-02-22T19:22:22Z, or an integer in"
            " the kind's unit"
        ) from error
    if time.tzinfo is None:
        raise ValueError(
            f"{given!r} has no offset from UTC; it must be like 2022-02-22T19:22:22Z, or like"
            " 2022-02-22T20:22:22+01:00"
        )
    # A datetime ends at microseconds. Only a field of ticks can hold the seventh digit.
    finer = re.search("[.,][0-9]{6}([0-9]*)", given)
    digit, rest = (finer[1][:1], finer[1][1:]) if finer else ("", "")
    if rest.strip("0"):
        raise ValueError(f"{given!r} is finer than a tick, which is 100 ns")
    return tick_of(time, field) + int(digit or "0") if field.unit == 1 else time

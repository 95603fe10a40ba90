"""``uuidctl inspect``: shows what ids are made of."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from typing import Any

from uuidd.core.ids import randombased, timebased, uuids

_EPOCH = datetime(1582, 10, 15, tzinfo=UTC)


class InspectError(Exception):
    """What was to be inspected is no id; one line that says why."""


def add_to(commands: Any) -> None:
    """Add the command to an argparse parser's commands."""
    command = commands.add_parser("inspect", help="show what ids are made of")
    command.add_argument("ids", nargs="+", metavar="ID", help="a UUID, in any usual spelling")
    command.set_defaults(do=_do)


def _do(given: argparse.Namespace) -> int:
    # All are read before the first is shown: what is refused is refused whole.
    try:
        values = [uuids.from_text(text) for text in given.ids]
    except ValueError as error:
        raise InspectError(str(error)) from error
    for number, value in enumerate(values):
        if number:
            print()
        print(uuids.to_text(value))
        for name, field in fields(value).items():
            print(f"  {name:<10} {field}")
    return 0


def fields(value: int) -> dict[str, str]:
    """Give the fields of a UUID by name, as text."""
    version = uuids.version(value)
    if version is None:
        return {"variant": "not RFC 9562's"}
    found = {"kind": f"v{version}", "variant": "RFC 9562"}
    if version in (1, 6):
        tick, clock_seq, node = timebased.fields(value)
        found["time"] = time_of(tick)
        found["timestamp"] = str(tick)
        found["clock_seq"] = str(clock_seq)
        found["node"] = _node(node)
    elif version == 4:
        found["random"] = f"0x{randombased.v4_bits(value):031x}"
    return found


def time_of(tick: int) -> str:
    """Give the UTC time of a tick, in RFC 3339 with all seven digits that it has."""
    seconds, rest = divmod(tick, timebased.TICKS_PER_SECOND)
    return f"{(_EPOCH + timedelta(seconds=seconds)).strftime('%4Y-%m-%dT%H:%M:%S')}.{rest:07d}Z"


def _node(node: int) -> str:
    octets = ":".join(f"{octet:02x}" for octet in node.to_bytes(6, "big"))
    return f"{octets} ({'random' if node & timebased.MULTICAST else 'a network address'})"

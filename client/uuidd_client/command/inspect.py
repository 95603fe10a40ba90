"""``uuidctl inspect``: shows what ids are made of."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO

from uuidd_client import readings
from uuidd_client.command.common import CommandError, complain, whole_number
from uuidd_client.readings import INSPECTED_KINDS, Reading, Values

STANDARD_INPUT = "-"

LONGEST_LINE = 4096
"""Bytes of a line of standard input that are kept: no id is as long, with space around it."""

EXACT = 1 << 53
"""Many languages read JSON's integers as floats, which are exact up to here."""

_PUSH_ID = re.compile(r"-[-0-9A-Z_a-z]{19}\Z")
"""A Push ID that begins as an option does; no option without "=" is as long."""


def add_to(commands: Any) -> None:
    """Add the command to an argparse parser's commands."""
    command = commands.add_parser(
        "inspect",
        help="show what ids are made of",
        description="Show what an ID is made of. If the ID may be of several kinds, show each"
        " likely one.",
    )
    command.add_argument(
        "ids",
        nargs="+",
        metavar="ID",
        help="an id of any kind, even one that begins with -; a single - reads ids from standard"
        " input, one per line",
    )
    command.add_argument(
        "-k",
        "--kind",
        choices=INSPECTED_KINDS,
        metavar="KIND",
        help=f"read the ids as this kind only: {', '.join(INSPECTED_KINDS)}",
    )
    command.add_argument(
        "--raw",
        action="store_true",
        help="with --kind: also accept the bits of an id, as an integer or as bytes in hex",
    )
    command.add_argument(
        "--epoch",
        type=partial(whole_number, least=0),
        metavar="MS",
        help="the epoch of Snowflakes, in Unix milliseconds",
    )
    command.add_argument(
        "--json",
        action="store_true",
        help="print one JSON array, or with - one JSON object per line",
    )
    command.is_value = _PUSH_ID.match
    command.set_defaults(do=partial(_do, command))


def _do(command: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    if given.raw and given.kind is None:
        command.error("--raw needs --kind; without a kind, ids are accepted in all forms anyway")
    read = partial(readings.inspect, kind=given.kind, epoch=given.epoch, raw=given.raw)
    if given.ids == [STANDARD_INPUT]:
        return _from_input(read, as_json=given.json)
    if STANDARD_INPUT in given.ids:
        command.error("- reads the ids from standard input; give it alone")
    # All are read before the first is shown, so that an error shows none.
    try:
        found = [(text, read(text)) for text in given.ids]
    except ValueError as error:
        raise CommandError(str(error)) from error
    if given.json:
        print(json.dumps([_for_programs(text, some) for text, some in found], indent=2))
    else:
        print("\n\n".join(_for_people(some) for _, some in found))
    return 0


def _from_input(read: Callable[[str], list[Reading]], *, as_json: bool) -> int:
    """Show the ids of standard input as they come; return 1 if a line was not an id."""
    if sys.stdin is None:
        raise CommandError("standard input cannot be read: it is closed")
    refused = False
    before = ""
    for number, line in enumerate(_lines(sys.stdin.buffer), 1):
        if not line.strip():
            continue
        # Bytes that are no UTF-8 become what they are in an argument.
        text = line.decode(errors="surrogateescape")
        try:
            some = read(text)
        except ValueError as error:
            refused = True
            complain(f"line {number}: {error}")
            continue
        if as_json:
            shown = json.dumps(_for_programs(text, some))
        else:
            shown = before + _for_people(some)
            before = "\n"
        # Flushed, so that each id comes through a pipe at once.
        print(shown, flush=True)
    return int(refused)


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Return the lines of a file; of a huge line only the beginning."""
    whole = True
    try:
        while line := file.readline(LONGEST_LINE):
            if whole:
                yield line
            whole = len(line) < LONGEST_LINE or line.endswith(b"\n")
    except OSError as error:
        raise CommandError(f"standard input cannot be read: {error.strerror}") from error


def _for_people(some: list[Reading]) -> str:
    first, *others = some
    lines = [first.text, *_rows(first.kind, {"kind": first.kind, **first.fields})]
    for other in others:
        lines += [f"or, as a {other.kind}: {other.text}", *_rows(other.kind, other.fields)]
    return "\n".join(lines)


def _rows(kind: str, fields: Values) -> Iterator[str]:
    """Yield a line for each field, but none for a version that the kind tells already."""
    if kind == f"v{fields.get('version')}":
        del fields["version"]
    if node_is := fields.pop("node_is", None):
        fields["node"] = f"{fields['node']} ({node_is})"
    width = max(map(len, fields), default=0)
    for name, field in fields.items():
        yield f"  {name:<{width}}  {field}"


def _for_programs(text: str, some: list[Reading]) -> dict[str, Any]:
    return {
        "id": text.strip(),
        "readings": [
            {"kind": reading.kind} | {name: _portable(it) for name, it in reading.fields.items()}
            for reading in some
        ],
    }


def _portable(field: int | str) -> int | str:
    """Return a field as JSON's readers can hold it: a larger integer is a text."""
    return str(field) if isinstance(field, int) and abs(field) > EXACT else field

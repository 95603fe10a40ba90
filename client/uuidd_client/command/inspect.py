"""``uuidctl inspect``: shows what ids are made of."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any, BinaryIO

from uuidd.core.ids.inspect import ALIASES, INSPECTED_KINDS, Reading, readings
from uuidd_client.command.common import CommandError

STANDARD_INPUT = "-"

LONGEST_LINE = 4096
"""Bytes of a line of standard input that are kept: no id is as long, with space around it."""

EXACT = 1 << 53
"""Many languages read JSON's integers as floats, which are exact up to here."""

_SHOWN = 40
"""Bytes of a line that its error shows."""

_PUSH_ID = re.compile(r"-[-0-9A-Z_a-z]{19}\Z")


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
        choices=(*INSPECTED_KINDS, *ALIASES),
        metavar="KIND",
        help=f"read the ids as this kind only: {', '.join((*INSPECTED_KINDS, *ALIASES))}",
    )
    command.add_argument(
        "--raw",
        action="store_true",
        help="with --kind: also accept the bits of an id, as an integer or as bytes in hex",
    )
    command.add_argument(
        "--epoch",
        type=_milliseconds,
        metavar="MS",
        help="the epoch of Snowflakes, in Unix milliseconds",
    )
    command.add_argument(
        "--json",
        action="store_true",
        help="print one JSON array, or with - one JSON object per line",
    )
    command.is_value = _is_push_id
    command.set_defaults(do=partial(_do, command))


def _is_push_id(word: str) -> bool:
    """Whether a word of the command line is a Push ID: no option without "=" is as long."""
    return _PUSH_ID.match(word) is not None


def _do(command: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    if given.raw and given.kind is None:
        command.error("--raw needs --kind; without a kind, ids are accepted in all forms anyway")
    if given.ids == [STANDARD_INPUT]:
        return _from_input(given)
    if STANDARD_INPUT in given.ids:
        command.error("- reads the ids from standard input; give it alone")
    # All are read before the first is shown, so that an error shows none.
    try:
        found = [(text, _read(text, given)) for text in given.ids]
    except ValueError as error:
        raise CommandError(str(error)) from error
    if given.json:
        print(json.dumps([_for_programs(text, some) for text, some in found], indent=2))
    else:
        print("\n\n".join(_for_people(some) for _, some in found))
    return 0


def _from_input(given: argparse.Namespace) -> int:
    """Show the ids of standard input as they come; return 1 if a line was not an id."""
    if sys.stdin is None:
        raise CommandError("standard input cannot be read: it is closed")
    refused = False
    before = ""
    for number, line in enumerate(_lines(sys.stdin.buffer), 1):
        if not line.strip():
            continue
        try:
            text = _text(line)
            some = _read(text, given)
        except ValueError as error:
            refused = True
            if sys.stderr is not None:
                print(f"uuidctl: line {number}: {error}", file=sys.stderr)
            continue
        if given.json:
            shown = json.dumps(_for_programs(text, some))
        else:
            shown = before + _for_people(some)
            before = "\n"
        # Flushed, so that each id comes through a pipe at once.
        print(shown, flush=True)
    return int(refused)


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Return the lines of a file; of a huge line only the beginning."""
    while line := _read_line(file):
        yield line
        while len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            line = _read_line(file)


def _read_line(file: BinaryIO) -> bytes:
    try:
        return file.readline(LONGEST_LINE)
    except OSError as error:
        # Caught here, because elsewhere it would count as a failure to write.
        raise CommandError(f"standard input cannot be read: {error.strerror}") from error


def _text(line: bytes) -> str:
    if len(line) == LONGEST_LINE:
        raise ValueError(f"{_beginning(line)}... is not an id: the line is too long")
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{_beginning(line)} is not an id: it is not text in UTF-8") from None


def _beginning(line: bytes) -> str:
    return repr(line.strip()[:_SHOWN])[1:]


def _read(text: str, given: argparse.Namespace) -> list[Reading]:
    return readings(text, kind=given.kind, epoch=given.epoch, raw=given.raw)


def _for_people(some: list[Reading]) -> str:
    first = some[0]
    if first.kind == "ksuid":
        return _as_segment(first)
    lines = [first.text, *_rows({"kind": first.kind}, first)]
    for other in some[1:]:
        article = "an" if other.kind == "apollo" else "a"
        lines += [f"or, as {article} {other.kind}: {other.text}", *_rows({}, other)]
    return "\n".join(lines)


def _as_segment(reading: Reading) -> str:
    """Return what Segment's ``ksuid -f inspect`` prints of a KSUID."""
    fields = reading.fields
    time = str(fields["time"]).replace("T", " ").replace("Z", " +0000 UTC")
    return (
        f"REPRESENTATION:\n\n  String: {reading.text}\n     Raw: {reading.value:040X}\n\n"
        f"COMPONENTS:\n\n       Time: {time}\n  Timestamp: {fields['timestamp']}\n"
        f"    Payload: {fields['payload']}"
    )


def _rows(before: dict[str, str], reading: Reading) -> Iterator[str]:
    """Return a line for each entry of *before* and each field that these do not show already."""
    fields = {**before, **reading.fields}
    node_is = fields.pop("node_is", None)
    if reading.kind == f"v{fields.get('version')}":
        del fields["version"]
    if node_is is not None:
        fields["node"] = f"{fields['node']} ({node_is})"
    width = max(map(len, fields), default=0)
    for name, field in fields.items():
        yield f"  {name:<{width}}  {field}"


def _for_programs(text: str, some: list[Reading]) -> dict[str, Any]:
    return {
        "id": text.strip(),
        "readings": [{"kind": reading.kind, **_portable(reading.fields)} for reading in some],
    }


def _portable(value: Any) -> Any:
    """Return a JSON value with each integer that a float cannot hold as text, at any depth."""
    if isinstance(value, dict):
        return {name: _portable(field) for name, field in value.items()}
    if isinstance(value, list):
        return [_portable(field) for field in value]
    if isinstance(value, int) and abs(value) > EXACT:
        return str(value)
    return value


def _milliseconds(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 0 or more")
    return int(text)

"""What util-linux's ``uuidparse`` prints: ``uuidctl inspect`` with -J, -n, -r or -o."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

COLUMNS = ("UUID", "VARIANT", "TYPE", "TIME")

_TYPES = {
    1: "time-based",
    2: "DCE",
    3: "name-based",
    4: "random",
    5: "sha1-based",
    6: "time-v6",
    7: "time-v7",
    8: "vendor",
}
"""By version. Until version 2.40, uuidparse calls 6 to 8 unknown, and shows no time of them."""

_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_BEGIN = datetime(1582, 10, 15, tzinfo=UTC)
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def add_to(command: argparse.ArgumentParser) -> None:
    """Add the options to the command."""
    command.add_argument(
        "-J", dest="uuids_json", action="store_true", help="show UUIDs as uuidparse does, as JSON"
    )
    command.add_argument(
        "-n",
        dest="no_headings",
        action="store_true",
        help="show UUIDs as uuidparse does, without headings",
    )
    command.add_argument(
        "-r",
        dest="uuids_raw",
        action="store_true",
        help="show UUIDs as uuidparse does, with one space between columns, and other spaces as"
        " \\x20",
    )
    command.add_argument(
        "-o",
        dest="columns",
        type=_columns,
        metavar="LIST",
        help=f"show these columns of UUIDs, as uuidparse does: {', '.join(COLUMNS)}, or all and"
        " more after a +",
    )


def chosen(given: argparse.Namespace) -> bool:
    """Whether one of the options was given."""
    return bool(given.uuids_json or given.no_headings or given.uuids_raw or given.columns)


def shown(texts: Iterable[str], given: argparse.Namespace) -> str:
    """Return what ``uuidparse`` prints. What is not a UUID is shown as invalid, and no error."""
    columns = given.columns or COLUMNS
    rows = [dict(zip(COLUMNS, _row(text), strict=True)) for text in texts]
    if given.uuids_json:
        found = [{name.lower(): row[name] or None for name in columns} for row in rows]
        return json.dumps({"uuids": found}, indent=3) + "\n"
    lines = [] if given.no_headings else [list(columns)]
    lines += [[_escaped(row[name], raw=given.uuids_raw) for name in columns] for row in rows]
    if given.uuids_raw:
        return "".join(" ".join(line) + "\n" for line in lines)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "".join(_padded(line, widths) + "\n" for line in lines)


def _row(text: str) -> Sequence[str]:
    if _UUID.fullmatch(text) is None:
        return text, "invalid", "invalid", "invalid"
    value = int(text.replace("-", ""), 16)
    version = value >> 76 & 15
    kind = _TYPES.get(version, "unknown") if value else "nil"
    return text, _variant(value), kind, _time(value, version)


def _variant(value: int) -> str:
    bits = value >> 61 & 7
    return "NCS" if bits < 4 else "DCE" if bits < 6 else "Microsoft" if bits < 7 else "other"


def _time(value: int, version: int) -> str:
    """Return the local time in a UUID; "" if it has none, or one after the year 9999."""
    high = value >> 64
    if _variant(value) != "DCE":
        return ""
    try:
        if version == 7:
            at = _UNIX_EPOCH + timedelta(milliseconds=value >> 80)
        elif version in (1, 6):
            in_order = (high & 0xFFF) << 48 | (high >> 16 & 0xFFFF) << 32 | high >> 32
            ticks = in_order if version == 1 else high >> 16 << 12 | high & 0xFFF
            at = _BEGIN + timedelta(microseconds=ticks // 10)
        else:
            return ""
        return at.astimezone().isoformat(" ", "microseconds").replace(".", ",")
    except (OverflowError, ValueError):
        return ""


def _escaped(cell: str, *, raw: bool) -> str:
    """Return a cell with all in hex that cannot be shown; if *raw*, all but visible ASCII."""
    return "".join(
        char
        if char.isprintable() and not (raw and (char in " \\" or not char.isascii()))
        else "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))
        for char in cell
    )


def _padded(cells: Sequence[str], widths: Sequence[int]) -> str:
    return " ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def _columns(text: str) -> Sequence[str]:
    more = text.startswith("+")
    names = text.removeprefix("+").upper().split(",")
    for name in names:
        if name not in COLUMNS:
            raise argparse.ArgumentTypeError(
                f"unknown column: {name}; the columns are {', '.join(COLUMNS)}"
            )
    return (*COLUMNS, *names) if more else tuple(names)

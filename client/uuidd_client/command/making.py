"""``uuidctl new``: makes ids."""

from __future__ import annotations

import argparse
import json
import sys
import uuid
import warnings
from collections.abc import Iterator
from typing import Any

from uuidd_client.client import Client

KINDS = ("v1", "v4", "v6")
AT_ONCE = 10_000
"""Ids made before they are printed: little memory, however many are wanted."""


def add_to(commands: Any) -> None:
    """Add the command to an argparse parser's commands."""
    command = commands.add_parser("new", help="make new ids, one a line")
    command.add_argument("-k", "--kind", choices=KINDS, default="v1", help="(default: v1)")
    command.add_argument("-n", "--count", type=_count, default=1, metavar="N", help="how many")
    command.add_argument("--json", action="store_true", help="print one JSON array")
    command.set_defaults(do=_do)


def _do(given: argparse.Namespace) -> int:
    warnings.showwarning = _show_warning
    ids = _ids(given.kind, given.count, Client(given.socket))
    if given.json:
        print(json.dumps([text for some in ids for text in some]))
    else:
        for some in ids:
            print("\n".join(some))
    return 0


def _ids(kind: str, count: int, client: Client) -> Iterator[list[str]]:
    while count:
        part = min(count, AT_ONCE)
        if kind == "v4":
            # Random bits need no daemon: the kernel gives the same ones to all.
            yield [str(uuid.uuid4()) for _ in range(part)]
        else:
            yield client.make(kind, part, form="text")
        count -= part


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"uuidctl: {message}", file=sys.stderr)

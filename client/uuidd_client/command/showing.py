"""``uuidctl status``: shows how the daemon does."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from uuidd_client.client import Client


def add_to(commands: Any) -> None:
    """Add the command to an argparse parser's commands."""
    command = commands.add_parser("status", help="show how the daemon does")
    command.add_argument("--json", action="store_true", help="print it as JSON")
    command.set_defaults(do=_do)


def _do(given: argparse.Namespace) -> int:
    status = Client(given.socket, fallback=False).status()
    if given.json:
        print(json.dumps(status, indent=2))
        return 0
    rows = list(_rows("", status))
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")
    return 0


def _rows(prefix: str, values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Give a row for each plain value, named by the way to it."""
    for name, value in values.items():
        path = f"{prefix}{name}".replace("_", " ")
        if isinstance(value, dict):
            yield from _rows(f"{path} ", value)
        else:
            yield path, _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value == "":
        return "-"
    return str(value)

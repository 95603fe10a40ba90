"""``uuidctl status``: shows the daemon's status, as a screen, JSON or one line."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from typing import Any

from uuidd_client.client import Client
from uuidd_client.command import panel
from uuidd_client.command.common import CommandError, client, complain, of_our_version
from uuidd_client.errors import DaemonUnavailable
from uuidd_client.system import WrongVariable

WATCH_SECONDS = 1.0

GLANCE_SECONDS = 0.2
"""Between two looks, from which the rate of a single status comes."""

OK, WARNING, CRITICAL = range(3)
"""What ``--check`` exits with, as programs that watch hosts expect it."""

_HOME, _CLEAR = "\x1b[H", "\x1b[J"
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"


def add_to(commands: Any) -> None:
    """Add the command to an argparse parser's commands."""
    command = commands.add_parser(
        "status",
        help="show the status of the daemon",
        description="Show the status of the daemon. The man page uuidctl(1) explains the screen.",
    )
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print all fields as JSON")
    form.add_argument(
        "--watch", action="store_true", help="refresh the screen every second, until Ctrl-C"
    )
    form.add_argument(
        "--check",
        action="store_true",
        help="print one line; exit with 2 if the daemon does not serve all kinds of ids normally,"
        " and with 1 if it soon will not",
    )
    command.set_defaults(do=_do)


def _do(given: argparse.Namespace) -> int:
    if given.check:
        return _check(given)
    asked = client(given.socket)
    if given.watch:
        return _watch(asked)
    status = asked.status()
    if given.json:
        # A daemon of another version may say what JSON has no form for.
        print(json.dumps(status, indent=2, default=repr, skipkeys=True))
    else:
        time.sleep(GLANCE_SECONDS)
        print(_panel(asked.status(), status, GLANCE_SECONDS))
    return 0


def _check(given: argparse.Namespace) -> int:
    try:
        status = client(given.socket).status()
        with of_our_version():
            faults, warnings = list(panel.faults(status)), list(panel.warnings(status))
            about = f"uuidd {status['version']}, pid {status['pid']}"
    except (DaemonUnavailable, CommandError, WrongVariable) as error:
        complain(error)
        return CRITICAL
    print(panel.plain(f"{about}: {'; '.join(faults + warnings) or 'all is well'}"))
    return CRITICAL if faults else WARNING if warnings else OK


def _watch(asked: Client) -> int:
    """Draw the status each second, until Ctrl-C; a daemon that is away may come back."""
    begin, end = (_HIDE + _HOME + _CLEAR, _SHOW) if sys.stdout.isatty() else ("", "")
    before: dict[str, Any] | None = None
    before_at = 0.0
    try:
        print(begin, end="")
        while True:
            at = time.monotonic()
            try:
                status = asked.status()
            except DaemonUnavailable as unavailable:
                shown, before = str(unavailable), None
            else:
                shown = _panel(status, before, at - before_at)
                before, before_at = status, at
            if begin:
                # What is longer than what comes is cleared line by line: nothing flickers. The last
                # row stays free, for a line break there would move all others up.
                rows = shutil.get_terminal_size((80, 24)).lines - 1
                shown = "".join(f"{line}\x1b[K\n" for line in shown.split("\n")[:rows])
                shown = _HOME + shown + _CLEAR
            print(shown, end="" if begin else "\n", flush=True)
            time.sleep(max(0.0, at + WATCH_SECONDS - time.monotonic()))
    except KeyboardInterrupt:
        return 0
    finally:
        print(end, end="", flush=True)


def _panel(status: dict[str, Any], before: dict[str, Any] | None, seconds: float) -> str:
    """Return the panel of a status, with the rate of ids since the one *seconds* *before*."""
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    width = min(shutil.get_terminal_size((80, 24)).columns, panel.WIDTH)
    with of_our_version():
        rate = panel.rate(before, status, seconds) if before else None
        shown = panel.draw(status, rate, width=width, coloured=coloured)
    encoding = sys.stdout.encoding or "ascii"
    if not "█".encode(encoding, "ignore"):
        # A terminal of another age draws its bars of signs that it has.
        shown = shown.translate({ord("█"): "#", ord("░"): "."})
    return shown.encode(encoding, "replace").decode(encoding)

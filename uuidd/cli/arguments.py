"""The command line of ``uuidd``: util-linux's flags with its meaning, and ours."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from uuidd import __version__
from uuidd.server.limits import Limits

SOCKET = Path("/run/uuidd/request")
PID_FILE = Path("/run/uuidd/uuidd.pid")
STATE = Path("/var/lib/uuidd")


def parser() -> argparse.ArgumentParser:
    """Give the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="uuidd",
        description="A daemon that owns this host's clock and hands out time-based unique ids.",
        epilog="It goes to the background unless -F, -S or -d is given.",
    )
    _add_util_linux(made)
    made.add_argument(
        "--state",
        type=Path,
        metavar="DIR",
        help=f"where the state is kept (default: $STATE_DIRECTORY, else {STATE})",
    )
    made.add_argument(
        "--node",
        default="random",
        metavar="NODE",
        help="random (made once and kept; the default), mac, mac:IFACE, ip:ADDR, or 0x... in hex",
    )
    _add_limits(made)
    return made


def limits_of(given: argparse.Namespace) -> Limits:
    """Give the limits that were chosen."""
    return Limits(**{field.name: getattr(given, field.name) for field in fields(Limits)})


def state_folder(given: argparse.Namespace) -> Path:
    """Give the state folder: --state, else the one systemd made for the service, else ours."""
    chosen: Path | None = given.state
    if chosen is not None:
        return chosen
    # systemd gives several, with colons between, only to a unit that asks for several.
    from_systemd = os.environ.get("STATE_DIRECTORY", "").split(":")[0]
    return Path(from_systemd) if from_systemd else STATE


def _add_util_linux(made: argparse.ArgumentParser) -> None:
    add = made.add_argument
    add("-p", "--pid", type=Path, metavar="FILE", help=f"path to pid file (default: {PID_FILE})")
    add("-s", "--socket", type=Path, metavar="FILE", help=f"path to socket (default: {SOCKET})")
    add(
        "-T",
        "--timeout",
        type=_whole_from(0),
        default=0,
        metavar="SEC",
        help="end after so many seconds without a request (default: 0, never)",
    )
    add("-k", "--kill", action="store_true", help="end the running daemon")
    add("-r", "--random", action="store_true", help="ask the running daemon for a random UUID")
    add("-t", "--time", action="store_true", help="ask the running daemon for a time-based UUID")
    add("-n", "--uuids", type=_whole_from(0), metavar="NUM", help="ask for so many UUIDs at once")
    add("-P", "--no-pid", action="store_true", help="do not create a pid file")
    add("-F", "--no-fork", action="store_true", help="stay in the foreground")
    add(
        "-S",
        "--socket-activation",
        action="store_true",
        help="serve the socket that systemd passes (implies -F and -P)",
    )
    add(
        "-C",
        "--cont-clock",
        nargs="?",
        metavar="NUM[hd]",
        help="accepted for compatibility: the clock is always continuous here",
    )
    add("-d", "--debug", action="store_true", help="log more, and stay in the foreground")
    add("-q", "--quiet", action="store_true", help="log errors only")
    add("-V", "--version", action="version", version=f"uuidd {__version__}")


def _add_limits(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("limits (README.md gives the reason of each)")
    for name, default in ((field.name, field.default) for field in fields(Limits)):
        whole = isinstance(default, int)
        group.add_argument(
            f"--max-{name.replace('_', '-')}",
            dest=name,
            type=_whole_from(1) if whole else _seconds,
            default=default,
            metavar="NUM" if whole else "SEC",
            help=f"(default: {default})",
        )


MAX_WHOLE = 1_000_000_000
"""More than any count or number of seconds that makes sense here."""


def _whole_from(least: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_WHOLE))):
            value = -1
        else:
            value = int(text)
        if not least <= value <= MAX_WHOLE:
            raise argparse.ArgumentTypeError(
                f"{text[:40]!r} is no whole number from {least} to {MAX_WHOLE}"
            )
        return value

    return whole


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return value

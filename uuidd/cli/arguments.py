"""The command line of ``uuidd``: the options of util-linux's uuidd and more, and their values."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from uuidd import version
from uuidd.core.ids.kinds import KINDS
from uuidd.core.ids.snowflake import EPOCH_BITS, TWITTER_EPOCH, WORKER_BITS, WORKER_ID_BITS
from uuidd.core.timeline.slew import MAX_LEAD_SECONDS
from uuidd.output import Parser
from uuidd.refused import Refused
from uuidd.server.settings import Limits

if TYPE_CHECKING:
    from uuidd.fleet.address import Address

SOCKET = Path("/run/uuidd/request")
PID_FILE = Path("/run/uuidd/uuidd.pid")
STATE = Path("/var/lib/uuidd")

WINDOW_SECONDS = 600.0
"""The default of --worker-window and --worker-hold."""


MAX_WHOLE = 1_000_000_000
"""More than any count or number of seconds that makes sense here."""

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
MAX_SPAN = 30 * 86400.0

ENGINE_FILES = {
    "secret": "the file with the user's password at the engine, on one line; no other user of this"
    " host may be able to read it",
    "ca": "the file with the certificates (PEM) that may sign the engine's; TLS is used, and names"
    " are checked, with zks://, etcds:// and postgresql:// (default: the system's)",
    "cert": "the file with the certificate (PEM) to show the engine",
    "key": "the file with that certificate's key (PEM); no other user of this host may be able to"
    " read it",
}
"""The files that say who the daemon is to an engine, by the ends of their options' names."""


def path(text: str) -> Path:
    """Return a path. Raises ArgumentTypeError for an empty one."""
    if not text:
        raise argparse.ArgumentTypeError("the path is empty")
    return Path(text)


def whole(least: int, most: int = MAX_WHOLE) -> Callable[[str], int]:
    """Return a type of arguments: whole numbers from *least* to *most*."""

    def read(text: str) -> int:
        plain = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_WHOLE))
        if not (plain and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(
                f"{text[:40]!r} is not a whole number from {least} to {most}"
            )
        return int(text)

    return read


def seconds(least: float = 0.0) -> Callable[[str], float]:
    """Return a type of arguments: seconds, *least* or more; if that is 0, more than 0."""
    span = f"from {least:g} to {MAX_WHOLE}" if least else f"above 0, {MAX_WHOLE} at most"

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not (0 < value <= MAX_WHOLE and least <= value):
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number of seconds {span}")
        return value

    return read


def span(text: str) -> float:
    """Return the seconds in a span such as ``20s``, ``10m``, ``2h`` or ``1d``.

    Raises ArgumentTypeError for anything else, and for more than 30 days.
    """
    number, unit = text[:-1], text[-1:]
    plain = number.isascii() and number.replace(".", "", 1).isdigit() and len(number) < 10
    found = float(number) * _UNITS[unit] if plain and unit in _UNITS else 0.0
    if not 0 < found <= MAX_SPAN:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is not a span above 0 and up to 30d, such as 20s, 10m, 2h or 1d"
        )
    return found


def worker(text: str) -> int | Address:
    """Return a worker number, or the address in the URL of an engine."""
    return address(text) if "://" in text else whole(0, (1 << WORKER_BITS) - 1)(text)


def address(text: str) -> Address:
    """Return the address in the URL of an engine."""
    # Only hosts of a fleet pay for it.
    from uuidd.fleet.address import parse

    try:
        return parse(text)
    except Refused as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def unix_ms(text: str) -> int:
    """Return Unix milliseconds, from their number or from a time with an offset (RFC 3339)."""
    if text.isascii() and text.isdigit() and len(text) < 16:
        number = int(text)
        if number >> EPOCH_BITS:
            raise argparse.ArgumentTypeError(
                f"{text!r} has more than {EPOCH_BITS} bits; name {(1 << EPOCH_BITS) - 1}"
                " milliseconds since 1970 at most"
            )
        return number
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is neither a whole number of milliseconds since 1970 nor a time with an"
            " offset, like 2015-01-01T00:00:00Z"
        )
    ms = (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    if ms < 0:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} lies before 1970")
    return ms


def parser(kind: type[argparse.ArgumentParser] = Parser) -> argparse.ArgumentParser:
    """Return the parser of the command line, an instance of *kind*."""
    made = kind(
        prog="uuidd",
        description="A daemon that hands out unique, time-based ids to all programs of a host.",
        epilog="uuidd goes to the background unless -F, -S or -d is given. Units for systemd are"
        " installed by another command: see uuidd install-units --help.",
    )
    _add_util_linux(made)
    made.add_argument(
        "--state",
        type=path,
        metavar="DIR",
        help=f"the folder of the state (default: $STATE_DIRECTORY, or {STATE} if that is not set)",
    )
    made.add_argument(
        "--user",
        metavar="NAME",
        help="if root starts the daemon: give up root and run as this user, once the socket is"
        " open; not needed under systemd",
    )
    made.add_argument(
        "--check",
        action="store_true",
        help="check the options, and the files that the daemon would use; print one line for each"
        " problem, and start no daemon",
    )
    made.add_argument(
        "--node",
        default="random",
        metavar="NODE",
        help="the 48 bits that stand for this host in v1, v6 and Flakes: random (drawn once, then"
        " kept), mac (the address of the first network card that has a usable one), mac:IFACE (the"
        " address of this card), or a number in hex, 0x... (default: random)",
    )
    _add_steady(made)
    _add_limits(made)
    return made


def _add_util_linux(made: argparse.ArgumentParser) -> None:
    add = made.add_argument
    add(
        "-p",
        "--pid",
        type=path,
        metavar="FILE",
        help=f"the file to write the pid into (default: {PID_FILE})",
    )
    add(
        "-s",
        "--socket",
        type=path,
        metavar="FILE",
        help=f"the socket to listen at or, with -r, -t and -k, to connect to (default: {SOCKET})",
    )
    add(
        "-T",
        "--timeout",
        type=whole(0),
        default=0,
        metavar="SEC",
        help="end after SEC seconds without a request (default: 0, never)",
    )
    add("-k", "--kill", action="store_true", help="end the running daemon")
    add("-r", "--random", action="store_true", help="ask the running daemon for a random UUID")
    add("-t", "--time", action="store_true", help="ask the running daemon for a time-based UUID")
    add("-n", "--uuids", type=whole(0), metavar="NUM", help="with -r or -t: ask for NUM UUIDs")
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
        help="accepted for compatibility with util-linux; has no effect",
    )
    add("-d", "--debug", action="store_true", help="log more, and stay in the foreground")
    add("-q", "--quiet", action="store_true", help="log errors only")
    add(
        "-V",
        "--version",
        action="version",
        version=f"uuidd {version()}",
        help="show the version and end",
    )


def _add_steady(made: argparse.ArgumentParser) -> None:
    names = [kind.name for kind in KINDS.values() if kind.timeline in ("steady", "snowflake")]
    group = made.add_argument_group(
        f"steady kinds ({', '.join(names)})",
        "Ids of these kinds keep their order when the clock (UTC) is set back.",
    )
    add = group.add_argument
    add(
        "--worker",
        type=worker,
        metavar="N|URL",
        help="this host's number in Snowflakes, 0 to 1023; no two hosts may have the same; or the"
        " URL of an engine from which each host of a fleet gets one by itself:"
        " zk://HOST:PORT,.../PATH, etcd://HOST:PORT,.../PATH (zks:// and etcds:// with TLS),"
        " postgresql://USER@HOST/DATABASE, or folder:///PATH; without this option the daemon makes"
        " no Snowflakes",
    )
    add(
        "--datacenter",
        type=whole(0, (1 << WORKER_ID_BITS) - 1),
        metavar="N",
        help="the data center's number in Snowflakes, 0 to 31; --worker must then be 0 to 31"
        " too, and no two hosts may have the same pair of numbers; with a URL as --worker, the host"
        " gets one of this data center's 32 numbers",
    )
    add(
        "--worker-window",
        type=span,
        metavar="TIME",
        help="with a URL as --worker: for how long the host can make Snowflakes when the engine is"
        " away, such as 90s, 10m, 1h or 1d; every half of it the engine is asked (default: 10m)",
    )
    add(
        "--worker-hold",
        type=span,
        metavar="TIME",
        help="with a URL as --worker: for how long after that time another host leaves the number"
        " of a silent one alone; at least half of --worker-window (default: 10m)",
    )
    add_access(group)
    add(
        "--epoch",
        type=unix_ms,
        default=TWITTER_EPOCH,
        metavar="TIME",
        help="the time from which Snowflakes count: Unix milliseconds, or a time like"
        f" 2015-01-01T00:00:00Z (default: {TWITTER_EPOCH}, Twitter's)",
    )
    add(
        "--max-lead",
        type=seconds(),
        default=float(MAX_LEAD_SECONDS),
        metavar="SEC",
        help="refuse requests for these kinds while their time is more than SEC seconds ahead of"
        " UTC (default: 3600)",
    )
    add(
        "--rollback",
        choices=("slew", "wait", "refuse"),
        default="slew",
        help="what these kinds do after UTC was set back, until it reaches the time of the last id:"
        " let the time in ids go on at half the speed of UTC (slew), let requests wait (wait), or"
        " refuse them (refuse) (default: slew)",
    )
    add(
        "--require-sync",
        type=seconds(),
        metavar="SEC",
        help="after a start, refuse requests for these kinds until the kernel says that the clock"
        " is synchronised, with an error of SEC seconds at most (default: begin at once)",
    )
    add(
        "--after-clone",
        choices=("refuse", "go-on"),
        default="refuse",
        help="what to do with a --worker number that is not a URL once this machine was cloned and"
        " the clone has the number too: refuse Snowflakes, or go on because the original has ended"
        " (default: refuse)",
    )
    add(
        "--reset-steady",
        action="store_true",
        help="set the time of these kinds back to UTC, after the clock was far ahead; print what"
        " may be repeated or out of order, and start no daemon",
    )
    add(
        "--reset-epoch",
        action="store_true",
        help="forget which epochs Snowflakes were made with, so that a later --epoch is accepted;"
        " print what may be repeated, and start no daemon",
    )


def add_access(made: argparse._ActionsContainer) -> None:
    """Add --worker-user, --worker-secret, --worker-ca, --worker-cert and --worker-key."""
    made.add_argument("--worker-user", default="", metavar="NAME", help="the user at the engine")
    for name, what in ENGINE_FILES.items():
        made.add_argument(
            f"--worker-{name}",
            metavar="FILE",
            help=f"{what}; without a slash in it, FILE is one of systemd's credentials",
        )


def _add_limits(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("limits")
    for limit in fields(Limits):
        default, least = limit.default, limit.metadata["least"]
        count = isinstance(default, int)
        group.add_argument(
            f"--max-{limit.name.replace('_', '-')}",
            dest=limit.name,
            type=whole(least) if count else seconds(least),
            default=default,
            metavar="NUM" if count else "SEC",
            help=f"{limit.metadata['help']} (default: {default:{'' if count else 'g'}})",
        )

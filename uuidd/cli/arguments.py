"""The command line of ``uuidd``: util-linux's flags with its meaning, and ours."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from uuidd import __version__
from uuidd.cli import values
from uuidd.core.ids.snowflake import MACHINE_BITS, TWITTER_EPOCH, WORKER_BITS, machine_of
from uuidd.core.timeline.steady import MAX_LEAD_SECONDS
from uuidd.server.limits import LEAST, Limits

SOCKET = Path("/run/uuidd/request")
PID_FILE = Path("/run/uuidd/uuidd.pid")
STATE = Path("/var/lib/uuidd")


class Parser(argparse.ArgumentParser):
    """A parser that raises OSError when its help cannot be written; argparse passes over that."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is sys.stdout:
            sys.stdout.write(message)
        else:
            super()._print_message(message, file)


def parser(kind: type[argparse.ArgumentParser] = Parser) -> argparse.ArgumentParser:
    """Give the parser of the command line; it is one of *kind*."""
    made = kind(
        prog="uuidd",
        description="A daemon that hands out unique, time-based ids to all programs of a host.",
        epilog="uuidd goes to the background unless -F, -S or -d is given. Units for systemd are"
        " installed by another command: see uuidd install-units --help.",
    )
    _add_util_linux(made)
    made.add_argument(
        "--state",
        type=values.path,
        metavar="DIR",
        help=f"where the state is kept (default: $STATE_DIRECTORY, else {STATE})",
    )
    made.add_argument(
        "--user",
        metavar="NAME",
        help="switch to this user after the socket is open; for a start as root without systemd",
    )
    made.add_argument(
        "--defaults",
        type=values.path,
        metavar="FILE",
        help='read more options from the line UUIDD_OPTIONS="..." in FILE; on SIGHUP the daemon'
        " reads the limits and the log level there again",
    )
    made.add_argument(
        "--check",
        action="store_true",
        help="check the options, also those in --defaults, and the files that the daemon would use;"
        " print one line for each problem, and start no daemon",
    )
    made.add_argument(
        "--node",
        default="random",
        metavar="NODE",
        help="the 48 bits that stand for this host in v1, v6 and Flakes: random (drawn once, then"
        " kept), mac or mac:IFACE (a network card's address), ip:ADDR (the address of the card that"
        " has this IP address), or a number in hex, 0x... (default: random)",
    )
    _add_steady(made)
    _add_limits(made)
    return made


def worker_of(given: argparse.Namespace) -> int | None:
    """Give the machine number of Snowflakes: --worker, or --datacenter and --worker; None for none.

    Raises ValueError, naming the option, its value and its range.
    """
    worker, datacenter = given.worker, given.datacenter
    if datacenter is None:
        machine: int | None = worker
        return machine
    if worker is None:
        raise ValueError(f"--datacenter {datacenter} needs a --worker beside it, 0 to 31")
    if worker >= 1 << WORKER_BITS:
        raise ValueError(
            f"--worker {worker}: beside --datacenter it must be 0 to {(1 << WORKER_BITS) - 1}"
        )
    return machine_of(datacenter, worker)


def level_of(given: argparse.Namespace) -> int:
    """Give the log level that was chosen."""
    return logging.ERROR if given.quiet else logging.DEBUG if given.debug else logging.INFO


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
    add(
        "-p",
        "--pid",
        type=values.path,
        metavar="FILE",
        help=f"path to pid file (default: {PID_FILE})",
    )
    add(
        "-s",
        "--socket",
        type=values.path,
        metavar="FILE",
        help=f"path to socket (default: {SOCKET})",
    )
    add(
        "-T",
        "--timeout",
        type=values.whole(0),
        default=0,
        metavar="SEC",
        help="end after SEC seconds without a request (default: 0, never)",
    )
    add("-k", "--kill", action="store_true", help="end the running daemon")
    add("-r", "--random", action="store_true", help="ask the running daemon for a random UUID")
    add("-t", "--time", action="store_true", help="ask the running daemon for a time-based UUID")
    add(
        "-n",
        "--uuids",
        type=values.whole(0),
        metavar="NUM",
        help="with -r or -t: ask for NUM UUIDs",
    )
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
        version=f"uuidd {__version__}",
        help="show the version and end",
    )


def _add_steady(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group(
        "steady kinds (v7, Snowflake, Flake, ULID, KSUID, Push ID)",
        "Ids of these kinds keep their order when the clock (UTC) is set back.",
    )
    add = group.add_argument
    add(
        "--worker",
        type=values.whole(0, (1 << MACHINE_BITS) - 1),
        metavar="N",
        help="this host's number in Snowflakes, 0 to 1023, different on each host; without it the"
        " daemon makes no Snowflakes",
    )
    add(
        "--datacenter",
        type=values.whole(0, (1 << WORKER_BITS) - 1),
        metavar="N",
        help="the data center's number in Snowflakes, 0 to 31; --worker must then be 0 to 31 too",
    )
    add(
        "--epoch",
        type=values.unix_ms,
        default=TWITTER_EPOCH,
        metavar="TIME",
        help="the time from which Snowflakes count: Unix milliseconds, or a time like"
        f" 2015-01-01T00:00:00Z (default: {TWITTER_EPOCH}, Twitter's)",
    )
    add(
        "--max-lead",
        type=values.seconds(),
        default=float(MAX_LEAD_SECONDS),
        metavar="SEC",
        help="refuse these kinds while they are more than SEC seconds ahead of UTC (default: 3600)",
    )
    add(
        "--rollback",
        choices=("slew", "wait", "refuse"),
        default="slew",
        help="what these kinds do after UTC was set back, until it catches up: go on at half speed"
        " (slew), wait, or refuse requests (default: slew)",
    )
    add(
        "--reset-steady",
        action="store_true",
        help="let these kinds start at UTC again, after the clock was far ahead; print what is"
        " lost by that, and start no daemon",
    )
    add(
        "--reset-epoch",
        action="store_true",
        help="forget which epochs Snowflakes were made with, so that a later --epoch is accepted;"
        " print what is lost by that, and start no daemon",
    )


def _add_limits(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("limits")
    for name, default in ((field.name, field.default) for field in fields(Limits)):
        whole = isinstance(default, int)
        group.add_argument(
            f"--max-{name.replace('_', '-')}",
            dest=name,
            type=values.whole(int(LEAST[name])) if whole else values.seconds(LEAST[name]),
            default=default,
            metavar="NUM" if whole else "SEC",
            help=f"{_LIMITED.get(name, '')} (default: {default:{'' if whole else 'g'}})".lstrip(),
        )


_LIMITED = {
    "request_bytes": "bytes of one request",
    "pipelined": "requests of one connection that are answered in a row, before the replies are"
    " sent and other connections are served",
    "connections": "connections in all",
    "connections_per_uid": "connections of one user; root and the daemon's own user are exempt",
    "waiting_per_uid": "requests of one user that wait for free ticks",
    "unread_per_uid": "connections of one user that have not read their replies",
    "request_seconds": "seconds from a request's first byte to its last; when no more connections"
    " are allowed, also from connecting to the first request",
    "reply_seconds": "seconds for a client to read a reply",
}
"""What each limit counts; server/limits.py gives the reasons."""

"""What the command line and a file of options choose: checked, and put together.

The file, as /etc/default/uuidd for the service, holds ``UUIDD_OPTIONS="..."``. Options of the
command line go over those of the file.
"""

from __future__ import annotations

import argparse
import logging
import os
import shlex
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from uuidd.cli import arguments, engine
from uuidd.core.ids.snowflake import WORKER_BITS, WORKER_ID_BITS, worker_from_halves
from uuidd.refused import Refused
from uuidd.server.settings import Limits, RereadError, Settings

if TYPE_CHECKING:
    from uuidd.fleet.address import Fleet

NAME = "UUIDD_OPTIONS"
"""The variable that a file of options sets."""

COMMANDS = ("kill", "random", "time", "reset_steady", "reset_epoch", "check", "defaults")
"""Options that a file may not hold, because the daemon does not start with them."""

EXCLUDING = (("pid", "no_pid"), ("random", "time"), ("debug", "quiet"))

NOT_SETTINGS = ("quiet", "debug", "check")


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """Return what the command line says, over what the file of ``--defaults`` says.

    Wrong usage ends the program with status 2. With ``--check`` it raises Refused instead, as
    a mistake in the file always does.
    """
    parser = arguments.parser(_RaisingParser if "--check" in words else arguments.Parser)
    given = parser.parse_args(words)
    if given.defaults is not None:
        given = with_defaults(given.defaults, words)
    for one, other in EXCLUDING:
        if getattr(given, one) and getattr(given, other):
            parser.error(f"--{one} and --{other.replace('_', '-')} exclude each other")
    return given


def with_defaults(path: Path, words: Sequence[str]) -> argparse.Namespace:
    """Return what the options of a file and, over them, *words* say. Raises Refused."""
    options = read_defaults(path)
    parser = arguments.parser(FileParser)
    try:
        # The file alone first, so that the error for a mistake in it names the file.
        alone = parser.parse_args(options)
        for name in COMMANDS:
            if getattr(alone, name):
                raise Refused(f"--{name.replace('_', '-')} cannot be set in a file")
    except Refused as error:
        raise Refused(f"{path}: {error}") from None
    return parser.parse_args([*options, *words])


def read_defaults(path: Path) -> list[str]:
    """Return the options that the file at *path* holds, none when there is no such file.

    It has lines as a shell reads them: ``UUIDD_OPTIONS="--worker 5"``, comments, and nothing else.
    Raises Refused, naming the line, for anything else.
    """
    try:
        text = path.read_text()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:  # also a NUL in the path
        raise Refused(f"{path} cannot be read: {error}") from error
    options: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            words = shlex.split(line, comments=True)
            if words:
                options = _value(words, line)
        except ValueError as error:
            raise Refused(f"{path}, line {number}: {error}") from error
    return options


def _value(words: list[str], line: str) -> list[str]:
    name, _, value = words[0].partition("=")
    if len(words) > 1 or name != NAME:
        raise ValueError(f'{line.strip()[:60]!r} is not {NAME}="..."')
    return shlex.split(value)


def settings(given: argparse.Namespace, words: Sequence[str]) -> Settings:
    """Return what the options choose. Raises Refused; *words* are the command line's."""
    # Imported here because only the daemon needs it, and -t, -r and -k are to answer fast.
    from uuidd import privileges

    worker, fleet = worker_of(given)
    user = privileges.user(given.user) if given.user else None
    socket = pid_file = None
    if not given.socket_activation:
        socket = (given.socket or arguments.SOCKET).absolute()
        pid_file = None if given.no_pid else (given.pid or arguments.PID_FILE).absolute()
        if socket == pid_file:
            raise Refused(f"--socket and --pid both name {socket}; name two files")
    return Settings(
        socket=socket,
        state=state_folder(given).absolute(),
        node=given.node,
        pid_file=pid_file,
        idle_timeout=given.timeout,
        limits=limits_of(given),
        worker=worker,
        fleet=fleet,
        epoch=given.epoch,
        max_lead=given.max_lead,
        rollback=given.rollback,
        require_sync=given.require_sync,
        go_on_after_clone=given.after_clone == "go-on",
        user=user,
        level=level_of(given),
        reread=None
        if given.defaults is None
        else partial(reread, given.defaults.absolute(), given, words),
    )


def reread(path: Path, at_start: argparse.Namespace, words: Sequence[str]) -> Settings:
    """Return what the command line and the file choose now, for a running daemon to take over.

    *at_start* and *words* are the options that the daemon was started with, and the command line
    among them. All options are checked as at a start. Raises RereadError, with all that is wrong in
    one line.
    """
    from uuidd.server.checking import problems

    try:
        given = with_defaults(path, words)
        chosen = settings(given, words)
        wrong = problems(chosen)
    except Refused as error:
        raise RereadError(str(error)) from error
    if wrong:
        raise RereadError("; ".join(wrong))
    changed = {name for name, value in vars(given).items() if value != getattr(at_start, name)}
    changed -= {*NOT_SETTINGS, *(field.name for field in fields(Limits))}
    return replace(chosen, restart_for=tuple(sorted(changed)))


def worker_of(given: argparse.Namespace) -> tuple[int | None, Fleet | None]:
    """Return the worker number of --worker and --datacenter, or the fleet to get one from.

    Both are None if no --worker is given. Raises Refused.
    """
    worker, datacenter = given.worker, given.datacenter
    most = (1 << WORKER_ID_BITS) - 1
    if isinstance(worker, str):
        low, high = 0, (1 << WORKER_BITS) - 1
        if datacenter is not None:
            low, high = worker_from_halves(datacenter, 0), worker_from_halves(datacenter, most)
        return None, _fleet(given, low, high)
    for name in ("window", "hold", "user", "secret", "ca", "cert", "key"):
        if getattr(given, f"worker_{name}"):
            raise Refused(f"--worker-{name} needs a URL as --worker, like etcd://h1:2379/uuidd")
    if datacenter is None:
        return worker, None
    if worker is None:
        raise Refused(f"--datacenter {datacenter} needs a --worker beside it, 0 to 31, or a URL")
    if worker > most:
        raise Refused(f"--worker {worker}: beside --datacenter it must be 0 to {most}")
    return worker_from_halves(datacenter, worker), None


def _fleet(given: argparse.Namespace, low: int, high: int) -> Fleet:
    from uuidd.fleet.address import Fleet, parse

    window = given.worker_window or arguments.WINDOW_SECONDS
    hold = given.worker_hold or arguments.WINDOW_SECONDS
    if hold < window / 2:
        raise Refused(
            f"--worker-hold {hold:g}s is less than half of --worker-window {window:g}s; a number"
            " could then be taken from a host whose renewal the engine has lost"
        )
    return Fleet(parse(given.worker), engine.access(given), window, hold, low, high)


def level_of(given: argparse.Namespace) -> int:
    """Return the log level that was chosen."""
    return logging.ERROR if given.quiet else logging.DEBUG if given.debug else logging.INFO


def limits_of(given: argparse.Namespace) -> Limits:
    """Return the limits that were chosen."""
    return Limits(**{field.name: getattr(given, field.name) for field in fields(Limits)})


def state_folder(given: argparse.Namespace) -> Path:
    """Return the state folder: --state, else the one systemd made for the service, else ours."""
    chosen: Path | None = given.state
    if chosen is not None:
        return chosen
    # systemd passes several, with colons between, only to a unit that asks for several.
    from_systemd = os.environ.get("STATE_DIRECTORY", "").split(":")[0]
    return Path(from_systemd) if from_systemd else arguments.STATE


class _RaisingParser(arguments.Parser):
    """A parser that raises Refused where another shows its usage and ends the program."""

    def error(self, message: str) -> NoReturn:
        """Raise Refused."""
        raise Refused(message)


class FileParser(_RaisingParser):
    """A parser of a file's options, where -h and -V have no place: it prints nothing."""

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Raise Refused."""
        raise Refused(message or "-h and -V cannot be set in a file")

    def _print_message(self, message: str, file: object = None) -> None:
        """Print nothing."""

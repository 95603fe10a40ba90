"""What the command line and a file of options choose: checked, and put together."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from uuidd.cli import arguments, defaults
from uuidd.cli.defaults import DefaultsError

if TYPE_CHECKING:
    from uuidd.server.settings import Reread, Settings

COMMANDS = ("kill", "random", "time", "reset_steady", "reset_epoch", "check", "defaults")
"""Options that a file may not hold, for the daemon does not start with them."""

EXCLUDING = (("pid", "no_pid"), ("random", "time"), ("debug", "quiet"))

NOT_SETTINGS = ("quiet", "debug", "check")


class OptionsError(Exception):
    """The options cannot be used; one line that names one, its value and its range."""


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """Give what the command line says, over what the file of ``--defaults`` says.

    Wrong usage ends the program with status 2, or with ``--check`` raises OptionsError, as
    whatever is wrong in the file does.
    """
    parser = arguments.parser(_Checker if "--check" in words else arguments.Parser)
    given = parser.parse_args(words)
    if given.defaults is not None:
        given = with_defaults(given.defaults, words)
    for one, other in EXCLUDING:
        if getattr(given, one) and getattr(given, other):
            parser.error(f"--{one} and --{other.replace('_', '-')} exclude each other")
    return given


class _Checker(arguments.Parser):
    """A parser that raises OptionsError where another shows its usage and ends the program."""

    def error(self, message: str) -> NoReturn:
        raise OptionsError(message)


def with_defaults(path: Path, words: Sequence[str]) -> argparse.Namespace:
    """Give what the options of a file and, over them, *words* say. Raises OptionsError."""
    try:
        options = defaults.options(path)
    except DefaultsError as error:
        raise OptionsError(str(error)) from None
    try:
        # Alone first, so that what is wrong in the file is told of the file.
        alone = arguments.parser(defaults.Parser).parse_args(options)
        for name in COMMANDS:
            if getattr(alone, name):
                raise DefaultsError(f"--{name.replace('_', '-')} is not for a file")
    except DefaultsError as error:
        raise OptionsError(f"{path}: {error}") from None
    try:
        return arguments.parser(defaults.Parser).parse_args([*options, *words])
    except DefaultsError as error:
        raise OptionsError(str(error)) from None


def settings(given: argparse.Namespace, words: Sequence[str]) -> Settings:
    """Give what the options choose. Raises OptionsError; *words* are the command line's."""
    # Only the daemon needs these; -t, -r and -k are to be answered before they were imported.
    from uuidd import privileges
    from uuidd.server.settings import Settings

    try:
        worker = arguments.worker_of(given)
        user = privileges.user(given.user) if given.user else None
    except (ValueError, privileges.PrivilegeError) as error:
        raise OptionsError(str(error)) from None
    return Settings(
        socket=None if given.socket_activation else _absolute(given.socket, arguments.SOCKET),
        state=arguments.state_folder(given).absolute(),
        node=given.node,
        pid_file=(
            None
            if given.no_pid or given.socket_activation
            else _absolute(given.pid, arguments.PID_FILE)
        ),
        idle_timeout=given.timeout,
        limits=arguments.limits_of(given),
        worker=worker,
        epoch=given.epoch,
        max_lead=given.max_lead,
        rollback=given.rollback,
        user=user,
        reread=None
        if given.defaults is None
        else partial(reread, given.defaults.absolute(), given, words),
    )


def _absolute(chosen: Path | None, default: Path) -> Path:
    return (chosen or default).absolute()


def reread(path: Path, begun: argparse.Namespace, words: Sequence[str]) -> Reread:
    """Give what a running daemon takes over of the file's options.

    All of them are checked as at a start. Raises RereadError, with all that is wrong in one line.
    """
    from uuidd.server.checking import problems
    from uuidd.server.limits import as_settings
    from uuidd.server.settings import Reread, RereadError

    try:
        given = with_defaults(path, words)
        wrong = problems(settings(given, words), running=settings(begun, words))
    except OptionsError as error:
        raise RereadError(str(error)) from error
    if wrong:
        raise RereadError("; ".join(wrong))
    limits = arguments.limits_of(given)
    changed = {name for name, value in vars(given).items() if value != getattr(begun, name)}
    changed -= {*NOT_SETTINGS, *as_settings(limits)}
    return Reread(limits, arguments.level_of(given), tuple(sorted(changed)))

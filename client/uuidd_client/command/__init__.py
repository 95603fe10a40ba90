"""The ``uuidctl`` command: makes ids, and shows ids and the daemon's status."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

from uuidd import version
from uuidd.output import Output, OutputError, Parser, give_up
from uuidd_client import extension
from uuidd_client.command import bounds, inspect, metrics, new, renew, run, status
from uuidd_client.command.common import CommandError, complain
from uuidd_client.errors import DaemonUnavailable, TimeOutOfRange
from uuidd_client.system import WrongVariable


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 0, 1 for a failure, 2 for wrong usage.

    ``status --check`` and ``run`` have others.
    """
    if sys.stdout is None:
        # Python sets it so if descriptor 1 is closed.
        complain("standard output is closed")
        return 1
    try:
        with contextlib.redirect_stdout(Output(sys.stdout)):
            return _main(argv)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has closed the pipe.
        give_up()
    except OutputError as error:
        complain(error)
        give_up()
    except (CommandError, DaemonUnavailable, TimeOutOfRange, WrongVariable, OSError) as error:
        complain(error)
    return 1


def _main(argv: Sequence[str] | None) -> int:
    try:
        given = parser().parse_args(argv)
    finally:
        # Also after --help, which ends with SystemExit.
        sys.stdout.flush()
    before = signal.getsignal(signal.SIGINT)
    # Not if it is ignored, as for a command in the background of a shell.
    if callable(before):
        # KeyboardInterrupt, so that all is cleaned up. Before and after the command there is
        # nothing to clean up: the script lets Ctrl-C end the process.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code: int = given.do(given)
        sys.stdout.flush()
    finally:
        signal.signal(signal.SIGINT, before)
    return code


class _Parser(Parser):
    """A parser that can take words for values that begin as options do."""

    is_value: Callable[[str], object] = staticmethod(lambda _: False)
    """Whether a word that begins as an option does is a value."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the words, with a space before each value: argparse then takes it for one."""
        words = sys.argv[1:] if args is None else args
        return super().parse_known_args(
            [f" {word}" if self.is_value(word) else word for word in words], namespace
        )


def _path(text: str) -> str:
    if not text:
        # As of a shell's variable that is not set: another daemon than the one meant would answer.
        raise argparse.ArgumentTypeError("the path is empty")
    return text


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = _Parser(
        prog="uuidctl",
        description="Make ids, show what ids are made of, and show the status of uuidd.",
    )
    made.add_argument(
        "-s",
        "--socket",
        type=_path,
        metavar="FILE",
        help="the daemon's socket (default: $UUIDD_SOCKET, or /run/uuidd/request if that is not"
        " set)",
    )
    made.add_argument(
        "-V",
        "--version",
        action="version",
        version=f"uuidctl {version()}, makes ids in {extension.implementation.capitalize()}",
        help="show the version, and whether ids are made in C or in Python, and end",
    )
    commands = made.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in (new, bounds, inspect, status, metrics, renew, run):
        command.add_to(commands)
    return made

"""The ``uuidctl`` command: the user's side of uuidd."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from uuidd_client.command import bench, bounds, inspect, new, run, status
from uuidd_client.command.common import CommandError
from uuidd_client.errors import DaemonUnavailable, TimeOutOfRange


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and give its exit status: 0, 1 for a failure, 2 for wrong usage."""
    if sys.stdout is None:
        # Python's word for a descriptor 1 that is closed.
        _complain("standard output is closed")
        return 1
    try:
        try:
            given = parser().parse_args(argv)
        finally:
            # After --help as well, which ends with SystemExit.
            sys.stdout.flush()
        with _interruptible():
            code: int = given.do(given)
            sys.stdout.flush()
    except (CommandError, DaemonUnavailable, TimeOutOfRange) as error:
        _complain(str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read has seen enough.
        _give_up_output()
        return 1
    except OSError as error:
        _complain(f"standard output cannot be written: {error.strerror}")
        _give_up_output()
        return 1
    return code


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """While the context lasts Ctrl-C raises KeyboardInterrupt, so that all ends in order.

    Before and after, where there is nothing to put in order, the script lets it end the process.
    """
    before = signal.getsignal(signal.SIGINT)
    if not callable(before):
        # Ignored, as of a command in a shell's background.
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _complain(what: str) -> None:
    """Say on standard error what is wrong; if that is closed, nowhere."""
    if sys.stderr is not None:
        print(f"uuidctl: {what}", file=sys.stderr)


def _give_up_output() -> None:
    """Keep the interpreter from writing what is left, and failing again, at its end."""
    # Without a descriptor left, it may fail again.
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Parser(argparse.ArgumentParser):
    """A parser whose *is_value* can say of words that begin as options do that they are values."""

    @staticmethod
    def is_value(_: str) -> bool:
        """Whether a word is a value, though it begins as an option does."""
        return False

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is sys.stdout:
            # argparse's own passes over an OSError, and the status would be 0.
            sys.stdout.write(message)
        else:
            super()._print_message(message, file)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the words; a value gets a space before it, by which argparse knows one."""
        words = sys.argv[1:] if args is None else args
        return super().parse_known_args(
            [f" {word}" if self.is_value(word) else word for word in words], namespace
        )


def parser() -> argparse.ArgumentParser:
    """Give the parser of the command line."""
    made = _Parser(
        prog="uuidctl",
        description="Make ids, show what ids are made of, and show the status of uuidd.",
    )
    made.add_argument(
        "-s",
        "--socket",
        metavar="FILE",
        help="path to socket (default: $UUIDD_SOCKET, else /run/uuidd/request)",
    )
    commands = made.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in (new, bounds, inspect, status, bench, run):
        command.add_to(commands)
    return made

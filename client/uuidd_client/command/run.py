"""``uuidctl run``: runs a command with a private daemon."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

from uuidd_client import private_daemon
from uuidd_client.command.common import CommandError

PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def add_to(commands: Any) -> None:
    """Add the command to an argparse parser's commands."""
    command = commands.add_parser(
        "run",
        help="run a command with a private daemon",
        description="Run a command with a private daemon in a temporary folder. The daemon and the"
        " folder are removed when the command ends.",
    )
    command.add_argument(
        "--worker", metavar="N", help="the daemon's worker number, which Snowflakes need"
    )
    command.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="-- CMD ...",
        help="the command and its arguments; its environment variable UUIDD_SOCKET has the path"
        " of the private daemon",
    )
    command.set_defaults(do=lambda given: _do(command, given))


def _do(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    if not command:
        parser.error("a command is missing: uuidctl run -- CMD ...")
    try:
        with _signals() as receivers, private_daemon.running(given.worker) as daemon:
            return _run(command, {**os.environ, "UUIDD_SOCKET": str(daemon.socket)}, receivers)
    except private_daemon.CannotRun as error:
        raise CommandError(str(error)) from error


def _run(
    command: list[str], environment: dict[str, str], receivers: list[subprocess.Popen[bytes]]
) -> int:
    """Run *command* and return its exit status: 128 plus the signal's number if one ended it."""
    # Blocked until the process is known that they are passed on to. The command gets them all.
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    try:
        process = subprocess.Popen(  # noqa: S603  (the user's own)
            command, env=environment, preexec_fn=_unblock
        )
        receivers.append(process)
    except OSError as error:
        raise CommandError(f"{command[0]} cannot be run: {error.strerror}") from error
    finally:
        _unblock()
    with process:
        status = process.wait()
    return status if status >= 0 else 128 - status


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)


@contextlib.contextmanager
def _signals() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Let signals end this process, or pass them on to the processes in the list, if any.

    SIGINT is not passed on: the terminal sends it to the command too.
    """
    receivers: list[subprocess.Popen[bytes]] = []

    def handle(number: int, _: object) -> None:
        if not receivers:
            # An exception, so that the daemon is ended and its folder removed.
            raise SystemExit(128 + number)
        if number != signal.SIGINT:
            for process in receivers:
                process.send_signal(number)

    before = {
        number: signal.signal(number, handle)
        for number in PASSED_ON
        # One that is ignored, as under nohup, stays so for the command too.
        if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield receivers
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

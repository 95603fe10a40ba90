"""The ``uuidd`` command: starts the daemon, or asks or ends the one that runs."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from uuidd.cli import arguments, asking, background, defaults, installing, logs

if TYPE_CHECKING:
    from uuidd.server.settings import Reread


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and give its exit status: 0, 1 for a failure, 2 for wrong usage."""
    background.fill_standard_descriptors()
    try:
        status = _main(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has seen enough.
        _give_up_output()
        return 1
    except OSError as error:
        _complain(f"standard output cannot be written: {error.strerror}")
        _give_up_output()
        return 1
    return status


def _give_up_output() -> None:
    """Keep the interpreter from writing what is left, and failing again, at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _main(words: list[str]) -> int:
    if words[:1] == [installing.COMMAND]:
        return installing.main(words[1:])
    parser = arguments.parser()
    given = parser.parse_args(words)
    if given.defaults is not None:
        try:
            given = _with_defaults(given.defaults, words)
        except defaults.DefaultsError as error:
            _complain(str(error))
            return 1
    for one, other in (("pid", "no_pid"), ("random", "time"), ("debug", "quiet")):
        if getattr(given, one) and getattr(given, other):
            parser.error(f"--{one} and --{other.replace('_', '-')} exclude each other")
    if given.kill or given.random or given.time:
        return _ask(given)
    if given.reset_steady:
        return _reset_steady(given)
    return _start(given, words)


def _with_defaults(path: Path, words: Sequence[str]) -> argparse.Namespace:
    """Give what the options of a file and, over them, the command line say."""
    options = defaults.options(path)
    try:
        # Alone first, so that what is wrong in the file is told of the file.
        alone = arguments.parser(defaults.Parser).parse_args(options)
        for name in ("kill", "random", "time", "reset_steady", "defaults"):
            if getattr(alone, name):
                raise defaults.DefaultsError(f"--{name.replace('_', '-')} is not for a file")
    except defaults.DefaultsError as error:
        raise defaults.DefaultsError(f"{path}: {error}") from None
    return arguments.parser(defaults.Parser).parse_args([*options, *words])


def _ask(given: argparse.Namespace) -> int:
    path = given.socket or arguments.SOCKET
    try:
        if given.kill:
            pid = asking.kill(path)
            if not given.quiet:
                print(f"Killed uuidd running at pid {pid}." if pid else f"No uuidd at {path}.")
        if given.time:
            print(asking.time_uuids(path, given.uuids))
        if given.random:
            for line in asking.random_uuids(path, given.uuids):
                print(line)
    except asking.AskError as error:
        if not given.quiet:
            _complain(str(error))
        return 1
    return 0


def _reset_steady(given: argparse.Namespace) -> int:
    from uuidd.server.resetting import reset_steady
    from uuidd.store import StoreError

    try:
        print(reset_steady(arguments.state_folder(given).absolute()))
    except StoreError as error:
        _complain(str(error))
        return 1
    return 0


def _start(given: argparse.Namespace, words: Sequence[str]) -> int:
    # Only the daemon needs trio, which takes longer to import than a question to be answered.
    from uuidd import privileges
    from uuidd.node import NodeError
    from uuidd.server.doors import DoorError
    from uuidd.server.pidfile import PidFileError
    from uuidd.server.settings import Settings
    from uuidd.server.starting import DescriptorsError, EpochError, started
    from uuidd.store import StoreError
    from uuidd.systemd import ActivationError

    try:
        worker = arguments.worker_of(given)
        user = privileges.user(given.user) if given.user else None
    except (ValueError, privileges.PrivilegeError) as error:
        _complain(str(error))
        return 1
    level = arguments.level_of(given)
    logs.to_stderr(level)
    if given.defaults is not None and not given.defaults.exists():
        logging.getLogger("uuidd").warning(
            "no such file, started without its options: defaults=%s", given.defaults
        )
    settings = Settings(
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
        else partial(_reread, given.defaults.absolute(), given, words),
    )
    stays = given.no_fork or given.socket_activation or given.debug
    behind = None if stays else background.enter()
    try:
        with started(settings) as daemon:
            if behind is not None:
                behind.ready()
                logs.to_syslog(level)
            return 0 if daemon.serve() else 1
    except (
        DoorError,
        StoreError,
        PidFileError,
        NodeError,
        EpochError,
        DescriptorsError,
        privileges.PrivilegeError,
        ActivationError,
    ) as error:
        _complain(str(error))
        return 1
    except KeyboardInterrupt:
        return 130


def _reread(path: Path, begun: argparse.Namespace, words: Sequence[str]) -> Reread:
    """Give what a running daemon takes over of the file's options. Raises RereadError."""
    from uuidd.server.limits import as_settings
    from uuidd.server.settings import Reread, RereadError

    try:
        given = _with_defaults(path, words)
    except defaults.DefaultsError as error:
        raise RereadError(str(error)) from error
    limits = arguments.limits_of(given)
    changed = {name for name, value in vars(given).items() if value != getattr(begun, name)}
    changed -= {"quiet", "debug", *as_settings(limits)}
    return Reread(limits, arguments.level_of(given), tuple(sorted(changed)))


def _absolute(chosen: Path | None, default: Path) -> Path:
    return (chosen or default).absolute()


def _complain(line: str) -> None:
    print(logs.complaint(line), file=sys.stderr)

"""The ``uuidd`` command: starts the daemon, or asks or ends the one that runs."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from uuidd.cli import arguments, asking, background, logs


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and give its exit status: 0, 1 for a failure, 2 for wrong usage."""
    background.fill_standard_descriptors()
    parser = arguments.parser()
    given = parser.parse_args(argv)
    for one, other in (("pid", "no_pid"), ("random", "time"), ("debug", "quiet")):
        if getattr(given, one) and getattr(given, other):
            parser.error(f"--{one} and --{other.replace('_', '-')} exclude each other")
    if given.kill or given.random or given.time:
        return _ask(given)
    if given.reset_steady:
        return _reset_steady(given)
    return _start(given)


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
            print(asking.random_uuids(path, given.uuids))
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


def _start(given: argparse.Namespace) -> int:
    # Only the daemon needs trio, which takes longer to import than a question to be answered.
    from uuidd.node import NodeError
    from uuidd.server.daemon import EpochError, Settings, started
    from uuidd.server.doors import DoorError
    from uuidd.server.pidfile import PidFileError
    from uuidd.store import StoreError
    from uuidd.systemd import ActivationError

    try:
        worker = arguments.worker_of(given)
    except ValueError as error:
        _complain(str(error))
        return 1
    level = logging.ERROR if given.quiet else logging.DEBUG if given.debug else logging.INFO
    logs.to_stderr(level)
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
        ActivationError,
    ) as error:
        _complain(str(error))
        return 1
    except KeyboardInterrupt:
        return 130


def _absolute(chosen: Path | None, default: Path) -> Path:
    return (chosen or default).absolute()


def _complain(line: str) -> None:
    print(f"uuidd: {line}", file=sys.stderr)

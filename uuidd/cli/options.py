"""What the command line chooses: checked, and put together."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from uuidd.cli import arguments
from uuidd.core.ids.snowflake import WORKER_BITS, WORKER_ID_BITS, worker_from_halves
from uuidd.output import Parser
from uuidd.refused import Refused
from uuidd.server.settings import Limits, Settings

if TYPE_CHECKING:
    from uuidd.fleet.address import Address, Fleet

EXCLUDING = (("pid", "no_pid"), ("random", "time"), ("debug", "quiet"))


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """Return what the command line says.

    Wrong usage ends the program with status 2. With ``--check`` and as a service, whose log is to
    have one line, it raises Refused instead.
    """
    in_a_line = not {"--check", "--socket-activation", "-S"}.isdisjoint(words)
    parser = arguments.parser(_RaisingParser if in_a_line else Parser)
    given = parser.parse_args(words)
    for one, other in EXCLUDING:
        if getattr(given, one) and getattr(given, other):
            parser.error(f"--{one} and --{other.replace('_', '-')} exclude each other")
    return given


def settings(given: argparse.Namespace) -> Settings:
    """Return what the options choose. Raises Refused."""
    # Imported here because only the daemon needs it, and -t, -r and -k are to answer fast.
    from uuidd import privileges

    worker, fleet = worker_of(given)
    user = privileges.user(given.user) if given.user else None
    socket = pid_file = None
    if not given.socket_activation:
        socket = _absolute(given.socket or arguments.SOCKET)
        pid_file = None if given.no_pid else _absolute(given.pid or arguments.PID_FILE)
        if socket == pid_file:
            raise Refused(f"--socket and --pid both name {socket}; name two files")
    return Settings(
        socket=socket,
        state=state_folder(given),
        node=given.node,
        pid_file=pid_file,
        idle_timeout=given.timeout,
        limits=Limits(**{field.name: getattr(given, field.name) for field in fields(Limits)}),
        worker=worker,
        fleet=fleet,
        epoch=given.epoch,
        max_lead=given.max_lead,
        rollback=given.rollback,
        require_sync=given.require_sync,
        go_on_after_clone=given.after_clone == "go-on",
        user=user,
    )


def worker_of(given: argparse.Namespace) -> tuple[int | None, Fleet | None]:
    """Return the worker number of --worker and --datacenter, or the fleet to get one from.

    Both are None if no --worker is given. Raises Refused.
    """
    worker, datacenter = given.worker, given.datacenter
    most = (1 << WORKER_ID_BITS) - 1
    if not isinstance(worker, int | None):
        low, high = 0, (1 << WORKER_BITS) - 1
        if datacenter is not None:
            low, high = worker_from_halves(datacenter, 0), worker_from_halves(datacenter, most)
        return None, _fleet(given, low, high)
    for name in ("window", "hold", "user", *arguments.ENGINE_FILES):
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
    from uuidd.fleet.address import Fleet

    window = given.worker_window or arguments.WINDOW_SECONDS
    hold = given.worker_hold or arguments.WINDOW_SECONDS
    if hold < window / 2:
        raise Refused(
            f"--worker-hold {hold:g}s is less than half of --worker-window {window:g}s; a number"
            " could then be taken from a host whose renewal the engine has lost"
        )
    return Fleet(reached(given.worker, given), window, hold, low, high)


def reached(address: Address, given: argparse.Namespace) -> Address:
    """Return *address* with what the options of ``add_access`` say. Raises Refused."""
    from uuidd.fleet.address import place

    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    files = {}
    for name in arguments.ENGINE_FILES:
        if (text := getattr(given, f"worker_{name}")) is not None:
            files[name] = _absolute(place(f"--worker-{name}", text, folder))
    return replace(address, user=given.worker_user or address.user, files=files)


def level_of(given: argparse.Namespace) -> int:
    """Return the log level that was chosen."""
    return logging.ERROR if given.quiet else logging.DEBUG if given.debug else logging.INFO


def state_folder(given: argparse.Namespace) -> Path:
    """Return the state folder: --state, else the one systemd made for the service, else ours."""
    # systemd passes several, with colons between, only to a unit that asks for several.
    from_systemd = os.environ.get("STATE_DIRECTORY", "").split(":")[0]
    return _absolute(given.state or Path(from_systemd or arguments.STATE))


def _absolute(path: Path) -> Path:
    try:
        return path.absolute()
    except FileNotFoundError:
        raise Refused(
            f"{path} is below the current folder, which was removed; name a whole"
            " path, or go to another folder"
        ) from None


class _RaisingParser(Parser):
    """A parser that raises Refused where another shows its usage and ends the program."""

    def error(self, message: str) -> NoReturn:
        """Raise Refused."""
        raise Refused(message)

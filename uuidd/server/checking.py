"""Finds what a start would be refused for, without a start: for ``--check`` and for a reload."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from uuidd.clock import Clock
from uuidd.fleet.fences import check_fleet
from uuidd.node import choose
from uuidd.privileges import User, acting_as, is_handed_over, owner
from uuidd.refused import Refused
from uuidd.server.listeners import check_path
from uuidd.server.pidfile import check_pid_file
from uuidd.server.settings import Settings
from uuidd.server.startup import check_descriptors, check_epoch, epochs_with
from uuidd.server.trust import check_sync
from uuidd.statefile import UnusableError, check_machine, decode, machine_hash
from uuidd.store import check_folder


def problems(settings: Settings, *, running: Settings | None = None) -> list[str]:
    """Return a line for each reason for which a start with *settings* would be refused.

    Nothing is changed, locked or connected to, so a running daemon is not a reason. *running* are
    the settings of the daemon that calls this, if it is one: what it holds already is not checked.
    If root calls this without ``--user``, a state folder may belong to any one user, because a
    service runs as a user that its options do not name.
    """
    found = [
        *_refused(lambda: choose(settings.node)),
        *_refused(lambda: check_epoch(settings, Clock().now())),
        *_refused(lambda: check_sync(settings.require_sync)),
        *_refused(lambda: check_fleet(settings.fleet, unseen=_unseen_credentials())),
    ]
    if not running:
        found += _refused(check_descriptors)
    socket, pid_file = settings.socket, settings.pid_file
    if socket and not (running and running.socket == socket):
        found += _refused(lambda: check_path(socket)) or _unfit(
            f"the socket's folder {socket.parent}", socket.parent, "another socket with --socket"
        )
    if pid_file and not (running and running.pid_file == pid_file):
        found += _refused(lambda: check_pid_file(pid_file)) or _unfit(
            f"the pid file's folder {pid_file.parent}", pid_file.parent, "another file with --pid"
        )
    if not (running and running.state == settings.state):
        found += _of_folder(settings.state, settings.user)
    return [*found, *_of_state(settings)]


def _refused(check: Callable[[], object]) -> list[str]:
    try:
        check()
    except Refused as error:
        return [str(error)]
    return []


def _unseen_credentials() -> Path | None:
    """Return the folder of systemd's credentials if this process cannot look into it.

    Many versions of systemd name it to the process of ExecReload=, which runs the check, but show
    it to the service's main process only.
    """
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if not folder or os.access(folder, os.X_OK, effective_ids=True):
        return None
    return Path(folder).absolute()


def _of_folder(folder: Path, user: User | None) -> list[str]:
    what, other = f"the state folder {folder}", "another with --state"
    # What root will hand over to the user is examined as root.
    acting = acting_as(user) if user and not is_handed_over(folder) else contextlib.nullcontext()
    try:
        with acting:
            # Without --user, root cannot know which user the service runs as.
            holder = user or owner(folder)
            check_folder(folder, os.geteuid() or (holder.uid if holder else 0))
            if unfit := _unfit(what, folder, other):
                return unfit
    except Refused as error:
        return [str(error)]
    if _is_full(folder):
        return [
            f"{what} is on a full disk; a start would make v1 and v6 with a temporary node, and"
            f" refuse the other kinds but v4; make room, or name {other}"
        ]
    return []


def _of_state(settings: Settings) -> list[str]:
    """Return why the saved state cannot be used, or not with this epoch."""
    path = settings.state / "state"
    try:
        if path.is_symlink() or not path.is_file():
            return []
        state = decode(path.read_bytes())
        check_machine(state, machine_hash())
    except OSError as error:
        return [f"{path} cannot be read: {error.strerror}"]
    except UnusableError as error:
        return [f"{path}: {error}; a start would set it aside and make a new one"]
    return _refused(lambda: epochs_with(settings, state))


def _unfit(what: str, folder: Path, other: str) -> list[str]:
    """Return why no file can be made in *folder*, which a start finds out when it makes one."""
    if not os.path.exists(folder):
        return [f"{what} does not exist; create it, or name {other}"]
    if not os.path.isdir(folder):
        return [f"{what} is not a folder; name {other}"]
    if os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
        return []
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return [f"{what} is on a read-only file system; name {other}"]
    return [f"{what} cannot be written to; chown it to uid {os.geteuid()}, or name {other}"]


def _is_full(folder: Path) -> bool:
    """Whether the disk has no room for the next save of the state, as users other than root see it.

    A file system that does not say how large it is counts as one that has room.
    """
    disk = os.statvfs(folder)
    try:
        size = (folder / "state").stat().st_size
    except OSError:
        size = 1
    blocks = disk.f_bavail * disk.f_frsize < size and disk.f_blocks
    return bool(blocks or (not disk.f_favail and disk.f_files))

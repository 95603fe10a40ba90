"""Finds what a start would be refused for, without a start: for ``--check`` and for a reload."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from uuidd.clock import Clock
from uuidd.node import NodeError, choose
from uuidd.privileges import User
from uuidd.server.fences import check_fleet
from uuidd.server.listeners import MAX_PATH
from uuidd.server.settings import Settings
from uuidd.server.startup import (
    DescriptorsError,
    EpochError,
    check_descriptors,
    check_epoch,
    epochs_with,
)
from uuidd.server.trust import SyncError, check_sync
from uuidd.statefile import UnusableError, check_machine, decode, machine_hash
from uuidd.workers.address import AddressError


def problems(settings: Settings, *, running: Settings | None = None) -> list[str]:
    """Return a line for each reason for which a start with *settings* would be refused.

    Nothing is changed, locked or connected to, so a running daemon is not a reason. *running* are
    the settings of the daemon that calls this, if it is one: what it holds already is not checked.
    If root calls this without ``--user``, a state folder may belong to any one user, because a
    service runs as a user that its options do not name.
    """
    found = [
        *_refused(lambda: choose(settings.node), NodeError),
        *_refused(lambda: check_epoch(settings, Clock().now()), EpochError),
        *_refused(lambda: check_sync(settings.require_sync), SyncError),
        *_refused(lambda: check_fleet(settings, unseen=_unseen_credentials()), AddressError),
    ]
    if not running:
        found += _refused(check_descriptors, DescriptorsError)
    if settings.socket and not (running and running.socket == settings.socket):
        found += _of_socket(settings.socket)
    if settings.pid_file and not (running and running.pid_file == settings.pid_file):
        found += _of_pid_file(settings.pid_file)
    if not (running and running.state == settings.state):
        found += _of_folder(settings.state, settings.user)
    return [*found, *_of_state(settings)]


def _refused(check: Callable[[], object], refusal: type[Exception]) -> Iterator[str]:
    try:
        check()
    except refusal as error:
        yield str(error)


def _unseen_credentials() -> Path | None:
    """Return the folder of systemd's credentials if this process cannot look into it.

    Many versions of systemd name it to the process of ExecReload=, which runs the check, but show
    it to the service's main process only.
    """
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if not folder or os.access(folder, os.X_OK, effective_ids=True):
        return None
    return Path(folder).absolute()


def _of_socket(path: Path) -> Iterator[str]:
    size = len(os.fsencode(path))
    if size > MAX_PATH:
        yield (
            f"the socket path {path} has {size} bytes, and at most {MAX_PATH} are allowed;"
            " name a shorter one with --socket"
        )
    elif why := _unfit(path.parent):
        yield f"the socket's folder {path.parent} {why} name another socket with --socket"
    elif _mode(path) and not stat.S_ISSOCK(_mode(path)):
        yield f"{path} is not a socket; remove it, or name another with --socket"


def _of_pid_file(path: Path) -> Iterator[str]:
    if why := _unfit(path.parent):
        yield f"the pid file's folder {path.parent} {why} name another file with --pid"
    elif _mode(path) and not stat.S_ISREG(_mode(path)):
        yield (
            f"the pid file {path} is not a plain file; name another with --pid, or none with"
            " --no-pid"
        )


def _of_folder(folder: Path, user: User | None) -> Iterator[str]:
    if why := _unfit(folder):
        yield f"the state folder {folder} {why} name another with --state"
        return
    found, own = folder.stat(), os.geteuid()
    # Without --user, root cannot know which user the service runs as.
    uid = own or (found.st_uid if user is None else user.uid)
    if found.st_uid not in (0, uid):
        yield (
            f"the state folder {folder} belongs to uid {found.st_uid}, and uuidd would run as uid"
            f" {uid}; chown it, or name another with --state"
        )
    if found.st_mode & 0o022:
        yield (
            f"the state folder {folder} can be written to by others (mode"
            f" {found.st_mode & 0o7777:04o}); chmod go-w it, or name another with --state"
        )
    if _is_full(folder):
        yield (
            f"the state folder {folder} is on a full disk; make room, or name another with --state"
        )


def _of_state(settings: Settings) -> Iterator[str]:
    """Yield why the saved state cannot be used, or not with this epoch."""
    path = settings.state / "state"
    if _mode(path) and not stat.S_ISREG(_mode(path)):
        yield f"{path} is not a plain file; remove it"
        return
    try:
        state = decode(path.read_bytes())
        check_machine(state, machine_hash())
    except FileNotFoundError:
        return
    except OSError as error:
        yield f"{path} cannot be read: {error.strerror}"
    except UnusableError as error:
        yield f"{path}: {error}; a start would set it aside and make a new one"
    else:
        yield from _refused(lambda: epochs_with(settings, state), EpochError)


def _unfit(folder: Path) -> str:
    """Return why no file can be made in a folder, "" if one can."""
    mode = _mode(folder)
    if not mode:
        return "does not exist; create it, or"
    if not stat.S_ISDIR(mode):
        return "is not a folder;"
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
        return "cannot be written to;"
    return ""


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


def _mode(path: Path) -> int:
    """Return the mode of what is at a path, 0 if nothing is."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0

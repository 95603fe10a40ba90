"""What this process may do: with a file, in the name of a user, and after it gave up root for good.

See credentials(7).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import re
import stat
from collections.abc import Iterator
from errno import EACCES, ENOENT, ENOSPC, EPERM, EROFS
from pathlib import Path
from typing import NamedTuple

from uuidd.refused import Refused

PR_SET_NO_NEW_PRIVS = 38
"""From <linux/prctl.h>."""

AT_FDCWD, AT_EACCESS = -100, 0x200
"""From <linux/fcntl.h>."""

CAP_CHOWN, CAP_FOWNER = 0, 3
"""From <linux/capability.h>. Root may lack them, as in a container."""

_STATUS = Path("/proc/self/status")

_FILES = ("state", "state.new", "lock")

_OURS = r"lock|state(\.new|\.unusable-\d+)?|lost\+found"
"""What a folder may hold that is handed over; ``lost+found`` is at the top of a disk."""


class User(NamedTuple):
    """A user of this host, by name, number and main group."""

    name: str
    uid: int
    gid: int


def user(name: str) -> User:
    """Return the user *name*. Raises Refused if there is no such user, or it is root."""
    try:
        found = pwd.getpwnam(name)
    except (KeyError, ValueError):
        raise Refused(
            f"--user {name!r}: there is no such user; create it, or name another"
        ) from None
    if not found.pw_uid:
        raise Refused(f"--user {name!r}: that is root; name a user without privileges")
    if os.geteuid() not in (0, found.pw_uid):
        raise Refused(
            f"--user {name!r}: only root can become another user, and this is uid {os.geteuid()};"
            " start as root, or without --user"
        )
    return User(name, found.pw_uid, found.pw_gid)


def hand_over(folder: Path, to: User, *, looking: bool = False) -> bool:
    """Give *folder*, and the state in it, to a user if it is root's; return whether it is given.

    If only *looking*, nothing is changed. A folder that belongs to another user, that others can
    write to, or that holds more than a state is not given; if the store cannot use it, its error
    says why. Raises Refused if the change is refused.
    """
    try:
        with acting_as(to):
            folder.stat()
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        names = [name for name in os.listdir(fd) if name in _FILES]
        found = {name: os.stat(name, dir_fd=fd, follow_symlinks=False) for name in names}
        given = _is_roots(fd) and all(each.st_mode & 0o600 == 0o600 for each in found.values())
        if given and not _has(CAP_CHOWN):
            raise PermissionError(EPERM, os.strerror(EPERM))
        if given and not looking:
            for name, each in found.items():
                if each.st_uid == 0:
                    os.chown(name, to.uid, to.gid, dir_fd=fd, follow_symlinks=False)
            os.fchown(fd, to.uid, to.gid)
        return given
    except OSError as error:
        raise Refused(
            f"the state folder {folder} cannot be given to {to.name}: {error.strerror}; chown it,"
            f" and what is in it, to uid {to.uid}"
        ) from error
    finally:
        os.close(fd)


def _is_roots(fd: int) -> bool:
    """Whether root, as which this process runs, has a folder alone, with a state in it at most."""
    found = os.fstat(fd)
    if found.st_uid or os.geteuid() or found.st_mode & 0o722 != 0o700:
        return False
    # If there is more in it, the folder has another use: /var/lib, say, by a slip.
    is_states = all(re.fullmatch(_OURS, name) for name in os.listdir(fd))
    return is_states and not lacking(".", os.W_OK, folder_fd=fd)


def owner(folder: Path) -> User | None:
    """Return the owner of *folder*; None if that is root, or there is no such folder."""
    try:
        found = folder.stat()
    except OSError:
        return None
    if not found.st_uid:
        return None
    try:
        entry = pwd.getpwuid(found.st_uid)
    except KeyError:
        # A container's volume may belong to a number that has no name here.
        return User(str(found.st_uid), found.st_uid, found.st_gid)
    return User(entry.pw_name, entry.pw_uid, entry.pw_gid)


@contextlib.contextmanager
def acting_as(to: User | None) -> Iterator[None]:
    """Have the rights of a user, and no more, until the end of the context. Raises Refused.

    None stands for the user that the process is. The process must be root's, or that user's
    already. It keeps the way back to root, so it must not run code of others meanwhile.
    """
    if to is None or os.geteuid() == to.uid:
        yield
        return
    groups, gid, uid = os.getgroups(), os.getegid(), os.geteuid()
    try:
        try:
            os.initgroups(to.name, to.gid)
            os.setegid(to.gid)
            os.seteuid(to.uid)
        except OSError as error:
            # The error does not name --user, because a reset acts as the owner of the folder.
            raise Refused(
                f"uuidd cannot act as user {to.name!r}: {error.strerror}; let it have CAP_SETUID"
                " and CAP_SETGID, or start it as that user"
            ) from error
        _check_none_left(to, "CapEff")
        yield
    finally:
        os.seteuid(uid)
        os.setegid(gid)
        # If this is refused, setting other groups was refused too.
        with contextlib.suppress(PermissionError):
            os.setgroups(groups)


def become(to: User) -> None:
    """Become a user, with its groups, without any capability, and with no way back.

    Raises Refused if any right of root would be left.
    """
    if os.geteuid() == to.uid and os.getuid() == to.uid:
        return
    try:
        os.initgroups(to.name, to.gid)
        os.setresgid(to.gid, to.gid, to.gid)
        os.setresuid(to.uid, to.uid, to.uid)
    except OSError as error:
        raise Refused(f"--user {to.name!r}: {error.strerror}") from error
    # A program with the set-user-ID bit gives no rights back either.
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise Refused(f"--user {to.name!r}: {os.strerror(ctypes.get_errno())}")
    _check_none_left(to, "CapPrm")


def _check_none_left(to: User, name: str) -> None:
    """Check that no right of root is in this set of capabilities. Raises Refused."""
    if left := _capabilities(name):
        raise Refused(
            f"user {to.name!r} would keep privileges (capabilities {left:x}); start uuidd without"
            " no_setuid_fixup in its securebits (capabilities(7))"
        )


def _has(capability: int) -> bool:
    return bool(_capabilities("CapEff") >> capability & 1)


def _capabilities(name: str) -> int:
    """Return a set of capabilities as bits: CapEff those in use, CapPrm all. Raises Refused."""
    try:
        status = _STATUS.read_text()
    except OSError as error:
        raise Refused(f"{_STATUS} cannot be read: {error.strerror}; mount /proc") from error
    return int(status.partition(f"\n{name}:")[2].split()[0], 16)


def lacking(path: str | Path, mode: int, *, folder_fd: int = AT_FDCWD) -> int:
    """Return the errno with which *path* could not be used, 0 if it can be, or is not there.

    *mode* is as in access(2), for the effective user. *path* is relative to *folder_fd*.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not libc.faccessat(folder_fd, os.fsencode(path), mode, AT_EACCESS):
        return 0
    number = ctypes.get_errno()
    # The kernel tells of a read-only disk first, and then of a lack of rights.
    if mode & os.X_OK and number == EACCES:
        disk = os.statvfs(path if folder_fd == AT_FDCWD else folder_fd)
        return EROFS if disk.f_flag & os.ST_RDONLY else EACCES
    return 0 if number == ENOENT else number


def lacks_room(folder: Path, size: int = 0) -> int:
    """Return ENOSPC if *folder* has no room for a new file of *size* bytes, 0 if it has.

    Space that is reserved for root does not count. A file system that does not say how large it is
    has room.
    """
    disk = os.statvfs(folder)
    lacks_bytes = disk.f_blocks > 0 and disk.f_bavail * disk.f_frsize < size
    lacks_files = disk.f_files > 0 and not disk.f_favail
    return ENOSPC if lacks_bytes or lacks_files else 0


def irremovable(path: Path) -> int:
    """Return the errno with which *path* could not be replaced, 0 if it can be, or is not there.

    In a folder like /tmp only the owner of a file, or of the folder, may do that (unlink(2)).
    """
    try:
        file, folder = path.lstat(), path.parent.stat()
    except OSError:
        return 0
    kept = folder.st_mode & stat.S_ISVTX and os.geteuid() not in (file.st_uid, folder.st_uid)
    return EPERM if kept and not _has(CAP_FOWNER) else 0

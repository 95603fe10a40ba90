"""What this process may do with a file, told before it is tried: for the checks of a start."""

from __future__ import annotations

import os
import stat
from errno import EACCES, EPERM, EROFS
from pathlib import Path


def lacking(path: str | Path, mode: int, *, folder_fd: int | None = None) -> int:
    """Return the errno with which *path* could not be used, 0 if it can be, or is not there.

    *mode* is as in access(2), for the effective user. *path* is relative to *folder_fd*.
    """
    if os.access(path, mode, dir_fd=folder_fd, effective_ids=True):
        return 0
    try:
        os.stat(path, dir_fd=folder_fd)
        disk = os.statvfs(path if folder_fd is None else folder_fd)
    except FileNotFoundError:
        return 0
    except OSError:
        return EACCES
    return EROFS if disk.f_flag & os.ST_RDONLY else EACCES


def irremovable(path: Path) -> int:
    """Return the errno with which *path* could not be replaced, 0 if it can be, or is not there.

    In a folder like /tmp only the owner of a file, or of the folder, may do that (unlink(2)).
    """
    try:
        file, folder = path.lstat(), path.parent.stat()
    except OSError:
        return 0
    kept = folder.st_mode & stat.S_ISVTX
    return EPERM if kept and os.geteuid() not in (0, file.st_uid, folder.st_uid) else 0

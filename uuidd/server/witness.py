"""A witness of earlier runs: an empty file beside the socket.

The state's folder cannot tell that it was emptied. The folder of the socket is another one, and on
most hosts it lasts from one boot to the next.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

SUFFIX = ".used"
"""What the file's name has after that of the socket."""


def earlier_run(socket: str | bytes, undo: ExitStack, started: Callable[[], bool]) -> str:
    """Return why ids may have been made at *socket* before, "" if none were since the boot.

    In that case the file is made. At the end of *undo* it is removed, unless the daemon has
    *started*. If it cannot be made, nobody knows.
    """
    if not socket or isinstance(socket, bytes):
        return "a socket without a path cannot show that no ids were made here before"
    path = Path(socket + SUFFIX)
    try:
        # It is new, so no other user has led root elsewhere.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
    except FileExistsError:
        return f"{path} shows that ids were made here before"
    except OSError as error:
        return f"{path} cannot be made, to show that no ids were made before: {error.strerror}"
    undo.callback(_forget, path, started)
    return ""


def _forget(path: Path, started: Callable[[], bool]) -> None:
    if not started():
        with contextlib.suppress(OSError):
            path.unlink()

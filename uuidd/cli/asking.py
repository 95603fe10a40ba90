"""The caller's side of ``uuidd``: -t, -r and -k, in the libuuid dialect."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

from uuidd.core.ids.uuids import to_text
from uuidd.core.wire import libuuid
from uuidd.core.wire.libuuid import Op

PATIENCE = 5.0
"""Seconds to wait for an answer."""


class AskError(Exception):
    """The daemon gave no answer; one line that says why."""


def time_uuids(path: Path, count: int | None) -> str:
    """Give what ``uuidd -t`` prints: a UUID, and how many more were reserved after it."""
    if count is None:
        return _text(_ask(path, Op.TIME_UUID))
    if count > libuuid.MAX_TIME:
        raise AskError(
            f"-n is {count}, and a daemon reserves {libuuid.MAX_TIME} UUIDs at once at most;"
            " ask more often, for fewer"
        )
    first = _text(_ask(path, Op.BULK_TIME_UUID, count)[:16])
    return first if count < 2 else f"{first} and {count - 1} subsequent UUIDs"


def random_uuids(path: Path, count: int | None) -> Iterator[str]:
    """Give the lines that ``uuidd -r`` prints: a UUID, or a list of them, as they come."""
    if count is None:
        yield _text(_ask(path, Op.RANDOM_UUID))
        return
    found = 0
    while found < count:
        some = libuuid.random_uuids(_ask(path, Op.BULK_RANDOM_UUID, count - found))
        if not some:
            raise AskError(f"the daemon at {path} gave no UUIDs")
        if not found:
            yield "List of UUIDs:"
        yield from (f"\t{_text(uuid)}" for uuid in some)
        found += len(some)
    if not count:
        yield "List of UUIDs:"


def kill(path: Path) -> int | None:
    """End the daemon that listens at *path* and give its pid; None when there is none."""
    if not path.exists():
        return None
    told = _ask(path, Op.GETPID).rstrip(b"\0")
    pid = int(told) if told.isdigit() and len(told) < 10 else 0
    if pid < 2:
        # To kill(2), 0 and negative numbers are whole groups of processes, and 1 is init.
        raise AskError(f"what answers at {path} gave no pid of a daemon: {told[:20]!r}")
    try:
        os.kill(pid, signal.SIGTERM)
    except OSError as error:
        raise AskError(f"couldn't kill uuidd running at pid {pid}: {error.strerror}") from error
    return pid


def _ask(path: Path, op: Op, count: int = 1) -> bytes:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(PATIENCE)
            sock.connect(os.fspath(path))
            sock.sendall(libuuid.request(op, count))
            data = b""
            while (found := libuuid.body(data)) is None:
                more = sock.recv(4096)
                if not more:
                    raise AskError(f"the daemon at {path} closed the connection without an answer")
                data += more
    except OSError as error:
        cause = error.strerror or error
        raise AskError(f"error calling uuidd daemon at {path}: {cause}") from error
    except libuuid.UnreasonableError as error:
        raise AskError(f"what answers at {path} is no uuidd: {error}") from error
    return found


def _text(uuid: bytes) -> str:
    if len(uuid) != 16:
        raise AskError(f"the daemon gave {len(uuid)} bytes where a UUID has 16")
    return to_text(int.from_bytes(uuid, "big"))

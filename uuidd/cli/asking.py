"""The caller's side of ``uuidd``: -t, -r and -k, in the libuuid dialect."""

from __future__ import annotations

import errno
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

from uuidd.core.ids.uuids import to_text
from uuidd.core.wire import libuuid
from uuidd.core.wire.libuuid import Op
from uuidd.server.peers import peer_pid, peer_uid

PATIENCE = 5.0
"""Seconds to wait for an answer."""


class AskError(Exception):
    """The daemon gave no answer; one line that says why."""


def time_uuids(path: Path, count: int | None) -> str:
    """Give what ``uuidd -t`` prints: a UUID, and how many more were reserved after it."""
    if not count:
        return _text(_ask(path, Op.TIME_UUID))
    if count > libuuid.MAX_TIME:
        raise AskError(
            f"-n is {count}, and a daemon reserves {libuuid.MAX_TIME} UUIDs at once at most;"
            " ask more often, for fewer"
        )
    first = _text(_ask(path, Op.BULK_TIME_UUID, count)[:16])
    return f"{first} and {count - 1} subsequent UUID{'' if count == 2 else 's'}"


def random_uuids(path: Path, count: int | None) -> Iterator[str]:
    """Give the lines that ``uuidd -r`` prints: a UUID, or a list of them, as they come.

    A count of 0 is none, as util-linux has it.
    """
    if not count:
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


def kill(path: Path) -> int | None:
    """End the daemon that listens at *path* and give its pid; None when there is none.

    Raises AskError, and ends nothing, unless the pid that is told is that of a uuidd, and of the
    user who made the socket (as the kernel says; root may have made it for another user).
    """
    if not path.exists():
        return None
    told, maker_pid, maker = _asked(path, Op.GETPID)
    told = told.rstrip(b"\0")
    pid = int(told) if told.isdigit() and len(told) < 10 else 0
    if pid < 2:
        # To kill(2), 0 and negative numbers are whole groups of processes, and 1 is init.
        raise AskError(f"what answers at {path} gave no pid of a daemon: {told[:20]!r}")
    if not maker_pid:
        raise AskError(
            f"the uuidd at {path} is in another pid namespace, so here its pid {pid} is that of"
            " another process; end it from there, or by systemctl, docker or kubectl"
        )
    try:
        _terminate(pid, lambda: _is_daemon(pid, maker))
    except OSError as error:
        raise AskError(f"couldn't kill uuidd running at pid {pid}: {error.strerror}") from error
    except LookupError:
        raise AskError(
            f"what answers at {path} gave the pid {pid}, which is no uuidd"
            f"{f' of uid {maker}, who made the socket' if maker else ''}; nothing was ended"
        ) from None
    return pid


def _terminate(pid: int, is_right: Callable[[], bool]) -> None:
    """End a process if it *is_right*, and no other that comes by its pid meanwhile.

    Raises LookupError if it is not.
    """
    try:
        process = os.pidfd_open(pid)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM):
            raise
        # A kernel before 5.3, or a sandbox: the number has to do.
        if not is_right():
            raise LookupError from None
        os.kill(pid, signal.SIGTERM)
        return
    try:
        if not is_right():
            raise LookupError
        signal.pidfd_send_signal(process, signal.SIGTERM)
    finally:
        os.close(process)


def _is_daemon(pid: int, maker: int) -> bool:
    """Whether a process is a uuidd, ours or util-linux's, of user *maker* (0: of any user)."""
    proc = Path("/proc", str(pid))
    try:
        words = (proc / "cmdline").read_bytes().split(b"\0")
        status = (proc / "status").read_text()
    except OSError:
        return False
    # The real one, the effective one, the saved one, and that for files.
    uids = status.partition("\nUid:")[2].partition("\n")[0].split()
    return any(os.path.basename(word) == b"uuidd" for word in words) and (
        maker == 0 or set(uids) == {str(maker)}
    )


def _ask(path: Path, op: Op, count: int = 1) -> bytes:
    return _asked(path, op, count)[0]


def _asked(path: Path, op: Op, count: int = 1) -> tuple[bytes, int, int]:
    """Give the answer, and the process and the user that made the socket."""
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
            return found, peer_pid(sock), peer_uid(sock)
    except OSError as error:
        cause = error.strerror or error
        raise AskError(f"error calling uuidd daemon at {path}: {cause}") from error
    except libuuid.ProtocolError as error:
        raise AskError(f"what answers at {path} is no uuidd: {error}") from error


def _text(uuid: bytes) -> str:
    if len(uuid) != 16:
        raise AskError(f"the daemon gave {len(uuid)} bytes where a UUID has 16")
    return to_text(int.from_bytes(uuid, "big"))

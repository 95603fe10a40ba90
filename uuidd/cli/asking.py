"""Asks or ends a running daemon, for -t, -r and -k, in the libuuid dialect."""

from __future__ import annotations

import errno
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

from uuidd.core.ids.uuids import to_text
from uuidd.core.timeline.outcomes import MAX_BLOCK
from uuidd.core.wire import MOST_PATH_BYTES, libuuid
from uuidd.core.wire.libuuid import Op
from uuidd.refused import Refused
from uuidd.server.peers import peer_pid, peer_uid

PATIENCE = 5.0
"""Seconds to wait for an answer."""


def time_uuids(path: Path, count: int | None) -> str:
    """Return what ``uuidd -t`` prints: a UUID, and how many more were reserved after it."""
    if not count:
        return _text(_ask(path, Op.TIME_UUID))
    if count > MAX_BLOCK:
        raise Refused(
            f"-n is {count}, and a daemon reserves at most {MAX_BLOCK} UUIDs at once;"
            " ask for fewer, several times"
        )
    first = _text(_ask(path, Op.BULK_TIME_UUID, count)[:16])
    return f"{first} and {count - 1} subsequent UUID{'' if count == 2 else 's'}"


def random_uuids(path: Path, count: int | None) -> Iterator[str]:
    """Yield the lines that ``uuidd -r`` prints: a UUID, or a list of them, as they arrive.

    A count of 0 means one UUID, as for util-linux's uuidd.
    """
    if not count:
        yield _text(_ask(path, Op.RANDOM_UUID))
        return
    found = 0
    while found < count:
        some = libuuid.random_uuids(_ask(path, Op.BULK_RANDOM_UUID, count - found))
        if not some:
            raise Refused(f"the daemon at {path} answered without UUIDs")
        if not found:
            yield "List of UUIDs:"
        yield from (f"\t{_text(uuid)}" for uuid in some)
        found += len(some)


def kill(path: Path) -> int | None:
    """End the daemon that listens at *path* and return its pid; None if there is none.

    Raises Refused, and ends nothing, unless the pid in the answer is that of a uuidd, and of the
    user who made the socket (by the kernel; if root made it, it may be any user's).
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unanswered(path, error) from error
    try:
        text, maker_pid, maker = _asked(path, Op.GETPID)
    except Refused as refused:
        if isinstance(refused.__cause__, ConnectionRefusedError):
            # A daemon that crashed leaves its socket behind.
            return None
        raise
    text = text.rstrip(b"\0")
    pid = int(text) if text.isdigit() and len(text) < 10 else 0
    if pid < 2:
        # For kill(2), 0 and negative numbers mean groups of processes; 1 is init.
        raise Refused(
            f"what answers at {path} sent {text[:20]!r}, which is not the pid of a daemon"
        )
    if not maker_pid:
        raise Refused(
            f"the uuidd at {path} is in another pid namespace, so here its pid {pid} is that of"
            " another process; end it from there, or by systemctl, docker or kubectl"
        )
    try:
        _terminate(pid, lambda: _is_daemon(pid, maker))
    except OSError as error:
        raise Refused(f"couldn't kill uuidd running at pid {pid}: {error.strerror}") from error
    except LookupError:
        raise Refused(
            f"what answers at {path} sent the pid {pid}, which is not a uuidd"
            f"{f' of uid {maker}, who made the socket' if maker else ''}; nothing was ended"
        ) from None
    return pid


def _terminate(pid: int, is_right: Callable[[], bool]) -> None:
    """End a process if it *is_right*, and never another one that gets its pid meanwhile.

    Raises LookupError if it is not right.
    """
    try:
        process = os.pidfd_open(pid)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM):
            raise
        # A kernel before 5.3, or a sandbox: use the pid.
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
    # The real, effective, saved and file system uid.
    uids = status.partition("\nUid:")[2].partition("\n")[0].split()
    return any(os.path.basename(word) == b"uuidd" for word in words) and (
        maker == 0 or set(uids) == {str(maker)}
    )


def _ask(path: Path, op: int, count: int = 1) -> bytes:
    return _asked(path, op, count)[0]


def _asked(path: Path, op: int, count: int = 1) -> tuple[bytes, int, int]:
    """Return the answer, and the process and the user that made the socket."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(PATIENCE)
            sock.connect(os.fspath(path))
            sock.sendall(libuuid.pack_request(op, count))
            data = b""
            while (found := libuuid.unpack_body(data)) is None:
                more = sock.recv(4096)
                if not more:
                    raise Refused(f"the daemon at {path} closed the connection without an answer")
                data += more
            return found, peer_pid(sock), peer_uid(sock)
    except OSError as error:
        raise _unanswered(path, error) from error
    except libuuid.ProtocolError as error:
        raise Refused(f"what answers at {path} is not a uuidd: {error}") from error


def _unanswered(path: Path, error: OSError) -> Refused:
    size = len(os.fsencode(path))
    # Python refuses such a path itself, and does not say what is allowed.
    long = f"the path has {size} bytes, and a socket's at most {MOST_PATH_BYTES}"
    cause = long if size > MOST_PATH_BYTES else error.strerror or error
    if isinstance(error, TimeoutError):
        cause = "timed out; if it hangs, restart its service, or end the process of its pid file"
    return Refused(f"error calling uuidd daemon at {path}: {cause}")


def _text(uuid: bytes) -> str:
    if len(uuid) != 16:
        raise Refused(f"the daemon sent {len(uuid)} bytes, and a UUID has 16")
    return to_text(int.from_bytes(uuid, "big"))

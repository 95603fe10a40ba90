"""Asks or ends a running daemon, for -t, -r and -k, in the libuuid dialect."""

from __future__ import annotations

import errno
import os
import signal
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from uuidd.core.ids.uuids import to_text
from uuidd.core.timeline.outcomes import MAX_BLOCK
from uuidd.core.wire import MOST_PATH_BYTES, libuuid
from uuidd.core.wire.libuuid import Op
from uuidd.refused import Refused
from uuidd.server.peers import peer_pid, peer_uid

PATIENCE = 5.0
"""Seconds to wait for a connection, and for each part of an answer."""


def time_uuids(path: Path, count: int | None) -> str:
    """Return what ``uuidd -t`` prints: a UUID, and how many more were reserved after it."""
    if not count:
        return _text(_ask(path, Op.TIME_UUID)[0])
    if count > MAX_BLOCK:
        raise Refused(
            f"-n is {count}, and a daemon reserves at most {MAX_BLOCK} UUIDs at once;"
            " ask for fewer, several times"
        )
    first = _text(_ask(path, Op.BULK_TIME_UUID, count)[0][:16])
    return f"{first} and {count - 1} subsequent UUID{'' if count == 2 else 's'}"


def random_uuids(path: Path, count: int | None) -> Iterator[str]:
    """Yield the lines that ``uuidd -r`` prints: a UUID, or a list of them, as they arrive.

    A count of 0 means one UUID, as for util-linux's uuidd.
    """
    if not count:
        yield _text(_ask(path, Op.RANDOM_UUID)[0])
        return
    left = count
    while left > 0:
        some = libuuid.random_uuids(_ask(path, Op.BULK_RANDOM_UUID, left)[0])
        if not some:
            raise Refused(f"the daemon at {path} answered without UUIDs")
        if left == count:
            yield "List of UUIDs:"
        yield from (f"\t{_text(uuid)}" for uuid in some)
        left -= len(some)


def kill(path: Path) -> int | None:
    """End the daemon that listens at *path* and return its pid; None if there is none.

    Raises Refused, and ends nothing, unless the pid in the answer is that of a uuidd, and of the
    user who made the socket (by the kernel; if root made it, it may be any user's).
    """
    try:
        answer, maker_pid, maker = _ask(path, Op.GETPID)
    except Refused as refused:
        # A daemon that crashed leaves its socket behind, where the kernel refuses connections.
        none = (FileNotFoundError, NotADirectoryError, ConnectionRefusedError)
        if isinstance(refused.__cause__, none):
            return None
        raise
    text = answer.rstrip(b"\0")
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
        ended = _end_daemon(pid, maker)
    except OSError as error:
        raise Refused(f"couldn't kill uuidd running at pid {pid}: {error.strerror}") from error
    if not ended:
        raise Refused(
            f"what answers at {path} sent the pid {pid}, which is not a uuidd"
            f"{f' of uid {maker}, who made the socket' if maker else ''}; nothing was ended"
        )
    return pid


def _end_daemon(pid: int, maker: int) -> bool:
    """End a process and return True, if it is a daemon of user *maker* (0: of any user).

    Another process that gets its pid meanwhile is not ended.
    """
    process = None
    try:
        process = os.pidfd_open(pid)
    except OSError as error:
        # A kernel before 5.3, or a sandbox: use the pid.
        if error.errno not in (errno.ENOSYS, errno.EPERM):
            raise
    try:
        if not _is_daemon(pid, maker):
            return False
        if process is None:
            os.kill(pid, signal.SIGTERM)
        else:
            signal.pidfd_send_signal(process, signal.SIGTERM)
        return True
    finally:
        if process is not None:
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


def _ask(path: Path, op: int, count: int = 1) -> tuple[bytes, int, int]:
    """Return the answer, and the process and the user that made the socket. Raises Refused."""
    size = len(os.fsencode(path))
    try:
        if size > MOST_PATH_BYTES:
            # Python refuses such a path itself, and does not say what is allowed.
            raise OSError(f"the path has {size} bytes, and a socket's at most {MOST_PATH_BYTES}")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            # The kernel's own: with settimeout, connect does not wait for a place in a full queue.
            for limit in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
                sock.setsockopt(socket.SOL_SOCKET, limit, _timeval(PATIENCE))
            sock.connect(os.fspath(path))
            sock.sendall(libuuid.pack_request(op, count))
            data = b""
            while (found := libuuid.unpack_body(data)) is None:
                if not (more := sock.recv(4096)):
                    raise Refused(f"the daemon at {path} closed the connection without an answer")
                data += more
            return found, peer_pid(sock), peer_uid(sock)
    except OSError as error:
        cause = error.strerror or error
        if isinstance(error, BlockingIOError):
            cause = (
                "timed out; if it hangs, restart its service, or end the process of its pid file"
            )
        raise Refused(f"error calling uuidd daemon at {path}: {cause}") from error
    except libuuid.ProtocolError as error:
        raise Refused(f"what answers at {path} is not a uuidd: {error}") from error


def _timeval(seconds: float) -> bytes:
    return struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))


def _text(uuid: bytes) -> str:
    if len(uuid) != 16:
        raise Refused(f"the daemon sent {len(uuid)} bytes, and a UUID has 16")
    return to_text(int.from_bytes(uuid, "big"))

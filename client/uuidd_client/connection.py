"""The line to the daemon: one socket, rpc or, to a util-linux uuidd, its own dialect."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from struct import Struct
from typing import Any, TypeVar

from uuidd.core.timeline import Block, SteadyBlock
from uuidd.core.wire import libuuid, methods, rpc
from uuidd_client.clocks import elapsed
from uuidd_client.errors import DaemonUnavailable

AnyBlock = TypeVar("AnyBlock", Block, SteadyBlock)

MAX_FROM_LIBUUID = 65_536
"""Ticks asked of a util-linux uuidd at once: its clock runs ahead by what it gives, here 6.5 ms."""

KEEP_LIBUUID = 60.0
"""Seconds for which a uuidd that closed on rpc is taken for util-linux's; then rpc is tried again,
for ours may have come in its place."""

READ_BYTES = 65536

ONLY_V1 = "it closed the connection; if it is util-linux's, it makes no such ids"


class _Closed(Exception):
    """The daemon closed the connection without an answer."""


class _Socket(socket.socket):
    """A stream socket that knows whether its descriptor is still its own.

    A process that becomes a daemon closes all it has; then the number is free, or a file's.
    """

    _identity: tuple[int, int] | None = None

    def __init__(self) -> None:
        super().__init__(socket.AF_UNIX, socket.SOCK_STREAM)
        # Whatever the program has set by setdefaulttimeout.
        self.setblocking(True)
        made = os.fstat(self.fileno())
        self._identity = (made.st_dev, made.st_ino)

    def __del__(self) -> None:
        # Nobody closes the client behind uuid1(); its socket is no leak to be warned of.
        self.hang_up()

    def is_there(self) -> bool:
        """Whether the descriptor is still the socket that was opened."""
        try:
            found = os.fstat(self.fileno())
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._identity

    def hang_up(self) -> None:
        """Close the descriptor, unless it is another's by now."""
        if self.is_there():
            self.close()
            return
        descriptor = self.detach()
        # Without an identity its making was broken off, so it is nobody's yet.
        if self._identity is None and descriptor >= 0:
            os.close(descriptor)


class Connection:
    """A line to the daemon at *path*, opened at need. A call takes *timeout* seconds at most.

    Not for two threads at once.
    """

    def __init__(self, path: str, timeout: float) -> None:
        self._sock: _Socket | None = None
        self._path = path
        self._timeout = timeout
        self._msgid = 0
        self._libuuid_until = 0.0

    @property
    def path(self) -> str:
        """The socket."""
        return self._path

    def take_steady(self, count: int) -> SteadyBlock:
        """Give a block of up to *count* ticks of the steady timeline. Raises DaemonUnavailable."""
        if elapsed() < self._libuuid_until:
            raise DaemonUnavailable(self._path, ONLY_V1)
        try:
            result = self._call("take", ["steady", count], self._deadline())
        except _Closed:
            raise DaemonUnavailable(self._path, ONLY_V1) from None
        return self._checked(methods.steady_taken, result, count)

    def take(self, count: int) -> Block:
        """Give a block of up to *count* ticks of UTC. Raises DaemonUnavailable."""
        if elapsed() < self._libuuid_until:
            return self._take_by_libuuid(count)
        try:
            result = self._call("take", ["utc", count], self._deadline())
        except _Closed:
            # util-linux's uuidd does so to what it does not know. If it gives a block it is one.
            block = self._take_by_libuuid(count)
            self._libuuid_until = elapsed() + KEEP_LIBUUID
            return block
        return self._checked(methods.taken, result, count)

    def _checked(self, read: Callable[[Any], AnyBlock], result: Any, count: int) -> AnyBlock:
        """Give the block that *read* finds in a result, if it is none larger than asked for."""
        try:
            block = read(result)
            if block.count > count:
                raise ValueError(f"{block.count} ticks where {count} were asked for")
            return block
        except ValueError as error:
            self.close()
            raise DaemonUnavailable(self._path, f"an unusable answer: {error}") from error

    def status(self) -> dict[str, Any]:
        """Give the daemon's status. Raises DaemonUnavailable."""
        try:
            result = self._call("status", [], self._deadline())
        except _Closed:
            raise DaemonUnavailable(
                self._path, "it closed the connection; if it is util-linux's, it has no status"
            ) from None
        if not isinstance(result, dict):
            raise DaemonUnavailable(self._path, "an unusable answer: its status is no map")
        return result

    def close(self) -> None:
        """Hang up."""
        sock = self._sock
        if sock is not None:
            # Not by way of self: in a fork's child many threads may close their parent's at once.
            sock.hang_up()
            self._sock = None

    def _deadline(self) -> float:
        return elapsed() + self._timeout

    def _call(self, method: str, params: list[Any], deadline: float) -> Any:
        self._msgid = (self._msgid + 1) % (rpc.MAX_MSGID + 1)
        request = rpc.call(self._msgid, method, params)
        if self._sock is not None and self._sock.is_there():
            try:
                return self._exchange(request, deadline)
            except _Closed:
                # It was restarted since; what it may have answered was never used.
                pass
        self._open(deadline)
        return self._exchange(request, deadline)

    def _exchange(self, request: bytes, deadline: float) -> Any:
        data = b""
        try:
            self._send(request, deadline)
            while (response := rpc.read_response(data)) is None:
                data += self._receive(deadline)
        except rpc.MalformedError as error:
            self.close()
            raise DaemonUnavailable(self._path, f"an unusable answer: {error}") from error
        except BaseException:
            # Ctrl-C, say: the answer may yet come, and is not the next request's.
            self.close()
            raise
        if response.msgid != self._msgid:
            self.close()
            raise DaemonUnavailable(self._path, "an answer to another request")
        if response.error is not None:
            raise DaemonUnavailable(self._path, _printable(response.error), refused=True)
        return response.result

    def _take_by_libuuid(self, count: int) -> Block:
        deadline = self._deadline()
        asked = min(count, MAX_FROM_LIBUUID)
        self._open(deadline)
        try:
            self._send(libuuid.request(libuuid.Op.BULK_TIME_UUID, asked), deadline)
            data = b""
            while (reply := libuuid.body(data)) is None:
                data += self._receive(deadline)
            block = libuuid.reserved(reply)
            # What a reply claims beyond the request was never reserved.
            return Block(block.first, min(block.count, asked), block.clock_seq, block.node)
        except _Closed:
            self._libuuid_until = 0.0
            raise DaemonUnavailable(
                self._path, "it closed the connection without an answer"
            ) from None
        except libuuid.UnreasonableError as error:
            self._libuuid_until = 0.0
            raise DaemonUnavailable(self._path, f"an unusable answer: {error}") from error
        finally:
            self.close()

    def _open(self, deadline: float) -> None:
        self.close()
        try:
            sock = _Socket()
        except OSError as error:
            raise self._failed(error) from error
        try:
            # A Unix socket's connect waits for a full backlog only on a socket that blocks.
            while True:
                sock.setsockopt(
                    socket.SOL_SOCKET,
                    socket.SO_SNDTIMEO,
                    _timeval(max(deadline - elapsed(), 0.001)),
                )
                sock.connect(self._path)
                try:
                    sock.getpeername()
                    break
                except OSError:
                    # A signal broke off the wait, which Python takes for the end of it.
                    if elapsed() >= deadline:
                        raise TimeoutError from None
        except OSError as error:
            sock.close()
            raise self._failed(error) from error
        self._sock = sock

    def _send(self, data: bytes, deadline: float) -> None:
        assert self._sock is not None  # noqa: S101  (_open was called; for the type checker)
        try:
            self._sock.settimeout(max(deadline - elapsed(), 0.001))
            self._sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close()
            raise _Closed from None
        except OSError as error:
            self.close()
            raise self._failed(error) from error

    def _receive(self, deadline: float) -> bytes:
        assert self._sock is not None  # noqa: S101  (_open was called; for the type checker)
        try:
            left = deadline - elapsed()
            if left <= 0:
                raise TimeoutError
            self._sock.settimeout(left)
            data = self._sock.recv(READ_BYTES)
        except ConnectionResetError:
            data = b""
        except OSError as error:
            self.close()
            raise self._failed(error) from error
        if not data:
            self.close()
            raise _Closed
        return data

    def _failed(self, error: OSError) -> DaemonUnavailable:
        if isinstance(error, TimeoutError | BlockingIOError):
            return DaemonUnavailable(self._path, f"silent for {self._timeout:g} s", late=True)
        return DaemonUnavailable(self._path, error.strerror or str(error))


def _printable(text: str) -> str:
    """Give a daemon's words in one line, of which a terminal shows each as it is."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text[:1000])


def _timeval(seconds: float) -> bytes:
    """Give a struct timeval."""
    return Struct("@ll").pack(int(seconds), int(seconds % 1 * 1e6))


def default_path() -> str:
    """Give the socket to use when none is named: $UUIDD_SOCKET, else where libuuid looks."""
    return os.environ.get("UUIDD_SOCKET") or "/run/uuidd/request"

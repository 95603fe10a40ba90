"""The connection to the daemon: rpc or, to a util-linux uuidd, libuuid's dialect.

How a daemon that does not answer costs one call its time-out, and the calls after it nothing

1. The connection of a request that timed out stays open: the request is the *probe*.
2. Each later call first looks, without waiting, whether anything has come on that connection. While
   nothing has, the daemon is silent, and the call fails at once.
3. A late answer is dropped, for the time that it gives is past: the connection is closed, and the
   call asks anew. It does so too when the daemon has closed the connection.
4. Where the daemon's backlog was full there is no connection; then the probe is another try to
   connect, which does not wait either.
5. Connections of one process share a ``Silence``. What one of them has just found, the others do
   not wait to find again: they send their request and do not wait for the answer.

A daemon that has to wait itself, for its disk mostly, says so at once. It is not silent, so it is
asked again, and given the time that it may wait besides the time-out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from uuidd.core.timeline import Block, SteadyBlock
from uuidd.core.wire import libuuid, methods, rpc
from uuidd_client.clocks import elapsed
from uuidd_client.errors import DaemonUnavailable
from uuidd_client.fork_guard import Forked
from uuidd_client.silence import Silence
from uuidd_client.stream import Stream

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


class Connection:
    """A connection to the daemon at *path*, opened at need. A call takes *timeout* seconds at most.

    Not for two threads at once.
    """

    def __init__(self, path: str, timeout: float, silence: Silence | None = None) -> None:
        self._sock: Stream | None = None
        self._path = path
        self._timeout = timeout
        self._silence = silence or Silence()
        self._asked_at = 0.0
        # When the request was sent that timed out; there may be no socket for it, see above.
        self._unanswered: float | None = None
        self._msgid = 0
        self._closes_on_rpc = False
        self._libuuid_until = 0.0

    @property
    def path(self) -> str:
        """The socket."""
        return self._path

    def take_steady(self, count: int) -> SteadyBlock:
        """Give a block of up to *count* ticks of the steady timeline. Raises DaemonUnavailable."""
        try:
            result = self._take("steady", count, self._deadline())
        except _Closed:
            raise DaemonUnavailable(self._path, ONLY_V1) from None
        return self._checked(methods.steady_taken, result, count)

    def take(self, count: int) -> Block:
        """Give a block of up to *count* ticks of UTC. Raises DaemonUnavailable."""
        deadline = self._deadline()
        if elapsed() < self._libuuid_until:
            return self._take_by_libuuid(count, deadline)
        try:
            result = self._take("utc", count, deadline)
        except _Closed:
            # util-linux's uuidd closes on what it does not know, and gives a block in its dialect.
            # Ours may do both once, when it is restarted in the midst of this call.
            block = self._take_by_libuuid(count, deadline)
            if self._closes_on_rpc:
                self._libuuid_until = elapsed() + KEEP_LIBUUID
            self._closes_on_rpc = True
            return block
        self._closes_on_rpc = False
        return self._checked(methods.taken, result, count)

    def _take(self, timeline: str, count: int, deadline: float) -> Any:
        try:
            return self._call("take", [timeline, count, False, False], deadline)
        except DaemonUnavailable as refusal:
            if refusal.code != "must_wait":
                raise
        self._asked_at = elapsed()
        deadline = self._asked_at + self._timeout + methods.SAVE_SECONDS
        return self._call("take", [timeline, count, False, True], deadline)

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
        """Give until when a call that begins now may wait.

        Raises DaemonUnavailable at once if the request that timed out still has no answer.
        """
        if self._unanswered is not None:
            if self._sock is None:
                self._open(0)
            elif self._sock.is_quiet():
                raise self._late()
            else:
                self.close()
            self._heard()
        now = self._asked_at = elapsed()
        return now if self._silence.known(now) else now + self._timeout

    def _heard(self) -> None:
        self._unanswered = None
        self._silence.over()

    def _late(self) -> DaemonUnavailable:
        """Note that the daemon is silent, and give the error that says for how long."""
        now = elapsed()
        if self._unanswered is None:
            self._unanswered = self._asked_at
        seconds = self._silence.found(self._unanswered, now)
        return DaemonUnavailable(self._path, f"silent for {seconds:.1f} s", late=True)

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
            self._send(request)
            while (response := rpc.read_response(data)) is None:
                data += self._receive(deadline)
        except rpc.MalformedError as error:
            self.close()
            raise DaemonUnavailable(self._path, f"an unusable answer: {error}") from error
        except BaseException:
            if self._unanswered is None:
                # Ctrl-C, say: the answer may yet come, and is not the next request's.
                self.close()
            raise
        self._heard()
        if response.msgid != self._msgid:
            self.close()
            raise DaemonUnavailable(self._path, "an answer to another request")
        if response.error is not None:
            cause = _printable(response.error)
            raise DaemonUnavailable(self._path, cause, code=response.code)
        return response.result

    def _take_by_libuuid(self, count: int, deadline: float) -> Block:
        asked = min(count, MAX_FROM_LIBUUID)
        self._open(deadline)
        try:
            self._send(libuuid.request(libuuid.Op.BULK_TIME_UUID, asked))
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
        except libuuid.ProtocolError as error:
            self._libuuid_until = 0.0
            raise DaemonUnavailable(self._path, f"an unusable answer: {error}") from error
        finally:
            if self._unanswered is None:
                self.close()

    def _open(self, deadline: float) -> None:
        self.close()
        try:
            sock = Stream()
        except OSError as error:
            raise self._failed(error) from error
        try:
            sock.reach(self._path, deadline)
        except (BlockingIOError, TimeoutError) as error:
            sock.close()
            raise self._late() from error
        except OSError as error:
            sock.close()
            # Whoever was silent there is gone.
            self._heard()
            raise self._failed(error) from error
        self._sock = sock

    def _opened(self) -> Stream:
        """Give the socket. Raises Forked in a child whose signal handler has closed it."""
        if self._sock is None:
            raise Forked
        return self._sock

    def _send(self, data: bytes) -> None:
        sock = self._opened()
        try:
            sock.send_all(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close()
            raise _Closed from None
        except TimeoutError as error:
            # No probe is out: the daemon answers no part of a request.
            self.close()
            raise self._late() from error
        except OSError as error:
            self.close()
            raise self._failed(error) from error

    def _receive(self, deadline: float) -> bytes:
        sock = self._opened()
        try:
            left = deadline - elapsed()
            if left <= 0:
                raise TimeoutError
            data = sock.receive(READ_BYTES, left)
        except ConnectionResetError:
            data = b""
        except TimeoutError as error:
            raise self._late() from error
        except OSError as error:
            self.close()
            raise self._failed(error) from error
        if not data:
            self.close()
            raise _Closed
        return data

    def _failed(self, error: OSError) -> DaemonUnavailable:
        return DaemonUnavailable(self._path, error.strerror or str(error))


def _printable(text: str) -> str:
    """Give a daemon's words in one line, of which a terminal shows each as it is."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text[:1000])

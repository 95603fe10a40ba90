"""The socket to the daemon: opened at need, it carries a request and its answer at a time.

A daemon that does not answer costs one call a long wait, and the calls after it nothing:

1. The connection of a request that timed out stays open: the request is the *probe*.
2. Each later call first checks, without waiting, whether anything has come. If not, it fails.
3. A late answer is dropped, because the time in it is past. Then, or if the daemon has closed the
   connection, the call sends its request on a new one.
4. If the daemon's backlog was full there is no connection; the probe is another attempt to connect.
5. While the connection is silent, calls try another one each second, because another daemon may be
   at the path by now. Its request is a probe too. An answer to either ends the silence.
6. The connections of one process share a ``Silence``. While one of them has just found the daemon
   silent, the others send their request and do not wait for the answer. From then on waits are
   short, until an answer comes within PATIENCE: a daemon that never does costs no second long one.

A daemon that has to wait for its disk says so at once, and is not silent: the call repeats its
request, and adds the time that the daemon may wait to the time-out.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from uuidd.core.wire import methods, rpc
from uuidd_client.errors import DaemonUnavailable
from uuidd_client.lease import Page, PageError, page_of
from uuidd_client.life import Life, Over
from uuidd_client.stream import Stream
from uuidd_client.system import ClientClock

Answer = TypeVar("Answer")

MOST_PATH_BYTES = 107
"""The longest path of a socket: sockaddr_un has room for 108 bytes, of which the last is zero."""

PATIENCE = 5.0
"""Seconds for which an answer is awaited by default. A thousand processes that start at once on two
cores leave a daemon so little of these that it takes seconds to answer them all."""

IMPATIENCE = 0.2
"""The same after a wait in vain, until an answer comes within PATIENCE."""

ANOTHER_SECONDS = 1.0
"""Seconds after which another connection is tried while one is silent, and then another again."""

SILENCE_SECONDS = 1.0
"""Seconds for which the connections of a process share that one of them found the daemon silent."""


_REASONS = {
    errno.ENOENT: "no_socket",
    errno.ENOTDIR: "no_socket",
    errno.EACCES: "no_access",
    errno.EPERM: "no_access",
    errno.ECONNREFUSED: "no_listener",
}
"""The reasons for which there is no connection, by the error of the system."""

LATER = methods.ask_again_in(methods.MOST_ASK_AGAIN)
"""When a process that cannot receive or map a page asks for a lease again. It may open no more
files, and each try costs a lane that rests for 20 seconds."""


class Silence:
    """What threads know of a daemon that does not answer. A race costs one time-out more.

    *patient*: whether the next answer is worth a long wait. After a wait in vain it is not, until
    one comes within that time; but it *always* is where there is nothing to fall back to.
    """

    def __init__(self, *, always: bool = False) -> None:
        self._since = self._until = 0.0
        self._always = always
        self.patient = True

    def known(self, now: float) -> bool:
        """Whether a connection has found the daemon silent at *now*, or a moment before."""
        return now < self._until

    def found(self, asked_at: float, now: float) -> float:
        """Note that the request of *asked_at* has no answer; return the seconds of silence."""
        if not self.known(now):
            self._since = asked_at
        self._until = now + SILENCE_SECONDS
        self.patient = self._always
        return now - self._since

    def over(self) -> None:
        """Note that the daemon has answered."""
        self._until = 0.0


class Closed(Exception):
    """The daemon closed the connection without an answer."""


class Transport:
    """Requests to the daemon at *path*, and its answers. A call takes *timeout* seconds at most.

    Without a *timeout* it takes PATIENCE, or IMPATIENCE where the daemon may be silent still.
    *page* is the page that the daemon has passed over the connection that is open. It comes with
    the first reply, and with the first lease.
    """

    def __init__(
        self, path: str, timeout: float | None, silence: Silence, clock: ClientClock, life: Life
    ) -> None:
        self.path = path
        self.clock = clock
        self._timeout = IMPATIENCE if timeout is None else timeout
        self._patience = PATIENCE if timeout is None else timeout
        self._silence = silence
        self._life = life
        self._sock: Stream | None = None
        # The one that was tried while that is silent, and when the next one is to be tried.
        self._other: Stream | None = None
        self._try_at = 0.0
        self._asked_at = 0.0
        # When the request was sent that timed out; it may have no socket, see 4 above.
        self._unanswered: float | None = None
        self._msgid = 0
        self.page: Page | None = None
        self._wants_page = self._is_new = False

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        # Copies: in a fork's child many threads may close their parent's at once.
        sock, other = self._sock, self._other
        if sock is not None:
            sock.close_own()
            self._sock = self.page = None
        if other is not None:
            other.close_own()
            self._other = None

    def _deadline(self, *, patient: bool = False) -> float:
        """Return when a call that begins now has to end; late if it is *patient*.

        Raises DaemonUnavailable at once if the request that timed out still has no answer.
        """
        if self._unanswered is not None:
            if self._sock is None:
                self._open(0)
            elif self._sock.is_quiet() and not self._another_answers():
                raise self._silent()
            else:
                self.close()
            self._mark_answered()
        now = self._asked_at = self.clock.elapsed()
        if self._silence.known(now):
            return now
        return now + (self._patience if patient or self._silence.patient else self._timeout)

    def _another_answers(self) -> bool:
        """Whether the other connection has an answer. If it has none in a second, try another."""
        other = self._other
        if other is not None and not other.is_quiet():
            return True
        now = self.clock.elapsed()
        if now >= self._try_at:
            self._try_at = now + ANOTHER_SECONDS
            if other is not None:
                other.close_own()
                self._other = None
            # If there is no room, or no daemon, the silence goes on.
            with suppress(OSError):
                other = Stream(self.clock, self._life)
                other.connect_until(self.path, 0)
                other.send_all(rpc.pack_request(0, "take", ["utc", 1, False, False]))
                self._other = other
        return False

    def _mark_answered(self) -> None:
        asked_at = self._asked_at if self._unanswered is None else self._unanswered
        if self.clock.elapsed() - asked_at < self._patience:
            # A long wait is worth it, for one has heard this answer, or would have.
            self._silence.patient = True
        self._unanswered = None
        self._silence.over()

    def _silent(self) -> DaemonUnavailable:
        """Note that the daemon is silent; return the error that says so."""
        now = self.clock.elapsed()
        if self._unanswered is None:
            self._unanswered = self._asked_at
            self._try_at = now + ANOTHER_SECONDS
        self._silence.found(self._unanswered, now)
        return DaemonUnavailable(self.path, "silent for longer than the time-out", "silent")

    def _call(self, method: str, params: list[Any], deadline: float) -> Any:
        self._msgid = (self._msgid + 1) % (rpc.MAX_MSGID + 1)
        request = rpc.pack_request(self._msgid, method, params)
        if self._sock is not None and self._sock.is_open():
            # It was closed if the daemon was restarted since. No answer to this request was used.
            with suppress(Closed):
                return self._exchange(request, deadline)
        self._open(deadline)
        return self._exchange(request, deadline)

    def _exchange(self, request: bytes, deadline: float) -> Any:
        try:
            response = self._ask(request, rpc.unpack_response, deadline)
        except rpc.MalformedError as error:
            raise self._unusable(error) from error
        except BaseException:
            if self._unanswered is None:
                # For example Ctrl-C: the answer may still come, and is not the next request's.
                self.close()
            raise
        self._is_new = False
        if response.msgid != self._msgid:
            self.close()
            raise DaemonUnavailable(self.path, "an answer to another request", "unusable")
        if response.error is not None:
            raise DaemonUnavailable(self.path, _printable(response.error), code=response.code)
        return response.result

    def _ask(
        self, request: bytes, unpack: Callable[[bytes], Answer | None], deadline: float
    ) -> Answer:
        """Send *request*; return what *unpack* finds in the answer, once that is whole."""
        self._send(request)
        data = b""
        while (answer := unpack(data)) is None:
            if data and self.clock.elapsed() >= deadline:
                raise self._silent()
            data += self._receive(deadline)
        self._mark_answered()
        return answer

    def _open(self, deadline: float) -> None:
        self.close()
        try:
            sock = Stream(self.clock, self._life)
        except OSError as error:
            raise self._failed(error) from error
        try:
            sock.connect_until(self.path, deadline)
        except (BlockingIOError, TimeoutError) as error:
            sock.close()
            raise self._silent() from error
        except OSError as error:
            sock.close()
            # The daemon that was silent there has gone.
            self._mark_answered()
            raise self._failed(error) from error
        self._sock, self._is_new = sock, True

    def _opened(self) -> Stream:
        """Return the socket. Raises Over in a child whose signal handler has closed it."""
        if self._sock is None:
            raise Over
        return self._sock

    def _send(self, data: bytes) -> None:
        sock = self._opened()
        try:
            sock.send_all(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close()
            raise Closed from None
        except TimeoutError as error:
            # There is no probe: the daemon does not answer a part of a request.
            self.close()
            raise self._silent() from error
        except OSError as error:
            raise self._failed(error) from error

    def _receive(self, deadline: float) -> bytes:
        """Return the bytes that have come by *deadline*.

        After it there is one look: this process may have been held up since it asked.
        """
        sock = self._opened()
        try:
            left = max(deadline - self.clock.elapsed(), 0.0)
            if self._wants_page or self._is_new:
                data, passed = sock.receive_passed(65536, left)
                for descriptor in passed:
                    self._keep_page(descriptor)
            else:
                data = sock.receive(65536, left)
        except ConnectionResetError:
            data = b""
        except BlockingIOError as error:
            raise self._silent() from error
        except OSError as error:
            raise self._failed(error) from error
        if not data:
            self.close()
            raise Closed
        return data

    def _keep_page(self, descriptor: int) -> None:
        try:
            self.page = page_of(descriptor)
            self._life.passed(self.page)
        except PageError as error:
            # Without it there are blocks, as of an earlier daemon.
            if self._wants_page:
                raise self._unusable(f"{error}{LATER}") from error
        finally:
            os.close(descriptor)

    def _unusable(self, cause: object) -> DaemonUnavailable:
        self.close()
        return DaemonUnavailable(self.path, f"an unusable answer: {cause}", "unusable")

    def _failed(self, error: OSError) -> DaemonUnavailable:
        self.close()
        cause = error.strerror or str(error)
        size = len(os.fsencode(self.path))
        if size > MOST_PATH_BYTES:
            # Python refuses such a path itself, and does not say what is allowed.
            cause = f"the path has {size} bytes, and a socket's at most {MOST_PATH_BYTES}"
        return DaemonUnavailable(self.path, cause, _REASONS.get(error.errno or 0, "system"))


def _printable(text: str) -> str:
    """Return the daemon's text as one line, without characters that a terminal would act on."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text[:1000])

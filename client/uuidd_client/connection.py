"""A connection to the daemon: what a client asks in rpc or, of util-linux's uuidd, as libuuid does.

The socket is opened at need, and carries a request and its answer at a time. A daemon that does not
answer costs one call a long wait, and the calls after it nothing:

1. The connection of a request that timed out stays open: the request is the *probe*.
2. Each later call first checks, without waiting, whether anything has come. If not, it fails.
3. A late answer is dropped, because the time in it is past. Then, or if the daemon has closed the
   connection, the call sends its request on a new one, and waits for the answer.
4. If the probe is older than PATIENCE, another daemon may be at the path by now. So the call sends
   its request on a new connection, and does not wait: that request is the next probe. If the
   daemon's backlog is full there is no connection, and each call tries this again.
5. The connections of one client share a ``Silence``. While one of them has just found the daemon
   silent, the others send their request and do not wait for the answer. From then on waits are
   short, until an answer comes within PATIENCE: a daemon that never does costs no second long one.

A daemon that has to wait for its disk says so at once, and is not silent: the call repeats its
request, and adds the time that the daemon may wait to the time-out.
"""

from __future__ import annotations

# Not socket, whose class gevent and eventlet replace by classes of their own.
import _socket
import os
from collections.abc import Callable
from functools import partial

from uuidd.core.timeline.outcomes import Block, SteadyBlock
from uuidd.core.typed import TYPE_CHECKING, Any
from uuidd.core.wire import libuuid, methods, rpc
from uuidd_client.errors import DaemonUnavailable, NoWorkerId, unreachable
from uuidd_client.lease import Lease, Page, page_of
from uuidd_client.life import FOREVER, Life, Over, Watch, current, word
from uuidd_client.system import SYSTEM_CLOCK, ClientClock

if TYPE_CHECKING:
    from typing import TypeVar

    Result = TypeVar("Result")

PATIENCE = 5.0
"""Seconds for which an answer is awaited by default. A thousand processes that start at once on two
cores leave a daemon so little of these that it takes seconds to answer them all."""

IMPATIENCE = 0.2
"""The same after a wait in vain, until an answer comes within PATIENCE."""

SILENCE_SECONDS = 1.0
"""Seconds for which the connections of a client share that one of them found the daemon silent."""

MAX_FROM_LIBUUID = 65_536
"""Ticks asked of a util-linux uuidd at once: its clock runs ahead by what it gives, here 6.5 ms."""

LIBUUID_SECONDS = 60.0
"""Seconds after which rpc is tried again with a uuidd that closed on it, as util-linux's does."""

CONNECT_PAUSE = 0.05
"""Seconds after which a socket is tried again whose backlog is full."""

CLOSED = "it closed the connection, as util-linux's does if it does not know the request"

_ALWAYS = word(FOREVER)
"""The horizon of a block."""

_ONE_PASSED = _socket.CMSG_LEN(4)
"""Room for one descriptor; the kernel closes others, which CMSG_SPACE could have room for."""


class Stream(_socket.socket):
    """A Unix stream socket that checks whether its descriptor is still its own.

    It waits in system calls, also under gevent and eventlet: greenlets wait with it.

    A signal handler may fork in the middle of any call here, and return in the child too. The
    connection is the parent's then: in the child each connect, read or write raises Over. CPython
    runs handlers when calls return, and while a system call waits. So each call that could connect,
    read or write directly follows a check of *alive*, and does not wait.
    """

    identity: tuple[int, ...] | None = None
    """The inode and the device of the socket that was opened."""

    # Kept here for ``__del__``: at the interpreter's end, the names of a module may be gone first.
    fstat = staticmethod(os.fstat)
    getpid = staticmethod(os.getpid)
    both_ways = _socket.SHUT_RDWR
    pid = 0

    def __init__(self, life: Life) -> None:
        # First: a child must not inherit a descriptor for which it is alive.
        self.alive = life.alive
        self.pid = os.getpid()
        super().__init__(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self.identity = self.fstat(self.fileno())[1:3]

    def __del__(self) -> None:
        # A program does not close the client of uuid1(), so an open socket is not a leak here.
        self.close_own()

    def at_once(self, call: Callable[..., Any], *args: Any) -> Any:
        """Return what a method of the socket returns; BlockingIOError where it would wait."""
        if self.gettimeout() != 0:
            self.settimeout(0)
        if not self.alive[0]:
            raise Over
        return call(*args)

    def receive(self, count: int, seconds: float) -> tuple[bytes, list[int]]:
        """Return up to *count* bytes that have come, and the descriptors passed with them.

        Waits for *seconds* if there are none. Raises BlockingIOError if none have come then.
        """
        self.wait_for_bytes(seconds)
        # Programs that are started do not inherit what is passed.
        how = _ONE_PASSED, _socket.MSG_CMSG_CLOEXEC
        data, passed, _, _ = self.at_once(self.recvmsg, count, *how)
        return data, [number for *_, each in passed for number in memoryview(each).cast("i")]

    def wait_for_bytes(self, seconds: float) -> None:
        """Wait until something can be read, for *seconds* at most. A read after it never waits."""
        self.settimeout(seconds)
        if not self.alive[0]:
            # The parent takes the answer, so the child would wait for its whole time-out.
            raise Over
        try:  # noqa: SIM105  (as in life.py)
            # Waits, but leaves the bytes there.
            self.recv(1, _socket.MSG_PEEK)
        except (BlockingIOError, TimeoutError):
            pass

    def is_quiet(self) -> bool:
        """Whether nothing has come: no byte, no end of file and no error. Does not wait."""
        try:
            if self.is_open():
                self.at_once(self.recv, 1)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def is_open(self) -> bool:
        """Whether the descriptor is the socket that was opened.

        A process that becomes a daemon closes all: then the number is free, or a file's.
        """
        try:
            return self.fstat(self.fileno())[1:3] == self.identity
        except OSError:
            return False

    def close_own(self) -> None:
        """End the connection, and close the descriptor, unless another file has it by now.

        Only the process that made the connection ends it: also for its children, which may have a
        copy of the socket.
        """
        # Without an identity __init__ was interrupted, so no other file can have the number.
        if self.identity is not None and not self.is_open():
            self.detach()
            return
        try:
            if self.getpid() == self.pid:
                self.shutdown(self.both_ways)
        except OSError:
            # It is not connected.
            pass
        self.close()


class Silence:
    """What the connections of a client know of a daemon that does not answer.

    No call waits before the time elapsed is *until*. *patient* is whether an answer is worth a long
    wait: *always* where there is nothing to fall back to. A race of threads costs a time-out more.
    """

    def __init__(self, *, always: bool = False) -> None:
        self.until = 0.0
        self.patient = True
        self.always = always


class Connection:
    """A connection to the daemon at *path*, for the requests of a *life*.

    A call takes *timeout* seconds at most. Without a *timeout* it takes PATIENCE, or IMPATIENCE
    where the daemon may be silent still. *page* is the page that the daemon has passed over the
    connection that is open: it comes with the first reply, and with the first lease. *untold* is
    how many ids the fallback has made that no daemon was told of.

    Not for two threads at once. All calls raise DaemonUnavailable if they get no usable answer.
    """

    def __init__(
        self,
        path: str,
        timeout: float | None,
        silence: Silence | None = None,
        *,
        clock: ClientClock = SYSTEM_CLOCK,
        life: Life | None = None,
    ) -> None:
        self.path = path
        self.clock = clock
        self.page: Page | None = None
        self.untold = 0
        self._timeout = IMPATIENCE if timeout is None else timeout
        self._patience = PATIENCE if timeout is None else timeout
        self._silence = silence or Silence()
        self._life = life or current()
        self._sock: Stream | None = None
        self._msgid = 0
        # When the latest call began and has to end (0 if nobody waits for an answer), and whether
        # its request had no answer then.
        self._asked_at = self._deadline = 0.0
        self._is_silent = False
        # Until when util-linux's uuidd is asked in its own protocol first.
        self._libuuid_until = 0.0

    def take(
        self, timeline: str, count: int, *, wait: bool = False
    ) -> tuple[Block | SteadyBlock, Watch]:
        """Return a block of up to *count* ticks of a timeline, and its watch.

        If the daemon would have to wait for its disk, it refuses with ``must_wait``, unless the
        call is to *wait*. For ``snowflake`` the wait for the answer is always a long one, because
        no Snowflake can be made without it. Raises NoWorkerId if the daemon has no worker number.
        """
        self._begin(patient=timeline == "snowflake", more=methods.SAVE_SECONDS if wait else 0.0)
        if timeline == "utc" and self._asked_at < self._libuuid_until:
            return self._take_by_libuuid(count, self._libuuid_until)
        read = partial(_block, timeline, count)
        try:
            block, clones = self._call("take", [timeline, count, False, wait], read)
        except DaemonUnavailable as error:
            if error.reason != "closed" or timeline != "utc":
                raise
            return self._take_by_libuuid(count, self._asked_at + LIBUUID_SECONDS)
        if self.page is None:
            return block, self._life.watch
        # The block says of which count of clones it is: the page may have come after it.
        return block, Watch(_ALWAYS, self.page.clones, clones)

    def lease(self) -> Lease:
        """Return a lease, which lasts as long as the connection, unless the daemon ends it.

        Raises DaemonUnavailable also if the daemon, or this system, has no leases. A lease whose
        page did not come is given back, because the connection is closed.
        """
        self._begin()
        if self._asked_at < self._libuuid_until:
            raise DaemonUnavailable(self.path, CLOSED, "closed")
        granted = self._call("lease", [], methods.unpack_lease)
        if self.page is None:
            # This process may open no more files. Each try costs a lane that rests for 20 seconds.
            later = methods.ask_again_in(methods.MOST_ASK_AGAIN)
            raise self._unusable(f"a lease came without its page{later}")
        return Lease(granted, self.page)

    def status(self) -> dict[str, Any]:
        """Return the daemon's status."""
        self._begin()
        return self._call("status", [], _map)

    def renew(self) -> dict[str, Any]:
        """Have the daemon share nothing any longer with a copy of this machine.

        Returns the number of *leases* that ended, and whether the renewal is *saved* already.
        """
        self._begin()
        return self._call("renew", [], _map)

    def tell_in_use(self) -> None:
        """Tell the daemon that ids of a lease are made, if it can be told without waiting."""
        if not self._is_silent:
            self._deadline = 0.0
            try:  # noqa: SIM105  (as in life.py)
                self._ask(rpc.pack_notification(methods.IN_USE, []), lambda _: True)
            except DaemonUnavailable:
                pass

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        # A copy: in a fork's child many threads may close their parent's at once.
        sock = self._sock
        if sock is not None:
            sock.close_own()
            self._sock = self.page = None

    def forget_silence(self) -> None:
        """Let the next call wait for an answer, as the first one did."""
        self._is_silent = False
        self._silence.until, self._silence.patient = 0.0, True

    def _take_by_libuuid(self, count: int, until: float) -> tuple[Block, Watch]:
        """Return a block; if there is one, it is asked for in this way *until* some time."""
        self._libuuid_until = 0.0
        self.close()
        asked = min(count, MAX_FROM_LIBUUID)
        request = libuuid.pack_request(libuuid.Op.BULK_TIME_UUID, asked)
        try:
            block = libuuid.unpack_block(self._exchange(request, libuuid.unpack_body))
        except libuuid.ProtocolError as error:
            raise self._unusable(error) from error
        self.close()
        self._libuuid_until = until
        # Ticks that a reply claims beyond the request were never reserved.
        return block._replace(count=min(block.count, asked)), self._life.watch

    def _call(self, method: str, params: list[Any], read: Callable[[Any], Result]) -> Result:
        """Return what *read* makes of the answer; it raises ValueError for one that cannot be."""
        self._msgid = (self._msgid + 1) % (rpc.MAX_MSGID + 1)
        request = rpc.pack_request(self._msgid, method, params)
        try:
            response = self._ask(request, rpc.unpack_response)
            if response.msgid != self._msgid:
                raise ValueError("it is to another request")
            if response.error is None:
                return read(response.result)
        except (rpc.MalformedError, ValueError) as error:
            raise self._unusable(error) from error
        cause = _printable(response.error)
        if response.code == "no_worker_id":
            raise NoWorkerId(self.path, cause)
        raise DaemonUnavailable(self.path, cause, code=response.code)

    def _begin(self, *, patient: bool = False, more: float = 0.0) -> None:
        """Begin a call, which may take *more* seconds, and long if it is *patient*.

        Raises DaemonUnavailable at once if the probe has no answer.
        """
        now = self.clock.elapsed()
        sock = self._sock
        if self._is_silent and sock is not None:
            is_quiet = sock.is_quiet()
            if is_quiet and now < self._asked_at + PATIENCE:
                raise self._silent()
            self.close()
            if not is_quiet:
                self._heard()
        self._asked_at = self._deadline = now
        if not self._is_silent and now >= self._silence.until:
            is_long = patient or self._silence.patient
            self._deadline += more + (self._patience if is_long else self._timeout)

    def _heard(self) -> None:
        """Note that the daemon has answered, or has gone."""
        silence = self._silence
        # A long wait is worth it if one has heard this answer, or would have.
        silence.patient = silence.patient or self.clock.elapsed() < self._asked_at + PATIENCE
        self._is_silent = False
        silence.until = 0.0

    def _silent(self) -> DaemonUnavailable:
        """Note that the daemon is silent; return the error that says so."""
        # Without a deadline it was a notification that found the daemon's socket full. Such a
        # daemon is busy, and may answer the next request.
        if self._deadline:
            self._is_silent = True
            self._silence.until = self.clock.elapsed() + SILENCE_SECONDS
            self._silence.patient = self._silence.always
        return DaemonUnavailable(self.path, "silent for longer than the time-out", "silent")

    def _ask(self, request: bytes, unpack: Callable[[bytes], Result | None]) -> Result:
        """Exchange over the open connection or, if the daemon closes it, over a new one.

        What is *untold* goes before the request, and counts as told unless the connection ends
        without an answer: then the daemon that may have read it ends too, with its counts.
        """
        told = 0
        # A request that nobody waits for may never be read.
        if self.untold and self._deadline > self._asked_at:
            # One line, as in the cutter: a handler of a signal may tell the same number.
            told, self.untold = self.untold, 0
            params = [min(told, methods.MAX_FALLBACK_IDS)]
            request = rpc.pack_notification(methods.FALLBACK_IDS, params) + request
        try:
            try:
                return self._exchange(request, unpack)
            except DaemonUnavailable as error:
                # The daemon was restarted. No answer to this request was used.
                if error.reason != "closed":
                    raise
            return self._exchange(request, unpack)
        except DaemonUnavailable:
            if self._sock is None:
                self.untold += told
            raise

    def _exchange(self, request: bytes, unpack: Callable[[bytes], Result | None]) -> Result:
        """Send *request*; return what *unpack* finds in the answer, once that is whole.

        Opens a connection if none is open. After the deadline there is one look: this process may
        have been held up since it asked.
        """
        data = b""
        try:
            sock = self._sock
            if sock is None:
                sock = self._open()
            elif not sock.is_open():
                raise ConnectionResetError
            # A request is so small that the kernel takes all of it or nothing.
            sock.at_once(sock.send, request)
            while (answer := unpack(data)) is None:
                left = self._deadline - self.clock.elapsed()
                if data and left <= 0:
                    raise BlockingIOError
                more, passed = sock.receive(65536, max(left, 0.0))
                for descriptor in passed:
                    page = page_of(descriptor, self._life.page)
                    if page is not None:
                        # Without one there are blocks.
                        self.page = page
                        self._life.passed(page)
                if not more:
                    raise ConnectionResetError
                data += more
        except (ConnectionResetError, BrokenPipeError):
            self.close()
            raise DaemonUnavailable(self.path, CLOSED, "closed") from None
        except BlockingIOError as error:
            raise self._silent() from error
        except OSError as error:
            # A daemon that was silent there has gone.
            self._heard()
            self.close()
            raise unreachable(self.path, error) from error
        except BaseException:
            # For example Ctrl-C: the answer may still come, and is not the next request's.
            self.close()
            raise
        if data:
            self._heard()
        return answer

    def _open(self) -> Stream:
        """Return a new connection. Raises BlockingIOError if the backlog is full for too long."""
        self._sock = sock = Stream(self._life)
        while True:
            try:
                sock.at_once(sock.connect, self.path)
                return sock
            except BlockingIOError:
                if self.clock.elapsed() >= self._deadline:
                    # It is no probe: no request is out.
                    self.close()
                    raise
            self.clock.pause(CONNECT_PAUSE)

    def _unusable(self, cause: object) -> DaemonUnavailable:
        self.close()
        return DaemonUnavailable(self.path, f"an unusable answer: {cause}", "unusable")


def _block(timeline: str, count: int, result: Any) -> tuple[Block | SteadyBlock, int]:
    """Return the block of *count* ticks at most in a result, and its count of clones."""
    block: Block | SteadyBlock
    if timeline == "utc":
        block = methods.unpack_block(result)
    else:
        block = methods.unpack_steady_block(result)
        if timeline == "snowflake" and block.worker is None:
            raise ValueError("a block for Snowflakes without a worker number")
    if block.count > count:
        raise ValueError(f"{block.count} ticks where {count} were asked for")
    return block, methods.unpack_page_epoch(result)


def _map(result: Any) -> dict[str, Any]:
    if not isinstance(result, dict):
        raise ValueError("it is not a map")
    return result


def _printable(text: str) -> str:
    """Return the daemon's text as one line, without characters that a terminal would act on."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text[:1000])

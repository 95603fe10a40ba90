"""What a client asks of the daemon: in rpc or, of a util-linux uuidd, in libuuid's protocol."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from uuidd.core.timeline import Block, SteadyBlock
from uuidd.core.wire import libuuid, methods, rpc
from uuidd_client.errors import DaemonUnavailable, NoWorkerId
from uuidd_client.lease import Lease
from uuidd_client.life import FOREVER, Life, Watch, current, word
from uuidd_client.system import SYSTEM_CLOCK, ClientClock
from uuidd_client.transport import LATER, Closed, Silence, Transport

_ALWAYS = word(FOREVER)
"""The horizon of a block."""

MAX_FROM_LIBUUID = 65_536
"""Ticks asked of a util-linux uuidd at once: its clock runs ahead by what it gives, here 6.5 ms."""

LIBUUID_SECONDS = 60.0
"""Seconds after which rpc is tried again with a uuidd that closed on it, as util-linux's does."""

NO_STATUS = "it closed the connection; if it is util-linux's, it has no status"
NO_LEASES = "it closed the connection; if it is util-linux's, it has no leases"
NO_RENEWAL = "it closed the connection; if it is util-linux's, it cannot be renewed"
ONLY_V1 = "it closed the connection; if it is util-linux's, it makes no such ids"


class Connection(Transport):
    """A connection to the daemon, and the requests that it answers. It belongs to a *life*.

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
        super().__init__(path, timeout, silence or Silence(), clock, life or current())
        self._closes_on_rpc = False
        self._libuuid_until = 0.0

    def take(
        self, timeline: str, count: int, *, wait: bool = False
    ) -> tuple[Block | SteadyBlock, Watch]:
        """Return a block of up to *count* ticks of a timeline, and its watch.

        If the daemon would have to wait for its disk, it refuses with ``must_wait``, unless the
        call is to *wait*. For ``snowflake`` the wait for the answer is always a long one, because
        no Snowflake can be made without it. Raises NoWorkerId if the daemon has no worker number.
        """
        deadline = self._deadline(patient=timeline == "snowflake")
        if wait:
            deadline += methods.SAVE_SECONDS
        if timeline == "utc" and self.clock.elapsed() < self._libuuid_until:
            return self._take_by_libuuid(count, deadline)
        try:
            result = self._call("take", [timeline, count, False, wait], deadline)
        except Closed:
            if timeline != "utc":
                raise DaemonUnavailable(self.path, ONLY_V1, "closed") from None
            # util-linux's uuidd closes on requests that it does not know, and gives a block in its
            # own protocol. This project's daemon may do both, if it is restarted during this call.
            block = self._take_by_libuuid(count, deadline)
            if self._closes_on_rpc:
                self._libuuid_until = self.clock.elapsed() + LIBUUID_SECONDS
            self._closes_on_rpc = True
            return block
        except DaemonUnavailable as refusal:
            if refusal.code == "no_worker_id":
                raise NoWorkerId(self.path, refusal.cause) from None
            raise
        self._closes_on_rpc = False
        return self._checked(timeline, result, count)

    def lease(self) -> Lease:
        """Return a lease, which lasts as long as the connection, unless the daemon ends it.

        Raises DaemonUnavailable also if the daemon, or this system, has no leases. A lease whose
        page did not come is given back, because the connection is closed.
        """
        if self.clock.elapsed() < self._libuuid_until:
            raise DaemonUnavailable(self.path, NO_LEASES, "closed")
        self._wants_page = True
        try:
            result = self._call("lease", [], self._deadline())
        except Closed:
            raise DaemonUnavailable(self.path, NO_LEASES, "closed") from None
        finally:
            self._wants_page = False
        # Once, because a child's signal handler closes the connection, and takes the page away.
        page = self.page
        if page is None:
            raise self._unusable(f"a lease came without its page{LATER}")
        try:
            return Lease(methods.unpack_lease(result), page)
        except ValueError as error:
            raise self._unusable(error) from error

    def renew(self) -> dict[str, Any]:
        """Have the daemon share nothing any longer with a copy of this machine.

        Returns the number of *leases* that ended, and whether the renewal is *saved* already.
        """
        return self._map("renew", NO_RENEWAL)

    def tell_in_use(self) -> None:
        """Tell the daemon that ids of a lease are made, if it can be told without waiting."""
        message = rpc.pack_notification(methods.IN_USE, [])
        if self._unanswered is not None:
            return
        if self._sock is not None and self._sock.is_open():
            with suppress(DaemonUnavailable, Closed):
                self._send(message)
                return
        if self._unanswered is None:
            # Not if the daemon reads nothing: a connection without a request would stay silent.
            with suppress(DaemonUnavailable, Closed):
                self._open(0)
                self._send(message)

    def _checked(self, timeline: str, result: Any, count: int) -> tuple[Block | SteadyBlock, Watch]:
        """Return the block of *result*, if it is no larger than *count*, and its watch."""
        read = methods.unpack_block if timeline == "utc" else methods.unpack_steady_block
        try:
            block = read(result)
            if block.count > count:
                raise ValueError(f"{block.count} ticks where {count} were asked for")
            clones = methods.unpack_page_epoch(result)
        except ValueError as error:
            raise self._unusable(error) from error
        if timeline == "snowflake" and isinstance(block, SteadyBlock) and block.worker is None:
            raise NoWorkerId(self.path)
        if self.page is None:
            return block, self._life.watch
        # The block says of which count of clones it is: the page may have come after it.
        return block, Watch(_ALWAYS, self.page.clones, clones)

    def status(self) -> dict[str, Any]:
        """Return the daemon's status."""
        return self._map("status", NO_STATUS)

    def _map(self, method: str, closed: str) -> dict[str, Any]:
        """Return the map that answers *method*; *closed* says why a daemon may close instead."""
        try:
            result = self._call(method, [], self._deadline())
        except Closed:
            raise DaemonUnavailable(self.path, closed, "closed") from None
        if not isinstance(result, dict):
            raise self._unusable(f"its answer to {method} is not a map")
        return result

    def _take_by_libuuid(self, count: int, deadline: float) -> tuple[Block, Watch]:
        asked = min(count, MAX_FROM_LIBUUID)
        self._open(deadline)
        try:
            request = libuuid.pack_request(libuuid.Op.BULK_TIME_UUID, asked)
            block = libuuid.unpack_block(self._ask(request, libuuid.unpack_body, deadline))
            # Ticks that a reply claims beyond the request were never reserved.
            block = Block(block.first, min(block.count, asked), block.clock_seq, block.node)
            return block, self._life.watch
        except Closed:
            self._libuuid_until = 0.0
            raise DaemonUnavailable(
                self.path, "it closed the connection with no answer", "closed"
            ) from None
        except libuuid.ProtocolError as error:
            self._libuuid_until = 0.0
            raise self._unusable(error) from error
        finally:
            if self._unanswered is None:
                self.close()

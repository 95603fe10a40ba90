"""What a client asks of the daemon: in rpc or, of a util-linux uuidd, in libuuid's protocol."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from uuidd.core.timeline import Block, SteadyBlock
from uuidd.core.wire import libuuid, methods, rpc
from uuidd_client.errors import DaemonUnavailable, NoWorkerId
from uuidd_client.lease import Holding
from uuidd_client.system import SYSTEM_CLOCK, ClientClock
from uuidd_client.transport import LATER, Closed, Silence, Transport
from uuidd_client.watch import NEVER, Watch

AnyBlock = TypeVar("AnyBlock", Block, SteadyBlock)

MAX_FROM_LIBUUID = 65_536
"""Ticks asked of a util-linux uuidd at once: its clock runs ahead by what it gives, here 6.5 ms."""

LIBUUID_SECONDS = 60.0
"""Seconds after which rpc is tried again with a uuidd that closed on it, as util-linux's does."""

NO_STATUS = "it closed the connection; if it is util-linux's, it has no status"
NO_LEASES = "it closed the connection; if it is util-linux's, it has no leases"
NO_RENEWAL = "it closed the connection; if it is util-linux's, it cannot be renewed"
ONLY_V1 = "it closed the connection; if it is util-linux's, it makes no such ids"


class Connection(Transport):
    """A connection to the daemon, and the requests that it answers.

    Not for two threads at once. All calls raise DaemonUnavailable if they get no usable answer.

    *watch* is that of the last block.
    """

    def __init__(
        self,
        path: str,
        timeout: float | None,
        silence: Silence | None = None,
        *,
        clock: ClientClock = SYSTEM_CLOCK,
    ) -> None:
        super().__init__(path, timeout, silence, clock)
        self._closes_on_rpc = False
        self._libuuid_until = 0.0
        self.watch = NEVER

    def take_snowflake(self, count: int) -> SteadyBlock:
        """Return a block of up to *count* steady ticks, with a worker number.

        The wait for the answer is always a long one, because no Snowflake can be made without it.
        Raises NoWorkerId if the daemon has no worker number.
        """
        try:
            block = self.take_steady(count, "snowflake", patient=True)
        except DaemonUnavailable as refusal:
            if refusal.code == "no_worker_id":
                raise NoWorkerId(self.path, refusal.cause) from None
            raise
        if block.worker is None:
            raise NoWorkerId(self.path)
        return block

    def take_steady(
        self, count: int, timeline: str = "steady", *, patient: bool = False
    ) -> SteadyBlock:
        """Return a block of up to *count* ticks of the steady timeline, or a part of it."""
        try:
            result = self._take(timeline, count, self._deadline(patient=patient))
        except Closed:
            raise DaemonUnavailable(self.path, ONLY_V1, "closed") from None
        return self._checked(methods.unpack_steady_block, result, count)

    def take(self, count: int) -> Block:
        """Return a block of up to *count* ticks of UTC."""
        deadline = self._deadline()
        if self.clock.elapsed() < self._libuuid_until:
            return self._take_by_libuuid(count, deadline)
        try:
            result = self._take("utc", count, deadline)
        except Closed:
            # util-linux's uuidd closes on requests that it does not know, and gives a block in its
            # own protocol. This project's daemon may do both, if it is restarted during this call.
            block = self._take_by_libuuid(count, deadline)
            if self._closes_on_rpc:
                self._libuuid_until = self.clock.elapsed() + LIBUUID_SECONDS
            self._closes_on_rpc = True
            return block
        self._closes_on_rpc = False
        return self._checked(methods.unpack_block, result, count)

    def lease(self) -> Holding:
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
            return Holding(methods.unpack_lease(result), page)
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

    def _take(self, timeline: str, count: int, deadline: float) -> Any:
        try:
            return self._call("take", [timeline, count, False, False], deadline)
        except DaemonUnavailable as refusal:
            if refusal.code != "must_wait":
                raise
        late = deadline + methods.SAVE_SECONDS
        return self._call("take", [timeline, count, False, True], late)

    def _checked(self, read: Callable[[Any], AnyBlock], result: Any, count: int) -> AnyBlock:
        """Return the block that *read* finds in *result*, if it is no larger than *count*."""
        try:
            block = read(result)
            if block.count > count:
                raise ValueError(f"{block.count} ticks where {count} were asked for")
            # The block says its epoch: the page may have come after it.
            self.watch = Watch(self.page, methods.unpack_page_epoch(result))
            return block
        except ValueError as error:
            raise self._unusable(error) from error

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

    def _take_by_libuuid(self, count: int, deadline: float) -> Block:
        asked = min(count, MAX_FROM_LIBUUID)
        self._open(deadline)
        self.watch = NEVER
        try:
            request = libuuid.pack_request(libuuid.Op.BULK_TIME_UUID, asked)
            block = libuuid.unpack_block(self._ask(request, libuuid.unpack_body, deadline))
            # Ticks that a reply claims beyond the request were never reserved.
            return Block(block.first, min(block.count, asked), block.clock_seq, block.node)
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

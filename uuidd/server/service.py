"""Answers requests of both dialects: returns the bytes of each reply, and counts both."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from typing import Any

from uuidd.core.ids import versions
from uuidd.core.timeline import Block, SteadyBlock
from uuidd.core.timeline.outcomes import NotNow
from uuidd.core.timeline.page import Lease
from uuidd.core.wire import libuuid, methods, rpc
from uuidd.core.wire.libuuid import Op
from uuidd.core.wire.methods import IN_USE, Bare, Make, RefusedError, Take
from uuidd.server.allocator import Allocator
from uuidd.server.clones import Clones, Renewed
from uuidd.server.entropy import Entropy
from uuidd.server.events import Tally
from uuidd.server.fairness import Turns
from uuidd.server.leasing import Leasing
from uuidd.server.making import Maker
from uuidd.server.stream import Stream

MALFORMED = "malformed"
"""The reason, in counts of refusals, for bytes that are not a request of either dialect."""

AnyBlock = Block | SteadyBlock


class Service:
    """Answers requests with what *allocator*, *leasing*, *entropy*, *status* and *clones* return.

    *changed* is called after each answer is made, and returns whether it has to be made anew,
    because the machine was cloned. None if nothing tells that so soon. *trusted* are the uids that
    may have the daemon renewed. *refused* is called with the reason of each refusal.

    For each dialect there are two methods. One answers at once, or returns None when the request
    has to wait; then the other one, which waits, has to be called.
    """

    def __init__(
        self,
        allocator: Allocator,
        leasing: Leasing,
        entropy: Entropy,
        status: Callable[[Service], dict[str, Any]],
        clones: Clones,
        trusted: Collection[int],
        refused: Callable[[str], None],
        changed: Callable[[], bool] | None,
    ) -> None:
        self._allocator = allocator
        self._entropy = entropy
        self._maker = Maker(allocator, entropy)
        self._status = status
        self._clones = clones
        self._trusted = trusted
        self._changed = changed
        self.leasing = leasing
        self.rpc = Tally(refused)
        self.libuuid = Tally(refused)

    def answer(self, request: rpc.Request, *, uid: int) -> bytes | None:
        """Return the reply to an rpc request, "" for a notification; None when it has to wait.

        Nothing is given out for a notification: its sender would never learn of it.
        """
        reply, changed = self._answer(request, uid), self._changed
        if changed is not None and changed():
            reply = self._answer(request, uid)
        return reply

    def _answer(self, request: rpc.Request, uid: int) -> bytes | None:
        msgid = request.msgid
        if msgid is None:
            self.rpc.requests += 1
            if request.method in _IN_USE:
                self.leasing.note_use()
            return b""
        try:
            call = methods.parse(request.method, request.params)
            if type(call) is Take:
                timeline, count, whole, _ = call
                return self._reply_block(
                    msgid, self._allocator.take(timeline, count, whole, uid=uid)
                )
            if type(call) is Make:
                ids = self._maker.make(call, uid=uid)
                return None if ids is None else self._reply_ids(msgid, ids)
            if call is Bare.LEASE:
                self.leasing.check(uid)
                # A lease is for a connection, and may wait for a save: a task sees to both.
                return None
            if call is Bare.RENEW:
                self._check_permitted(uid)
                return None
            return self._reply_status(msgid)
        except NotNow:
            return None
        except RefusedError as refused:
            return self._refuse(msgid, refused)

    async def answer_waiting(
        self, request: rpc.Request, *, stream: Stream, turns: Turns
    ) -> tuple[bytes, int | None]:
        """Return the reply to an rpc request over *stream* that has to wait.

        The second item is the descriptor to pass with it, None for none.
        """
        answer = await self._answer_waiting(request, stream, turns)
        if self._changed is not None and self._changed():
            answer = await self._answer_waiting(request, stream, turns)
        return answer

    async def _answer_waiting(
        self, request: rpc.Request, stream: Stream, turns: Turns
    ) -> tuple[bytes, int | None]:
        uid = stream.uid
        msgid = request.msgid
        assert msgid is not None  # noqa: S101  (a notification never waits)
        try:
            call = methods.parse(request.method, request.params)
            if type(call) is Take:
                timeline, count, whole, wait = call
                block = await self._allocator.take_waiting(
                    timeline, count, whole, uid=uid, wait=wait
                )
                return self._reply_block(msgid, block), None
            if type(call) is Make:
                ids = await self._maker.make_waiting(call, uid=uid, turns=turns)
                return self._reply_ids(msgid, ids), None
            if call is Bare.LEASE:
                lease = await self.leasing.grant(stream)
                return self._reply_lease(msgid, lease), self.leasing.page
            if call is Bare.RENEW:
                self._check_permitted(uid)
                return self._reply_renewed(msgid, await self._clones.renew()), None
            return self._reply_status(msgid), None
        except RefusedError as refused:
            return self._refuse(msgid, refused), None

    def answer_libuuid(self, ask: libuuid.Request, *, uid: int) -> bytes | None:
        """Return the reply to a libuuid request, "" if it is refused; None if it has to wait."""
        reply, changed = self._answer_libuuid(ask, uid), self._changed
        if changed is not None and changed():
            reply = self._answer_libuuid(ask, uid)
        return reply

    def _answer_libuuid(self, ask: libuuid.Request, uid: int) -> bytes | None:
        block = None
        try:
            if ask.op in _TIME:
                block = self._allocator.take("utc", ask.count, True, uid=uid)
        except NotNow:
            return None
        except RefusedError as refused:
            return self._refuse_libuuid(refused)
        return self._reply_libuuid(ask, block)

    async def answer_libuuid_waiting(self, ask: libuuid.Request, *, uid: int) -> bytes:
        """Return the reply to a libuuid request that has to wait, "" when it is refused."""
        reply = await self._answer_libuuid_waiting(ask, uid)
        if self._changed is not None and self._changed():
            reply = await self._answer_libuuid_waiting(ask, uid)
        return reply

    async def _answer_libuuid_waiting(self, ask: libuuid.Request, uid: int) -> bytes:
        block = None
        try:
            if ask.op in _TIME:
                block = await self._allocator.take_waiting("utc", ask.count, True, uid=uid)
        except RefusedError as refused:
            return self._refuse_libuuid(refused)
        return self._reply_libuuid(ask, block)

    def take_back_lease(self, request: rpc.Request, stream: Stream) -> bytes:
        """End the lease that *request* was just granted; return the reply to send instead."""
        assert request.msgid is not None  # noqa: S101  (a notification is granted nothing)
        refused = self.leasing.take_back(stream)
        self.rpc.refuse(refused.code)
        return rpc.pack_error(request.msgid, refused.code, refused.message)

    def _check_permitted(self, uid: int) -> None:
        """Check that the user *uid* may have the daemon renewed. Raises RefusedError."""
        if uid not in self._trusted:
            own = [f"uid {each}, which the daemon runs as" for each in self._trusted if each]
            users = " and ".join(["root", *own])
            raise RefusedError("not_permitted", f"renew is for {users}, and this is uid {uid}")

    def _reply_block(self, msgid: int, block: AnyBlock) -> bytes:
        self.rpc.requests += 1
        self.rpc.ids += block.count
        return rpc.pack_response(msgid, methods.pack_block(block, self.leasing.leases.epoch))

    def _reply_ids(self, msgid: int, ids: list[str]) -> bytes:
        self.rpc.requests += 1
        self.rpc.ids += len(ids)
        return rpc.pack_response(msgid, ids)

    def _reply_lease(self, msgid: int, lease: Lease) -> bytes:
        self.rpc.requests += 1
        return rpc.pack_response(msgid, methods.pack_lease(lease))

    def _reply_renewed(self, msgid: int, renewed: Renewed) -> bytes:
        self.rpc.requests += 1
        return rpc.pack_response(msgid, renewed._asdict())

    def _reply_status(self, msgid: int) -> bytes:
        # Counted before, because the reply counts itself too.
        self.rpc.requests += 1
        return rpc.pack_response(msgid, self._status(self))

    def _refuse(self, msgid: int, refused: RefusedError) -> bytes:
        self.rpc.requests += 1
        self.rpc.refuse(refused.code)
        return rpc.pack_error(msgid, refused.code, refused.message)

    def _refuse_libuuid(self, refused: RefusedError) -> bytes:
        self.libuuid.requests += 1
        self.libuuid.refuse(refused.code)
        return b""

    def _reply_libuuid(self, ask: libuuid.Request, block: AnyBlock | None) -> bytes:
        self.libuuid.requests += 1
        if isinstance(block, Block):
            self.libuuid.ids += block.count
            first = libuuid.time_uuid(block)
            if ask.op is Op.TIME_UUID:
                return libuuid.uuid_reply(first)
            return libuuid.bulk_time_reply(first, ask.echo)
        if ask.op is Op.GETPID:
            return libuuid.text_reply(str(os.getpid()))
        if ask.op is Op.GET_MAXOP:
            return libuuid.maxop_reply()
        self.libuuid.ids += ask.count
        found = [self._random_uuid().to_bytes(16, "big") for _ in range(ask.count)]
        if ask.op is Op.RANDOM_UUID:
            return libuuid.uuid_reply(found[0])
        return libuuid.bulk_random_reply(found)

    def _random_uuid(self) -> int:
        return versions.v4(self._entropy.bits(versions.V4_RANDOM_BITS))


def reply_to(error: rpc.MalformedError) -> bytes:
    """Return the reply to bytes that are not a request, "" if they have no msgid.

    The connection has to be closed after it.
    """
    if error.msgid is None:
        return b""
    return rpc.pack_error(error.msgid, "bad_params", f"{error}; the connection is closed")


_IN_USE = (IN_USE, IN_USE.encode())
"""The method as text, and as binary data, which counts as text."""

_TIME = (Op.TIME_UUID, Op.BULK_TIME_UUID)

"""Answers requests of both dialects: bytes of a reply for a request, and counts of both."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from uuidd.core.ids import randombased
from uuidd.core.ids.kinds import KINDS
from uuidd.core.ids.origin import Origin
from uuidd.core.ids.recipes import RECIPES
from uuidd.core.timeline import Block, SteadyBlock
from uuidd.core.wire import libuuid, methods, rpc
from uuidd.core.wire.libuuid import Op
from uuidd.core.wire.methods import Make, RefusedError, Take
from uuidd.server.entropy import Entropy
from uuidd.server.issuer import MUST_WAIT, Issuer

AnyBlock = Block | SteadyBlock
Call = methods.Take | methods.Make | methods.Status


@dataclass(slots=True)
class Tally:
    """What came in one dialect: requests, ids or ticks given out, and refusals by reason."""

    requests: int = 0
    ids: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    tell: Callable[[], None] = lambda: None
    """Called after each refusal."""

    def refuse(self, reason: str) -> None:
        """Count a refusal."""
        self.refused[reason] += 1
        self.tell()


class Service:
    """Answers requests from *issuer*, *entropy* and *status*; each may have to wait.

    For either dialect there are two calls: one answers at once, or gives None when only the other,
    which waits, can answer.
    """

    def __init__(
        self, issuer: Issuer, entropy: Entropy, status: Callable[[Service], dict[str, Any]]
    ) -> None:
        self._issuer = issuer
        self._entropy = entropy
        self._status = status
        self.rpc = Tally()
        self.libuuid = Tally()

    def answer(self, request: rpc.Request, *, uid: int) -> bytes | None:
        """Give the reply to an rpc request, "" to a notification; None: it has to wait."""
        try:
            call = self._parse(request)
            wanted = _wanted(call)
            block = self._issuer.take(*wanted, uid=uid) if wanted else None
            return self._reply(request, call, block)
        except MUST_WAIT:
            return None
        except RefusedError as refused:
            return self._refuse(request, refused)

    async def answer_soon(self, request: rpc.Request, *, uid: int) -> bytes:
        """Give the reply to an rpc request that had to wait, "" to a notification."""
        try:
            call = self._parse(request)
            wanted = _wanted(call)
            block = await self._issuer.take_soon(*wanted, uid=uid) if wanted else None
            return self._reply(request, call, block)
        except RefusedError as refused:
            return self._refuse(request, refused)

    def answer_libuuid(self, ask: libuuid.Ask, *, uid: int) -> bytes | None:
        """Give the reply to a libuuid request, "" when it is refused; None: it has to wait."""
        block = None
        try:
            if ask.op in _TIME:
                block = self._issuer.take("utc", ask.count, True, uid=uid)
        except MUST_WAIT:
            return None
        except RefusedError as refused:
            return self._refuse_libuuid(refused)
        return self._reply_libuuid(ask, block)

    async def answer_libuuid_soon(self, ask: libuuid.Ask, *, uid: int) -> bytes:
        """Give the reply to a libuuid request that had to wait, "" when it is refused."""
        block = None
        try:
            if ask.op in _TIME:
                block = await self._issuer.take_soon("utc", ask.count, True, uid=uid)
        except RefusedError as refused:
            return self._refuse_libuuid(refused)
        return self._reply_libuuid(ask, block)

    def _parse(self, request: rpc.Request) -> Call:
        call = methods.parse(request.method, request.params)
        if type(call) is Make and call.kind == "snowflake" and self._issuer.worker is None:
            raise RefusedError(
                "no_worker_id",
                "this uuidd has no worker number, so it makes no Snowflakes; start it with"
                " --worker N, 0 to 1023, another on each host",
            )
        return call

    def _reply(self, request: rpc.Request, call: Call, block: AnyBlock | None) -> bytes:
        tally = self.rpc
        result: Any
        if type(call) is Take:
            assert block is not None  # noqa: S101  (tells the type checker what _wanted says)
            result = methods.take_result(block)
            tally.ids += block.count
            tally.requests += 1
        elif type(call) is Make:
            # Before it is counted, for it may be refused yet.
            result = self._make(call.kind, call.count, block)
            tally.ids += len(result)
            tally.requests += 1
        else:
            # After it is counted, for it tells of itself too.
            tally.requests += 1
            result = self._status(self)
        return b"" if request.msgid is None else rpc.response(request.msgid, result)

    def _refuse(self, request: rpc.Request, refused: RefusedError) -> bytes:
        self.rpc.requests += 1
        self.rpc.refuse(refused.code)
        if request.msgid is None:
            return b""
        return rpc.failure(request.msgid, refused.code, refused.message)

    def _refuse_libuuid(self, refused: RefusedError) -> bytes:
        self.libuuid.requests += 1
        self.libuuid.refuse(refused.code)
        return b""

    def _make(self, kind: str, count: int, block: AnyBlock | None) -> list[str]:
        recipe, random = RECIPES[kind], self._entropy.take
        draw = recipe.forms["text"]
        place, origin = 0, Origin(0)
        if block is not None:
            place, _ = recipe.places(block.first, block.count)
            origin = block.origin
        found: list[str] = []
        try:
            while len(found) < count:
                part = min(count - len(found), recipe.room(place))
                found += draw(place, part, origin, random)
                place += part
        except ValueError as error:
            # The day has come on which the kind's time field is full.
            raise RefusedError("unavailable", f"no {kind} can be made: {error}") from error
        return found

    def _reply_libuuid(self, ask: libuuid.Ask, block: AnyBlock | None) -> bytes:
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
        return randombased.v4(self._entropy.bits(randombased.RANDOM_BITS))


_TIME = (Op.TIME_UUID, Op.BULK_TIME_UUID)


def _wanted(call: Call) -> tuple[str, int, bool] | None:
    """Give the timeline, the ticks a call needs, and whether it must have all; None for none."""
    if type(call) is Take:
        return call
    if type(call) is Make and KINDS[call.kind].timeline:
        return KINDS[call.kind].timeline, RECIPES[call.kind].ticks(call.count), True
    return None

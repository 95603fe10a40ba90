"""Answers requests of both dialects, each by a generator (fairness.py), and counts both."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Generator
from dataclasses import InitVar, dataclass
from typing import Any

from uuidd.core.ids.kinds import KINDS, PLACES
from uuidd.core.ids.layouts import LAYOUTS, v4
from uuidd.core.ids.places import Origin
from uuidd.core.timeline.outcomes import Block
from uuidd.core.timeline.page import Lease
from uuidd.core.wire import libuuid, methods, rpc
from uuidd.core.wire.libuuid import Op
from uuidd.core.wire.methods import FALLBACK_IDS, IN_USE, MAX_MAKE, Make, RefusedError, Take
from uuidd.server.allocator import Allocator
from uuidd.server.client import Client
from uuidd.server.clones import Clones
from uuidd.server.entropy import Entropy
from uuidd.server.events import FallbackTally, Tally
from uuidd.server.fairness import Answer, Pause
from uuidd.server.leasing import Leasing
from uuidd.server.settings import Limits

PIECES = {"flake": 40, "ksuid": 40}
"""Ids made in one go, while all others wait: about as many as fit into a turn (fairness.py).
Those in base 62 take microseconds each; of all other kinds, one request may ask for about that."""


@dataclass(eq=False)
class Service:
    """Answers requests with what *allocator*, *leasing*, *entropy*, *status* and *clones* return.

    *changed* is called after each answer is made, and returns whether it has to be made anew,
    because the machine was cloned. None if nothing tells that so soon. *trusted* are the uids that
    may have the daemon renewed. *limits* are those of the clients. *refused* is called with the
    reason of each refusal.

    An answer is made anew as often as *changed* says so, and only the last one counts.
    """

    _allocator: Allocator
    leasing: Leasing
    _entropy: Entropy
    _status: Callable[[], dict[str, Any]]
    _clones: Clones
    _trusted: Collection[int]
    limits: Limits
    refused: InitVar[Callable[[str], None]]
    _changed: Callable[[], bool] | None

    def __post_init__(self, refused: Callable[[str], None]) -> None:
        self.rpc = Tally(refused)
        self.libuuid = Tally(refused)
        self.fallback = FallbackTally()

    def answer(self, request: rpc.Request, client: Client) -> Answer:
        """Answer an rpc request of *client*; a notification has no reply.

        Nothing is given out for a notification: its sender would never learn of it.
        """
        msgid, tally = request.msgid, self.rpc
        # Counted before, because the status counts itself too.
        tally.requests += 1
        if msgid is None:
            if request.method in _IN_USE:
                self.leasing.note_use()
            elif request.method in _FALLBACK_IDS:
                self.fallback.add(client.uid, methods.unpack_fallback_ids(request.params))
            return
        while True:
            ids, code = 0, ""
            result: Any
            try:
                call = methods.parse(request.method, request.params)
                if type(call) is Take:
                    timeline, count, whole, wait = call
                    block = yield from self._allocator.take(
                        timeline, count, whole, wait, uid=client.uid
                    )
                    ids = block.count
                    result = methods.pack_block(block, self.leasing.leases.epoch)
                elif type(call) is Make:
                    result = yield from self.make(call, client.uid)
                    ids = len(result)
                elif call == "lease":
                    if client.unsent and not client.has_page:
                        # The page goes with the first byte that is sent.
                        yield None
                    result = yield from self.leasing.grant(client)
                    if type(result) is Lease:
                        result = methods.pack_lease(result)
                        if not client.has_page:
                            client.page_for = msgid
                elif call == "renew":
                    self._check_permitted(client.uid)
                    result = yield from self._clones.renew()
                else:
                    result = self._status()
            except RefusedError as refused:
                # A traceback refers to this answer, which the garbage collector would have to end.
                result = refused.with_traceback(None)
            if type(result) is RefusedError:
                code = result.code
                reply = rpc.pack_error(msgid, code, result.message)
            else:
                reply = rpc.pack_response(msgid, result)
            if self._changed is None or not self._changed():
                break
        tally.ids += ids
        if code:
            tally.refuse(code)
        client.unsent += reply

    def make(self, call: Make, uid: int) -> Generator[Pause, None, list[str]]:
        """Return ids as text, however many, for a client that asks for ids instead of blocks.

        It waits as ``Allocator.take`` does. Too many for one go are made in turns of the user's
        own, and no tick is taken before the first of these. Raises RefusedError.
        """
        most, places = PIECES.get(call.kind, MAX_MAKE), PLACES[call.kind]
        in_pieces = call.count > most
        if in_pieces:
            yield None
        place, origin, timeline = 0, Origin(0), KINDS[call.kind].timeline
        if timeline:
            ticks = places.ticks(call.count)
            block = yield from self._allocator.take(
                timeline, ticks, True, call.wait, uid=uid, in_turn=True
            )
            place, _ = places.places(block.first, block.count)
            origin = block.origin
        ids: list[str] = []
        while left := call.count - len(ids):
            if ids and in_pieces:
                yield None
            part = min(left, most, places.room(place))
            try:
                ids += LAYOUTS[call.kind]["text"](place, part, origin, self._entropy.take)
            except ValueError as error:
                # The time field of the kind is full, many years from now.
                raise RefusedError("unavailable", f"no {call.kind} can be made: {error}") from error
            place += part
        return ids

    def answer_libuuid(self, ask: libuuid.Request, client: Client) -> Answer:
        """Answer a libuuid request of *client*; one that is refused has no reply."""
        op, tally = ask.op, self.libuuid
        tally.requests += 1
        while True:
            ids, code, reply = ask.count, "", b""
            if op in _TIME:
                try:
                    block = yield from self._allocator.take("utc", ids, True, uid=client.uid)
                    assert isinstance(block, Block)  # noqa: S101  (of utc; for the type checker)
                    reply = libuuid.time_reply(ask, block)
                except RefusedError as refused:
                    code = refused.code
            elif op in _RANDOM:
                reply = libuuid.random_reply(ask, v4(0, ids, Origin(0), self._entropy.take))
            else:
                ids, own = 0, op == Op.GETPID
                reply = libuuid.text_reply(str(os.getpid())) if own else libuuid.maxop_reply()
            if self._changed is None or not self._changed():
                break
        if code:
            tally.refuse(code)
        else:
            tally.ids += ids
        client.unsent += reply

    def _check_permitted(self, uid: int) -> None:
        """Check that the user *uid* may have the daemon renewed. Raises RefusedError."""
        if uid not in self._trusted:
            own = [f"uid {each}, which the daemon runs as" for each in self._trusted if each]
            users = " and ".join(["root", *own])
            raise RefusedError("not_permitted", f"renew is for {users}, and this is uid {uid}")


_IN_USE, _FALLBACK_IDS = ((name, name.encode()) for name in (IN_USE, FALLBACK_IDS))
"""The methods as text, and as binary data, which counts as text."""

_TIME, _RANDOM = (Op.TIME_UUID, Op.BULK_TIME_UUID), (Op.RANDOM_UUID, Op.BULK_RANDOM_UUID)

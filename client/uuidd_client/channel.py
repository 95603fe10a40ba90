"""A channel to the daemon: who may use it, and what it has for the kinds of its timeline."""

import threading
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from uuidd_client.compiled import CompiledSupply
from uuidd_client.connection import Connection
from uuidd_client.counts import Stats
from uuidd_client.fork_guard import ForkGuard
from uuidd_client.mark import Mark, new_mark
from uuidd_client.notices import Notices
from uuidd_client.own_lane import OwnLane
from uuidd_client.per_process import Forked
from uuidd_client.places import Places
from uuidd_client.source import LatestSteady, Source
from uuidd_client.supply import Direct, Run, Supply
from uuidd_client.system import ClientClock
from uuidd_client.transport import MustWait, Silence

if TYPE_CHECKING:
    from uuidd_client._core import Cutter

Result = TypeVar("Result")

FORK_CHECK_SECONDS = 0.05
"""Seconds after which a thread that waits for a lock checks whether it is in a fork's child."""


class Common(NamedTuple):
    """What all channels of a session have in common. *core* is None without the C extension.

    *latest* has the end of the steady ticks that were used, *utc* that of a lane's for v1 and v6,
    which are made of the same ticks.
    """

    alive: "memoryview[float]"
    path: str
    timeout: float | None
    silence: Silence
    fallback: bool
    new_places: Callable[..., Places]
    latest: LatestSteady
    utc: Mark
    clock: ClientClock
    core: ModuleType | None


class Channel:
    """The supplies of one timeline's kinds, over one connection, under one lock.

    Each timeline has its own, because each has its own reasons to wait: a v1 is not held up by a v7
    that waits for the daemon's disk. So each has *notices* of its own.
    """

    def __init__(self, common: Common, name: str, notices: Notices) -> None:
        self._common = common
        self._name = name
        self._notices = notices
        self._lock = threading.RLock()
        self._busy = self._interrupted = self._interrupts = False
        self.connection = Connection(
            common.path, common.timeout, common.silence, clock=common.clock
        )
        self._source = Source(
            self.connection,
            fallback=common.fallback,
            latest=common.latest,
            notices=notices,
        )
        latest = common.latest if name == "steady" else None
        self._lane = OwnLane(self.connection, latest, notices)
        self._interrupting = Stats()
        self._supplies: dict[str, Supply] = {}

    def turn(self, wait: bool, use: Callable[["Channel"], Result]) -> Result:
        """Return what *use* returns for the channel; without *wait*, it may raise MustWait."""
        try:
            return self.in_turn(use) if wait else self.at_once(use)
        finally:
            if self._notices.pending:
                self._notices.tell()

    def in_turn(self, use: Callable[["Channel"], Result]) -> Result:
        """Return what *use* returns for the channel, for one thread at a time.

        A signal handler or a finalizer that has interrupted a use by its own thread gets a channel
        of its own rather than a deadlock. This is not a generator, because one that an exception
        has interrupted would hold the lock as long as the exception's traceback lives.

        Raises Forked in a child whose parent forked while another thread held the lock, because no
        thread will release it in the child.
        """
        try:
            while not self._lock.acquire(timeout=FORK_CHECK_SECONDS):
                if not self._common.alive[0]:
                    raise Forked
            if self._busy:
                return self._interrupt(use)
            try:
                self._busy = True
                # Here too, for an exception may have come just before it was set again.
                self.connection.may_wait = True
                return use(self)
            finally:
                self._busy = False
                if self._interrupted:
                    self._interrupted = False
                    self._drop_blocks()
        finally:
            try:  # noqa: SIM105  (a call before the release could be interrupted)
                self._lock.release()
            except RuntimeError:
                # The lock was not acquired yet when an exception came.
                pass

    def at_once(self, use: Callable[["Channel"], Result]) -> Result:
        """As ``in_turn``; raise MustWait if another thread or the daemon has to be awaited."""
        try:
            if not self._lock.acquire(blocking=False):
                raise MustWait
            return self.in_turn(lambda channel: channel.without_waiting(use))
        finally:
            try:  # noqa: SIM105  (as in in_turn)
                self._lock.release()
            except RuntimeError:
                # Another thread holds it.
                pass

    def without_waiting(self, use: Callable[["Channel"], Result]) -> Result:
        """Return what *use* returns. Raises MustWait if it has to ask the daemon."""
        try:
            self.connection.may_wait = False
            return use(self)
        finally:
            self.connection.may_wait = True

    def _interrupt(self, use: Callable[["Channel"], Result]) -> Result:
        # The ids of the other channel will be later than the blocks of this one.
        self._interrupted = True
        other = Channel(self._common, self._name, self._notices)
        other._interrupts = True
        try:
            return use(other)
        finally:
            other._drop_blocks()
            self._interrupting = self._interrupting.plus(other.stats())
            other.connection.close()

    def run(self, kind: str, form: str) -> tuple[Run, Direct, Any]:
        """Return a new run of ids of *kind* in *form*, what makes single ones, and the first id."""
        supply = self.supply(kind)
        run, drawn = supply.run(form)
        return run, supply.direct(form), drawn

    def one(self, kind: str, form: str) -> "tuple[Cutter | None, Any]":
        """Return one id of *kind* in *form*, and a refilled cutter to go on with.

        There is none for a caller that has interrupted another.
        """
        supply = self.supply(kind)
        assert isinstance(supply, CompiledSupply)  # noqa: S101  (only a client with core calls this)
        made = supply.one(form)
        return None if self._interrupts else supply.cutter, made

    def supply(self, kind: str) -> Supply:
        """Return the supply of *kind*."""
        supply = self._supplies.get(kind)
        if supply is None:
            core = self._common.core
            reserved = self._common.utc if self._name == "utc" else new_mark(core)
            places = self._common.new_places(
                kind, self._source, ForkGuard(), lane=self._lane, reserved=reserved
            )
            supply = Supply(places) if core is None else CompiledSupply(places, core)
            if self._interrupts:
                # The daemon's blocks may begin before the ids of the lane that were made until now.
                supply.drop_block()
            self._supplies[kind] = supply
        return supply

    def stats(self) -> Stats:
        """Return what was done here."""
        source, lane = self._source, self._lane
        return self._interrupting.plus(
            Stats(
                leases=lane.leases,
                blocks=source.blocks,
                fallback_blocks=source.fallback_blocks,
                leased=lane.lease is not None,
                last_error=self._notices.error,
                last_error_at=self._notices.error_at,
            )
        )

    def rest(self) -> None:
        """Let no id be drawn from the runs and the cutters before they are asked for again."""
        for supply in self._supplies.values():
            supply.rest()

    def used(self) -> int:
        """Return the end of the ticks that were used here, or now if UTC has gone back since."""
        return max((supply.places.used_end() for supply in [*self._supplies.values()]), default=0)

    def close(self) -> None:
        """Close the connection, and with it end the lease; a later call opens another."""
        self._lane.drop()
        self.connection.close()

    def close_if_free(self) -> None:
        """Close the connection, unless another thread uses it."""
        if self._lock.acquire(blocking=False):
            try:
                self.close()
            finally:
                self._lock.release()

    def _drop_blocks(self) -> None:
        for supply in self._supplies.values():
            supply.drop_block()

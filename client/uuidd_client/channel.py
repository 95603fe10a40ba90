"""A channel to the daemon: what one client has in one life of its process.

Theory of operation

1. An id sits on a *place*: for nearly all kinds that is a tick ("core/ids/places.py"). Places come
   from a *source*, an immutable tuple ("life.py"): a lane that is leased, in which they come as
   time passes, a block of the daemon's, or a block of the fallback.
2. A *cutter* cuts ids from its source. Its *used* is the only cursor: all places before it are
   used, whatever they came from. Nothing is ever given back: what is left of a source is forgotten
   when another takes its place. Kinds that are made of the same ticks, v1 and v6, share a cutter.
3. To cut an id, the cutter reads its source, then UTC, which must be in the source's span, then the
   horizon, then the token ("core/timeline/leases.py"). A block has a token too: a clone of the
   machine changes it. Then the cutter moves *used* past the place, in one step, and makes the id.
   Its last step is a look at the life.

       read the source -> UTC -> horizon -> token -> move *used* -> make the id -> look at the life
              | any of these says no                                                | it is over
              v                                                                     v
       ask the channel for another source                            again, in the next life

   Without the look at the life, a fork's child would return the ids of its parent. With the horizon
   read after the token, a process that was stopped between the two could use a tick of a lane which
   another process has leased by now. With *used* moved after the id is made, a thread or a handler
   of a signal could make the same id. A source that is not replaced as a whole could give the ticks
   of one block the node of another.
4. Where the cutter has no id, the client asks the channel. One thread at a time is in it. A handler
   of a signal, or a finalizer, that interrupts a call of its own thread gets a channel of its own
   for one call, whose ids are cut from a block. A request that has to wait for the daemon's disk
   goes over a connection of its own, and others enter the channel meanwhile.
5. A channel belongs to a *life* ("life.py"). The next channel of the client begins where the
   cutters of this one are, so ids rise over forks and renewals too.
6. *used* never goes back. Where no order is left to keep, another cutter takes the place of the
   former: for v1 and v6 where UTC was set back, and for the steady kinds where they would lead it
   by more than an hour. It begins with a block, whose ticks nobody has used. The lane ends with the
   connection, because its ticks were used up to the *used* of the former cutter.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable
from functools import partial

from uuidd.core.ids.kinds import KINDS, PLACES, TIMES
from uuidd.core.ids.places import Origin
from uuidd.core.ids.snowflake import time_field
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.core.timeline.outcomes import MAX_BLOCK, Block, SteadyBlock
from uuidd.core.timeline.page import DUE_AT, HORIZON_AT
from uuidd.core.timeline.slew import TOLERANCE
from uuidd.core.typed import TYPE_CHECKING, Any, NamedTuple
from uuidd.core.wire.methods import TIMELINES, seconds_to_ask_again
from uuidd_client.connection import Connection, Silence
from uuidd_client.errors import DaemonUnavailable, TimeOutOfRange
from uuidd_client.fallback import MAX_LEAD, Fallback
from uuidd_client.lease import Lease
from uuidd_client.life import FOREVER, Life, Over, Source, Watch
from uuidd_client.notices import Notices, Stats
from uuidd_client.system import (
    SYSTEM_CLOCK,
    ClientClock,
    default_path,
    given_timeout,
    may_fall_back,
)

if TYPE_CHECKING:
    from typing import TypeVar

    from uuidd_client.cutter import Cutter

    Result = TypeVar("Result")

LEASABLE = {kind for kind, found in KINDS.items() if found.leasable}
"""The kinds that have room for the number of a lane."""

IDS = {
    timeline: ", ".join(kind for kind, found in KINDS.items() if found.timeline == timeline)
    for timeline in TIMELINES
}
"""The ids of each timeline, as the log names them."""

SAME_TICKS = {"v6": "v1"}
"""A v6 is a v1 written in another order, so no tick of a lane may be used for both."""

PACKED_BYTES = {"snowflake": 8, "ksuid": 20}
"""The bytes of an id; all others have 16."""

FORK_CHECK_SECONDS = 0.05
"""Seconds after which a thread that waits for a lock checks whether it is in a fork's child."""

MIN_BLOCK = 64
"""Ticks of the smallest block: 6.4 us of the host's time, less than the round trip they save."""

AT_ONCE = 0.9
"""The share of max_age that a block may span; using it takes the rest."""

RETRY_SECONDS = 0.25
"""Seconds after which a daemon that was not there, or that refused, is asked again."""

NO_LEASE_SECONDS = 1.0
"""Seconds after which a lease that was not granted is asked for again, unless the daemon says to
wait for longer."""

TELL_TICKS = TICKS_PER_SECOND // 20
"""How often a daemon that has restarted is told that ids are made under the lease of the last one.
"""

SPARSE = 1024
"""Ticks that a long list waits for, 0.1 ms, when its lane has fewer."""

MOST_TRIES = 3
"""How often a lane without a free tick is tried: where a test stops the clock, it has none. So is a
block of UTC asked for, if those that come are older than what was used."""

MAX_EMPTY = 32
"""Sources in a row without a place, after which the daemon counts as broken. A Snowflake has a
place on 4 of 10 ticks; after a change of node, places begin with the next millisecond."""

EMPTY_PAUSE = 0.0001
"""Seconds between such requests."""


class Settings(NamedTuple):
    """What all channels of a client have in common.

    *path*, *fallback* and *timeout* are the client's own: the environment is asked in each life.
    *cutter* is the class of its cutters. *shared*: whether threads may share one.
    """

    path: str | None
    fallback: bool
    max_age: float
    timeout: float | None
    clock: ClientClock
    cutter: type[Cutter]
    shared: bool


class Channel:
    """The ids of one client in one *life*, and its connection to the daemon, for all threads.

    It follows a *former* channel, and may share what that one knows of a *silence* of the daemon.

    All calls that ask the daemon raise DaemonUnavailable if it has no usable answer, and there is
    no fallback. Those in a life that is over may raise anything: the caller has to look.

    Raises WrongVariable if $UUIDD_FALLBACK is wrong, or if $UUIDD_TIMEOUT is used and wrong.
    """

    def __init__(
        self,
        settings: Settings,
        life: Life,
        former: Channel | None = None,
        silence: Silence | None = None,
    ) -> None:
        self._settings = settings
        self._path = settings.path or default_path()
        self._timeout = given_timeout() if settings.timeout is None else settings.timeout
        self._fall_back = may_fall_back(settings.fallback)
        self._age = int(settings.max_age * TICKS_PER_SECOND)
        self._clock = settings.clock
        self._life = life
        self._lock = _thread.RLock()
        # Whether this thread is in the channel, by one greenlet of gevent's or another.
        self._is_inside = self._lock._is_owned  # type: ignore[attr-defined]  # threading uses it too
        self._waiting: dict[str, _thread.RLock] = {}
        self._silence = silence or Silence(always=not self._fall_back)
        self.connection = self._connect()
        self._lease: Lease | None = None
        # None until the first request: a program that makes a few ids leaves the lanes to others.
        self._ask_at: float | None = None
        # For each timeline, when to ask again, and the error until then.
        self._refused: dict[str, tuple[float, DaemonUnavailable]] = {}
        self._notices = {name: Notices(ids, self._clock) for name, ids in IDS.items()}
        self._fallback: Fallback | None = None
        self._supplies: dict[str, _Supply] = {}
        self._counts = {"leases": 0, "blocks": 0, "fallback_blocks": 0}
        if former is not None:
            self.follow(former)

    def follow(self, former: Channel) -> None:
        """Use no place that *former* has used, or an earlier one.

        What *former* has not told the daemon is told here, unless that is the parent's of a fork.
        """
        if former._life.pid == self._life.pid:
            former._count_fallback()
            untold, former.connection.untold = former.connection.untold, 0
            self.connection.untold += untold
        for kind, supply in list(former._supplies.items()):
            mine = self._supply(kind)
            mine.cutter.raise_to(supply.cutter.used)
            mine.origin = supply.origin

    def cutter(self, kind: str) -> Cutter | None:
        """Return the cutter for ids of *kind*, None if no two threads may share one."""
        return self._supply(kind).cutter if self._settings.shared else None

    def make(self, kind: str, form: str, count: int) -> list[Any] | bytes:
        """Return exactly *count* ids of *kind*, in one piece if *form* is ``bytes``."""
        if not KINDS[kind].timeline:
            # Random bits need no turn, and wait for nobody who asks the daemon.
            return self._made(kind, form, count)
        return self.in_turn(lambda channel: channel._made(kind, form, count))

    def status(self) -> dict[str, Any]:
        """Return the daemon's status."""
        return self.in_turn(lambda channel: channel.connection.status())

    def stats(self) -> Stats:
        """Return what was done here."""
        latest = max(self._notices.values(), key=lambda each: each.error_at or 0.0)
        return Stats(
            **self._counts,
            leased=self._lease is not None,
            last_error=latest.error,
            last_error_at=latest.error_at,
        )

    def close(self) -> None:
        """Close the connection, and with it end the lease; the next call asks as the first did."""

        def close(channel: Channel) -> None:
            channel.rest()
            channel._lease = None
            channel._refused.clear()
            channel.connection.close()
            channel.connection.forget_silence()

        self.in_turn(close)

    def rest(self) -> None:
        """Let no id be made, from what was returned until now, before the next call."""
        for supply in list(self._supplies.values()):
            supply.cutter.source = None

    # Who may be in the channel

    def in_turn(self, use: Callable[[Channel], Result]) -> Result:
        """Return what *use* returns for the channel, for one thread at a time.

        In a thread that was interrupted in the channel, also by another of its greenlets, it is
        called with a channel apart.
        """
        if self._is_inside():
            # The call that was interrupted tells the notices, once it has released the lock.
            return self._apart(use)
        try:
            try:
                self._enter(self._lock)
                return use(self)
            finally:
                try:  # noqa: SIM105  (a call before the release could be interrupted)
                    self._lock.release()
                except RuntimeError:
                    # It was not acquired yet when an exception came.
                    pass
        finally:
            for notices in self._notices.values():
                if notices.pending:
                    notices.tell()

    def _enter(self, lock: _thread.RLock) -> None:
        """Acquire a lock. Raises Over if the life ends meanwhile: nobody may release it then."""
        while not lock.acquire(timeout=FORK_CHECK_SECONDS):
            if self._life.over:
                raise Over

    def _apart(self, use: Callable[[Channel], Result]) -> Result:
        other = Channel(self._settings, self._life, self, self._silence)
        other._notices, other._counts = self._notices, self._counts
        try:
            return use(other)
        finally:
            self.follow(other)
            other.connection.close()

    # Ids

    def _supply(self, kind: str) -> _Supply:
        kind = SAME_TICKS.get(kind, kind)
        # Atomic, so that all threads get the same one.
        return self._supplies.get(kind) or self._supplies.setdefault(
            kind, _Supply(kind, self._settings, self._life)
        )

    def _made(self, kind: str, form: str, count: int) -> list[Any] | bytes:
        supply, parts, tries = self._supply(kind), [], 0
        size = PACKED_BYTES.get(kind, 16) if form == "bytes" else 1
        while count:
            wanted = min(count, self._age or 1)
            part: Any = supply.cutter.many(kind, form, wanted)
            if not part:
                source = self._refill(supply, wanted, tries)
                part = supply.cutter.many(kind, form, wanted, source)
                if source is not None and source.since < source.until:
                    supply.cutter.source = source
            if part:
                parts.append(part)
                count -= len(part) // size
                tries = 0
                if count >= SPARSE and (last := supply.cutter.source) is not None and last.lane:
                    self._clock.pause(min(count, 16 * SPARSE) / TICKS_PER_SECOND)
            elif (tries := tries + 1) > MAX_EMPTY:
                raise self.broken(f"{MAX_EMPTY} blocks in a row have no place for a {kind}")
        if form == "bytes":
            return b"".join(parts)
        return parts[0] if len(parts) == 1 else [each for part in parts for each in part]

    def _refill(self, supply: _Supply, needed: int, tries: int) -> Source | None:
        """Return a block, or None where the cutter has got its source here.

        That is random bits, or the lane, which may have no free tick yet.
        """
        if not supply.timeline:
            supply.cutter.source = Source(
                0, FOREVER, 0, FOREVER, Origin(0), False, False, *self._life.watch
            )
            return None
        if self._fallback is not None:
            self._count_fallback()
            supply.counted = supply.end
        if supply.kind in LEASABLE and tries < MOST_TRIES and self._hold(supply):
            return None
        if tries:
            # Of three ticks in a row one has a place for a Snowflake, but fewer may have been free.
            self._clock.pause(EMPTY_PAUSE)
        return self._block(supply, needed, tries)

    # The lane

    def _hold(self, supply: _Supply) -> bool:
        """Let the cutter have the lane, and return whether it has."""
        lease = self._lease or self._ask()
        if lease is None:
            return False
        now, used = self._clock.utc_tick(), supply.cutter.used
        if not lease.allows(now):
            # The page of a daemon that has ended stays as it was.
            if lease.ended or lease.page is not self.connection.page:
                self._lease = None
                self._notices[supply.timeline].of_lease("the lease has ended")
            return False
        times = TIMES[supply.kind]
        begin = max(lease.begin, times.epoch)
        if not begin <= now < times.end or used - now > TOLERANCE:
            return False
        self._notices[supply.timeline].answered(self._path)
        if now >= lease.tell_at:
            self._tell(lease, now)
        until = min(lease.tell_at, times.end)
        supply.origin = lease.origin
        supply.cutter.source = Source(
            begin, until, begin, until, lease.origin, True, True, *lease.watch
        )
        if used > now:
            # A step back of UTC that the daemon does not notice.
            self._clock.pause((used - now) / TICKS_PER_SECOND)
        return True

    def _ask(self) -> Lease | None:
        """Return a lease that is asked for now, or None."""
        now = self._clock.elapsed()
        if self._ask_at is None:
            self._ask_at = 0.0
        elif now >= self._ask_at:
            self._ask_at = now + NO_LEASE_SECONDS
            try:
                lease = self.connection.lease()
            except DaemonUnavailable as error:
                seconds = seconds_to_ask_again(error.cause)
                self._ask_at = now + max(NO_LEASE_SECONDS, seconds)
                return None
            self._lease = lease
            self._counts["leases"] += 1
            self._notices["utc"].of_lease(f"lane {lease.lane} was leased")
        return self._lease

    def _tell(self, lease: Lease, now: int) -> None:
        """Tell the daemon that ids are made, if it has to know, and note when to look again."""
        ours = lease.page is self.connection.page
        if ours and now < lease.words[DUE_AT]:
            lease.tell_at = lease.words[DUE_AT]
            return
        self.connection.tell_in_use()
        # Once for each horizon. After a restart the next daemon is told again and again, so that it
        # has a saved horizon, and need not wait for its disk, when this lease is over.
        lease.tell_at = lease.words[HORIZON_AT] if ours else now + TELL_TICKS

    # Blocks

    def _block(self, supply: _Supply, needed: int, tries: int) -> Source:
        """Return a block of the daemon's or, if there may be, of the fallback."""
        cutter, layout = supply.cutter, PLACES[supply.kind]
        asked = self._clock.utc_tick()
        size = supply.size(asked, layout.ticks(needed))
        tick, count, origin, safe, watch = self._take(supply, size)
        self._check_time(supply.kind, tick, count, origin, safe)
        first, end = layout.places(tick, count)
        used = cutter.used
        # Read after *used*, which a handler may move. A step back of UTC to before *now* ends the
        # block, because its ticks may be later than *asked*.
        now = self._clock.utc_tick()
        if supply.timeline == "utc":
            # Or if only that of the daemon was set back, for example in a container.
            went_back = now < used or (end <= used and tries >= MOST_TRIES)
        else:
            went_back = supply.leads(end, used)
        if went_back:
            if self._lease is not None:
                # Its ticks up to what was used are used, and the next cutter does not know that.
                self._lease = None
                self.connection.close()
            supply.restart(first)
        elif supply.origin not in (None, origin) and supply.timeline != "utc" and not layout.random:
            # Within a run the node or the worker comes first in the order of ids.
            cutter.raise_to(used - 1 + layout.room(used - 1))
        supply.origin = origin
        supply.first, supply.end, supply.until = first, end, asked + self._age - count
        supply.counted = end if safe else max(first, supply.cutter.used)
        return Source(first, end, max(asked, now), supply.until, origin, safe, False, *watch)

    def _take(self, supply: _Supply, size: int) -> tuple[int, int, Origin, bool, Watch]:
        """Return the first tick, the number of ticks, and what else a Source is made of."""
        timeline, connection, used = supply.timeline, self.connection, supply.cutter.used
        notices = self._notices[timeline]
        fall_back = self._fall_back and timeline != "snowflake"
        retry_at, refused = self._refused.get(timeline, (0.0, None))
        if refused is None or self._clock.elapsed() >= retry_at:
            try:
                block, watch = self._asked(timeline, size)
                first, end = PLACES[supply.kind].places(block.first, block.count)
                if timeline != "utc" and first < end <= used and not supply.leads(end, used):
                    raise DaemonUnavailable(
                        connection.path,
                        "its steady timeline is behind what this process has used",
                        "behind",
                    )
                self._counts["blocks"] += 1
                notices.answered(connection.path)
                return block.first, block.count, block.origin, True, watch
            except DaemonUnavailable as error:
                if error.code is not None or (fall_back and error.reason != "silent"):
                    # A copy: the traceback would keep all that the caller's frames have.
                    self._refused[timeline] = self._clock.elapsed() + RETRY_SECONDS, error.again()
                notices.failed(error, fallback=fall_back)
                if not fall_back:
                    raise
        elif not fall_back:
            raise refused.again()
        self._counts["fallback_blocks"] += 1
        self._fallback = self._fallback or Fallback(self._clock)
        if timeline == "utc":
            return *self._fallback.utc(size), False, self._life.watch
        return *self._fallback.steady(size, used), False, self._life.watch

    def _count_fallback(self) -> None:
        """Count the ids that the fallback has made since the last call."""
        made = sum(supply.of_fallback() for supply in list(self._supplies.values()))
        self.connection.untold += made

    def _asked(self, timeline: str, size: int) -> tuple[Block | SteadyBlock, Watch]:
        """Return the daemon's block, and its watch.

        Other threads may enter the channel while this one waits for a save.
        """
        try:
            return self.connection.take(timeline, size)
        except DaemonUnavailable as refusal:
            if refusal.code != "must_wait":
                raise
        waiting = self._waiting.setdefault(timeline, _thread.RLock())
        inside = self._is_inside()
        if inside:
            # Not of a channel apart, which nobody else can enter.
            self._lock.release()
        try:
            self._enter(waiting)
            other = self._connect()
            try:
                return other.take(timeline, size, wait=True)
            finally:
                other.close()
        finally:
            try:  # noqa: SIM105  (as in in_turn)
                waiting.release()
            except RuntimeError:
                pass
            if inside:
                self._enter(self._lock)

    def _check_time(self, kind: str, tick: int, count: int, origin: Origin, safe: bool) -> None:
        """Raise TimeOutOfRange if ids of this kind cannot hold the time of a block.

        If they can hold the current UTC, the daemon is wrong: raises DaemonUnavailable.
        """
        times, last = TIMES.get(kind) or time_field(origin.epoch), tick + count - 1
        if times.epoch <= tick and last < times.end:
            return
        error = TimeOutOfRange(kind, last, times.epoch, times.end)
        if safe and times.epoch <= self._clock.utc_tick() < times.end:
            raise self.broken(str(error)) from error
        raise error

    def broken(self, cause: str) -> DaemonUnavailable:
        """Return the error of a daemon that is not usable."""
        return DaemonUnavailable(self._path, f"an unusable answer: {cause}", "unusable")

    def _connect(self) -> Connection:
        return Connection(
            self._path, self._timeout, self._silence, clock=self._clock, life=self._life
        )


class _Supply:
    """What a channel has for *kind*: its cutter, and how many ticks to ask for.

    The last block had the places *first* to *end*, and could be used until UTC was at *until*. Of
    a block of the fallback, the ids of places before *counted* were counted.
    """

    def __init__(self, kind: str, settings: Settings, life: Life) -> None:
        self.kind = kind
        self.timeline = KINDS[kind].timeline
        clock = None if settings.clock is SYSTEM_CLOCK else settings.clock.utc_ns
        self._new = partial(settings.cutter, life.alive, settings.max_age, clock)
        self.cutter: Cutter = self._new()
        self.first = self.end = self.until = self.counted = 0
        self.origin: Origin | None = None
        self._burst = 0
        age, layout = int(settings.max_age * TICKS_PER_SECOND), PLACES[kind]
        # A block is as old as its first tick, so more than half of max_age is not worth asking for.
        self._size = self._least = layout.ticks(1)
        self._most = max(1, min(MAX_BLOCK, age // 2))
        self._at_once = min(MAX_BLOCK, int(AT_ONCE * age))
        first, end = layout.places(UNIX_EPOCH, MAX_LEAD)
        self._most_lead = end - first

    def restart(self, first: int) -> None:
        """Go on at *first* with another cutter, though places after it were used."""
        former, self.cutter = self.cutter, self._new()
        self.cutter.raise_to(first)
        former.source = None

    def of_fallback(self) -> int:
        """Return how many ids of the fallback were made here since the last call."""
        used = min(self.cutter.used, self.end)
        if used <= self.counted:
            return 0
        # One line, as in the cutter: a handler of a signal may count the same ids.
        before, self.counted = self.counted, used
        return used - before

    def leads(self, end: int, used: int) -> bool:
        """Whether *used* leads *end* by more than an hour: a clock was wrong then."""
        return used - end > self._most_lead

    def size(self, now: int, needed: int) -> int:
        """Return how many ticks to ask for at *now*, where *needed* would do.

        Where a block was used up in time, the next is larger. After a pause there is room for a
        burst like the last one, and for half as much again.
        """
        spent = max(0, min(self.cutter.used, self.end) - self.first)
        if now < self.until:
            self._burst += spent
            size = 2 * self._size
        else:
            size = PLACES[self.kind].ticks((self._burst + spent) * 3 // 2)
            self._burst = 0
        self._size = max(self._least, min(max(MIN_BLOCK, size), self._most))
        return max(min(needed, self._at_once), self._size)

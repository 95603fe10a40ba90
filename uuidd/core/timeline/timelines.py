"""The two timelines of a host, which are saved as one state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from uuidd.core.ids.nodes import RandomBits
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.fence import Fence
from uuidd.core.timeline.leases import NoLease
from uuidd.core.timeline.outcomes import NoneFree, NoNumber, SteadyBlock, Withheld
from uuidd.core.timeline.page import Lease
from uuidd.core.timeline.slew import TOLERANCE
from uuidd.core.timeline.state import NO_EPOCHS, State
from uuidd.core.timeline.steady import LOST_SECONDS, Steady
from uuidd.core.timeline.utc import Utc

FAR = TICKS_PER_SECOND
"""From this lead of steady on, a save adds no more to it than the time that the daemon has run."""


class Reading(NamedTuple):
    """A reading of the two clocks, in ticks: UTC, and one that is never set (CLOCK_BOOTTIME)."""

    now: int
    elapsed: int


class Timelines:
    """The timelines *utc* and *steady*; *fence* and *epoch* are what Snowflakes are made with.

    *epochs* is the earliest epoch of each worker number so far, this *epoch* among them. *lost*
    says that leases of before the start are not known, so that none is granted for 20 s. *outdated*
    says that the save under way began before a renewal, and *saved* that a save has completed since
    the last renewal.
    """

    def __init__(
        self,
        utc: Utc,
        steady: Steady,
        *,
        fence: Fence,
        epoch: int,
        epochs: Mapping[int, int] = NO_EPOCHS,
        lost: bool = False,
    ) -> None:
        self.utc = utc
        self.steady = steady
        self.fence = fence
        self.epoch = epoch
        self.epochs = epochs
        self._lost = lost
        self.outdated = False
        self.saved = False

    def take_steady(
        self, count: int, *, at: Reading, whole: bool = False, fenced: bool = False
    ) -> SteadyBlock:
        """Take a block of the steady timeline; raises what ``Steady.take`` raises.

        If *fenced*, all of its ticks are those of a worker number; raises NoNumber too. Otherwise
        the block has a worker number if it can have one.
        """
        if fenced:
            count = self._within_fence(count, at, whole)
        fence = self.fence
        first, given = self.steady.take(count, now=at.now, elapsed=at.elapsed, whole=whole)
        worker = fence.number if fence.covers(first, given) else None
        return SteadyBlock(first, given, self.utc.node.value, worker, self.epoch)

    def _within_fence(self, count: int, at: Reading, whole: bool) -> int:
        """Return how many of *count* ticks up to S are not before the fence."""
        if self.steady.withheld:
            raise Withheld(self.steady.withheld)
        fence, steady = self.fence, self.steady.read(now=at.now, elapsed=at.elapsed)
        if fence.number is None or steady >= fence.until:
            raise NoNumber
        within = steady - fence.begin + 1
        least = count if whole else 1
        if within < least:
            raise NoneFree(least - within)
        return min(count, within)

    def lease(self, *, at: Reading, uid: int) -> Lease | NoLease:
        """Lease a lane as ``Utc.lease``, but none while steady leads UTC.

        Otherwise a holder's steady ids would be behind those of blocks. While steady is withheld,
        nothing is leased either, since holders make steady ids too.
        """
        if self.steady.withheld:
            return NoLease("withheld")
        lead = self.steady.lead(now=at.now, elapsed=at.elapsed)
        if lead > 0:
            return NoLease("steady", lead)
        return self.utc.lease(uid=uid, now=at.now)

    def release(self, *, at: Reading) -> None:
        """Begin, at the start or when the clock is good enough: steady, and the grant of leases."""
        if self.steady.withheld:
            self.steady.release(now=at.now, elapsed=at.elapsed)
        if self._lost:
            leases = self.utc.leases
            leases.floor = max(leases.floor, at.now + LOST_SECONDS * TICKS_PER_SECOND)

    def step_back(self, back: int, *, at: Reading) -> int:
        """End all leases, because UTC was set back by *back* ticks; return how many there were.

        It comes before anything else that happens after the step. Steady goes on from where UTC
        was, or from the end of all that leases may have used if that is earlier. So the order of
        the steady ids that are made from both holds, also where no lease is held any more.

        *back* may be wrong by TOLERANCE: the process may have been paused between the two clocks of
        a reading. So steady goes on that much later, but not beyond the lead that it may have.
        """
        leases = self.utc.leases
        ended = leases.revoke()
        lead, most = back + TOLERANCE, self.steady.max_lead
        if back - TOLERANCE <= most < lead:
            # An hour sharp is both the default for the most, and what clocks are set back by.
            lead = most
        # The floor lies past all that holders may have used, of an earlier daemon's leases too.
        reached = min(at.now + lead, leases.floor)
        self.steady.pass_over(reached, now=at.now, elapsed=at.elapsed)
        return ended

    def notice_step_since(self, state: State, *, at: Reading) -> None:
        """Let steady go on as ``step_back`` does if UTC was set back since *state* was saved.

        For a start from *state*: the holders of earlier leases went on while no daemon ran.
        """
        # After another boot at least so much time has passed, too.
        expected = state.now + max(0, at.elapsed - state.elapsed)
        if expected - at.now > TOLERANCE:
            self.step_back(expected - at.now, at=at)

    def renew(
        self, *, at: Reading, random: RandomBits, go_on: bool = False, unsaved: bool = False
    ) -> int:
        """Share nothing any longer with a copy of this machine; return how many leases ended.

        All leases and blocks end. utc goes on as ``Utc.renew`` says, and steady past all that the
        copy may have given out. A number that was claimed is dropped, so that another is claimed;
        one that was set by hand is used on only if *go_on*. Nothing is given out under the stored
        node or by steady before a save completes that has not begun yet.

        If *unsaved*, because another renewal was made just before, no save is needed: a volatile
        node serves, and steady stays where it is. One that is saved has to follow.
        """
        ended = self.utc.leases.out
        self.outdated, self.saved = True, False
        self.utc.renew(now=at.now, random=random)
        if self.fence.claim is not None:
            self.fence.close()
        elif not go_on:
            self.fence.share()
        if unsaved:
            self.utc.use_volatile("the machine was cloned again")
        else:
            self.steady.renew(now=at.now, elapsed=at.elapsed)
        return ended

    def begin_save(self, *, at: Reading, reach: int, bare_reach: int) -> State:
        """Return the state to save, with horizons *reach* ticks ahead; exact marks once closed.

        A steady timeline that is far ahead of UTC gets *bare_reach*, so that a daemon that crashes
        again and again does not run it further ahead. One save at a time: ``end_save`` comes before
        the next.
        """
        self.outdated = False
        mark = self.steady.begin_save(
            now=at.now, elapsed=at.elapsed, reach=bare_reach if self.far(at) else reach
        )
        part, kept = self.utc.begin_save(now=at.now, reach=reach), self.fence.kept
        return replace(part, steady=mark, epochs=self.epochs, worker=kept, elapsed=at.elapsed)

    def far(self, at: Reading) -> bool:
        """Whether the steady timeline is far ahead of UTC."""
        return self.steady.lead(now=at.now, elapsed=at.elapsed) >= FAR

    def end_save(self, state: State, *, completed: bool) -> None:
        """Take note of how the save of *state* ended.

        One that began before a renewal holds what a copy of this machine has too. It lets nothing
        be given out, but it may be on the disk.
        """
        completed = completed and not self.outdated
        self.saved |= completed
        self.utc.end_save(state, completed=completed)
        self.steady.horizon.end_save(state.steady, completed=completed)

    def void_saves(self) -> None:
        """Stop until a save completes that has not completed yet.

        For a state that the next start may not find, because its folder was moved away.
        """
        self.utc.void_saves()
        self.steady.horizon.void()

    def close(self) -> None:
        """Stop for good, so that the next save can hold the exact marks."""
        self.utc.close()
        self.steady.close()

    @property
    def used(self) -> bool:
        """Whether anything was given out since ``begin_save``; a volatile node does not count."""
        return self.utc.used or self.steady.used

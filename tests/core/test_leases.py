from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.core.draws import Draws, zeros
from tests.core.switching import take
from uuidd.core.ids.nodes import MULTICAST
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline import LANES
from uuidd.core.timeline.fence import Fence
from uuidd.core.timeline.generation import BLOCK_LANES, Generation
from uuidd.core.timeline.leases import PER_USER, RESERVED, Leases, NoLease
from uuidd.core.timeline.outcomes import Closed
from uuidd.core.timeline.page import (
    DUE_AT,
    EPOCH_AT,
    HORIZON_AT,
    MAGIC_AT,
    PAGE_MAGIC,
    PAGE_WORDS,
    TOKENS_AT,
    Lease,
)
from uuidd.core.timeline.slew import TOLERANCE
from uuidd.core.timeline.state import Node, State
from uuidd.core.timeline.steady import Steady
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.core.timeline.utc import Utc

NOW = 10_000_000
REACH = 1_000_000
UID = 1000
STORED = Node(7 | MULTICAST, "random")
LOST = 20 * TICKS_PER_SECOND


class Host:
    """A host whose page is in its hands, so that tests see what holders see."""

    def __init__(
        self, loaded: State | None = None, *, now: int = NOW, elapsed: int = 0, floor: int = 0
    ) -> None:
        self.page = [0] * PAGE_WORDS
        utc = Utc(
            loaded,
            machine="host",
            now=now,
            random=Draws(),
            ring=2,
            leases=Leases(floor, self.page),
        )
        steady = Steady(0 if loaded is None else loaded.steady, now=now, elapsed=elapsed)
        self.timelines = Timelines(utc, steady, fence=Fence(), epoch=0)
        self.utc = utc

    @property
    def horizon(self) -> int:
        """The horizon that holders see."""
        return self.page[HORIZON_AT]

    @property
    def tokens(self) -> dict[int, int]:
        """The tokens that holders see, by lane."""
        return {lane: token for lane, token in enumerate(self.page[TOKENS_AT:]) if token}

    def begin_save(self, now: int = NOW, reach: int = REACH) -> State:
        """Let a save get under way."""
        return self.timelines.begin_save(at=Reading(now, 0), reach=reach, bare_reach=0)

    def end_save(self, state: State, *, completed: bool = True) -> None:
        """Let the save end."""
        self.timelines.end_save(state, completed=completed)

    def save(self, now: int = NOW, reach: int = REACH) -> State:
        """Let a save complete."""
        state = self.begin_save(now, reach)
        self.end_save(state)
        return state

    def step_back(self, back: int = 0) -> int:
        """Let UTC be set back from NOW; return how many leases ended."""
        return self.timelines.step_back(back, at=Reading(NOW - back, 0))

    def lease(self, now: int = NOW, uid: int = UID) -> Lease:
        """Lease a lane."""
        return self.timelines.lease(at=Reading(now, 0), uid=uid)

    def refusal(self, now: int = NOW, uid: int = UID) -> tuple[str, int]:
        """Why no lane is leased, and for how many ticks; nothing changes."""
        leases = self.utc.leases

        def standing() -> list[object]:
            return [*self.page, dict(leases.users), leases.floor, leases.top, leases.used]

        before = standing()
        with pytest.raises(NoLease) as caught:
            self.lease(now, uid)
        assert standing() == before
        return caught.value.reason, caught.value.wait


@pytest.fixture
def host() -> Host:
    """A host whose first save has completed."""
    begun = Host()
    begun.save()
    return begun


# --- a lease


def test_a_lease_is_a_lane_of_the_open_generation(host: Host) -> None:
    """It has a clock sequence of its own, none that blocks have, and its token is in the page."""
    lease = host.lease()
    opened = host.utc.generation
    assert opened is not None
    assert (lease.lane, lease.node) == (BLOCK_LANES, host.utc.node.value)
    assert lease.clock_seq == opened.number * LANES + lease.lane
    assert host.tokens == {lease.lane: lease.token}


def test_a_page_begins_with_its_magic() -> None:
    """A client that knows another layout finds another number there."""
    assert Host().page[MAGIC_AT] == PAGE_MAGIC == int.from_bytes(b"uuidln\0\1", "big")


def test_the_page_has_room_for_every_lane() -> None:
    """The token of the last lane is in it, and 4,096 bytes are one page of memory."""
    assert PAGE_WORDS * 8 == 4096
    assert TOKENS_AT + LANES <= PAGE_WORDS


def test_without_a_page_there_are_leases_all_the_same() -> None:
    """A timeline that nobody gave a page has one of its own."""
    utc = Utc(None, machine="", now=NOW, random=Draws())
    utc.end_save(utc.begin_save(now=NOW, reach=REACH), completed=True)
    utc.lease(uid=UID, now=NOW)
    assert utc.leases.horizon == NOW + REACH


def test_a_token_is_never_zero() -> None:
    """Zero stands for a lane that nobody holds, whatever bits are drawn."""
    leases = Leases()
    utc = Utc(None, machine="", now=NOW, random=zeros, leases=leases)
    utc.end_save(utc.begin_save(now=NOW, reach=REACH), completed=True)
    assert utc.lease(uid=UID, now=NOW).token == 1


def test_the_first_lease_begins_with_its_generation(host: Host) -> None:
    """Where no lease was before there is no floor but the generation's mark."""
    state = State(STORED, "host", 0, {0: NOW - 5}, 0, 0)
    later = Host(state)
    later.save()
    assert (host.lease().begin, later.lease().begin) == (0, NOW - 5)


def test_leases_are_counted(host: Host) -> None:
    """Those that are held, and all that were granted."""
    first = host.lease()
    host.lease()
    host.utc.leases.release(first)
    assert (host.utc.leases.out, host.utc.leases.granted) == (1, 2)


# --- the horizon in the page


def test_the_horizon_rises_only_when_the_save_has_completed(host: Host) -> None:
    """A state that is being written may not reach the disk."""
    host.lease()
    state = host.begin_save(NOW + 9)
    assert host.horizon == NOW + REACH
    host.end_save(state)
    assert host.horizon == NOW + 9 + REACH


def test_a_failed_save_raises_no_horizon(host: Host) -> None:
    """Nor does it lower the one that is shown."""
    host.lease()
    host.end_save(host.begin_save(NOW + 9), completed=False)
    assert host.horizon == NOW + REACH


def test_a_save_that_reaches_less_far_leaves_the_horizon_where_it_is(host: Host) -> None:
    """What is shown cannot be taken back, so the state that is saved covers it."""
    host.lease()
    state = host.save(NOW - 9)
    assert host.horizon == NOW + REACH
    assert state.leases == state.marks[state.generation] == NOW + REACH


def test_a_grant_while_a_save_is_under_way_shows_what_both_states_allow(host: Host) -> None:
    """A crash finds one of them, and it is not known which."""
    host.begin_save(NOW, reach=5)
    host.lease()
    assert host.horizon == NOW + 5


def test_a_new_generation_leases_nothing_before_its_own_save(host: Host) -> None:
    """The disk allows it nothing yet, whatever the mark of leases is."""
    take(host.utc, 1, now=NOW)
    host.utc.switch(now=NOW - REACH)
    assert host.refusal(NOW - REACH) == ("save", 0)


def test_no_lease_out_before_a_step_back_is_no_floor_after_it(host: Host) -> None:
    """Nothing was used past UTC, so the next lease need not wait until UTC is there again."""
    host.step_back()
    back = NOW - 5 * REACH
    host.save(back)
    lease = host.lease(back)
    assert (host.horizon, lease.begin) == (back + REACH, 0)


def test_holders_are_told_when_half_of_the_reach_is_used(host: Host) -> None:
    """From that tick on they tell that they make ids, so that an idle host saves nothing."""
    host.lease()
    assert host.page[DUE_AT] == NOW + REACH // 2
    host.save(NOW + REACH)
    assert host.page[DUE_AT] == NOW + REACH + REACH // 2


@pytest.mark.parametrize("closed", [False, True])
def test_a_save_that_raises_no_horizon_leaves_that_tick_where_it_is(
    host: Host, closed: bool
) -> None:
    """Neither a failed save nor the last one brings holders to tell sooner or later."""
    host.lease()
    if closed:
        host.timelines.close()
    host.end_save(host.begin_save(NOW + REACH // 4), completed=closed)
    assert (host.page[DUE_AT], host.horizon) == (NOW + REACH // 2, NOW + REACH)


# --- the end of a lease


def test_at_the_end_of_a_connection_the_token_is_cleared(host: Host) -> None:
    """So its holder stops before the horizon that comes next."""
    host.utc.leases.release(host.lease())
    assert (host.tokens, host.utc.leases.out) == ({}, 0)


def test_a_freed_lane_rests_until_the_horizon(host: Host) -> None:
    """Its holder may have paused, and may use what it could see; others get other lanes."""
    first = host.lease()
    host.utc.leases.release(first)
    assert host.lease().lane == first.lane + 1
    host.save(NOW + REACH)
    again = host.lease(NOW + REACH)
    assert (again.lane, again.begin) == (first.lane, NOW + REACH)


def test_a_lane_that_rested_begins_there_even_if_utc_was_past_it(host: Host) -> None:
    """UTC may be ahead for a moment, and what counts is what the page showed."""
    host.utc.leases.release(host.lease())
    assert host.lease(NOW + 2 * REACH).begin == NOW + REACH


def test_a_lease_that_has_ended_ends_no_other(host: Host) -> None:
    """A connection that ends late does not free a lane that another holds by now."""
    first = host.lease()
    host.utc.leases.release(first)
    second = host.lease(NOW + REACH)
    assert second.lane == first.lane
    host.utc.leases.release(first)
    assert host.tokens == {second.lane: second.token}


def test_when_utc_was_set_back_all_leases_end(host: Host) -> None:
    """All tokens are cleared at once, and it is told how many leases there were."""
    host.lease()
    host.lease()
    assert host.step_back() == 2
    assert (host.tokens, host.utc.leases.out) == ({}, 0)
    assert host.step_back() == 0


def test_after_a_step_back_no_lease_begins_before_what_was_shown(host: Host) -> None:
    """Steady ids hold the lane and the tick, and those ticks may have been used."""
    host.lease()
    host.step_back()
    # Until then steady leads.
    assert host.refusal(NOW + TOLERANCE) == ("floor", REACH - TOLERANCE)
    host.save(NOW + REACH)
    assert host.lease(NOW + REACH).begin == NOW + REACH


def test_after_a_step_back_with_leases_steady_goes_on_from_where_utc_was(host: Host) -> None:
    """Holders may have made steady ids up to there, and blocks then go on in their order."""
    host.lease()
    host.step_back(REACH // 2)
    at = Reading(NOW - REACH // 2, 0)
    assert host.timelines.take_steady(10, at=at).first == NOW + TOLERANCE
    assert host.timelines.steady.lead(now=at.now, elapsed=0) == REACH // 2 + TOLERANCE


def test_a_step_back_that_is_told_too_short_leaves_steady_ahead_of_leases(host: Host) -> None:
    """A pause of the daemon within a reading hides a part of it, up to the tolerance."""
    host.lease()
    told = REACH // 2 - TOLERANCE + 1
    host.timelines.step_back(told, at=Reading(NOW - REACH // 2, 0))
    assert host.timelines.steady.next > NOW


@pytest.mark.parametrize("error", [-TOLERANCE, 0, 1, TOLERANCE])
def test_a_step_back_by_as_much_as_steady_may_lead_keeps_its_order(host: Host, error: int) -> None:
    """The step may be told longer or shorter than it was."""
    host.timelines.steady.max_lead = REACH // 2
    host.lease()
    at = Reading(NOW - REACH // 2, 0)
    host.timelines.step_back(REACH // 2 + error, at=at)
    assert host.timelines.take_steady(10, at=at).first >= NOW


def test_steady_passes_over_no_more_than_holders_could_see(host: Host) -> None:
    """UTC may have been past the horizon, and no holder used a tick there."""
    host.lease()
    host.timelines.step_back(3 * REACH, at=Reading(NOW, 0))
    assert host.timelines.steady.next == NOW + REACH


def test_a_step_back_without_leases_leaves_steady_alone(host: Host) -> None:
    """Nothing was used past UTC, so there is nothing to stay ahead of."""
    before = host.timelines.steady.next
    host.step_back(REACH)
    assert host.timelines.steady.next == before


def test_after_a_step_back_steady_goes_on_past_leases_that_have_ended(host: Host) -> None:
    """The ids that were made from them are there, though nobody holds a lane any more."""
    host.utc.leases.release(host.lease())
    assert host.step_back(REACH // 2) == 0
    at = Reading(NOW - REACH // 2, 0)
    assert host.timelines.take_steady(10, at=at).first == NOW + TOLERANCE


@pytest.mark.parametrize(
    ("now", "elapsed", "first"),
    [
        # UTC was set back by so much at the start, or just before it.
        pytest.param(NOW - 2 * TOLERANCE, 0, NOW + TOLERANCE, id="back"),
        pytest.param(NOW + TOLERANCE, 3 * TOLERANCE, NOW + 4 * TOLERANCE, id="back, and later"),
        pytest.param(NOW, 3 * REACH, NOW + REACH, id="back, after the end of all leases"),
        # It was not.
        pytest.param(NOW + 3 * TOLERANCE, 3 * TOLERANCE, NOW + 3 * TOLERANCE, id="later"),
        pytest.param(NOW - TOLERANCE, 0, NOW - TOLERANCE, id="back by the tolerance"),
        pytest.param(NOW + REACH, -REACH, NOW + REACH, id="another boot"),
    ],
)
def test_after_a_stop_steady_goes_on_past_what_holders_may_have_used(
    host: Host, now: int, elapsed: int, first: int
) -> None:
    """They go on without a daemon, and the next one sees by both clocks where UTC was."""
    host.lease()
    at = Reading(NOW, REACH)
    host.timelines.close()
    state = host.timelines.begin_save(at=at, reach=0, bare_reach=0)
    reading = Reading(now, REACH + elapsed)
    begun = Host(state, now=now, elapsed=reading.elapsed)
    begun.timelines.notice_step_since(state, at=reading)
    begun.end_save(begun.timelines.begin_save(at=reading, reach=2 * REACH, bare_reach=0))
    assert begun.timelines.take_steady(1, at=reading).first == first


def test_steady_does_not_lead_utc_by_more_than_it_may(host: Host) -> None:
    """After a step back by more, its ids go on at UTC, and other lanes keep them from repeating."""
    host.timelines.steady.max_lead = REACH // 2
    before = host.timelines.steady.next
    host.lease()
    host.step_back(REACH)
    assert host.timelines.steady.next == before


def test_another_generation_has_no_leases_of_the_one_before(host: Host) -> None:
    """A step back that only a request notices ends them too, and its mark covers them."""
    host.lease()
    take(host.utc, 1, now=NOW)
    left = host.utc.generation
    back = NOW - REACH
    host.utc.switch(now=back)
    assert left is not None
    assert host.utc.generation is not left
    assert host.tokens == {}
    assert host.save(back).marks[left.number] == NOW + REACH
    assert host.refusal(back) == ("floor", 2 * REACH)


def test_the_horizon_of_a_generation_left_behind_bounds_no_other(host: Host) -> None:
    """What holders could see of the first counts for its mark, and not for the next one's."""
    host.lease()
    take(host.utc, 1, now=NOW)
    host.utc.switch(now=NOW - REACH)
    state = host.save(NOW - REACH, reach=5)
    assert state.marks[state.generation] == NOW - REACH + 5
    assert state.leases == NOW + REACH


# --- clones


class Watched(list[int]):
    """A page that notes, at each change of the epoch, which tokens are there."""

    def __init__(self, words: list[int]) -> None:
        super().__init__(words)
        self.at_epoch: list[list[int]] = []

    def __setitem__(self, at: Any, value: Any) -> None:
        super().__setitem__(at, value)
        if at == EPOCH_AT:
            self.at_epoch.append([token for token in self[TOKENS_AT:] if token])


def test_a_renewal_moves_the_epoch_and_ends_all_leases(host: Host) -> None:
    """So holders of leases, of blocks and of random bits drop all of them."""
    host.lease()
    assert (host.utc.leases.epoch, host.page[EPOCH_AT]) == (0, 0)
    host.utc.leases.renew()
    assert (host.utc.leases.epoch, host.page[EPOCH_AT], host.tokens) == (1, 1, {})
    assert host.utc.leases.revoked == 1
    host.utc.leases.renew()
    assert host.page[EPOCH_AT] == 2


def test_the_epoch_moves_after_all_tokens_are_cleared() -> None:
    """Who reads the new epoch, and then its token, does not take an old lease for a new one."""
    page = Watched([0] * PAGE_WORDS)
    leases = Leases(page=page)
    generation = Generation(0, node=7, begin=0)
    for _ in range(3):
        leases.grant(generation, NOW + REACH, uid=UID, now=NOW, random=Draws())
    leases.renew()
    assert page.at_epoch == [[]]


def test_nothing_but_a_renewal_moves_the_epoch(host: Host) -> None:
    """Not the end of a lease, a step back, another generation, or a state that is lost."""
    host.utc.leases.release(host.lease())
    host.lease()
    host.step_back()
    host.utc.switch(now=NOW - REACH)
    host.timelines.void_saves()
    assert host.page[EPOCH_AT] == 0


# --- refusals


def loaded(*marks: int, steady: int = 0, leases: int = 0) -> State:
    """Return a state with these marks of generations, of steady and of leases."""
    return State(STORED, "host", 0, dict(enumerate(marks)), 0, steady, leases=leases)


@pytest.mark.parametrize(
    ("state", "floor", "reason", "wait"),
    [
        # Earlier daemons' holders may have used what lies before it.
        pytest.param(None, NOW + LOST, "floor", LOST, id="a floor"),
        # Likewise, whatever floor is given beside it.
        pytest.param(loaded(5, leases=NOW + 9), 0, "floor", 9, id="a mark of leases"),
        # A holder's steady ids would lie before those that blocks are at.
        pytest.param(loaded(5, steady=NOW + 9), 0, "steady", 9, id="a lead of steady"),
    ],
)
def test_nothing_is_leased_before_a_mark_is_passed(
    state: State | None, floor: int, reason: str, wait: int
) -> None:
    host = Host(state, floor=floor)
    host.save()
    assert host.refusal() == (reason, wait)
    host.save(NOW + wait)
    assert host.lease(NOW + wait).begin == (NOW + wait if reason == "floor" else 5)


def test_nothing_is_leased_while_no_generation_can_be_opened() -> None:
    host = Host(loaded(NOW + 9, NOW + 9))
    host.save()
    assert host.utc.generation is None
    assert host.refusal() == ("volatile", 0)


def test_nothing_is_leased_before_the_first_save() -> None:
    """There is no horizon to show."""
    assert Host().refusal() == ("save", 0)


def test_a_state_without_a_mark_of_leases_has_its_generations_marks() -> None:
    """A state of an earlier format tells of no leases, and there were none."""
    host = Host(State(STORED, "host", 0, {0: NOW - 9, 1: NOW + 9}, 0, 0))
    assert host.save().leases == NOW + REACH
    assert host.lease().begin == NOW - 9


def test_nothing_is_leased_while_a_volatile_node_serves(host: Host) -> None:
    """Nothing of it is in the state, so no lane of it can be kept from being leased again."""
    host.utc.use_volatile("hung")
    assert host.refusal() == ("volatile", 0)
    host.utc.leave_volatile(now=NOW)
    host.lease()


def test_nothing_is_leased_after_the_close(host: Host) -> None:
    """The last state is being saved."""
    host.timelines.close()
    with pytest.raises(Closed):
        host.lease()


def test_one_user_may_hold_half_of_the_lanes(host: Host) -> None:
    """The others are for others, and a lane that is let go from now on rests until the horizon."""
    for _ in range(PER_USER):
        host.lease()
    assert host.refusal() == ("user", host.utc.leases.horizon - NOW)
    host.lease(uid=UID + 1)


def test_lanes_that_rest_count_for_their_user(host: Host) -> None:
    """So nobody can use up the lanes of all by leasing and hanging up."""
    for _ in range(PER_USER):
        host.utc.leases.release(host.lease())
    name, wait = host.refusal()
    assert (name, wait) == ("user", REACH)
    assert host.refusal(NOW + wait - 1) == ("user", 1)
    host.lease(NOW + wait)


def test_who_has_too_many_waits_for_the_lane_that_is_free_first(host: Host) -> None:
    """Lanes that were let go at different times rest until different horizons."""
    first, second, *_ = [host.lease() for _ in range(PER_USER)]
    host.utc.leases.release(first)
    later = NOW + REACH // 2
    host.save(later)
    host.utc.leases.release(second)
    assert host.refusal(later) == ("user", NOW + REACH - later)


def test_a_refusal_stands_until_a_lease_ends(host: Host) -> None:
    """Each is told what holds then: a later horizon, a lane that rests, and that UTC went back."""
    first, *_ = [host.lease() for _ in range(PER_USER)]
    for now in (NOW, NOW + REACH // 2):
        host.save(now)
        assert host.refusal(now) == ("user", REACH)
    host.utc.leases.release(first)
    rested = host.utc.leases.horizon
    host.save(rested - 1)
    assert host.refusal(rested - 1) == ("user", 1)
    host.lease(rested)
    assert host.refusal(rested) == ("user", REACH - 1)
    assert host.refusal(rested - 1) == ("user", REACH)
    host.utc.leases.revoke()
    host.lease(host.utc.leases.floor)


def test_all_lanes_can_be_leased_and_no_more(host: Host) -> None:
    """Each has a clock sequence of its own, and none of them is one for blocks."""
    leases = [host.lease(uid=number % 3) for number in range(RESERVED)]
    assert {lease.lane for lease in leases} == set(range(BLOCK_LANES, LANES))
    assert len({lease.clock_seq for lease in leases}) == RESERVED
    assert host.refusal(uid=3) == ("lanes", host.utc.leases.horizon - NOW)


# --- saves


def test_the_state_keeps_every_horizon_that_was_shown(host: Host) -> None:
    """It is saved as the mark of leases, and as the mark of their generation."""
    host.lease()
    state = host.save(NOW + 9)
    assert state.leases == state.marks[state.generation] == host.horizon


def test_a_clean_stop_keeps_what_holders_may_go_on_to_use(host: Host) -> None:
    """Both marks are the horizon, not what the daemon gave out; holders see nothing of the stop."""
    lease = host.lease()
    host.timelines.close()
    state = host.save(NOW + 9)
    assert state.leases == state.marks[state.generation] == NOW + REACH
    assert (host.tokens, host.horizon) == ({lease.lane: lease.token}, NOW + REACH)


def test_a_clean_stop_keeps_what_a_holder_that_is_gone_may_have_used(host: Host) -> None:
    """It may be a process that was stopped, and goes on."""
    host.utc.leases.release(host.lease())
    host.timelines.close()
    assert host.save(NOW + 9).leases == NOW + REACH


def test_a_clean_stop_without_a_lease_has_exact_marks(host: Host) -> None:
    """No holder saw the horizon, so the next daemon leases at once."""
    take(host.utc, 1, now=NOW)
    host.timelines.close()
    state = host.save(NOW + 9)
    assert (state.leases, state.marks[state.generation]) == (0, NOW + 1)


def test_a_save_under_way_at_a_stop_may_still_raise_the_horizon(host: Host) -> None:
    """Then the exact marks cover it."""
    host.lease()
    state = host.begin_save(NOW + 9)
    host.timelines.close()
    host.end_save(state)
    assert host.save(NOW + 9).leases == host.horizon == NOW + 9 + REACH


def test_the_floor_is_saved_until_the_end(host: Host) -> None:
    """UTC may come back before it at any time."""
    again = Host(host.save(), now=NOW + 2 * REACH)
    assert again.save(NOW + 2 * REACH).leases == NOW + 3 * REACH
    again.timelines.close()
    assert again.save(NOW).leases == NOW + REACH


def test_after_saves_were_void_nothing_is_leased_before_one_completes(host: Host) -> None:
    """The folder was moved away, and a start would find none of them."""
    host.lease()
    host.timelines.void_saves()
    assert host.tokens == {}
    assert host.refusal(NOW + REACH) == ("save", 0)
    host.save(NOW + REACH)
    assert host.lease(NOW + REACH).begin == NOW + REACH


def test_a_save_under_way_when_saves_are_void_counts_once_it_completes(host: Host) -> None:
    """It goes to where the folder is now."""
    state = host.begin_save()
    host.timelines.void_saves()
    host.end_save(state)
    host.lease()
    assert host.horizon == NOW + REACH


def test_use_by_holders_is_use_until_the_next_save_begins(host: Host) -> None:
    """So the save that is due is not left out; a lease is about to be used."""
    used = [host.timelines.used]
    for happens in (host.lease, host.save, host.timelines.note_use, host.begin_save):
        happens()
        used.append(host.timelines.used)
    assert used == [False, True, False, True, False]


def test_use_while_a_save_is_under_way_counts_for_the_next_one(host: Host) -> None:
    """The holder may be past what that save allows."""
    state = host.begin_save()
    host.timelines.note_use()
    host.end_save(state)
    assert host.timelines.used


# --- over a restart


def test_after_a_crash_no_lease_begins_before_what_was_shown(host: Host) -> None:
    """Holders go on with the page of the daemon that is gone."""
    host.lease()
    again = Host(replace(host.save(), steady=NOW), now=NOW + 1)
    again.save(NOW + 1)
    assert again.refusal(NOW + 1) == ("floor", REACH - 1)


def test_blocks_do_not_wait_for_the_floor_of_leases(host: Host) -> None:
    """They come from another generation, so they serve until leases do."""
    host.lease()
    host.timelines.close()
    again = Host(host.save(NOW + 9), now=NOW + 9)
    again.save(NOW + 9)
    assert again.refusal(NOW + 9)[0] == "floor"
    assert take(again.utc, 1, now=NOW + 9).first == NOW + 9

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.core.draws import Draws, zeros
from tests.core.host import NOW, REACH, STORED, UID, Host, reading
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.generation import BLOCK_LANES, GENERATIONS, LANES, Generation
from uuidd.core.timeline.leases import PER_USER, RESERVED, Leases, NoLease
from uuidd.core.timeline.page import (
    DUE_AT,
    EPOCH_AT,
    MAGIC_AT,
    PAGE_MAGIC,
    PAGE_WORDS,
    TOKENS_AT,
    Lease,
)
from uuidd.core.timeline.slew import MAX_LEAD_SECONDS, TOLERANCE
from uuidd.core.timeline.state import State
from uuidd.core.timeline.timelines import Reading

LOST = 20 * TICKS_PER_SECOND
MOST_LEAD = MAX_LEAD_SECONDS * TICKS_PER_SECOND
HALF = REACH // 2


def refusal(host: Host, now: int = NOW, uid: int = UID) -> tuple[str, int]:
    """Why no lane is leased, and for how many ticks; nothing changes."""
    leases = host.utc.leases

    def standing() -> list[object]:
        return [*host.page, dict(leases.users), leases.floor, leases.top, leases.used]

    before = standing()
    none = host.lease(at=reading(now), uid=uid)
    assert isinstance(none, NoLease), none
    assert standing() == before
    return none


@pytest.fixture
def host() -> Host:
    """A host whose first save has completed."""
    return Host()


def test_a_lease_is_a_lane_of_the_open_generation(host: Host) -> None:
    lease = host.leased()
    assert (lease.lane, lease.node) == (BLOCK_LANES, host.utc.node.value)
    assert lease.clock_seq == host.number * LANES + lease.lane
    assert host.tokens == {lease.lane: lease.token}


def test_a_page_begins_with_its_magic(host: Host) -> None:
    assert host.page[MAGIC_AT] == PAGE_MAGIC == int.from_bytes(b"uuidln\0\1", "big")


def test_a_page_of_memory_has_room_for_every_lane() -> None:
    assert PAGE_WORDS * 8 == 4096
    assert TOKENS_AT + LANES <= PAGE_WORDS


def test_a_token_is_never_zero() -> None:
    """Zero stands for a lane that nobody holds, whatever bits are drawn."""
    generation = Generation(0, node=7, begin=0)
    lease = Leases().grant(generation, REACH, uid=UID, now=1, random=zeros)
    assert isinstance(lease, Lease)
    assert lease.token == 1


def test_leases_are_counted(host: Host) -> None:
    first = host.leased()
    host.leased()
    host.utc.leases.release(first)
    assert (host.utc.leases.out, host.utc.leases.granted) == (1, 2)


@pytest.mark.parametrize(("completed", "shown"), [(True, NOW + 9), (False, NOW)])
def test_the_horizon_rises_only_when_the_save_has_completed(
    host: Host, completed: bool, shown: int
) -> None:
    host.leased()
    state = host.begun(NOW + 9)
    assert host.horizon == NOW + REACH
    host.ended(state, completed=completed)
    assert host.horizon == shown + REACH


def test_holders_are_told_when_half_of_the_reach_is_used(host: Host) -> None:
    """From that tick on they tell that they make ids, so that an idle host saves nothing."""
    host.leased()
    assert host.page[DUE_AT] == NOW + HALF
    host.save(NOW + REACH)
    assert host.page[DUE_AT] == NOW + REACH + HALF


@pytest.mark.parametrize("closed", [False, True])
def test_a_save_that_raises_no_horizon_leaves_that_tick_where_it_is(
    host: Host, closed: bool
) -> None:
    """Neither a failed save nor the last one brings holders to tell sooner or later."""
    host.leased()
    if closed:
        host.close()
    host.ended(host.begun(NOW + HALF // 2), completed=closed)
    assert (host.page[DUE_AT], host.horizon) == (NOW + HALF, NOW + REACH)


@pytest.mark.parametrize("now", [NOW + REACH, NOW + 2 * REACH])
def test_a_freed_lane_rests_until_the_horizon_and_is_leased_from_there(
    host: Host, now: int
) -> None:
    """Its holder may have paused, and may use what it could see; others get other lanes."""
    first = host.leased()
    host.utc.leases.release(first)
    assert (host.tokens, host.utc.leases.out) == ({}, 0)
    assert host.leased().lane == first.lane + 1
    again = host.leased(now)
    assert (again.lane, again.begin) == (first.lane, NOW + REACH)


def test_a_lease_that_has_ended_ends_no_other(host: Host) -> None:
    """A connection that ends late does not free a lane that another holds by now."""
    first = host.leased()
    host.utc.leases.release(first)
    second = host.leased(NOW + REACH)
    assert second.lane == first.lane
    host.utc.leases.release(first)
    assert host.tokens == {second.lane: second.token}


def test_when_utc_was_set_back_all_leases_end(host: Host) -> None:
    host.leased()
    host.leased()
    assert host.set_back() == 2
    assert (host.tokens, host.utc.leases.out) == ({}, 0)
    assert host.set_back() == 0


def test_no_lease_out_before_a_step_back_is_no_floor_after_it(host: Host) -> None:
    """Nothing was used past UTC, so the next lease need not wait until UTC is there again."""
    host.set_back()
    back = NOW - 5 * REACH
    host.save(back)
    assert host.leased(back).begin == 0


@pytest.mark.parametrize(
    ("told", "was", "most", "next"),
    [
        pytest.param(HALF, HALF, MOST_LEAD, NOW + TOLERANCE, id="from where UTC was"),
        # A pause of the daemon within a reading hides a part of the step, up to the tolerance.
        pytest.param(HALF - TOLERANCE + 1, HALF, MOST_LEAD, NOW + 1, id="told too short"),
        # UTC may have been past the horizon, and no holder used a tick there.
        pytest.param(3 * REACH, 0, MOST_LEAD, NOW + REACH, id="no later than holders could see"),
        # Its ids go on at UTC then, and other lanes keep them from repeating.
        pytest.param(REACH, REACH, HALF, 0, id="by more than it may lead"),
        *(
            pytest.param(HALF + error, HALF, HALF, NOW, id=f"by as much as it may lead, {error}")
            for error in (-TOLERANCE, 0, 1, TOLERANCE)
        ),
    ],
)
def test_after_a_step_back_steady_goes_on(
    host: Host, told: int, was: int, most: int, next: int
) -> None:
    """Holders may have made steady ids up to where UTC was, and blocks go on in their order."""
    host.leased()
    host.steady.max_lead = most
    host.step_back(told, at=Reading(NOW - was, 0))
    assert host.steady.next == next


@pytest.mark.parametrize(("leased", "next"), [(False, 0), (True, NOW + TOLERANCE)])
def test_after_a_step_back_steady_goes_on_past_leases_that_have_ended(
    host: Host, leased: bool, next: int
) -> None:
    """The ids that were made from them are there, though nobody holds a lane any more."""
    if leased:
        host.utc.leases.release(host.leased())
    assert host.set_back(HALF) == 0
    assert host.steady.next == next


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
    host.leased()
    host.close()
    state = host.begun(Reading(NOW, REACH))
    at = Reading(now, REACH + elapsed)
    begun = Host(state, at=at, saved=False)
    begun.notice_step_since(state, at=at)
    begun.save(at, 2 * REACH)
    assert begun.steady_ticks(1, at)[0] == first


def test_the_horizon_of_a_generation_left_behind_bounds_no_other(host: Host) -> None:
    """What holders could see of the first counts for its mark, and not for the next one's."""
    host.leased()
    host.take_utc(1)
    host.utc.switch(now=NOW - REACH)
    state = host.save(NOW - REACH, reach=5)
    assert state.marks[state.generation] == NOW - REACH + 5
    assert state.leases == NOW + REACH


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
    host.leased()
    assert (host.utc.leases.epoch, host.page[EPOCH_AT]) == (0, 0)
    host.utc.leases.renew()
    assert (host.utc.leases.epoch, host.page[EPOCH_AT], host.tokens) == (1, 1, {})
    assert host.utc.leases.revoked == 1
    host.utc.leases.renew()
    assert host.page[EPOCH_AT] == 2


def test_the_epoch_moves_after_all_tokens_are_cleared() -> None:
    """Who reads the new epoch, and then its token, does not take an old lease for a new one."""
    page = Watched([0] * PAGE_WORDS)
    leases = Leases(page)
    generation = Generation(0, node=7, begin=0)
    for _ in range(3):
        leases.grant(generation, NOW + REACH, uid=UID, now=NOW, random=Draws())
    leases.renew()
    assert page.at_epoch == [[]]


def test_nothing_but_a_renewal_moves_the_epoch(host: Host) -> None:
    host.utc.leases.release(host.leased())
    host.leased()
    host.set_back()
    host.utc.switch(now=NOW - REACH)
    host.void_saves()
    assert host.page[EPOCH_AT] == 0


def loaded(mark: int, *, steady: int = 0, leases: int = 0) -> State:
    """Return a state with this mark of all generations, and those of steady and of leases."""
    marks = dict.fromkeys(range(GENERATIONS), mark)
    return State(STORED, "host", 0, marks, 0, steady, leases=leases)


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
    assert refusal(host) == (reason, wait)
    host.save(NOW + wait)
    assert host.leased(NOW + wait).begin == (NOW + wait if reason == "floor" else 5)


def test_nothing_is_leased_while_no_generation_can_be_opened() -> None:
    assert refusal(Host(loaded(NOW + 9))) == ("volatile", 0)


def test_nothing_is_leased_before_the_first_save() -> None:
    assert refusal(Host(saved=False)) == ("save", 0)


def test_nothing_is_leased_while_a_volatile_node_serves(host: Host) -> None:
    """Nothing of it is in the state, so no lane of it can be kept from being leased again."""
    host.utc.use_volatile("hung")
    assert refusal(host) == ("volatile", 0)
    host.utc.leave_volatile(now=NOW)
    host.leased()


def test_nothing_is_leased_after_the_close(host: Host) -> None:
    host.close()
    assert refusal(host) == ("stopping", 0)


def test_one_user_may_hold_half_of_the_lanes(host: Host) -> None:
    for _ in range(PER_USER):
        host.leased()
    assert refusal(host) == ("user", REACH)
    host.leased(uid=UID + 1)


def test_lanes_that_rest_count_for_their_user(host: Host) -> None:
    """So nobody can use up the lanes of all by leasing and hanging up."""
    for _ in range(PER_USER):
        host.utc.leases.release(host.leased())
    assert refusal(host) == ("user", REACH)
    assert refusal(host, NOW + REACH - 1) == ("user", 1)
    host.leased(NOW + REACH)


def test_who_has_too_many_waits_for_the_lane_that_is_free_first(host: Host) -> None:
    first, second, *_ = [host.leased() for _ in range(PER_USER)]
    host.utc.leases.release(first)
    host.save(NOW + HALF)
    host.utc.leases.release(second)
    assert refusal(host, NOW + HALF) == ("user", HALF)


def test_a_refusal_stands_until_a_lease_ends(host: Host) -> None:
    """Each is told what holds then: a later horizon, a lane that rests, and that UTC went back."""
    first, *_ = [host.leased() for _ in range(PER_USER)]
    for now in (NOW, NOW + HALF):
        host.save(now)
        assert refusal(host, now) == ("user", REACH)
    host.utc.leases.release(first)
    rested = host.horizon
    host.save(rested - 1)
    assert refusal(host, rested - 1) == ("user", 1)
    host.leased(rested)
    assert refusal(host, rested) == ("user", REACH - 1)
    assert refusal(host, rested - 1) == ("user", REACH)
    host.utc.leases.revoke()
    host.leased(host.utc.leases.floor)


def test_all_lanes_can_be_leased_and_no_more(host: Host) -> None:
    leases = [host.leased(uid=number % 3) for number in range(RESERVED)]
    assert {lease.lane for lease in leases} == set(range(BLOCK_LANES, LANES))
    assert len({lease.clock_seq for lease in leases}) == RESERVED
    assert refusal(host, uid=3) == ("lanes", REACH)


@pytest.mark.parametrize(
    ("closed", "held", "marks"),
    [
        pytest.param(False, True, (NOW + 9 + REACH, NOW + 9 + REACH), id="what is shown"),
        pytest.param(True, True, (NOW + REACH, NOW + REACH), id="a stop"),
        # It may be a process that was stopped, and goes on.
        pytest.param(True, False, (NOW + REACH, NOW + REACH), id="a stop, a holder is gone"),
        pytest.param(True, None, (0, NOW + 1), id="a stop without a lease"),
    ],
)
def test_the_state_keeps_what_holders_may_go_on_to_use(
    host: Host, closed: bool, held: bool | None, marks: tuple[int, int]
) -> None:
    """As the mark of leases, and as that of the generation. Holders see nothing of a stop."""
    host.take_utc(1)
    if held is not None:
        lease = host.leased()
        if not held:
            host.utc.leases.release(lease)
    tokens = host.tokens
    if closed:
        host.close()
    state = host.save(NOW + 9)
    assert (state.leases, state.marks[state.generation]) == marks
    assert host.tokens == tokens


def test_after_saves_were_void_nothing_is_leased_before_one_completes(host: Host) -> None:
    """The folder was moved away, and a start would find none of them."""
    host.leased()
    state = host.begun()
    host.void_saves()
    assert host.tokens == {}
    assert refusal(host, NOW + REACH) == ("save", 0)
    # One that was under way goes to where the folder is now.
    host.ended(state)
    assert host.leased(NOW + REACH).begin == NOW + REACH


def test_use_by_holders_is_use_until_the_next_save_begins(host: Host) -> None:
    """So the save that is due is not left out. The holder may be past what that save allows."""
    used = [host.used]
    use = partial(setattr, host.utc.leases, "used", True)
    for happens in (host.leased, host.save, use, host.begun, use):
        happens()
        used.append(host.used)
    assert used == [False, True, False, True, False, True]

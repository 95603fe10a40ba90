"""P8: after a machine was cloned, a renewal shares nothing with the copy, and repeats nothing."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from typing import NamedTuple

import pytest

from tests.core.draws import Draws
from tests.core.switching import take
from uuidd.core.ids.nodes import MULTICAST
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline import LANES
from uuidd.core.timeline.fence import Claim, Fence, Shared
from uuidd.core.timeline.leases import Leases, NoLease
from uuidd.core.timeline.outcomes import NeedsSave, NoneFree, NoNumber
from uuidd.core.timeline.page import PAGE_WORDS, TOKENS_AT
from uuidd.core.timeline.state import Node, State
from uuidd.core.timeline.steady import Steady
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.core.timeline.utc import Utc

NOW = 10_000_000_000
AT = Reading(NOW, 0)
REACH = 20 * TICKS_PER_SECOND
GIVEN = Node(99 | MULTICAST, "given")
CLAIM = Claim("fleet", 7, "a1", 0, NOW + REACH)


class Tick(NamedTuple):
    """What tells two ids of one kind apart, but for random bits."""

    node: int
    clock_seq: int | None
    tick: int


def host(
    node: Node | None = None,
    *,
    fence: Fence | None = None,
    lost: bool = False,
    draws: int = 0,
    page: list[int] | None = None,
) -> Timelines:
    """Return timelines of a host whose first save has completed."""
    utc = Utc(
        None,
        machine="",
        now=NOW - 1000,
        random=Draws(draws),
        node=node,
        leases=Leases(0, page),
    )
    steady = Steady(None, now=NOW - 1000, elapsed=-1000, lost=lost)
    timelines = Timelines(utc, steady, fence=fence or Fence(), epoch=0)
    save(timelines)
    return timelines


def begin_save(timelines: Timelines, at: Reading = AT, reach: int = REACH) -> State:
    """Let a save begin."""
    return timelines.begin_save(at=at, reach=reach, bare_reach=TICKS_PER_SECOND)


def save(timelines: Timelines, at: Reading = AT) -> State:
    """Let a save complete."""
    state = begin_save(timelines, at)
    timelines.end_save(state, completed=True)
    return state


def renew(
    timelines: Timelines, at: Reading = AT, *, first: int = 40, node: int = 500, go_on: bool = False
) -> int:
    """Renew; generations are drawn from *first* on, nodes from *node* on."""
    draws = Draws(first)
    draws.nodes = node
    return timelines.renew(at=at, random=draws, go_on=go_on)


def other_draws() -> Draws:
    """Return draws of nodes that no other draws return."""
    draws = Draws(3)
    draws.nodes = 700
    return draws


def taken(timelines: Timelines, at: Reading, count: int = 10) -> set[Tick]:
    """Take a block of each timeline, and return the ticks with what else is in their ids."""
    block = take(timelines.utc, count, now=at.now)
    found = {Tick(block.node, block.clock_seq, block.first + i) for i in range(block.count)}
    flakes = timelines.take_steady(count, at=at)
    return found | {Tick(flakes.node, None, flakes.first + i) for i in range(flakes.count)}


def after(seconds: float) -> Reading:
    """Return a reading of so many seconds later."""
    ticks = int(seconds * TICKS_PER_SECOND)
    return Reading(NOW + ticks, ticks)


# --- two clones


def test_clones_that_were_renewed_share_nothing() -> None:
    """Both give out other nodes than before, and than each other, for the same ticks."""
    ours = host()
    theirs = deepcopy(ours)
    before = taken(deepcopy(ours), AT)
    renew(ours, first=3, node=500)
    renew(theirs, first=3, node=600)
    later = after(60)
    save(ours, later)
    save(theirs, later)
    mine, other = taken(ours, later), taken(theirs, later)
    assert not mine & other
    assert not {tick.node for tick in mine | other} & {tick.node for tick in before}


def test_nothing_comes_again_that_a_copy_gave_out_before_it_noticed() -> None:
    """Even under a fixed node, where only the ticks and 6 bits tell the ids apart."""
    ours = host(GIVEN)
    theirs = deepcopy(ours)
    unaware = set[Tick]()
    for tenth in range(200):
        # Up to the horizon; without a save it gives out no more.
        unaware |= taken(theirs, after(tenth / 10))
    renew(ours)
    later = set[Tick]()
    for tenth in range(500):
        at = after(tenth / 10)
        save(ours, at)
        with suppress(NoneFree):
            later |= taken(ours, at)
    assert unaware
    assert later
    assert not unaware & later


def test_the_generation_that_was_left_is_used_up_to_what_the_copy_could_use() -> None:
    """When the ring comes round to it, it begins past all that the copy may have given out."""
    timelines = host(GIVEN)
    opened = timelines.utc.generation
    assert opened is not None
    horizon = timelines.utc.horizon.limit
    renew(timelines)
    assert save(timelines).marks[opened.number] == horizon


def test_a_fixed_node_stays_and_its_generation_is_drawn() -> None:
    """Two clones then differ, unless they draw the same. None opens its own, or the next one."""
    timelines = host(GIVEN)
    renew(timelines, first=41)
    save(timelines)
    block = take(timelines.utc, 1, now=NOW)
    assert (block.node, block.clock_seq // LANES) == (GIVEN.value, 43)


def test_a_fixed_node_leaves_libuuids_clock_sequence_alone() -> None:
    """And the one that is open, and the next one, which a clone opens after a step of UTC."""
    numbers = set()
    for drawn in range(64):
        timelines = host(GIVEN)
        timelines.renew(at=AT, random=Draws(drawn), avoid=63 * LANES + 5)
        opened = timelines.utc.generation
        assert opened is not None
        numbers.add(opened.number)
    assert numbers == {*range(63)} - {1, 2}


def test_a_volatile_node_is_drawn_anew_too() -> None:
    """It is random, but the copy has the same one."""
    timelines = host()
    timelines.utc.use_volatile("no save")
    shared = timelines.utc.volatile
    renew(timelines)
    serving = timelines.utc.volatile
    assert shared is not None
    assert serving is not None
    assert serving.node != shared.node


def test_later_draws_are_not_those_of_the_constructor() -> None:
    """Bits that were read ahead before are the copy's too."""
    timelines = host()
    renew(timelines, node=500)
    timelines.utc.use_volatile("no save")
    serving = timelines.utc.volatile
    assert serving is not None
    assert serving.node & ~MULTICAST >= 500


# --- the save


def test_nothing_is_given_out_before_a_save() -> None:
    """A crash would otherwise bring the node back that the copy has too."""
    timelines = host()
    renew(timelines)
    with pytest.raises(NeedsSave):
        timelines.utc.take(1, now=NOW)
    with pytest.raises(NeedsSave):
        timelines.take_steady(1, at=after(60))
    with pytest.raises(NoLease):
        timelines.lease(at=after(60), uid=0)


def test_a_generation_that_was_left_needs_a_save_too() -> None:
    """What the last save allowed it, before UTC was set back, counts no more."""
    timelines = host()
    utc = timelines.utc
    left = utc.take(1, now=NOW).clock_seq // LANES
    utc.switch(now=NOW - TICKS_PER_SECOND)
    renew(timelines, after(1), first=left)
    assert utc.generation is not None
    assert utc.generation.number == left
    with pytest.raises(NeedsSave):
        utc.take(1, now=after(1).now)


def test_a_save_that_was_under_way_does_not_count() -> None:
    """Its state holds what the copy has too, so it lets nothing be given out."""
    timelines = host()
    state = begin_save(timelines)
    renew(timelines)
    timelines.end_save(state, completed=True)
    with pytest.raises(NeedsSave):
        timelines.utc.take(1, now=NOW)
    with pytest.raises(NeedsSave):
        timelines.take_steady(1, at=after(1))
    save(timelines)
    assert taken(timelines, after(1))


def test_the_new_node_is_saved() -> None:
    """A restart goes on with it."""
    timelines = host()
    before = timelines.utc.node
    renew(timelines)
    state = save(timelines)
    assert state.node == timelines.utc.node != before
    assert state.node.source == "random"


def test_the_opening_is_told_with_its_reason() -> None:
    """The log says why the clock sequence was changed."""
    timelines = host()
    timelines.utc.new_openings()
    renew(timelines)
    assert [new.reason for new in timelines.utc.new_openings()] == ["the machine was cloned"]


# --- leases and steady


def test_clients_are_told_by_the_epoch_of_the_page() -> None:
    """So they drop their blocks and their random bits, which the copy has too."""
    timelines = host()
    before = timelines.utc.leases.epoch
    renew(timelines)
    timelines.renew(at=AT, random=Draws(), unsaved=True)
    assert timelines.utc.leases.epoch == before + 2


def test_all_leases_end() -> None:
    """Their tokens are cleared, and their lanes are leased again only past what was shown."""
    page = [0] * PAGE_WORDS
    timelines = host(page=page)
    timelines.lease(at=AT, uid=0)
    timelines.lease(at=AT, uid=1)
    assert renew(timelines) == 2
    assert not any(page[TOKENS_AT:])
    save(timelines)
    with pytest.raises(NoLease):
        timelines.lease(at=AT, uid=0)
    save(timelines, after(50))
    assert timelines.lease(at=after(50), uid=0).begin >= NOW + REACH


def test_steady_goes_on_past_all_that_the_copy_may_have_given_out() -> None:
    """The stored mark bounds the copy, so the first tick is that mark or later."""
    timelines = host()
    mark = timelines.steady.horizon.limit
    renew(timelines)
    save(timelines)
    assert timelines.take_steady(1, at=AT).first >= mark


def test_steady_that_was_idle_is_level_with_utc_after_it() -> None:
    """Its mark has passed, so there is nothing to stay ahead of."""
    timelines = host()
    later = after(60)
    renew(timelines, later)
    save(timelines, later)
    assert timelines.steady.lead(now=later.now, elapsed=later.elapsed) == 0


def test_steady_does_not_lead_by_more_than_it_may() -> None:
    """A mark too far ahead is not passed over, or no steady id could be made for long."""
    timelines = host()
    timelines.steady.max_lead = REACH // 2
    renew(timelines)
    assert timelines.steady.lead(now=NOW, elapsed=0) == 0


def test_steady_never_goes_back() -> None:
    """However often the machine is cloned, steady ids rise."""
    timelines = host()
    last = 0
    for second in range(1, 10):
        at = after(second)
        first = timelines.take_steady(10, at=at).first
        assert first > last
        last = first + 9
        renew(timelines, at, node=500 + second)
        save(timelines, at)


def test_steady_that_is_held_stays_held() -> None:
    """After a lost state nothing is given out for 20 s, and now not before the mark either."""
    timelines = host(lost=True)
    mark = timelines.steady.horizon.limit
    renew(timelines)
    save(timelines)
    with pytest.raises(NoneFree):
        timelines.take_steady(1, at=after(19))
    held_until = Reading(mark, mark - NOW)
    save(timelines, held_until)
    assert timelines.take_steady(1, at=held_until).first == mark


# --- Snowflakes


def test_a_worker_number_set_by_hand_is_not_used_any_more() -> None:
    """The copy has it too, and nothing else tells two Snowflakes apart."""
    timelines = host(fence=Fence(5))
    renew(timelines)
    assert save(timelines).worker == Shared(5)
    with pytest.raises(NoNumber):
        timelines.take_steady(1, at=after(1), fenced=True)
    assert timelines.take_steady(1, at=after(1)).worker is None


def test_the_state_keeps_over_further_renewals_which_number_that_was() -> None:
    """Otherwise the next start would use it again."""
    timelines = host(fence=Fence(5))
    renew(timelines)
    save(timelines)
    renew(timelines, after(60), first=50, node=600)
    assert save(timelines, after(60)).worker == Shared(5)


def test_a_worker_number_set_by_hand_can_go_on() -> None:
    """Where the administrator knows that the copy has ended, its ticks still are not repeated."""
    timelines = host(fence=Fence(5))
    mark = timelines.steady.horizon.limit
    renew(timelines, go_on=True)
    save(timelines)
    block = timelines.take_steady(1, at=after(1), fenced=True)
    assert (block.worker, block.first >= mark) == (5, True)


@pytest.mark.parametrize("go_on", [False, True])
def test_a_claimed_number_is_dropped(go_on: bool) -> None:
    """The state has no claim any more, and no Snowflake is made with it, whatever was chosen."""
    fence = Fence()
    fence.hold(CLAIM)
    timelines = host(fence=fence)
    renew(timelines, go_on=go_on)
    assert save(timelines).worker is None
    with pytest.raises(NoNumber):
        timelines.take_steady(1, at=after(1), fenced=True)


# --- soon after another one


def test_a_renewal_that_needs_no_save_gives_out_at_once() -> None:
    """A volatile node serves, and steady goes on where it was, with another node for Flakes."""
    timelines = host()
    shared = taken(deepcopy(timelines), after(1))
    timelines.renew(at=after(1), random=other_draws(), unsaved=True)
    found = taken(timelines, after(1))
    assert not {tick.node for tick in found} & {tick.node for tick in shared}
    assert timelines.steady.lead(now=after(1).now, elapsed=after(1).elapsed) == 0


def test_a_renewal_that_needs_no_save_ends_all_leases() -> None:
    """What clients hold is the copy's too."""
    timelines = host()
    timelines.lease(at=AT, uid=0)
    assert timelines.renew(at=AT, random=Draws(), unsaved=True) == 1
    assert not timelines.utc.leases.out


def test_a_save_ends_the_volatile_node_of_a_renewal() -> None:
    """The node that was drawn is stored then, and serves."""
    timelines = host()
    timelines.renew(at=AT, random=Draws(3), unsaved=True)
    state = save(timelines)
    timelines.utc.leave_volatile(now=NOW)
    assert timelines.utc.volatile is None
    assert take(timelines.utc, 1, now=NOW).node == state.node.value

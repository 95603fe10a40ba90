"""P8: after a machine was cloned, a renewal shares nothing with the copy, and repeats nothing."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from typing import NamedTuple

import pytest

from tests.core.draws import Draws
from tests.core.host import GIVEN, UID, Host, reading
from tests.core.host import NOW as UTC
from uuidd.core.ids.nodes import MULTICAST
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.fence import Claim, Fence, Shared
from uuidd.core.timeline.generation import LANES
from uuidd.core.timeline.leases import NoLease
from uuidd.core.timeline.outcomes import NeedsSave, NoneFree, NoNumber
from uuidd.core.timeline.state import State
from uuidd.core.timeline.timelines import Reading

NOW = Reading(UTC, 0)
REACH = 20 * TICKS_PER_SECOND
CLAIM = Claim("fleet", 7, "a1", 0, UTC + REACH)


class Tick(NamedTuple):
    """What tells two ids of one kind apart, but for random bits."""

    node: int
    clock_seq: int | None
    tick: int


@pytest.fixture
def host() -> Host:
    """A host whose first save has completed, and reaches as far as the daemon's."""
    host = Host()
    save(host)
    return host


@pytest.fixture
def fixed() -> Host:
    """The same with a fixed node."""
    host = Host(node=GIVEN)
    save(host)
    return host


def save(host: Host, at: Reading = NOW) -> State:
    """Let a save complete."""
    return host.save(at, REACH)


def draws(number: int = 40, node: int = 500) -> Draws:
    """Return draws of generations from *number* on, and of nodes from *node* on."""
    found = Draws(number)
    found.nodes = node
    return found


def taken(host: Host, at: Reading, count: int = 10) -> set[Tick]:
    """Take a block of each timeline, and return the ticks with what else is in their ids."""
    block = host.take_utc(count, at)
    found = {Tick(block.node, block.clock_seq, block.first + i) for i in range(block.count)}
    flakes = host.take_steady(count, at=at)
    return found | {Tick(flakes.node, None, flakes.first + i) for i in range(flakes.count)}


def nodes(ticks: set[Tick]) -> set[int]:
    """Return the nodes of these ticks."""
    return {tick.node for tick in ticks}


def after(seconds: float) -> Reading:
    """Return a reading of so many seconds later."""
    ticks = int(seconds * TICKS_PER_SECOND)
    return Reading(UTC + ticks, ticks)


def test_clones_that_were_renewed_share_nothing(host: Host) -> None:
    """Both give out other nodes than before, and than each other, for the same ticks."""
    copy = deepcopy(host)
    before = taken(deepcopy(host), NOW)
    found = []
    for each, node in ((host, 500), (copy, 600)):
        each.renew(at=NOW, random=draws(3, node))
        save(each, after(60))
        found.append(taken(each, after(60)))
    assert not found[0] & found[1]
    assert not nodes(found[0] | found[1]) & nodes(before)


def test_nothing_comes_again_that_a_copy_gave_out_before_it_noticed(fixed: Host) -> None:
    """Even under a fixed node, where only the ticks and 6 bits tell the ids apart."""
    copy = deepcopy(fixed)
    unaware = set[Tick]()
    for tenth in range(200):
        # Up to the horizon; without a save it gives out no more.
        unaware |= taken(copy, after(tenth / 10))
    fixed.renew(at=NOW, random=draws())
    later = set[Tick]()
    for tenth in range(500):
        at = after(tenth / 10)
        save(fixed, at)
        with suppress(NoneFree):
            later |= taken(fixed, at)
    assert unaware
    assert later
    assert not unaware & later


def test_the_generation_that_was_left_is_used_up_to_what_the_copy_could_use(fixed: Host) -> None:
    left, horizon = fixed.number, fixed.utc.horizon.limit
    fixed.renew(at=NOW, random=draws())
    assert save(fixed).marks[left] == horizon


def test_a_fixed_node_stays_and_its_generation_is_drawn(fixed: Host) -> None:
    """Two clones then differ, unless they draw the same. None opens its own, or the next one."""
    fixed.renew(at=NOW, random=draws(41))
    save(fixed)
    block = fixed.take_utc(1)
    assert (block.node, block.clock_seq // LANES) == (GIVEN.value, 43)


def test_a_fixed_node_leaves_libuuids_clock_sequence_alone() -> None:
    """And the one that is open, and the next one, which a clone opens after a step of UTC."""
    numbers = set()
    for drawn in range(64):
        host = Host(node=GIVEN, avoid=63 * LANES + 5)
        host.renew(at=NOW, random=Draws(drawn))
        numbers.add(host.number)
    assert numbers == {*range(63)} - {31, 32}


def test_a_volatile_node_is_drawn_anew_too(host: Host) -> None:
    """It is random, but the copy has the same one. Bits that were read ahead are the copy's too."""
    host.utc.use_volatile("no save")
    host.renew(at=NOW, random=draws(node=500))
    assert host.utc.volatile is not None
    assert host.utc.volatile.node & ~MULTICAST >= 500


def test_nothing_is_given_out_before_a_save(host: Host) -> None:
    """A crash would otherwise bring the node back that the copy has too."""
    # So steady does not go on past what the last save allows.
    host.steady.max_lead = 1
    host.renew(at=NOW, random=draws())
    with pytest.raises(NeedsSave):
        host.take_utc(1)
    with pytest.raises(NeedsSave):
        host.steady_ticks(1, after(1))
    assert isinstance(host.lease(at=after(60), uid=UID), NoLease)


def test_a_generation_that_was_left_needs_a_save_too(host: Host) -> None:
    """What the last save allowed it, before UTC was set back, counts no more."""
    left = host.take_utc(1).clock_seq // LANES
    host.utc.switch(now=UTC - TICKS_PER_SECOND)
    host.renew(at=after(1), random=draws(left))
    assert host.number == left
    with pytest.raises(NeedsSave):
        host.take_utc(1, after(1))


def test_a_save_that_was_under_way_does_not_count(host: Host) -> None:
    """Its state holds what the copy has too, so it lets nothing be given out."""
    state = host.begun(NOW, REACH)
    host.renew(at=NOW, random=draws())
    host.ended(state)
    for take in (host.take_utc, host.steady_ticks):
        with pytest.raises(NeedsSave):
            take(1, after(1))
    save(host)
    assert taken(host, after(1))


def test_the_new_node_is_saved(host: Host) -> None:
    before = host.utc.node
    host.renew(at=NOW, random=draws())
    state = save(host)
    assert state.node == host.utc.node != before
    assert state.node.source == "random"


def test_the_opening_is_told_with_its_reason(host: Host) -> None:
    host.utc.new_openings()
    host.renew(at=NOW, random=draws())
    assert [new.reason for new in host.utc.new_openings()] == ["the machine was cloned"]


@pytest.mark.parametrize("unsaved", [False, True])
def test_all_leases_end_and_the_epoch_of_the_page_moves(host: Host, unsaved: bool) -> None:
    """So clients drop their blocks and their random bits, which the copy has too."""
    host.leased(uid=0)
    host.leased(uid=1)
    assert host.renew(at=NOW, random=draws(), unsaved=unsaved) == 2
    assert (host.tokens, host.utc.leases.out, host.utc.leases.epoch) == ({}, 0, 1)


def test_lanes_are_leased_again_only_past_what_was_shown(host: Host) -> None:
    host.leased()
    shown = host.horizon
    host.renew(at=NOW, random=draws())
    save(host)
    assert isinstance(host.lease(at=NOW, uid=UID), NoLease)
    save(host, after(50))
    assert host.leased(after(50)).begin >= shown


@pytest.mark.parametrize("held", [False, True])
def test_steady_goes_on_past_all_that_the_copy_may_have_given_out(held: bool) -> None:
    """The stored mark bounds the copy. After a lost state, it is held until then."""
    host = Host(lost=held)
    mark = save(host).steady
    host.renew(at=NOW, random=draws())
    save(host)
    at = reading(UTC)
    if held:
        with pytest.raises(NoneFree):
            host.steady_ticks(1, after(19))
        at = Reading(mark, mark - UTC)
        save(host, at)
    assert host.steady_ticks(1, at) == (mark, 1)


@pytest.mark.parametrize(
    ("later", "most"),
    [
        pytest.param(after(60), REACH, id="its mark has passed"),
        # Otherwise no steady id could be made for long.
        pytest.param(NOW, REACH // 2, id="its mark is further ahead than it may lead"),
    ],
)
def test_steady_does_not_stay_ahead_of_utc(host: Host, later: Reading, most: int) -> None:
    host.steady.max_lead = most
    host.renew(at=later, random=draws())
    save(host, later)
    assert host.steady.lead(now=later.now, elapsed=later.elapsed) == 0


def test_steady_never_goes_back(host: Host) -> None:
    """However often the machine is cloned, steady ids rise."""
    last = 0
    for second in range(1, 10):
        at = after(second)
        first, count = host.steady_ticks(10, at)
        assert first > last
        last = first + count - 1
        host.renew(at=at, random=draws(node=500 + second))
        save(host, at)


def test_a_worker_number_set_by_hand_is_not_used_any_more() -> None:
    """The copy has it too, and nothing else tells two Snowflakes apart. No later start uses it."""
    host = Host(fence=Fence(5))
    for at in (NOW, after(60)):
        host.renew(at=at, random=draws())
        assert save(host, at).worker == Shared(5)
        with pytest.raises(NoNumber):
            host.steady_ticks(1, after(61), fenced=True)
    assert host.take_steady(1, at=after(61)).worker is None


def test_a_worker_number_set_by_hand_can_go_on() -> None:
    """Where the administrator knows that the copy has ended, its ticks still are not repeated."""
    host = Host(fence=Fence(5))
    mark = save(host).steady
    host.renew(at=NOW, random=draws(), go_on=True)
    save(host)
    block = host.take_steady(1, at=after(1), fenced=True)
    assert (block.worker, block.first >= mark) == (5, True)


@pytest.mark.parametrize("go_on", [False, True])
def test_a_claimed_number_is_dropped(go_on: bool) -> None:
    """The state has no claim any more, and no Snowflake is made with it, whatever was chosen."""
    host = Host()
    host.fence.hold(CLAIM)
    host.renew(at=NOW, random=draws(), go_on=go_on)
    assert save(host).worker is None
    with pytest.raises(NoNumber):
        host.steady_ticks(1, after(1), fenced=True)


def test_a_renewal_that_needs_no_save_gives_out_at_once(host: Host) -> None:
    """A volatile node serves, and steady goes on where it was, with another node for Flakes."""
    at = after(1)
    shared = taken(deepcopy(host), at)
    host.renew(at=at, random=draws(3, 700), unsaved=True)
    assert not nodes(taken(host, at)) & nodes(shared)
    assert host.steady.lead(now=at.now, elapsed=at.elapsed) == 0


def test_a_save_ends_the_volatile_node_of_a_renewal(host: Host) -> None:
    """The node that was drawn is stored then, and serves."""
    host.renew(at=NOW, random=Draws(3), unsaved=True)
    state = save(host)
    host.utc.leave_volatile(now=UTC)
    assert host.utc.volatile is None
    assert host.take_utc(1).node == state.node.value

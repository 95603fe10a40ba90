from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.core.draws import Draws
from tests.core.host import take
from uuidd.core.ids.nodes import MULTICAST, random_node
from uuidd.core.timeline.generation import GENERATIONS, LANE_BITS, LANES
from uuidd.core.timeline.outcomes import Block, Closed, NeedsSave, NoneFree
from uuidd.core.timeline.slew import TOLERANCE
from uuidd.core.timeline.state import Node, State
from uuidd.core.timeline.utc import COPIED, Opening, Utc

NOW = 10_000_000
REACH = 1_000_000
MAC_A = Node(0x00163E000001, "mac eth0")
MAC_B = Node(0x00163E000002, "mac eth1")
RANDOM = Node(7 | MULTICAST, "random")


def begun(
    loaded: State | None = None,
    *,
    now: int = NOW,
    node: Node | None = None,
    avoid: Callable[[], int | None] = lambda: None,
    floor: int | None = None,
    first: int = 0,
    ring: int = 4,
    product: str = "",
) -> Utc:
    """A timeline that has not saved yet."""
    return Utc(
        loaded,
        machine="host",
        product=product,
        now=now,
        random=Draws(first=first),
        node=node,
        avoid=avoid,
        floor=floor,
        ring=ring,
    )


def save(utc: Utc, *, now: int = NOW, reach: int = REACH) -> State:
    """Let a save complete, and give what it saved."""
    state = utc.begin_save(now=now, reach=reach)
    utc.end_save(state, completed=True)
    return state


def serving(loaded: State | None = None, *, now: int = NOW, node: Node | None = None) -> Utc:
    """A timeline whose first save has completed."""
    utc = begun(loaded, now=now, node=node)
    save(utc, now=now)
    return utc


def stored(
    marks: dict[int, int], *, generation: int = 0, node: Node = RANDOM, floor: int = 0
) -> State:
    """A state as an earlier run may have left it."""
    return State(node, "host", generation, marks, floor, 0)


def number(utc: Utc) -> int:
    """The number of the open generation."""
    assert utc.open is not None
    return utc.open.number


def test_nothing_is_given_before_the_first_save() -> None:
    with pytest.raises(NeedsSave):
        take(begun(), 1, now=NOW)


def test_after_the_first_save_ticks_are_given() -> None:
    utc = begun(first=2)
    save(utc)
    assert take(utc, 10, now=NOW + 5) == Block(NOW, 6, 3 * LANES, 1 | MULTICAST)


def test_without_a_state_the_generation_is_random() -> None:
    assert number(begun(ring=GENERATIONS, first=40)) == 41


def test_a_random_node_has_the_multicast_bit() -> None:
    assert random_node(lambda bits: (1 << bits) - 1) == (1 << 48) - 1
    assert random_node(lambda _: 0) == MULTICAST


def test_only_a_random_node_is_not_fixed() -> None:
    """A node from a card, or given, can be met again after a loss of the state."""
    assert not RANDOM.fixed
    assert MAC_A.fixed
    assert Node(5, "given").fixed


def test_a_block_ends_before_the_horizon() -> None:
    utc = serving()
    assert utc.horizon.limit == NOW + REACH
    assert take(utc, 1, now=NOW + REACH - 1).first == NOW + REACH - 1
    with pytest.raises(NeedsSave):
        take(utc, 1, now=NOW + REACH)


def test_a_state_that_was_given_to_save_does_not_change() -> None:
    """What a thread is writing is not touched by what is given out or opened meanwhile."""
    utc = serving()
    state = utc.begin_save(now=NOW, reach=REACH)
    take(utc, 1, now=NOW)
    with pytest.raises(NeedsSave):
        take(utc, 1, now=NOW - TOLERANCE)
    assert state.marks == {1: NOW + REACH}


def test_a_clock_set_back_opens_the_next_generation() -> None:
    utc = begun()
    save(utc)
    take(utc, 1, now=NOW)
    back = NOW - TOLERANCE
    with pytest.raises(NeedsSave):
        take(utc, 1, now=back)
    save(utc, now=back)
    assert take(utc, 10, now=back) == Block(back - 9, 10, 2 * LANES, 1 | MULTICAST)
    assert utc.new_openings()[-1] == Opening("UTC stepped back", 2, 1 | MULTICAST, TOLERANCE + 1)


@pytest.mark.parametrize("volatile", [False, True])
def test_a_step_back_within_the_tolerance_is_waited_out(volatile: bool) -> None:
    utc = begun()
    if volatile:
        utc.use_volatile("hung")
    else:
        save(utc)
    take(utc, 1, now=NOW)
    before = utc.open, utc.volatile
    with pytest.raises(NoneFree) as caught:
        take(utc, 1, now=NOW + 1 - TOLERANCE)
    assert (caught.value.wait, utc.open, utc.volatile) == (TOLERANCE, *before)


def test_the_generation_left_behind_keeps_its_highest_next_as_mark() -> None:
    """The exact end of what it gave is known, so that is what the next save holds."""
    utc = serving()
    take(utc, 1, now=NOW)
    with pytest.raises(NeedsSave):
        take(utc, 1, now=NOW - TOLERANCE)
    back = NOW - TOLERANCE
    assert save(utc, now=back).marks == {1: NOW + 1, 2: back + REACH}


def test_short_blocks_go_on_in_order_in_the_next_generation() -> None:
    utc = begun(stored({0: 0}))
    save(utc)
    take(utc, 1, now=NOW)
    take(utc, 10, now=NOW + REACH - 1, whole=True)
    back = NOW + 100
    with pytest.raises(NeedsSave):
        take(utc, 1, now=back)
    save(utc, now=back)
    assert take(utc, 1000, now=back) == Block(NOW + 1, 100, LANES, RANDOM.value)


def test_with_every_mark_past_now_a_volatile_node_serves() -> None:
    utc = begun(stored(dict.fromkeys(range(4), NOW + 1)))
    assert take(utc, 10, now=NOW).node == 1 | MULTICAST
    assert utc.open is None
    assert utc.new_openings() == [Opening("no generation can be opened", 0, 1 | MULTICAST, 0)]


def test_a_generation_is_opened_as_soon_as_its_mark_is_reached() -> None:
    utc = begun(stored({0: NOW + 9, 1: NOW + 9, 2: NOW + 5, 3: NOW + 9}))
    take(utc, 1, now=NOW + 4)
    assert utc.open is None
    assert take(utc, 1, now=NOW + 5).node != RANDOM.value
    assert number(utc) == 2
    save(utc, now=NOW + 6)
    assert take(utc, 1, now=NOW + 6) == Block(NOW + 6, 1, 2 * LANES, RANDOM.value)


def test_a_save_that_began_before_a_generation_was_opened_does_not_count_for_it() -> None:
    """Or a renewal could not tell how far a copy of this machine gets, whose save completes."""
    utc = begun(ring=1)
    save(utc)
    take(utc, 1, now=NOW)
    state = utc.begin_save(now=NOW, reach=REACH)
    utc.switch(now=NOW - TOLERANCE)
    utc.switch(now=NOW + 1)
    utc.end_save(state, completed=True)
    assert number(utc) == state.generation
    assert utc.horizon.limit == 0


def test_after_a_clean_stop_the_same_generation_goes_on() -> None:
    utc = begun(stored({0: 5, 2: NOW - 7}, generation=2))
    assert number(utc) == 2
    save(utc)
    assert take(utc, 10, now=NOW + 3) == Block(NOW, 4, 2 * LANES, RANDOM.value)
    assert take(utc, 11, now=NOW + 3, whole=True).first == NOW - 7
    with pytest.raises(NoneFree):
        take(utc, 12, now=NOW + 3, whole=True)


def test_after_a_crash_the_next_generation_is_opened() -> None:
    """The loaded mark lies past now: what lies before it may have been given out."""
    utc = begun(stored({0: NOW + 1}))
    save(utc)
    assert take(utc, 10, now=NOW + 1).clock_seq == LANES
    assert utc.new_openings() == [Opening("the saved mark lies past now", 1, RANDOM.value, 1)]


def test_a_changed_node_opens_the_next_generation_and_keeps_the_marks() -> None:
    """The old node may come back, and finds its marks."""
    utc = begun(stored({0: NOW - 5, 3: NOW + 9}), node=MAC_A)
    assert utc.new_openings() == [Opening("node changed", 1, MAC_A.value, 0)]
    assert save(utc).marks == {0: NOW - 5, 1: NOW + REACH, 3: NOW + 9}


def test_the_same_node_from_another_source_is_no_change() -> None:
    utc = begun(stored({0: 5}, node=MAC_A), node=Node(MAC_A.value, "given"))
    assert number(utc) == 0


def test_a_fixed_node_is_not_kept_as_a_random_one() -> None:
    assert begun(stored({0: 5}, node=MAC_A)).node == Node(1 | MULTICAST, "random")


def test_a_step_back_keeps_away_from_another_programs_clock_sequence() -> None:
    """Its clock sequence is read at the step."""
    used = [5 << LANE_BITS]
    loaded = stored({5: 0}, generation=5, node=MAC_A)
    utc = begun(loaded, node=MAC_A, avoid=lambda: used[-1], ring=8)
    save(utc)
    take(utc, 1, now=NOW)
    used.append(6 << LANE_BITS)
    with pytest.raises(NeedsSave):
        take(utc, 1, now=NOW - TOLERANCE)
    assert number(utc) == 2


def test_a_lost_state_brings_no_old_ticks_back_under_a_fixed_node() -> None:
    """Every generation begins at the start, since any may have been used before it."""
    utc = serving(node=MAC_A)
    assert take(utc, 10, now=NOW + 4).first == NOW
    with pytest.raises(NoneFree):
        take(utc, 6, now=NOW + 4, whole=True)


def test_a_change_to_a_fixed_node_sets_the_floor() -> None:
    """The node may have been in use before under a state that was lost."""
    assert save(begun(stored({0: 5}), node=MAC_A)).floor == NOW
    assert save(begun(stored({0: 5}, node=MAC_A, floor=3), node=MAC_B)).floor == NOW


def test_a_random_node_needs_no_floor() -> None:
    """A host that lost its state never comes to it again, so there is room before the start."""
    assert take(serving(), 500, now=NOW, whole=True).first < NOW
    utc = serving(stored({0: 5}, floor=NOW - 3))
    assert take(utc, 500, now=NOW, whole=True).first == NOW - 499


def test_a_fixed_node_keeps_away_from_another_programs_clock_sequence() -> None:
    utc = begun(node=MAC_A, avoid=lambda: 5 << LANE_BITS | 3, ring=GENERATIONS)
    assert number(utc) == 5 + GENERATIONS // 2
    utc = begun(node=MAC_A, avoid=lambda: 60 << LANE_BITS, ring=GENERATIONS)
    assert number(utc) == 60 + 32 - GENERATIONS
    assert number(begun(avoid=lambda: 2 << LANE_BITS)) == 1, "nobody shares a random node"


def test_a_volatile_node_is_never_saved() -> None:
    utc = begun()
    utc.use_volatile("hung")
    take(utc, 1, now=NOW)
    assert save(utc) == State(
        Node(1 | MULTICAST, "random"),
        "host",
        1,
        {1: NOW + REACH},
        NOW,
        0,
        leases=NOW + REACH,
        now=NOW,
    )


@pytest.mark.parametrize("now", [NOW - TOLERANCE - 1, NOW + REACH])
def test_a_volatile_node_that_is_needed_stays(now: int) -> None:
    """After a step back, or where the save took so long that its horizon has passed."""
    utc = serving()
    take(utc, 1, now=NOW)
    utc.use_volatile("hung")
    utc.leave_volatile(now=now)
    assert utc.volatile is not None


def test_a_completed_save_ends_the_volatile_node() -> None:
    utc = begun()
    utc.use_volatile("hung")
    take(utc, 1, now=NOW + 5)
    save(utc, now=NOW + 6)
    assert take(utc, 10, now=NOW + 7) == Block(NOW + 6, 2, LANES, 1 | MULTICAST)
    assert utc.volatile is None
    assert utc.new_openings()[-1] == Opening("saved again", 1, 1 | MULTICAST, 0)


@pytest.mark.parametrize("whole", [False, True])
def test_a_step_back_draws_another_volatile_node(whole: bool) -> None:
    """Its ticks may come again, whatever lane had them, so its node may not."""
    utc = begun()
    utc.use_volatile("hung")
    first = take(utc, 10, now=NOW, whole=whole)
    assert first.node == 2 | MULTICAST
    back = NOW - TOLERANCE
    assert take(utc, 10, now=back) == Block(back - 9, 10, 2 * LANES, 3 | MULTICAST)


def test_a_refused_request_moves_no_lane() -> None:
    utc = serving()
    take(utc, 1, now=NOW)
    generation = utc.open
    assert generation is not None
    before = [lane.next for lane in generation.lanes]
    with pytest.raises(NoneFree):
        take(utc, 5, now=NOW)
    with pytest.raises(NoneFree):
        take(utc, NOW + 2, now=NOW, whole=True)
    with pytest.raises(NeedsSave):
        take(utc, 5, now=NOW + REACH)
    utc.close()
    with pytest.raises(Closed):
        take(utc, 5, now=NOW + 1)
    assert utc.open is generation
    assert [lane.next for lane in generation.lanes] == before


def test_short_blocks_rise_when_the_volatile_node_ends_at_the_same_tick() -> None:
    utc = begun()
    utc.use_volatile("hung")
    take(utc, 1, now=NOW)
    save(utc, now=NOW)
    with pytest.raises(NoneFree):
        take(utc, 1, now=NOW)


def test_short_blocks_rise_when_the_volatile_node_begins_at_the_same_tick() -> None:
    utc = begun()
    save(utc, reach=1)
    take(utc, 1, now=NOW)
    utc.use_volatile("hung")
    assert take(utc, 2, now=NOW + 1).first == NOW + 1


def test_a_fixed_node_begins_at_the_mark_of_another_program() -> None:
    utc = begun(node=MAC_A, floor=NOW - 5)
    assert save(utc).floor == NOW
    utc = begun(node=MAC_A, floor=NOW)
    save(utc)
    assert take(utc, 100, now=NOW + 1).first == NOW


def test_a_mark_past_now_is_waited_for_in_a_volatile_node() -> None:
    mark = NOW + 1000
    utc = begun(node=MAC_A, floor=mark)
    state = save(utc)
    assert (state.floor, state.marks) == (mark, {})
    assert take(utc, 10, now=NOW + 10).node != MAC_A.value
    assert take(utc, 10, now=mark - 1).node != MAC_A.value
    assert [opening.reason for opening in utc.new_openings()] == ["no generation can be opened"]
    take(utc, 10, now=mark)
    save(utc, now=mark)
    block = take(utc, 10_000, now=mark + 50)
    # The tick at the mark itself was just given out, under the volatile node.
    assert (block.node, block.first, block.count) == (MAC_A.value, mark + 1, 50)
    whole = take(utc, 20, now=mark + 50, whole=True)
    assert (whole.node, whole.first >= mark) == (MAC_A.value, True)
    assert [opening.reason for opening in utc.new_openings()] == [
        "a generation is free again",
        "saved again",
    ]


def test_a_mark_counts_when_the_node_changes_to_a_fixed_one() -> None:
    """A state of a random node knows nothing of what was used under the MAC."""
    loaded = stored({0: NOW - 50}, node=RANDOM)
    utc = begun(loaded, node=MAC_A, floor=NOW + 1000)
    assert save(utc).floor == NOW + 1000
    assert take(utc, 1, now=NOW + 1).node != MAC_A.value


def test_a_mark_of_another_program_counts_only_where_it_can_matter() -> None:
    """A random node is nobody else's, and a state of the same fixed node has its own marks."""
    assert save(begun(floor=NOW + 9)).floor == NOW
    for node in (None, MAC_A):
        loaded = stored({0: NOW - 50}, node=node or RANDOM, floor=3)
        assert save(begun(loaded, node=node, floor=NOW + 9)).floor == 3


@pytest.mark.parametrize("machine", ["", "other"])
def test_a_host_known_by_another_machine_id_draws_a_new_node(machine: str) -> None:
    """Many hosts may have begun with one state, in an image made before they had machine-ids."""
    state = State(RANDOM, machine, 3, {3: NOW - 5}, 0, 0)
    utc = begun(state)
    assert utc.node != RANDOM
    saved = save(utc)
    assert saved.machine == "host"
    assert saved.marks[3] == NOW - 5


def test_a_fixed_node_does_not_depend_on_the_machine_id() -> None:
    utc = begun(State(MAC_A, "", 3, {3: NOW - 5}, 0, 0), node=MAC_A)
    assert (utc.node, number(utc)) == (MAC_A, 3)


def test_another_product_changes_the_node_and_keeps_the_marks() -> None:
    """A copy of a disk has one machine-id, and may go on where the original is as well."""
    state = replace(stored({0: NOW - 9, 3: NOW - 5}, generation=3), product="here")
    utc = begun(state, product="there")
    assert utc.node != RANDOM
    saved = save(utc)
    assert (saved.machine, saved.product) == ("host", "there")
    assert saved.marks[3] == NOW - 5
    assert [opening.reason for opening in utc.new_openings()] == [COPIED]


@pytest.mark.parametrize("avoid", [None, 2 << LANE_BITS])
@pytest.mark.parametrize("first", range(8))
def test_another_product_changes_the_generation_of_a_fixed_node(
    first: int, avoid: int | None
) -> None:
    """It is drawn. It is none that the original opens next, or libuuid, which has the node too."""
    state = replace(stored({1: NOW - 5}, generation=1, node=MAC_A), product="here")
    utc = begun(state, node=MAC_A, product="there", avoid=lambda: avoid, first=first)
    assert (utc.node, number(utc)) == (MAC_A, 0 if first % 2 == 0 else 3)


@pytest.mark.parametrize(("before", "after"), [("", "here"), ("here", ""), ("here", "here")])
def test_a_product_that_is_not_known_changes_nothing(before: str, after: str) -> None:
    """What was known stays in the state, for a start that can read it."""
    utc = begun(replace(stored({1: NOW - 5}, generation=1), product=before), product=after)
    assert (utc.node, number(utc)) == (RANDOM, 1)
    assert save(utc).product == "here"

from __future__ import annotations

import pytest

from tests.core.draws import Draws
from uuidd.core.ids.nodes import MULTICAST
from uuidd.core.timeline import LANES
from uuidd.core.timeline.block import Block
from uuidd.core.timeline.outcomes import NoneFree
from uuidd.core.timeline.volatile import TOLERANCE, Volatile

NOW = 1_000_000


def test_node_and_generation_are_random() -> None:
    """A volatile node has the multicast bit, which no network card has; no two are the same."""
    draws = Draws(first=37)
    block = Volatile(draws).take(10, now=NOW)
    assert block == Block(NOW - 9, 10, 37 * LANES, 1 | MULTICAST)
    assert Volatile(draws).generation.node == 2 | MULTICAST


def test_whole_blocks_have_lanes_of_their_own() -> None:
    """They leave short blocks their room, and need not begin later."""
    volatile = Volatile(Draws())
    assert volatile.take(10, now=NOW, not_before=NOW - 3).first == NOW - 3
    block = volatile.take(10, now=NOW, whole=True, not_before=NOW + 1)
    assert block == Block(NOW - 9, 10, 1, 1 | MULTICAST)


@pytest.mark.parametrize("whole", [False, True])
def test_after_a_step_back_node_and_generation_are_new(whole: bool) -> None:
    """The same ticks may come again, whatever lane had them, but under another node."""
    volatile = Volatile(Draws())
    volatile.take(10, now=NOW, whole=whole)
    back = NOW - TOLERANCE
    assert volatile.take(10, now=back) == Block(back - 9, 10, LANES, 2 | MULTICAST)


def test_a_small_step_back_is_waited_out() -> None:
    """Up to the tolerance nothing is drawn and no lane moves, until the clock is back."""
    volatile = Volatile(Draws())
    volatile.take(10, now=NOW)
    generation = volatile.generation
    with pytest.raises(NoneFree) as caught:
        volatile.take(10, now=NOW + 1 - TOLERANCE)
    assert caught.value.wait == TOLERANCE
    assert (volatile.generation, generation.top) == (generation, NOW + 1)

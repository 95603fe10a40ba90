from __future__ import annotations

import pytest

from tests.core.draws import Draws
from uuidd.core.ids.nodes import MULTICAST
from uuidd.core.timeline.block import Block
from uuidd.core.timeline.outcomes import NoneFree
from uuidd.core.timeline.volatile import TOLERANCE, Volatile

NOW = 1_000_000


def test_the_node_is_random_and_marked_so() -> None:
    """A volatile node has the multicast bit, which no network card has, and a random generation."""
    block = Volatile(Draws(first=37)).take(10, now=NOW)
    assert block == Block(NOW - 9, 10, 37 * 16, 1 | MULTICAST)


def test_whole_grants_are_whole_and_aside() -> None:
    """A whole grant comes from another lane, so it leaves short grants their room."""
    volatile = Volatile(Draws())
    volatile.take(10, now=NOW)
    assert volatile.take(10, now=NOW, whole=True) == Block(NOW - 9, 10, 1, 1 | MULTICAST)


def test_short_grants_may_have_to_begin_later() -> None:
    """Taking over from another timeline, it gives no tick before *not_before*."""
    assert Volatile(Draws()).take(10, now=NOW, not_before=NOW - 3).first == NOW - 3


def test_whole_grants_need_not_begin_later() -> None:
    """Only short grants keep an order across lanes."""
    assert Volatile(Draws()).take(10, now=NOW, whole=True, not_before=NOW + 1).first == NOW - 9


def test_a_step_back_draws_node_and_generation_anew() -> None:
    """Ticks may come again, but under another node."""
    volatile = Volatile(Draws())
    volatile.take(10, now=NOW)
    back = NOW - TOLERANCE
    assert volatile.take(10, now=back) == Block(back - 9, 10, 16, 2 | MULTICAST)


def test_a_step_back_below_a_whole_grant_draws_anew() -> None:
    """The highest tick of any lane is what UTC is measured against."""
    volatile = Volatile(Draws())
    volatile.take(10, now=NOW, whole=True)
    assert volatile.take(10, now=NOW - TOLERANCE).node == 2 | MULTICAST


def test_a_small_step_back_is_waited_out() -> None:
    """Up to the tolerance nothing is drawn and no lane moves, until the clock is back."""
    volatile = Volatile(Draws())
    volatile.take(10, now=NOW)
    generation = volatile.generation
    with pytest.raises(NoneFree) as caught:
        volatile.take(10, now=NOW + 1 - TOLERANCE)
    assert caught.value.wait == TOLERANCE
    assert volatile.generation is generation
    assert generation.top == NOW + 1


def test_two_volatile_timelines_share_no_node() -> None:
    """Each draws its own."""
    draws = Draws()
    one, other = Volatile(draws), Volatile(draws)
    assert one.generation.node != other.generation.node

"""The fence of a worker number: which ticks Snowflakes may have, and what a save holds of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.core.test_timelines import AT, NOW, begun, save, saved, take
from uuidd.core.timeline import NoneFree, SteadyBlock
from uuidd.core.timeline.fence import FOREVER, Claim, Fence
from uuidd.core.timeline.outcomes import NoNumber
from uuidd.core.timeline.timelines import Reading, Timelines

CLAIM = Claim("prod", 17, "a", NOW + 100, NOW + 200)


def claimed(*, number: int | None = None) -> Timelines:
    """Return timelines whose fence holds CLAIM."""
    timelines = saved(worker=number)
    timelines.fence.hold(CLAIM)
    return timelines


def fenced(
    timelines: Timelines, count: int, now: int, *, whole: bool = False
) -> tuple[int, int, int | None]:
    """Take ticks for Snowflakes: the first, how many, and their worker number."""
    block = timelines.take_steady(count, at=Reading(now, 0), whole=whole, fenced=True)
    return block.first, block.count, block.worker


def test_a_number_set_by_hand_has_all_ticks() -> None:
    """Nobody else has it, if the administrator is right."""
    fence = Fence(5)
    assert (fence.number, fence.covers(0, FOREVER)) == (5, True)


def test_without_a_number_no_tick_is_covered() -> None:
    """Also not an empty block at 0, which nobody asks for."""
    assert not Fence().covers(0, 1)


@pytest.mark.parametrize(
    ("first", "count", "covered"),
    [(99, 1, False), (100, 1, True), (100, 100, True), (100, 101, False), (199, 1, True)],
)
def test_a_claim_has_the_ticks_of_its_span(first: int, count: int, covered: bool) -> None:
    """From its begin, and before what a write has confirmed."""
    fence = Fence()
    fence.hold(CLAIM)
    assert fence.covers(NOW + first, count) == covered


def test_snowflakes_have_the_number_of_the_claim() -> None:
    """All ticks of their block are within the span."""
    assert fenced(claimed(), 1000, NOW + 149) == (NOW + 100, 50, 17)


def test_snowflakes_wait_for_the_begin_of_the_claim() -> None:
    """The holder before has used the ticks until then; the error says how many are missing."""
    timelines = claimed()
    with pytest.raises(NoneFree) as none:
        fenced(timelines, 1, NOW + 90)
    assert none.value.wait == 10


def test_a_whole_block_waits_until_there_is_room_in_the_span() -> None:
    """It is not shortened."""
    timelines = claimed()
    with pytest.raises(NoneFree) as none:
        fenced(timelines, 20, NOW + 109, whole=True)
    assert none.value.wait == 10
    assert fenced(timelines, 20, NOW + 119, whole=True) == (NOW + 100, 20, 17)


def test_past_the_end_of_the_claim_there_are_no_snowflakes() -> None:
    """Though no other host may have the number yet, one may get it at any moment."""
    timelines = claimed()
    assert fenced(timelines, 1, NOW + 199) == (NOW + 199, 1, 17)
    before = timelines.steady.next
    with pytest.raises(NoNumber):
        fenced(timelines, 1, NOW + 200)
    assert timelines.steady.next == before


def test_without_a_number_there_are_no_snowflakes() -> None:
    """The refused request changes nothing."""
    timelines = saved(worker=None)
    with pytest.raises(NoNumber):
        fenced(timelines, 1, NOW + 1)


@pytest.mark.parametrize("now", [50, 150, 250])
def test_the_other_kinds_never_notice(now: int) -> None:
    """Before, within and after the span they have the same ticks."""
    blocks = [
        take(timelines, "steady", 30, at=Reading(NOW + now, 0))
        for timelines in (claimed(), saved(worker=None))
    ]
    assert [(block.first, block.count) for block in blocks] == [(NOW + now - 29, 30)] * 2
    assert isinstance(blocks[0], SteadyBlock)
    assert blocks[0].worker == (17 if now == 150 else None)


def test_a_block_over_an_edge_of_the_span_has_no_number() -> None:
    """A client makes Snowflakes of any tick of a block."""
    for now in (110, 205):
        block = take(claimed(), "steady", 30, at=Reading(NOW + now, 0))
        assert isinstance(block, SteadyBlock)
        assert block.worker is None


def test_a_fence_that_is_closed_has_no_number() -> None:
    """From then on the register may say that it is free."""
    timelines = claimed()
    timelines.fence.close()
    assert timelines.fence.number is None
    with pytest.raises(NoNumber):
        fenced(timelines, 1, NOW + 150)


@pytest.mark.parametrize(
    ("change", "stored"),
    [
        (lambda fence: None, 5),
        (lambda fence: fence.hold(CLAIM), CLAIM),
        (lambda fence: [fence.hold(CLAIM), fence.close()], None),
    ],
    ids=["static", "claimed", "closed"],
)
def test_a_save_holds_the_number_or_the_claim(
    change: Callable[[Fence], object], stored: object
) -> None:
    """A claim that was let go is in no save, or the next start could go on with it."""
    timelines = begun(worker=5)
    change(timelines.fence)
    assert save(timelines, AT).worker == stored


@pytest.mark.parametrize(("mark", "begin"), [(NOW + 50, NOW + 100), (NOW + 150, NOW + 150)])
def test_a_restart_goes_on_with_a_claim_from_its_own_mark(mark: int, begin: int) -> None:
    """At or past the mark it has given out nothing; before it, it may have."""
    resumed = CLAIM.resumed(mark)
    assert (resumed.begin, resumed.until) == (begin, CLAIM.until)

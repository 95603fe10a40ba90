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


def held() -> Fence:
    """Return a fence that holds CLAIM."""
    fence = Fence()
    fence.hold(CLAIM)
    return fence


def fenced(
    timelines: Timelines, count: int, now: int, *, whole: bool = False
) -> tuple[int, int, int | None]:
    """Take ticks for Snowflakes: the first, how many, and their worker number."""
    block = timelines.take_steady(count, at=Reading(now, 0), whole=whole, fenced=True)
    return block.first, block.count, block.worker


@pytest.mark.parametrize(
    ("fence", "first", "count", "covered"),
    [
        (Fence(5), 0, FOREVER, True),
        (Fence(), 0, 1, False),
        (held(), NOW + 99, 1, False),
        (held(), NOW + 100, 100, True),
        (held(), NOW + 100, 101, False),
        (held(), NOW + 199, 1, True),
    ],
)
def test_a_fence_covers_all_ticks_of_a_number_set_by_hand_and_the_span_of_a_claim(
    fence: Fence, first: int, count: int, covered: bool
) -> None:
    assert fence.covers(first, count) == covered


def test_snowflakes_have_the_number_of_the_claim() -> None:
    assert fenced(claimed(), 1000, NOW + 149) == (NOW + 100, 50, 17)


def test_snowflakes_wait_for_the_begin_of_the_claim() -> None:
    """The holder before has used the ticks until then; the error says how many are missing."""
    timelines = claimed()
    with pytest.raises(NoneFree) as none:
        fenced(timelines, 1, NOW + 90)
    assert none.value.wait == 10


def test_a_whole_block_waits_until_there_is_room_in_the_span() -> None:
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


@pytest.mark.parametrize("closed", [False, True])
def test_without_a_number_there_are_no_snowflakes(closed: bool) -> None:
    """After a fence was closed, the register may say that its number is free."""
    timelines = claimed() if closed else saved(worker=None)
    timelines.fence.close()
    assert timelines.fence.number is None
    with pytest.raises(NoNumber):
        fenced(timelines, 1, NOW + 150)


@pytest.mark.parametrize(
    ("now", "worker"), [(50, None), (110, None), (150, 17), (205, None), (250, None)]
)
def test_the_other_kinds_never_notice(now: int, worker: int | None) -> None:
    """Over an edge of the span, too. A block has the number if a client may use it in any tick."""
    blocks = [
        take(timelines, "steady", 30, at=Reading(NOW + now, 0))
        for timelines in (claimed(), saved(worker=None))
    ]
    assert [(block.first, block.count) for block in blocks] == [(NOW + now - 29, 30)] * 2
    assert isinstance(blocks[0], SteadyBlock)
    assert blocks[0].worker == worker


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

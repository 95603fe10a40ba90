"""Both timelines together: one state for the marks of both, and the fence of a worker number."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.core.host import BARE_REACH, EPOCH, NOW, REACH, Host
from uuidd.core.ids.places import Origin
from uuidd.core.timeline.fence import FOREVER, Claim, Fence
from uuidd.core.timeline.outcomes import Block, Closed, NeedsSave, NoneFree, NoNumber, SteadyBlock
from uuidd.core.timeline.state import Node, State
from uuidd.core.timeline.timelines import FAR, Reading

CLAIM = Claim("prod", 17, "a", NOW + 100, NOW + 200)


@pytest.mark.parametrize("worker", [0, 5, 1023, None])
def test_a_block_of_steady_has_what_its_kinds_need(worker: int | None) -> None:
    host = Host(fence=Fence(worker))
    block = host.take_steady(3, at=Reading(NOW + 9, 9))
    assert block == SteadyBlock(NOW + 7, 3, host.utc.node.value, worker, EPOCH)


def test_a_block_tells_what_ids_are_made_with() -> None:
    assert SteadyBlock(1, 1, 9, 5, EPOCH).origin == Origin(9, worker=5, epoch=EPOCH)
    assert Block(1, 1, 77, 9).origin == Origin(9, clock_seq=77)


def test_one_state_has_the_marks_of_both() -> None:
    """Each reaches as far ahead, utc's past UTC, steady's past S."""
    host = Host()
    host.steady_ticks(1)
    host.utc.take(1, now=NOW)
    state = host.begun(Reading(NOW - 100, 10), REACH)
    assert state.marks == {host.number: NOW - 100 + REACH}
    assert state.steady == NOW + 5 + REACH


@pytest.mark.parametrize(("lead", "far"), [(0, False), (FAR - 1, False), (FAR, True)])
def test_a_steady_that_is_a_second_ahead_is_far(lead: int, far: bool) -> None:
    """It gets the bare reach, so that crashes run it no further ahead, and utc the whole one."""
    host = Host(State(Node(7, "given"), "", 0, {}, 0, NOW + lead), saved=False)
    assert host.far(Reading(NOW, 0)) is far
    state = host.begun()
    assert state.steady == NOW + lead + (BARE_REACH if far else REACH)
    assert [*state.marks.values()] == [NOW + REACH]


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize("take", [Host.take_utc, Host.steady_ticks])
def test_nothing_is_given_out_before_the_save_has_completed(
    take: Callable[..., object], failed: bool
) -> None:
    host = Host(saved=False)
    state = host.begun()
    if failed:
        host.ended(state, completed=False)
    with pytest.raises(NeedsSave):
        take(host, 1)


@pytest.mark.parametrize("take", [Host.take_utc, Host.steady_ticks])
def test_either_is_a_use_until_the_next_save_begins(take: Callable[..., object]) -> None:
    host = Host()
    used = [host.used]
    take(host, 1, NOW)
    used.append(host.used)
    state = host.begun()
    used.append(host.used)
    take(host, 1, NOW + 1)
    host.ended(state)
    assert [*used, host.used] == [False, True, False, True]


def test_a_clean_stop_saves_the_exact_marks_of_both() -> None:
    host = Host()
    number = host.number
    host.take_utc(1, NOW + 1)
    host.steady_ticks(2, NOW + 2)
    host.close()
    for take in (host.take_utc, host.steady_ticks):
        with pytest.raises(Closed):
            take(1, NOW + 9)
    state = host.save(NOW + 9)
    assert (state.marks, state.steady) == ({number: NOW + 2}, NOW + 3)
    again = Host(state, at=NOW + 9)
    assert again.take_utc(8, NOW + 9, whole=True).first == NOW + 2
    assert again.steady_ticks(99, NOW + 9)[0] == NOW + 3


def claimed(number: int | None = None) -> Host:
    """Return a host whose fence holds CLAIM."""
    host = Host(fence=Fence(number))
    host.fence.hold(CLAIM)
    return host


@pytest.mark.parametrize(
    ("fence", "first", "count", "covered"),
    [
        (Fence(5), 0, FOREVER, True),
        (Fence(), 0, 1, False),
        (claimed().fence, NOW + 99, 1, False),
        (claimed().fence, NOW + 100, 100, True),
        (claimed().fence, NOW + 100, 101, False),
        (claimed().fence, NOW + 199, 1, True),
    ],
)
def test_a_fence_covers_all_ticks_of_a_number_set_by_hand_and_the_span_of_a_claim(
    fence: Fence, first: int, count: int, covered: bool
) -> None:
    assert fence.covers(first, count) == covered


def test_snowflakes_have_the_number_of_the_claim() -> None:
    block = claimed().take_steady(1000, at=Reading(NOW + 149, 0), fenced=True)
    assert (block.first, block.count, block.worker) == (NOW + 100, 50, 17)


@pytest.mark.parametrize(
    ("count", "whole", "now"), [(1, False, 90), (20, False, 90), (20, True, 109)]
)
def test_snowflakes_wait_until_there_is_room_in_the_span_of_the_claim(
    count: int, whole: bool, now: int
) -> None:
    host = claimed()
    with pytest.raises(NoneFree) as none:
        host.steady_ticks(count, NOW + now, whole=whole, fenced=True)
    assert none.value.wait == 10
    least = count if whole else 1
    assert host.steady_ticks(count, NOW + now + 10, whole=whole, fenced=True) == (NOW + 100, least)


def test_past_the_end_of_the_claim_there_are_no_snowflakes() -> None:
    """Though no other host may have the number yet, one may get it at any moment."""
    host = claimed()
    assert host.steady_ticks(1, NOW + 199, fenced=True) == (NOW + 199, 1)
    with pytest.raises(NoNumber):
        host.steady_ticks(1, NOW + 200, fenced=True)
    assert host.steady.next == NOW + 200


@pytest.mark.parametrize("host", [claimed(), Host()], ids=["closed", "none"])
def test_without_a_number_there_are_no_snowflakes(host: Host) -> None:
    host.fence.close()
    assert host.fence.number is None
    with pytest.raises(NoNumber):
        host.steady_ticks(1, NOW + 150, fenced=True)


@pytest.mark.parametrize(
    ("now", "worker"), [(50, None), (110, None), (150, 17), (205, None), (250, None)]
)
def test_the_other_kinds_never_notice(now: int, worker: int | None) -> None:
    """Over an edge of the span, too. A block has the number if a client may use it in any tick."""
    block = claimed().take_steady(30, at=Reading(NOW + now, 0))
    assert (block.first, block.count, block.worker) == (NOW + now - 29, 30, worker)


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
    fence = Fence(5)
    change(fence)
    assert Host(fence=fence).save().worker == stored


@pytest.mark.parametrize(("mark", "begin"), [(NOW + 50, NOW + 100), (NOW + 150, NOW + 150)])
def test_a_restart_goes_on_with_a_claim_from_its_own_mark(mark: int, begin: int) -> None:
    resumed = CLAIM.resumed(mark)
    assert (resumed.begin, resumed.until) == (begin, CLAIM.until)

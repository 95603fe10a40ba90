"""All that can happen to hosts that share a worker number: no tick is given out twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fleet.claims_world import WINDOW, Rules, Twice, World, claimed, released
from uuidd.core.timeline.fence import Claim
from uuidd.fleet.record import Record

pytestmark = pytest.mark.worlds


def claimed_from_now(record: Record | None, token: str, steady: int) -> tuple[Record, int]:
    """Return a claim that begins at the clock, not where the claim before may have ended."""
    new, _ = claimed(record, token, steady)
    return replace(new, until=steady + WINDOW), steady


def released_too_low(record: Record, claim: Claim, reached: int) -> Record:
    """Return a record that says one tick less than was given out."""
    return replace(released(record, claim, reached), until=max(0, reached - 1))


WEAKENED = {
    "a claim begins at the claimant's clock": (Rules(claimed=claimed_from_now), 1),
    "a host renews the claim of another": (Rules(is_ours=lambda record, _: record is not None), 2),
    "a write passes whatever was written since the read": (Rules(replaces_what_was_read=False), 1),
    "a host goes by a write before it is confirmed": (Rules(needs_an_answer=False), 1),
    "a window begins at the answer": (Rules(until=lambda _, steady: steady + WINDOW), 2),
    "a restart begins at its own mark alone": (
        Rules(resumed=lambda claim, mark: replace(claim, begin=mark)),
        1,
    ),
    "a restart begins where its claim began": (Rules(resumed=lambda claim, _: claim), 1),
    "a release is a tick too low": (Rules(released=released_too_low), 1),
    "a stop lets go before it saves": (Rules(saves_before_it_lets_go=False), 1),
}


@pytest.mark.parametrize(("rules", "ticks"), WEAKENED.values(), ids=WEAKENED)
def test_a_weakened_rule_gives_out_a_tick_twice(rules: Rules, ticks: int) -> None:
    """So each rule is needed, and the search finds what it looks for."""
    with pytest.raises(Twice):
        World(rules, ticks=ticks, late=False).count()


@pytest.mark.parametrize(
    ("ticks", "late", "states"),
    [
        (1, False, 53_661),
        pytest.param(1, True, 202_464, marks=pytest.mark.thorough),
        pytest.param(2, False, 592_502, marks=pytest.mark.thorough),
    ],
)
def test_no_tick_is_given_out_twice(ticks: int, late: bool, states: int) -> None:
    """The search is complete: it knows how many states there are."""
    assert World(Rules(), ticks=ticks, late=late).count() == states

"""All that can happen to hosts that share a worker number: no tick is given out twice.

Each rule is weakened in turn, and then one is.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fleet.claims_world import Rules, Twice, World
from uuidd.core.timeline.fence import Claim
from uuidd.fleet.record import Record

pytestmark = pytest.mark.worlds


class BeginsNow(Rules):
    """A new claim begins at the claimant's clock, not where the claim before may have ended."""

    def claimed(self, record: Record | None, token: str, steady: int) -> tuple[Record, int]:
        """Return the record, and the clock."""
        new, _ = super().claimed(record, token, steady)
        return replace(new, until=steady + 2), steady


class TakesAllForItsOwn(Rules):
    """A host takes another's claim in the register for its own, and renews it."""

    def is_ours(self, record: Record | None, claim: Claim) -> bool:
        """Whether there is any claim."""
        return record is not None


class WritesOverAnything(Rules):
    """A write passes, whatever the register has become since it was read."""

    replaces_what_was_read = False


class Believes(Rules):
    """A host goes by a write before it is confirmed."""

    needs_an_answer = False


class ReadsTheClockAgain(Rules):
    """A confirmed write counts for as long as the window is at the time of the answer."""

    def until(self, written: Record, steady: int) -> int:
        """Return the end of a window that begins now."""
        return steady + 2


class ForgetsTheBegin(Rules):
    """A restart begins at its own mark, though its claim begins later."""

    def resumed(self, claim: Claim, mark: int) -> Claim:
        """Return the claim from the mark on."""
        return replace(claim, begin=mark)


class ForgetsTheMark(Rules):
    """A restart begins where its claim began."""

    def resumed(self, claim: Claim, mark: int) -> Claim:
        """Return the claim as it was stored."""
        return claim


class LetsGoTooMuch(Rules):
    """A release says one tick less than was given out."""

    def released(self, record: Record, claim: Claim, reached: int) -> Record:
        """Return the record with a lower end."""
        return replace(super().released(record, claim, reached), until=max(0, reached - 1))


class LetsGoFirst(Rules):
    """A stop lets the number go while the state still has the claim."""

    saves_before_it_lets_go = False


@pytest.mark.parametrize(
    ("rules", "ticks"),
    [
        (BeginsNow, 1),
        (TakesAllForItsOwn, 2),
        (WritesOverAnything, 1),
        (Believes, 1),
        (ReadsTheClockAgain, 2),
        (ForgetsTheBegin, 1),
        (ForgetsTheMark, 1),
        (LetsGoTooMuch, 1),
        (LetsGoFirst, 1),
    ],
)
def test_a_weakened_rule_gives_out_a_tick_twice(rules: type[Rules], ticks: int) -> None:
    """Each of the nine: so each is needed, and the search finds what it looks for."""
    with pytest.raises(Twice):
        World(rules(), ticks=ticks, late=False).count()


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

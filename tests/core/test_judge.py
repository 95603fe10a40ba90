"""The judge of P1 finds what it is for."""

from __future__ import annotations

import uuid

import pytest

from tests import judge
from tests.judge import Judge, Repeated, Span, assert_apart, first_inversion, of_block, of_id
from tests.kinds import made
from uuidd.core.ids.places import Origin
from uuidd.core.timeline.outcomes import Block

EARLIER = [Span("lane", 10, 20, "A"), Span("lane", 30, 40, "B"), Span("lane", 50, 51, "C")]


@pytest.mark.parametrize(
    ("first", "end"),
    [(19, 20), (39, 45), (5, 11), (5, 60), (10, 20), (12, 13), (45, 51), (50, 51)],
)
def test_a_span_that_overlaps_another_one_is_found(first: int, end: int) -> None:
    """Wherever the common ticks are: at the begin, at the end, in the middle, or all of them."""
    found = Judge()
    for span in reversed(EARLIER):
        found.note(span)
    with pytest.raises(Repeated, match=r"of 'lane' came twice"):
        found.note(Span("lane", first, end, "D"))
    with pytest.raises(Repeated, match=r"of 'lane' came twice"):
        assert_apart([Span("lane", first, end, "D"), *EARLIER])


@pytest.mark.parametrize(("first", "end"), [(0, 10), (20, 30), (40, 50), (51, 60)])
def test_spans_that_meet_do_not_overlap(first: int, end: int) -> None:
    assert_apart([*EARLIER, Span("lane", first, end)])


def test_one_tick_of_two_places_is_not_the_same() -> None:
    assert_apart([Span((1, 2), 10, 20), Span((2, 2), 10, 20), Span((1,), 10, 20)])


def test_the_message_names_the_ticks_both_spans_and_both_takers() -> None:
    with pytest.raises(Repeated) as caught:
        assert_apart([Span(5, 10, 20, "one client"), Span(5, 18, 40, "another client")])
    assert str(caught.value) == (
        "ticks 18 to 19 of 5 came twice: another client was given 18 to 39, and before that one"
        " client was given 10 to 19"
    )


def test_a_span_without_a_tick_is_no_span() -> None:
    """A reader that gives one is wrong, and would hide what came twice."""
    with pytest.raises(AssertionError, match="has no tick"):
        Judge().note(Span("lane", 10, 10))


def test_a_v1_and_a_block_of_its_clock_sequence_are_compared() -> None:
    id = uuid.UUID("c232ab00-9414-11ec-b3c8-9f6bdeced846")
    block = Block(id.time - 9, 10, id.clock_seq, id.node)
    with pytest.raises(Repeated, match=f"ticks {id.time} to {id.time} "):
        assert_apart([of_block(block), of_id(id.int)])


@pytest.mark.parametrize("lane", [0, 0x9F])
def test_a_v7_has_a_tick_of_its_lane(lane: int) -> None:
    tick = 0x1EC9414C232AB00
    assert of_id(made("v7", tick, Origin(0, lane=lane), 1)) == Span((lane,), tick, tick + 1)


@pytest.mark.parametrize("drawn", [["aba"], ["ab", "ca"], ["", "ab", "b"]])
def test_an_id_that_came_twice_is_found(drawn: list[str]) -> None:
    with pytest.raises(Repeated, match=r"^'[ab]' came twice: to taker \d, and to taker \d$"):
        judge.assert_no_id_twice(drawn)
    judge.assert_no_id_twice(["ab", "cd"])


@pytest.mark.parametrize("drawn", [[1, 3, 2], [1, 2, 2]])
def test_what_does_not_rise_is_found(drawn: list[int]) -> None:
    with pytest.raises(AssertionError, match=r"^2 was drawn after [23]$"):
        judge.assert_rising(drawn)
    judge.assert_rising([1, 2, 3])


def test_the_earlier_of_two_ids_that_is_later_by_its_tick_is_found() -> None:
    """Only if it was had before the other was asked for, and is later by so many ticks."""
    earlier, at_once, later = (0, 10, 500), (5, 12, 400), (11, 20, 400)
    assert first_inversion([later, earlier], 100) == (earlier, later)
    assert first_inversion([later, earlier], 101) is None
    assert first_inversion([at_once, earlier], 0) is None

from __future__ import annotations

import json

import pytest

from tests.clones.comparing import Row, resumed, rows, turns
from tests.clones.machine import Line


def line(number: int, *ids: str, noticed: bool = False) -> Line:
    """A line of a program that has drawn these v4 of its client."""
    turn = {"turn": number, "noticed": noticed, "client": {"v4": ids}, "daemon": {"v1": ["x"]}}
    return Line(0, json.dumps(turn))


def test_the_turn_that_was_drawn_before_the_snapshot_does_not_count() -> None:
    """Both clones send it, for it waited in the machine."""
    original = turns([line(1), line(2)], "in C")
    clone = turns([line(3), line(4), line(5)], "in C")
    assert [turn.number for turn in resumed(original, clone)] == [4, 5]


def counted(original: list[Line], *clones: list[Line]) -> Row:
    """Return the row of the v4 of a client."""
    after = [turn for some in clones for turn in turns(some, "in C")]
    return next(row for row in rows(turns(original, "in C"), after) if row.kind == "v4")


def test_ids_in_both_clones_are_counted_before_and_after_the_notice() -> None:
    row = counted(
        [line(1, "z")],
        [line(3, "a", "b"), line(4, "c"), line(5, "d", "e", noticed=True)],
        [line(3, "a", "p"), line(4, "q"), line(5, "d", "f", noticed=True)],
    )
    assert row == ("client, in C", "v4", 6, 2, 4, 2)


@pytest.mark.parametrize(
    ("original", "one", "two"),
    [(["a"], ["a"], ["b"]), ([], ["a"], ["a"]), ([], ["a", "a"], ["b"])],
)
def test_an_id_counts_wherever_it_came_before(
    original: list[str], one: list[str], two: list[str]
) -> None:
    row = counted([line(1, *original)], [line(3, *one, noticed=True)], [line(3, *two)])
    assert row.in_both_after >= 1

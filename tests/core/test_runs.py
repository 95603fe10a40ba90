from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from uuidd.core.ids import bulk, uuids, versions

MAKE = {"v1": versions.v1, "v6": versions.v6}

KINDS = st.sampled_from(["v1", "v6"])
TICKS = st.integers(0, 2**60 - 1) | st.builds(
    # Near the ends of runs, where what counts up is about to run out.
    lambda high, back: max(0, (high << 12) - back),
    st.integers(1, 2**48 - 1),
    st.integers(1, 40),
)
CLOCK_SEQS = st.integers(0, 2**14 - 1)
NODES = st.integers(0, 2**48 - 1)

CLOCK_SEQ, NODE = 0x33C8, 0x9F6BDECED846


def one_by_one(kind: str, first: int, count: int, clock_seq: int, node: int) -> list[int]:
    """Give the ids that versions makes of each tick."""
    return [MAKE[kind](tick, clock_seq, node) for tick in range(first, first + count)]


@pytest.mark.parametrize("back", [1, 2, 3, 4095, 4096])
def test_room_is_up_to_the_next_run(back: int) -> None:
    """A run ends where the low 12 bits of the tick wrap, and room tells how far that is."""
    assert bulk.room_in_run((0x1EC9 << 12) - back) == back


@given(TICKS)
def test_all_ticks_with_room_are_in_one_run(first: int) -> None:
    """The last tick with room is in the same run as the first, and the one after is not."""
    room = bulk.room_in_run(first)
    assert first >> 12 == first + room - 1 >> 12
    assert first >> 12 != first + room >> 12


@pytest.mark.parametrize("kind", ["v1", "v6"])
@pytest.mark.parametrize("count", [1023, 1024, 1025, 4096])
@pytest.mark.parametrize("skip", [0, 1, 3071])
def test_long_runs_are_the_ids_of_each_tick(kind: str, count: int, skip: int) -> None:
    """Whatever the length, texts are those made one by one."""
    first = (0x1EC9414C232A << 12) + skip
    part = min(count, bulk.room_in_run(first))
    assert list(bulk.gregorian_texts(kind, first, part, CLOCK_SEQ, NODE)) == [
        uuids.to_text(value) for value in one_by_one(kind, first, part, CLOCK_SEQ, NODE)
    ]


@pytest.mark.parametrize("kind", ["v1", "v6"])
def test_nothing_is_kept_of_another_run(kind: str) -> None:
    """Long runs of another clock sequence, node or time have texts of their own."""
    for high, clock_seq, node in [(1, 0, 0), (1, 1, 0), (1, 0, 1), (2, 0, 0), (1 << 47, 0, 0)]:
        first = high << 12
        assert list(bulk.gregorian_texts(kind, first, 2048, clock_seq, node)) == [
            uuids.to_text(value) for value in one_by_one(kind, first, 2048, clock_seq, node)
        ]


@given(KINDS, TICKS, st.integers(0, 20), CLOCK_SEQS, NODES)
@example("v1", 2**32 - 5, 20, 2**14 - 1, 2**48 - 1)
@example("v6", 2**12 - 5, 20, 0, 0)
def test_ints_are_the_ids_of_each_tick(
    kind: str, first: int, count: int, clock_seq: int, node: int
) -> None:
    """Many ints of one run are bit for bit those made one by one."""
    part = min(count, bulk.room_in_run(first))
    assert list(bulk.gregorian_ints(kind, first, part, clock_seq, node)) == one_by_one(
        kind, first, part, clock_seq, node
    )


@given(KINDS, TICKS, st.integers(0, 20), CLOCK_SEQS, NODES)
@example("v1", 2**32 - 5, 20, 2**14 - 1, 2**48 - 1)
@example("v6", 2**12 - 5, 20, 0, 0)
def test_texts_are_the_ids_of_each_tick(
    kind: str, first: int, count: int, clock_seq: int, node: int
) -> None:
    """Many texts of one run are letter for letter those made one by one."""
    part = min(count, bulk.room_in_run(first))
    assert list(bulk.gregorian_texts(kind, first, part, clock_seq, node)) == [
        uuids.to_text(value) for value in one_by_one(kind, first, part, clock_seq, node)
    ]


@given(KINDS, TICKS, st.integers(0, 20), CLOCK_SEQS, NODES)
@example("v1", 2**32 - 5, 20, 2**14 - 1, 2**48 - 1)
@example("v6", 2**12 - 5, 20, 0, 0)
def test_packed_are_the_ids_of_each_tick(
    kind: str, first: int, count: int, clock_seq: int, node: int
) -> None:
    """Many packed ids of one run are byte for byte those made one by one."""
    part = min(count, bulk.room_in_run(first))
    assert list(bulk.gregorian_bytes(kind, first, part, clock_seq, node)) == [
        value.to_bytes(16, "big") for value in one_by_one(kind, first, part, clock_seq, node)
    ]


@pytest.mark.parametrize("kind", ["v1", "v6"])
def test_a_whole_run_is_made_at_once(kind: str) -> None:
    """All 4,096 ids of a run are right in each form."""
    first = 0x1EC9414C232A << 12
    expected = one_by_one(kind, first, 4096, CLOCK_SEQ, NODE)
    assert list(bulk.gregorian_ints(kind, first, 4096, CLOCK_SEQ, NODE)) == expected
    assert list(bulk.gregorian_texts(kind, first, 4096, CLOCK_SEQ, NODE)) == [
        uuids.to_text(value) for value in expected
    ]
    assert list(bulk.gregorian_bytes(kind, first, 4096, CLOCK_SEQ, NODE)) == [
        value.to_bytes(16, "big") for value in expected
    ]


def test_a_field_that_does_not_fit_is_refused() -> None:
    """No id is made of a field that versions would refuse."""
    with pytest.raises(ValueError, match="clock_seq"):
        bulk.gregorian_texts("v1", 0, 1, 2**14, 0)

from __future__ import annotations

import pickle
from uuid import UUID, SafeUUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uuidd_client.uuid_objects import by_calling, by_slots, new_uuids

WAYS = {"slots": by_slots(UUID), "class": by_calling(UUID)}


def test_the_faster_way_is_there() -> None:
    """In each Python that is supported, a UUID has slots."""
    assert WAYS["slots"] is not None


def test_a_class_without_slots_is_called() -> None:
    """As UUID may be in a later Python."""

    class Another:
        pass

    assert by_slots(Another) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("way", WAYS)
@given(ints=st.lists(st.integers(0, (1 << 128) - 1), max_size=50))
def test_uuids_are_those_of_the_standard_library(way: str, ints: list[int]) -> None:
    """A UUID made either way equals, sorts, hashes and prints like one made the plain way."""
    one, many = WAYS[way]  # type: ignore[misc]
    made = many(ints, len(ints), SafeUUID.safe)
    assert [one(value, SafeUUID.safe) for value in ints] == made
    plain = [UUID(int=value) for value in ints]
    assert made == plain
    assert [hash(id) for id in made] == [hash(id) for id in plain]
    assert [str(id) for id in made] == [str(id) for id in plain]
    assert sorted(made) == sorted(plain)


@pytest.mark.parametrize("safe", [SafeUUID.safe, SafeUUID.unknown])
def test_uuids_carry_their_mark(safe: SafeUUID) -> None:
    """The mark of an id is the one that was given, also after pickling."""
    (made,) = new_uuids([7], 1, safe)
    assert made.is_safe is safe
    assert pickle.loads(pickle.dumps(made)).is_safe is safe  # noqa: S301  (our own bytes)


def test_uuids_stay_unchangeable() -> None:
    """What is set below a UUID's attributes is set once; users cannot do it."""
    (made,) = new_uuids([7], 1, SafeUUID.safe)
    with pytest.raises(TypeError, match="immutable"):
        made.int = 8  # type: ignore[misc]

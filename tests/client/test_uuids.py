from __future__ import annotations

import pickle
from uuid import UUID, SafeUUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uuidd_client.uuid_objects import new_uuids

pytestmark = pytest.mark.usefixtures("implementation")


@given(st.lists(st.integers(0, (1 << 128) - 1), max_size=50))
def test_uuids_are_those_of_the_standard_library(ints: list[int]) -> None:
    """A UUID made the fast way equals, sorts, hashes and prints like one made the plain way."""
    made = new_uuids(ints, len(ints), SafeUUID.safe)
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

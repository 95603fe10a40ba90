"""How the C extension makes UUIDs: by writing the slots of their class."""

from __future__ import annotations

import gc
import importlib.util
import os
import sys
import uuid
from collections.abc import Callable
from typing import Any
from uuid import UUID, SafeUUID

import pytest

from tests.client.cutters import Hand, core


class Slots:
    """As UUID: two slots, and nothing else."""

    __slots__ = ("int", "is_safe")


class Inherited(UUID):
    """Its slots are those of another class, and it may have a constructor of its own."""


class OneSlot:
    """It lacks a slot."""

    __slots__ = ("int",)


class Attributes:
    """It has attributes of these names, which are descriptors of its own, but no slots."""

    int: Any
    is_safe: Any


Attributes.int = Attributes.is_safe = vars(Attributes)["__dict__"]


Borrowed = type("Borrowed", (), {name: vars(UUID)[name] for name in ("int", "is_safe")})
"""Its slots are in the objects of another class."""


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Any]:
    """Return what loads the extension once more, where UUID is another class."""

    def load(class_: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(uuid, "UUID", class_)
            spec = importlib.util.spec_from_file_location("uuidd_client._core", core.__file__)
            assert spec is not None
            assert spec.loader is not None
            loaded = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(loaded)
        return loaded

    return load


@pytest.mark.parametrize("found", [Inherited, OneSlot, Attributes, Borrowed, lambda **_: 5])
def test_an_extension_is_not_loaded_where_a_uuid_has_no_slots(
    load: Callable[[Any], Any], found: Any
) -> None:
    """Python makes the ids there, as where there is no extension."""
    with pytest.raises(ImportError, match=r"uuid.UUID is .*, which has no slot"):
        load(found)


def test_each_uuid_holds_its_mark() -> None:
    """As long as it lives."""
    gc.collect()
    counts = [sys.getrefcount(SafeUUID.safe)]
    made = Hand(core.Cutter).block(count=1000).many(1000)
    counts.append(sys.getrefcount(SafeUUID.safe))
    del made
    counts.append(sys.getrefcount(SafeUUID.safe))
    # Without the GIL, Python does not count the references to some objects.
    held = 1000 if counts[1] != counts[0] else 0
    assert counts == [counts[0], counts[0] + held, counts[0]]
    assert held or not getattr(sys, "_is_gil_enabled", lambda: True)()


def test_nobody_else_holds_the_number_of_a_uuid() -> None:
    """The number ends with it."""
    hand = Hand(core.Cutter).block()
    made = [UUID(bytes=os.urandom(16)), hand.one(), *hand.many(2)]
    assert len({sys.getrefcount(id.int) for id in made}) == 1


def test_an_extension_that_is_dropped_ends(load: Callable[[Any], Any]) -> None:
    """With its types and all that it has imported, but not before the last cutter."""
    extension = load(Slots)
    hand = Hand(extension.Cutter).block()
    draw = extension.Draw("v1", "uuid", [(hand.cutter, None)].pop)
    del extension
    gc.collect()
    assert type(hand.one()) is Slots
    assert draw() is None
    assert type(draw()) is Slots
    before = sys.getrefcount(Slots)
    del hand, draw
    gc.collect()
    assert sys.getrefcount(Slots) < before

"""How the C extension makes UUIDs: by their slots, or by calling their class."""

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
from tests.client.fakes import START

WAYS: dict[str, Callable[[Hand], Any]] = {
    "one": lambda hand: hand.one("v1", "uuid"),
    "many": lambda hand: hand.cutter.many("v1", "uuid", 1)[0],
}
EACH_WAY = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


class Slots:
    """As UUID: two slots, and nothing else."""

    __slots__ = ("int", "is_safe")

    def __init__(self, **_: Any) -> None:
        raise AssertionError("it is called")


class Called:
    """It has a slot for that it was called."""

    __slots__ = ("called",)

    def __init__(self, int: int, is_safe: SafeUUID) -> None:
        self.called = int, is_safe


class Subclass(UUID):
    """Its slots are those of another class, and it may have a constructor of its own."""

    __slots__ = ("called",)

    def __init__(self, int: int, is_safe: SafeUUID) -> None:
        object.__setattr__(self, "called", (int, is_safe))


class WithDict(Called):
    """Its instances have more attributes than these."""

    __slots__ = ("__dict__", "int", "is_safe")


class OneSlot(Called):
    """It lacks a slot."""

    __slots__ = ("int",)


class Properties(Called):
    """It has attributes of these names, which are no slots."""

    __slots__ = ()

    int = is_safe = property(lambda _: 5)


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


@EACH_WAY
@pytest.mark.parametrize("class_", [UUID, Slots])
def test_slots_are_written_where_a_class_has_them(
    load: Callable[[Any], Any], way: Callable[[Hand], Any], class_: Any
) -> None:
    """No constructor is called."""
    made = way(Hand(load(class_).Cutter).block())
    assert type(made) is class_
    known = Hand(core.Cutter).block().one("v1", "uuid")
    assert (made.int, made.is_safe) == (known.int, SafeUUID.safe)


@EACH_WAY
@pytest.mark.parametrize("class_", [Called, Subclass, WithDict, OneSlot, Properties])
def test_any_other_class_is_called(
    load: Callable[[Any], Any], way: Callable[[Hand], Any], class_: Any
) -> None:
    """An object whose slots are written would not be whole."""
    made = way(Hand(load(class_).Cutter).block())
    known = Hand(core.Cutter).block().one("v1", "uuid")
    assert made.called == (known.int, SafeUUID.safe)


def test_a_uuid_that_is_no_class_is_refused(load: Callable[[Any], Any]) -> None:
    """As where a test has replaced it."""
    with pytest.raises(TypeError, match="must be a type"):
        load(lambda **_: 5)


@EACH_WAY
def test_the_error_of_a_class_is_the_callers(
    load: Callable[[Any], Any], way: Callable[[Hand], Any]
) -> None:
    """And what was made until then is not seen by anybody."""

    class Failing(UUID):
        def __init__(self, **_: Any) -> None:
            raise RuntimeError("not today")

    with pytest.raises(RuntimeError, match="not today"):
        way(Hand(load(Failing).Cutter).block())


@EACH_WAY
def test_a_draw_while_a_class_is_called_has_a_place_of_its_own(
    load: Callable[[Any], Any], way: Callable[[Hand], Any]
) -> None:
    """As one of a signal handler: the place was used before."""
    inner: list[int | None] = []

    class Drawing(UUID):
        def __init__(self, **fields: Any) -> None:
            super().__init__(**fields)
            inner.append(hand.tick("v1", "text"))

    hand = Hand(load(Drawing).Cutter).block()
    assert way(hand).time == START
    assert inner == [START + 1]


def test_a_life_that_ends_while_a_class_is_called_is_noticed(load: Callable[[Any], Any]) -> None:
    """The last look comes after all that could fork."""

    class Forking(UUID):
        def __init__(self, **fields: Any) -> None:
            super().__init__(**fields)
            hand.alive[0] = 0

    hand = Hand(load(Forking).Cutter).block()
    assert hand.one("v1", "uuid") is None


def test_each_uuid_holds_its_mark() -> None:
    """As long as it lives."""
    gc.collect()
    counts = [sys.getrefcount(SafeUUID.safe)]
    made = Hand(core.Cutter).block(count=1000).cutter.many("v1", "uuid", 1000)
    counts.append(sys.getrefcount(SafeUUID.safe))
    del made
    counts.append(sys.getrefcount(SafeUUID.safe))
    # Without the GIL, Python does not count the references to some objects.
    held = 1000 if counts[1] != counts[0] else 0
    assert counts == [counts[0], counts[0] + held, counts[0]]
    assert held or not getattr(sys, "_is_gil_enabled", lambda: True)()


def test_nobody_else_holds_the_number_of_a_uuid(load: Callable[[Any], Any]) -> None:
    """Neither if its class is called, nor if its slots are written."""

    class Another(UUID):
        pass

    made = [UUID(bytes=os.urandom(16))]
    for extension in (core, load(Another)):
        hand = Hand(extension.Cutter).block()
        made += [hand.one("v1", "uuid"), *hand.cutter.many("v1", "uuid", 2)]
    assert len({sys.getrefcount(id.int) for id in made}) == 1


def test_an_extension_that_is_dropped_ends(load: Callable[[Any], Any]) -> None:
    """With its types and all that it has imported, but not before the last cutter."""

    class Another(UUID):
        pass

    extension = load(Another)
    hand = Hand(extension.Cutter).block()
    draw = extension.Draw("v1", "uuid", [(hand.cutter, None)].pop)
    del extension
    gc.collect()
    assert type(hand.one("v1", "uuid")) is Another
    assert draw() is None
    assert type(draw()) is Another
    before = sys.getrefcount(Another)
    del hand, draw
    gc.collect()
    assert sys.getrefcount(Another) < before

"""What the C extension makes, holds and lets go of: UUIDs, pages, cutters and their parts."""

from __future__ import annotations

import gc
import os
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID, SafeUUID

import pytest

from tests.client.cutters import FOREVER, Hand, core
from tests.client.lanes import Lanes
from uuidd.core.ids.layouts import Origin
from uuidd_client.fork_guard import ForkGuard
from uuidd_client.lease import Page

ORIGIN = Origin(1, 2, 3, 4, 5)
FIRST = 1 << 58
LATE = 1 << 62
"""A time, in nanoseconds, past the deadline of all that is lent."""
GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
WITH_GIL = pytest.mark.skipif(
    not GIL, reason="without the GIL, a cutter stays as long as the function that draws from it"
)


@pytest.fixture
def lanes() -> Iterator[Lanes]:
    """Return what leases lanes, without an end."""
    lanes = Lanes(FOREVER)
    lanes.begin = 0
    yield lanes
    lanes.close()


def ending(
    end: Callable[[], object],
    clock: Callable[[], int] = lambda: LATE,
    random: Callable[[int], bytes] = bytes,
) -> Any:
    """Return a cutter that was lent some places, and calls *end* when it ends."""

    def own_clock() -> int:
        return clock()

    weakref.finalize(own_clock, end)
    hand = Hand("v7", clock=own_clock, random=random)
    hand.lend(FIRST, 5)
    return hand.cutter


class Words(bytearray):
    """Words that can be referred to weakly."""


class Slots:
    """As UUID: two slots, and nothing else."""

    __slots__ = ("int", "is_safe")


class Called(Exception):
    """A constructor was called."""


class Subclass(UUID):
    """Its slots are those of another class."""

    __slots__ = ()

    def __init__(self, **_: object) -> None:
        raise Called


class WithDict:
    """Its instances have more attributes than these."""

    __slots__ = ("__dict__", "int", "is_safe")

    def __init__(self, **_: object) -> None:
        raise Called


class OneSlot:
    """It lacks a slot."""

    __slots__ = ("int",)

    def __init__(self, **_: object) -> None:
        raise Called


class Properties:
    """It has attributes of these names, which are no slots."""

    int = is_safe = property(lambda self: 5)

    def __init__(self, **_: object) -> None:
        raise Called


class Plain(UUID):
    """As UUID, but its class has to be called."""

    __slots__ = ()


def listed(hand: Hand, count: int) -> list[Any]:
    """Return *count* UUIDs that *hand* makes."""
    made: list[Any] = hand.cutter.many("uuid", FIRST, count, ORIGIN, True)
    return made


@pytest.mark.parametrize("kind", [UUID, Slots])
def test_slots_are_written_where_a_class_has_them(kind: Any) -> None:
    """No constructor is called."""
    (made,) = listed(Hand(uuid=kind), 1)
    assert type(made) is kind
    assert (made.int, made.is_safe) == (listed(Hand(), 1)[0].int, SafeUUID.safe)


@pytest.mark.parametrize("kind", [Subclass, WithDict, OneSlot, Properties])
def test_slots_are_written_only_of_a_class_that_has_no_more(kind: Any) -> None:
    """An object of another class would not be whole, so the class is called."""
    with pytest.raises(Called):
        listed(Hand(uuid=kind), 1)


def test_each_uuid_holds_its_mark() -> None:
    """As long as it lives."""
    mark = object()
    hand = Hand(safe=mark)
    before = sys.getrefcount(mark)
    made = listed(hand, 10)
    assert sys.getrefcount(mark) == before + 10
    del made
    assert sys.getrefcount(mark) == before


def test_nobody_else_holds_the_number_of_a_uuid() -> None:
    """Neither if its class is called, nor if its slots are written."""
    made = [UUID(bytes=os.urandom(16))]
    for kind in (UUID, Plain):
        made += listed(Hand(uuid=kind), 2)
    assert len({sys.getrefcount(id.int) for id in made}) == 1


def test_a_page_stays_while_a_cutter_may_read_it(lanes: Lanes) -> None:
    """Until it holds a lease of another. Without the GIL a thread may still read the last one."""
    hand = Hand()
    kept: list[weakref.ref[Any]] = []
    for _ in range(3):
        page = Page(lanes.fd)
        kept.append(weakref.ref(page.words.obj))
        hand.cutter.hold(page, 20, 1, 0, FOREVER, FOREVER, ORIGIN)
        # Once more, as for the next block.
        hand.cutter.hold(page, 20, 1, 0, FOREVER, FOREVER, ORIGIN)
        del page
        gc.collect()
        assert kept[-1]()
    assert [page() is not None for page in kept] == [not GIL, not GIL, True]
    del hand
    gc.collect()
    assert not any(page() for page in kept)


def test_an_epoch_stays_while_a_cutter_may_read_it() -> None:
    """Until it is lent places of another."""
    hand = Hand()
    kept: list[weakref.ref[Any]] = []
    for _ in range(3):
        epochs = memoryview(words := Words(8)).cast("Q")
        kept.append(weakref.ref(words))
        hand.lend(FIRST, 1, epochs=epochs)
        hand.lend(FIRST, 1, epochs=epochs)
        del epochs, words
        gc.collect()
        assert kept[-1]()
    assert [words() is not None for words in kept] == [not GIL, not GIL, True]


def test_a_cutter_stays_while_a_function_may_use_it() -> None:
    """Until the refill after that which has returned another."""
    kept: list[weakref.ref[Hand]] = []

    def refill() -> tuple[Any, Any]:
        hand = Hand()
        hand.lend(FIRST, 2)
        kept.append(weakref.ref(hand))
        return hand.cutter, hand.one("text")

    draw = core.Draw("text", refill)
    for _ in range(6):
        draw()
        gc.collect()
    assert [hand() is not None for hand in kept] == [not GIL, True, True]
    del draw
    gc.collect()
    assert not any(hand() for hand in kept)


@WITH_GIL
def test_a_cutter_does_not_end_while_there_is_an_id() -> None:
    """Its end may call a function of Python, which may fork: the id would be in both processes."""
    done: list[str] = []

    def refill() -> tuple[Any, str]:
        number = len(done)
        done.append(f"refilled {number}")
        return ending(lambda: done.append(f"ended {number}")), f"id {number}"

    draw = core.Draw("text", refill)
    done += [draw()]
    done += [draw()]
    done += [draw()]
    assert done == ["refilled 0", "id 0", "refilled 2", "id 2", "ended 0", "refilled 5", "id 5"]


@WITH_GIL
def test_a_cutter_stays_while_it_makes_an_id() -> None:
    """The id is dropped if the function has another cutter by then, because this one ends."""
    done: list[str] = []
    now = 0

    def random(count: int) -> bytes:
        nonlocal now
        if not now:
            # Past the deadline, so that both refill; the second of them lets go of this cutter.
            now = LATE
            draw(), draw()
            now = 0
            done.append("made")
        return bytes(count)

    def refill() -> tuple[Any, str]:
        return cutters.pop(), f"of a refill, {len(cutters)} left"

    cutters = [Hand().cutter, Hand().cutter, Hand().cutter]
    cutters.append(ending(lambda: done.append("ended"), lambda: now, random))
    draw = core.Draw("text", refill)
    done += [draw()]
    done += [draw()]
    assert done == ["of a refill, 3 left", "made", "ended", "of a refill, 0 left"]


def test_a_cutter_that_ends_lets_go_of_all() -> None:
    """Of each object that it was made of."""
    guard = ForkGuard()
    parts: list[Any] = [
        guard.memory,
        core.Mark(),
        core.Mark(),
        lambda: 0,
        lambda count: bytes(count),
        UUID,
        object(),
        object(),
        core.Cutter,
    ]
    memory, used, latest, clock, random, uuid, safe, unknown = parts[:-1]
    gc.collect()
    before = [sys.getrefcount(part) for part in parts]
    uuids = (uuid, safe, unknown)
    for _ in range(10):
        core.Cutter("v7", memory, used, latest, 0.1, clock, random, uuids)
        with pytest.raises(ValueError, match="no kind"):
            core.Cutter("v5", memory, used, latest, 0.1, clock, random, uuids)
        with pytest.raises(ValueError, match="must be a page"):
            core.Cutter("v7", bytes(9), used, latest, 0.1, clock, random, uuids)
    del uuids
    assert [sys.getrefcount(part) for part in parts] == before

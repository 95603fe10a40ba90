"""What the Cutter of the extension has of its own: how ids lag, what it refuses and holds."""

from __future__ import annotations

import ctypes
import gc
import pickle
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from tests import kinds
from tests.client.cutters import BLOCK, Hand, core
from tests.client.fakes import START
from tests.kinds import FORMS, KINDS
from uuidd.core.ids.places import Origin
from uuidd_client.life import Source, word

LAG = 50
"""Ticks that an id may lag behind UTC, if it follows another."""


@pytest.fixture
def hand() -> Hand:
    """Return a cutter of the extension."""
    return Hand(core.Cutter)


# --- how ids of a lane lag


@pytest.mark.parametrize("lag", [1, 2, LAG])
def test_ids_in_a_row_have_ticks_in_a_row(hand: Hand, lag: int) -> None:
    first = hand.lane().tick()
    assert first is not None
    hand.now += lag
    assert hand.ticks(lag + 1) == [*range(first + 1, hand.now + 1), None]


def test_no_id_lags_further(hand: Hand) -> None:
    hand.lane().one()
    hand.now += LAG + 1
    assert hand.tick() == hand.now


def test_no_id_lags_behind_the_first_place_of_its_lane(hand: Hand) -> None:
    """It has the tick of now instead, as one that follows no other."""
    hand.cutter.raise_to(hand.now)
    hand.lane(first=hand.now + 1)
    hand.now += 3
    assert hand.tick() == hand.now


# --- what is refused


@pytest.mark.parametrize(
    ("field", "value"),
    [("node", 1 << 48), ("clock_seq", 1 << 14), ("worker", 1024), ("lane", 256), ("epoch", -1)],
)
def test_fields_that_do_not_fit_are_refused(hand: Hand, field: str, value: int) -> None:
    """They would run into others; the error names the value."""
    with pytest.raises(ValueError, match=f"the source is .*{field}={value}[,)].* out of its range"):
        hand.block(origin=BLOCK._replace(**{field: value}))
    assert hand.cutter.source is None


def changed(hand: Hand, field: str, value: Any) -> Any:
    """Return a Source one of whose fields is another."""
    return hand.source(START, START + 10)._replace(**{field: value})


REFUSED: dict[str, Callable[[Hand], Any]] = {
    "no tuple": lambda hand: list(hand.source(1, 2)),
    "nine fields": lambda hand: hand.source(1, 2)[:9],
    "eleven fields": lambda hand: (*hand.source(1, 2), 1),
    "a first place before 0": lambda hand: changed(hand, "first", -1),
    "a time before 0": lambda hand: changed(hand, "since", -1),
    "a place of no number": lambda hand: changed(hand, "end", "x"),
    "a place of 65 bits": lambda hand: changed(hand, "end", 1 << 64),
    "an origin that is none": lambda hand: changed(hand, "origin", 5),
    "an origin of four": lambda hand: changed(hand, "origin", BLOCK[:4]),
    "an origin without a node": lambda hand: changed(hand, "origin", (None, *BLOCK[1:])),
    "a horizon that is a number": lambda hand: changed(hand, "horizon", 5),
    "a horizon of bytes": lambda hand: changed(hand, "horizon", bytes(8)),
    "a horizon of seven bytes": lambda hand: changed(hand, "horizon", memoryview(bytes(7))),
    "a token at an odd address": lambda hand: changed(hand, "token", memoryview(bytes(16))[1:9]),
    "a token without a word": lambda hand: changed(hand, "token", word(1)[:0]),
}


@pytest.mark.parametrize("wrong", REFUSED.values(), ids=REFUSED)
def test_what_is_no_source_is_refused(hand: Hand, wrong: Callable[[Hand], Any]) -> None:
    """Nothing is read past its end. The former one stays."""
    hand.block()
    source = wrong(hand)
    for use in (
        lambda: setattr(hand.cutter, "source", source),
        lambda: hand.cutter.many("v1", "text", 1, source),
        lambda: hand.cutter.many("v1", "bytes", 1, source),
    ):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            use()
    assert hand.tick() == START


@pytest.mark.parametrize("life", [5, bytes(8), memoryview(bytes(16))[1:9], word(1)[:0]])
def test_a_life_is_a_word(life: Any) -> None:
    with pytest.raises(ValueError, match="it must be a memoryview of an aligned word"):
        core.Cutter(life)


@pytest.mark.parametrize("value", [1 << 63, "x"])
def test_used_is_raised_to_a_place(hand: Hand, value: Any) -> None:
    with pytest.raises((TypeError, OverflowError)):
        hand.cutter.raise_to(value)
    assert hand.cutter.used == 0


@pytest.mark.parametrize("count", [-1, (1 << 63) // 20 + 1, 1 << 60])
def test_more_ids_than_memory_can_have_are_refused(hand: Hand, count: int) -> None:
    hand.all()
    for form in ("text", "bytes"):
        with pytest.raises(ValueError, match=f"count is {count}"):
            hand.cutter.many("v4", form, count)
    assert hand.cutter.used == 0


def test_unknown_kinds_and_forms_are_refused(hand: Hand) -> None:
    for use in (
        lambda kind: hand.cutter.one(kind, "text"),
        lambda kind: hand.cutter.many(kind, "text", 1),
        lambda kind: core.Draw(kind, "text", int),
    ):
        for kind in ("", "v5", "v11"):
            with pytest.raises(ValueError, match=f"no kind '{kind}'"):
                use(kind)
    for use in (
        lambda form: hand.cutter.one("v1", form),
        lambda form: hand.cutter.many("v1", form, 1),
        lambda form: core.Draw("v1", form, int),
    ):
        for form in ("hex", 5):
            with pytest.raises(ValueError, match=f"no form {form!r}"):
                use(form)


@pytest.mark.parametrize("found", [b"", b"\0" * 127, bytearray(128), "x" * 128, None])
def test_a_source_of_random_bytes_that_returns_something_else_is_refused(found: Any) -> None:
    """Nothing is made of it; the next read is a new one."""
    answers = [found] * 3
    hand = Hand(core.Cutter, random=lambda size: answers.pop() if answers else b"\1" * size).all()
    for use in (
        lambda: hand.one("v4"),
        lambda: hand.cutter.many("v4", "uuid", 8),
        lambda: hand.cutter.many("v4", "bytes", 8),
    ):
        with pytest.raises(ValueError, match="source of random bytes"):
            use()
    assert hand.one("v4", "bytes").endswith(b"\1" * 6)


def test_the_types_cannot_be_changed() -> None:
    """Nor can they be subclassed: a subclass could change what an id is made of."""
    for type_ in (core.Cutter, core.Draw):
        with pytest.raises(TypeError, match="immutable"):
            type_.extra = 1
        with pytest.raises(TypeError, match="not an acceptable base type"):
            type("Sub", (type_,), {})


def test_a_cutter_is_not_pickled(hand: Hand) -> None:
    """Two of a kind would make the same ids."""
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(hand.cutter)


# --- without memory


@pytest.mark.parametrize(("kind", "form"), FORMS)
def test_where_memory_ends_there_is_an_error(kind: str, form: str) -> None:
    """One of Python's own, at each allocation in turn. Afterwards there are ids again."""
    memory = pytest.importorskip("_testcapi", reason="this Python has no module for its own tests")
    first = kinds.places(kind)[0] + 10**12 if KINDS[kind].timeline else 0
    hand = Hand(core.Cutter).block(first, 1 << 40)
    source, cut = hand.cutter.source, core.Cutter(hand.alive)
    cut.source = source
    draw = core.Draw(kind, form, lambda: (cut, None))
    draw()

    def fails(use: Callable[[], object], allocation: int) -> bool:
        # What traces the lines of a test allocates too, and so does a collection of garbage.
        tracer = sys.gettrace()
        sys.settrace(None)
        gc.disable()
        memory.set_nomemory(allocation, allocation + 1)
        try:
            use()
        except MemoryError:
            return True
        finally:
            memory.remove_mem_hooks()
            gc.enable()
            sys.settrace(tracer)
        return False

    failed = 0
    for use in (
        lambda: cut.one(kind, form),
        lambda: cut.many(kind, form, 5),
        lambda: cut.many(kind, form, 5, source),
        draw,
        lambda: setattr(cut, "source", source),
        lambda: core.Cutter(hand.alive),
        lambda: core.Draw(kind, form, draw),
    ):
        allocation = 0
        while fails(use, allocation):
            assert cut.one(kind, form) is not None
            allocation += 1
        failed += allocation
    assert failed > 8


# --- what is held


class Words(bytearray):
    """Words that can be referred to weakly."""


@pytest.mark.parametrize("field", ["horizon", "token"])
def test_the_words_of_a_source_stay_while_it_is_used(hand: Hand, field: str) -> None:
    words = Words(8)
    kept = weakref.ref(words)
    view = memoryview(words).cast("Q")
    hand.cutter.source = changed(hand, field, view)
    del view
    del words
    gc.collect()
    assert kept()
    hand.cutter.source = None
    gc.collect()
    assert kept() is None


def test_a_cutter_that_ends_lets_go_of_all() -> None:
    """Of each object that it was made of, and of its source; so does one that was refused."""
    source = Hand(core.Cutter).source(1, 10)
    words = [source.horizon, source.token]
    parts: list[Any] = [word(1), lambda: 0, lambda size: bytes(size), source, *words, core.Cutter]
    life, clock, random = parts[:3]
    gc.collect()
    before = [sys.getrefcount(part) for part in parts]
    made: Any = None
    for _ in range(10):
        made = core.Cutter(life, 0.1, clock, random)
        for _ in range(2):
            made.source = source
            made.many("v7", "text", 2, source)
            made.many("v7", "bytes", 2, source)
            assert made.source is source
        with pytest.raises(ValueError, match="it must be a memoryview"):
            core.Cutter(bytes(9), 0.1, clock, random)
    del made
    assert [sys.getrefcount(part) for part in parts] == before


def test_ids_are_not_seen_before_they_are_whole() -> None:
    """A list that is being made is not found by way of the garbage collector."""
    seen: list[int] = []

    def read(size: int) -> bytes:
        lists = (it for it in gc.get_objects() if type(it) is list)
        seen.append(sum(len(it) == 3777 for it in lists))
        return bytes(size)

    made = Hand(core.Cutter, random=read).all().cutter.many("v4", "uuid", 3777)
    assert len(seen) > 10
    assert not any(seen)
    assert gc.is_tracked(made)


def memory_of(made: Any) -> bytes:
    """Return the bytes of an object in memory."""
    return ctypes.string_at(id(made), type(made).__basicsize__)


def test_the_end_of_a_source_may_draw(hand: Hand) -> None:
    """The next source is there already."""
    found: list[int | None] = []
    ending = Words(8)
    weakref.finalize(ending, lambda: found.append(hand.tick()))
    hand.block(horizon=memoryview(ending).cast("Q"))
    del ending
    hand.block(START + 100)
    assert found == [START + 100]
    assert isinstance(hand.cutter.source, Source)


def test_a_place_is_a_tick_of_its_origin(hand: Hand) -> None:
    """A Source may be any tuple with such fields."""
    hand.cutter.source = tuple(hand.source(START, START + 5, origin=tuple(Origin(7))))  # type: ignore[assignment]
    assert kinds.fields("v1", hand.one())["node"] == 7

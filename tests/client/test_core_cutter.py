"""What the Cutter of the extension has of its own.

How ids lag, what it refuses and holds, its random bytes, and the slots of UUIDs that it writes.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import itertools
import os
import pickle
import sys
import uuid
import weakref
from collections.abc import Callable
from random import Random
from typing import Any
from uuid import UUID, SafeUUID

import pytest

from tests import kinds
from tests.client.cutters import BLOCK, Hand, core
from tests.client.fakes import START
from tests.kinds import FORMS, KINDS, MS, random_size
from uuidd.core.ids.places import Origin
from uuidd_client.life import Source, word

pytestmark = pytest.mark.extension

LAG = 50
"""Ticks that an id may lag behind UTC, if it follows another."""


@pytest.fixture
def hand() -> Hand:
    return Hand(core.Cutter)


@pytest.mark.parametrize("lag", [1, 2, LAG])
def test_ids_in_a_row_have_ticks_in_a_row(hand: Hand, lag: int) -> None:
    first = hand.lane().tick()
    assert first is not None
    hand.now += lag
    assert hand.ticks(lag + 1) == [*range(first + 1, hand.now + 1), None]
    hand.now += LAG + 1
    assert hand.tick() == hand.now


def test_no_id_lags_behind_the_first_place_of_its_lane(hand: Hand) -> None:
    hand.cutter.raise_to(hand.now)
    hand.lane(first=hand.now + 1)
    hand.now += 3
    assert hand.tick() == hand.now


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


USES: dict[str, Callable[[Hand, Any, Any], object]] = {
    "one": lambda hand, kind, form: hand.cutter.one(kind, form),
    "many": lambda hand, kind, form: hand.cutter.many(kind, form, 1),
    "draw": lambda _, kind, form: core.Draw(kind, form, int),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize(
    ("kind", "form", "words"),
    [
        *((kind, "text", f"kind '{kind}'") for kind in ("", "v5", "v11")),
        *(("v1", form, f"form {form!r}") for form in ("hex", 5)),
    ],
)
def test_an_unknown_kind_or_form_is_refused(
    hand: Hand, use: Callable[[Hand, Any, Any], object], kind: str, form: Any, words: str
) -> None:
    with pytest.raises(ValueError, match=f"no {words}"):
        use(hand, kind, form)


@pytest.mark.parametrize("found", [b"", b"\0" * 127, bytearray(128), "x" * 128, None])
def test_a_source_of_random_bytes_that_returns_something_else_is_refused(found: Any) -> None:
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
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(hand.cutter)


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
        # Python keeps up to 2,000 tuples of each length, for which it would allocate nothing.
        kept = [tuple(range(length)) for length in (1, 2) for _ in range(2001)]
        memory.set_nomemory(allocation, allocation + 1)
        try:
            use()
        except MemoryError:
            return True
        finally:
            memory.remove_mem_hooks()
            kept.clear()
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


def test_ids_are_not_seen_before_they_are_whole() -> None:
    """A list that is being made is not found by way of the garbage collector."""
    seen: list[int] = []

    def read(size: int) -> bytes:
        lists = (it for it in gc.get_objects() if type(it) is list)
        seen.append(sum(len(it) == 1511 for it in lists))
        return bytes(size)

    made = Hand(core.Cutter, random=read).all().cutter.many("v4", "uuid", 1511)
    assert len(seen) > 10
    assert not any(seen)
    assert gc.is_tracked(made)


def memory_of(made: Any) -> bytes:
    return ctypes.string_at(id(made), type(made).__basicsize__)


def test_the_end_of_a_source_may_draw(hand: Hand) -> None:
    found: list[int | None] = []
    ending = Words(8)
    weakref.finalize(ending, lambda: found.append(hand.tick()))
    hand.block(horizon=memoryview(ending).cast("Q"))
    del ending
    hand.block(START + 100)
    assert found == [START + 100]
    assert isinstance(hand.cutter.source, Source)


def test_a_place_is_a_tick_of_its_origin(hand: Hand) -> None:
    hand.cutter.source = tuple(hand.source(START, START + 5, origin=tuple(Origin(7))))  # type: ignore[assignment]
    assert kinds.fields("v1", hand.one())["node"] == 7


RANDOM = [kind for kind, form in FORMS if form == "bytes" and random_size(kind)]
MOST = 1024
"""Bytes that are read at once."""


class Reads:
    """A source of random bytes, and the *sizes* that were read; *all* is what it returned."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.all = b""
        self._random = Random(4)

    def __call__(self, size: int) -> bytes:
        """Return so many bytes."""
        self.sizes.append(size)
        part = self._random.randbytes(size)
        self.all += part
        return part


@pytest.fixture
def reads() -> Reads:
    return Reads()


def hand_of(kind: str, random: Any, max_age: float = 0.1) -> Hand:
    hand = Hand(core.Cutter, max_age, random)
    return hand.all() if kind == "v4" else hand.lane()


def drawn(hand: Hand, kind: str, count: int) -> list[bytes]:
    found = []
    for _ in range(count):
        hand.now += 1
        found.append(hand.one(kind, "bytes"))
    return found


def test_more_is_read_the_more_is_used(reads: Reads) -> None:
    """Up to a kilobyte: it costs much to ask the system, and little to get more from it."""
    drawn(hand_of("v7", reads), "v7", 16 + 32 + 64 + 128 + 128 + 1)
    assert reads.sizes == [128, 256, 512, MOST, MOST, MOST]


@pytest.mark.parametrize("kind", RANDOM)
def test_whole_ids_are_read(reads: Reads, kind: str) -> None:
    size = random_size(kind)
    drawn(hand_of(kind, reads), kind, 300)
    assert all(read % size == 0 for read in reads.sizes)
    assert sum(reads.sizes[:-1]) < 300 * size <= sum(reads.sizes)


@pytest.mark.parametrize(
    ("max_age", "step", "dropped"),
    [
        (0.1, -31, True),
        (0.1, MS - 1, False),
        (0.1, MS, True),
        (0.0001, MS // 10 - 1, False),
        (0.0001, MS // 10, True),
    ],
)
@pytest.mark.parametrize("kind", ["v4", "v7"])
def test_what_was_read_is_dropped_with_time(
    reads: Reads, kind: str, max_age: float, step: int, dropped: bool
) -> None:
    hand = hand_of(kind, reads, max_age)
    # The last one has the first bytes of the second read.
    drawn(hand, kind, 128 // random_size(kind) + 1)
    hand.now += step
    hand.one(kind, "bytes")
    assert reads.sizes == [128, 256, *[128] * dropped]


@pytest.mark.parametrize("kind", ["v4", "v7"])
def test_without_any_age_nothing_is_read_ahead(reads: Reads, kind: str) -> None:
    drawn(hand_of(kind, reads, 0), kind, 3)
    assert reads.sizes == [random_size(kind)] * 3


@pytest.mark.parametrize("step", [-2, 0])
def test_no_random_bytes_are_read_for_a_source_whose_time_is_over(reads: Reads, step: int) -> None:
    """Each burst after a pause begins with such a source, and reads others for the next one."""
    hand = hand_of("v7", reads)
    hand.lane(since=hand.now - 1, until=hand.now)
    hand.now += step
    assert hand.one("v7") is None
    assert reads.sizes == []


@pytest.mark.parametrize("kind", ["v4", "v7"])
def test_what_was_read_is_dropped_with_the_source(reads: Reads, kind: str) -> None:
    """It may be of before a clone of the machine. Another of the same places counts too."""
    hand = hand_of(kind, reads)
    drawn(hand, kind, 3)
    hand.cutter.source = hand.cutter.source
    drawn(hand, kind, 3)
    assert reads.sizes == [128, 128]


@pytest.mark.parametrize("kind", RANDOM)
def test_what_was_used_is_wiped(reads: Reads, kind: str) -> None:
    """Whoever reads the memory finds the bits of ids to come, and none of those that were made."""
    hand = hand_of(kind, reads)
    size, memory, last = random_size(kind), b"", b""
    for _ in range(200):
        drawn(hand, kind, 1)
        memory = memory_of(hand.cutter)
        last = reads.all[-reads.sizes[-1] :]
        pieces = [last[at : at + size] for at in range(0, len(last), size)]
        found = [piece in memory for piece in pieces]
        assert found == sorted(found, reverse=True)
        assert not found[-1]
    assert not any(
        reads.all[at : at + size] in memory for at in range(0, len(reads.all) - len(last), size)
    )


@pytest.mark.parametrize("drop", ["time", "source"])
def test_what_is_dropped_is_wiped(reads: Reads, drop: str) -> None:
    hand = hand_of("v4", reads)
    drawn(hand, "v4", 20)
    before = reads.all
    if drop == "time":
        hand.now += MS
        hand.one("v4")
    else:
        hand.cutter.source = None
    memory = memory_of(hand.cutter)
    assert not any(before[at : at + 4] in memory for at in range(0, len(before), 16))


@pytest.mark.parametrize("kind", ["v4", "v7"])
def test_a_handler_that_draws_while_bytes_are_read_has_others(kind: str) -> None:
    inner: list[bytes] = []
    random = Random(5)
    begun = itertools.count()

    def read(size: int) -> bytes:
        if next(begun) < 40:
            inner.append(holding.one(kind, "bytes"))
        holding.now += 1
        return random.randbytes(size)

    holding = hand_of(kind, read)
    ids = drawn(holding, kind, 100) + inner
    assert len(inner) == 40
    assert len({id[-6:] for id in ids}) == len(set(ids)) == 140


def test_a_source_that_changes_while_bytes_are_read_leaves_them_whole(reads: Reads) -> None:
    def read(size: int) -> bytes:
        holding.cutter.source = holding.cutter.source
        return reads(size)

    holding = hand_of("v4", read)
    assert holding.one("v4", "bytes")[-6:] == reads.all[-6:]


def test_after_an_error_bytes_are_read_once_more() -> None:
    answers = [b"\1", b"", b"\2"]

    def read(size: int) -> bytes:
        byte = answers.pop(0)
        if not byte:
            raise ValueError("a test")
        return byte * size

    hand = hand_of("v4", read)
    drawn(hand, "v4", 8)
    with pytest.raises(ValueError, match="a test"):
        hand.one("v4")
    assert hand.one("v4", "bytes").endswith(b"\2" * 6)


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
    hand = Hand(core.Cutter).block()
    made = [UUID(bytes=os.urandom(16)), hand.one(), *hand.many(2)]
    assert len({sys.getrefcount(id.int) for id in made}) == 1


def test_an_extension_that_is_dropped_ends(load: Callable[[Any], Any]) -> None:
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

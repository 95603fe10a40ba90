"""What callers of the C extension hold: a function, which is also an iterator and an attribute."""

from __future__ import annotations

import copy
import gc
import inspect
import json
import os
import pickle
import sys
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

import uuidd_client
from tests import kinds
from tests.client.cutters import Hand, core
from tests.client.fakes import START
from tests.kinds import FORMS, KINDS
from tests.tools import output
from uuidd_client import Client
from uuidd_client.errors import DaemonUnavailable
from uuidd_client.life import word

pytestmark = pytest.mark.extension

WAYS: dict[str, Callable[[Any], Callable[[], Any]]] = {
    "called": lambda draw: draw,
    "iterated": lambda draw: draw.__next__,
    "attribute": lambda draw: lambda: draw.next,
}
"""How ids are drawn."""


@pytest.fixture(params=WAYS)
def drawing(request: pytest.FixtureRequest) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Return what makes a way to draw the texts of v1, of what *refill* returns."""
    return lambda refill: WAYS[request.param](core.Draw("v1", "text", refill))


Drawing = Callable[[Callable[[], Any]], Callable[[], Any]]


def hand() -> Hand:
    return Hand(core.Cutter)


@pytest.mark.parametrize(
    ("refills", "ids"),
    [
        ([100, 200], ["refill", 100, 101, "refill", 200, 201]),
        # As one of a signal handler, whose cutter is for one call.
        ([None, 0], ["refill", "refill", 0, 1]),
    ],
    ids=["another cutter", "no cutter"],
)
def test_an_id_that_the_cutter_has_not_is_that_of_a_refill(
    drawing: Drawing, refills: list[int | None], ids: list[int | str]
) -> None:
    left = iter(refills)

    def refill() -> tuple[Any, str]:
        first = next(left)
        return None if first is None else hand().block(START + first, 2).cutter, "refill"

    draw = drawing(refill)
    found = [draw() for _ in ids]
    assert [id if id == "refill" else kinds.tick("v1", id) - START for id in found] == ids


@pytest.mark.parametrize(("kind", "form"), FORMS)
def test_a_draw_makes_ids_of_its_kind_and_form(kind: str, form: str) -> None:
    holding = hand().block(kinds.places(kind)[0] + 10**12 if KINDS[kind].timeline else 0)
    draw = core.Draw(kind, form, lambda: (holding.cutter, None))
    assert draw() is None
    made = draw()
    kinds.number(kind, made)
    assert type(made) is {"uuid": UUID, "text": str, "int": int, "bytes": bytes}[form]


def test_a_draw_whose_life_is_over_is_refilled(drawing: Drawing) -> None:
    holding = hand().block()
    found: list[tuple[Any, Any]] = [(holding.cutter, "first"), (None, "second")]
    draw = drawing(lambda: found.pop(0))
    draw()
    assert draw() != "second"
    holding.alive[0] = 0
    assert draw() == "second"


def test_the_error_of_a_refill_is_the_callers(drawing: Drawing) -> None:
    errors: list[Exception] = [DaemonUnavailable("/nowhere", "a test")]

    def refill() -> tuple[Any, Any]:
        if errors:
            raise errors.pop()
        return None, "id"

    draw = drawing(refill)
    with pytest.raises(DaemonUnavailable):
        draw()
    assert draw() == "id"


def test_the_error_of_a_cutter_is_the_callers(drawing: Drawing) -> None:
    holding = hand().block()
    found = [(holding.cutter, "first")]
    draw = drawing(lambda: found.pop(0))
    draw()

    def fail() -> None:
        holding.between = lambda: None
        raise KeyboardInterrupt

    holding.between = fail
    with pytest.raises(KeyboardInterrupt):
        draw()
    assert kinds.tick("v1", draw()) == START


@pytest.mark.parametrize("found", [None, (), (None,), (1, 2), [None, 1], (None, 1, 2)])
def test_a_refill_that_returns_something_else_is_an_error(drawing: Drawing, found: Any) -> None:
    draw = drawing(lambda: found)
    with pytest.raises(TypeError, match="a refill must return"):
        draw()


def test_a_factory_is_a_function_without_parameters() -> None:
    draw = Client("/nowhere").factory("v7")
    assert callable(draw)
    assert inspect.getdoc(draw) == "Return the next id."


@pytest.mark.parametrize("arguments", [((1,), {}), ((), {"kind": "v1"})])
def test_arguments_are_refused(arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
    draw = core.Draw("v1", "text", lambda: (None, "id"))
    given, named = arguments
    with pytest.raises(TypeError, match="argument"):
        draw(*given, **named)
    assert draw() == "id"


@pytest.mark.parametrize("made", ["factory", "iter"])
@pytest.mark.parametrize("way", [pickle.dumps, copy.copy, copy.deepcopy])
def test_neither_is_pickled_or_copied(way: Callable[[Any], Any], made: str) -> None:
    draw = getattr(Client("/nowhere"), made)("v7")
    with pytest.raises(TypeError, match="pickle the client, its methods, or the functions"):
        way(draw)


def test_a_draw_is_its_own_iterator() -> None:
    draw = core.Draw("v1", "text", lambda: (None, "id"))
    assert iter(draw) is draw
    assert next(draw) == "id"


TELLS = """
import inspect, json, re, sys, uuidd_client
told = {}
def signature(public):
    # Without the address of a function that is a default.
    return re.sub(" at 0x[0-9a-f]+", "", str(inspect.signature(public)))
for name in uuidd_client.__all__:
    public = getattr(uuidd_client, name)
    told[name] = [
        type(public).__name__, public.__module__, public.__qualname__, public.__doc__,
        signature(public), str(getattr(public, "__annotations__", None)),
    ]
for name, method in vars(uuidd_client.Client).items():
    if callable(method):
        told["Client." + name] = [method.__doc__, signature(method)]
json.dump([uuidd_client.implementation, told], sys.stdout)
"""


@pytest.mark.process
def test_both_implementations_export_the_same() -> None:
    told = [
        json.loads(output(sys.executable, "-c", TELLS, env={**os.environ, "UUIDD_EXTENSION": each}))
        for each in ("off", "require")
    ]
    assert [implementation for implementation, _ in told] == ["python", "c"]
    assert told[0][1] == told[1][1]
    assert len(told[0][1]) > 25


def ending(end: Callable[[], object]) -> Any:
    """Return a cutter with two places, which calls *end* when it ends."""
    holding = hand()

    def clock() -> int:
        return 0

    weakref.finalize(clock, end)
    cutter = core.Cutter(holding.alive, 0.1, clock)
    cutter.source = holding.source(START, START + 2)
    return cutter


def test_a_former_cutter_ends_before_the_refill(drawing: Drawing) -> None:
    """Its end may call a function of Python, which may fork: an id would be in both processes."""
    done: list[str] = []

    def refill() -> tuple[Any, str]:
        number = sum(each.startswith("refilled") for each in done)
        done.append(f"refilled {number}")
        return ending(lambda: done.append(f"ended {number}")), f"id {number}"

    draw = drawing(refill)
    done += [draw() for _ in range(1)]
    assert [kinds.tick("v1", draw()) for _ in range(2)] == [START, START + 1]
    done += [draw()]
    assert done == ["refilled 0", "id 0", "ended 0", "refilled 1", "id 1"]


def test_an_id_of_a_cutter_that_ends_meanwhile_is_dropped(drawing: Drawing) -> None:
    """For the same reason: a draw in the middle of this one has got another cutter."""
    done: list[str] = []
    holding = hand()

    def clock() -> int:
        if not done:
            done.append("in the middle")
            cutter.source = None
            assert draw() == "second"
            cutter.source = holding.source(START, START + 5)
        return 0

    cutter = core.Cutter(holding.alive, 0.1, clock)
    cutter.source = holding.source(START, START + 5)
    found: list[tuple[Any, str]] = [(cutter, "first"), (hand().cutter, "second"), (None, "third")]
    draw = drawing(lambda: found.pop(0))
    assert draw() == "first"
    assert draw() == "third"


PARTS: dict[str, Callable[[Any], object]] = {
    "clock": lambda held: core.Cutter(word(1), 0.1, held),
    "random bytes": lambda held: core.Cutter(word(1), 0.1, None, held),
    "source": lambda held: _with_source(Number(held)),
    "refill": lambda held: core.Draw("v1", "text", held),
    "cutter of a draw": lambda held: _drawing_from(core.Cutter(word(1), 0.1, held)),
}


def _with_source(node: int) -> Any:
    made = core.Cutter(word(1))
    origin: Any = (node, 0, 0, 0, 0)
    made.source = hand().source(1, 2, origin=origin)
    return made


def _drawing_from(cutter: Any) -> Any:
    draw = core.Draw("v1", "text", [(cutter, "id")].pop)
    draw()
    return draw


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_the_collector_finds_a_cycle(part: Callable[[Any], object]) -> None:
    def held(_: int = 0) -> int:
        return 0

    held.made = part(held)  # type: ignore[attr-defined]
    gone = weakref.ref(held)
    del held
    assert gone()
    gc.collect()
    assert gone() is None


class Number(int):
    """A number that holds something."""

    def __new__(cls, held: object) -> Number:
        """Return 0."""
        made = super().__new__(cls, 0)
        made.held = held  # type: ignore[attr-defined]
        return made


def test_nothing_leaks() -> None:
    """Of cutters, draws, ids and errors; counted are blocks of memory and references."""
    source = hand().source(START, 1 << 60)
    life, clock, random = word(1), lambda: 0, lambda size: bytes(size)
    lasting = core.Cutter(life, 0.1, clock)
    lasting.source = source

    def refill() -> tuple[Any, str]:
        return lasting, "id"

    def once() -> None:
        cutter = core.Cutter(life, 0.1, clock, random)
        for form in ("uuid", "text", "bytes"):
            cutter.source = source
            assert cutter.source is source
            assert cutter.many("v7", form, 100)
            assert cutter.many("v7", form, 2, source)
            assert cutter.one("v7", form)
        draw = core.Draw("v7", "text", refill)
        assert draw() != draw()
        for wrong in ((), ("v7", "uuid"), ("v7", "uuid", 1, 5), ("v7", "hex", 1)):
            with pytest.raises((TypeError, ValueError)):
                cutter.many(*wrong)
        with pytest.raises(ValueError, match="it must be a memoryview"):
            core.Cutter(bytes(9), 0.1, clock, random)
        with pytest.raises(ValueError, match="no kind"):
            core.Draw("v5", "text", refill)
        with pytest.raises(TypeError):
            core.Draw("v7", "text", lambda: life)()
        with pytest.raises(ValueError, match="source of random bytes"):
            core.Cutter(life, 0.1, clock, lambda _: life).many("v7", "text", 1, source)

    parts = [life, clock, random, source, source.horizon, source.token, lasting, refill]
    parts += [core.Cutter, core.Draw]
    for _ in range(3):
        once()
    gc.collect()
    none, before = sys.getrefcount(None), [sys.getrefcount(part) for part in parts]
    grown = []
    tracemalloc.start()
    try:
        once()
        # What leaks does so each time. A table of the interpreter that grows does so once.
        for _ in range(3):
            gc.collect()
            traced, _ = tracemalloc.get_traced_memory()
            for _ in range(50):
                once()
            gc.collect()
            grown.append(tracemalloc.get_traced_memory()[0] - traced)
    finally:
        tracemalloc.stop()
    # There were more than 10,000 ids each time, of which each would leave 16 bytes or more.
    assert min(grown) < 40_000
    assert [sys.getrefcount(part) for part in parts] == before
    assert sys.version_info >= (3, 12) or abs(sys.getrefcount(None) - none) < 500


def test_the_public_functions_are_of_the_extension() -> None:
    assert uuidd_client.implementation == "c"
    (cell,) = uuidd_client.uuid7.__closure__ or ()
    assert type(cell.cell_contents) is core.Draw

"""What callers of the C extension hold: functions and iterators, like those that Python makes."""

from __future__ import annotations

import copy
import gc
import inspect
import json
import os
import pickle
import subprocess
import sys
import tracemalloc
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import uuidd_client
from tests.client.cutters import FOREVER, Hand, core
from tests.client.fakes import Server, grants
from tests.client.lanes import Clock, Lanes, World
from tests.kinds import KINDS
from uuidd_client import Client
from uuidd_client.drawing import function
from uuidd_client.errors import DaemonUnavailable

PATIENCE = 60.0

WAYS: dict[str, Callable[[str, Any], Callable[[], Any]]] = {
    "called": lambda form, refill: core.Draw(form, refill),
    "iterated": lambda form, refill: core.Ids(form, refill).__next__,
    "function": lambda form, refill: function(core.Draw(form, refill)),
}
"""How ids are drawn, where *refill* returns a cutter and an id."""

EACH_WAY = pytest.mark.parametrize("way", WAYS)


# --- refills


@EACH_WAY
def test_an_id_that_the_cutter_has_not_is_that_of_a_refill(way: str) -> None:
    """From then on the cutter has some."""
    hand, refills = Hand(), [0]

    def refill() -> tuple[Any, Any]:
        refills[0] += 1
        hand.lend(1 << 58, 2)
        return hand.cutter, "first"

    draw = WAYS[way]("text", refill)
    ids = [draw() for _ in range(6)]
    assert ids[0] == ids[3] == "first"
    assert refills == [2]
    assert len(set(ids)) == 3


@EACH_WAY
def test_a_refill_without_a_cutter_leaves_the_last(way: str) -> None:
    """As one of a signal handler, which has ids of its own."""
    hand = Hand()
    found: list[tuple[Any, Any]] = [(hand.cutter, "first"), (None, "second"), (None, "third")]
    draw = WAYS[way]("text", lambda: found.pop(0))
    assert [draw(), draw()] == ["first", "second"]
    hand.lend(1 << 58, 1)
    assert len(draw()) == 36
    assert draw() == "third"


@EACH_WAY
def test_another_cutter_takes_the_place_of_the_last(way: str) -> None:
    """As in a fork's child."""
    hands = [Hand(), Hand()]
    found = [(hand.cutter, number) for number, hand in enumerate(hands)]
    draw = WAYS[way]("text", lambda: found.pop(0))
    assert [draw(), draw()] == [0, 1]
    hands[0].lend(1 << 57, 1)
    hands[1].lend(1 << 58, 1)
    assert (
        draw() == hands[1].cutter.many("text", 1 << 58, 1, (0x0123456789AB, 0x1234, 5, 0, 0), 1)[0]
    )


@EACH_WAY
def test_the_error_of_a_refill_is_the_callers(way: str) -> None:
    """It may be called again."""
    errors: list[Exception] = [DaemonUnavailable("/nowhere", "a test")]

    def refill() -> tuple[Any, Any]:
        if errors:
            raise errors.pop()
        return None, "id"

    draw = WAYS[way]("text", refill)
    with pytest.raises(DaemonUnavailable):
        draw()
    assert draw() == "id"


@EACH_WAY
@pytest.mark.parametrize("found", [None, (), (None,), (1, 2), [None, 1], (None, 1, 2)])
def test_a_refill_that_returns_something_else_is_an_error(way: str, found: Any) -> None:
    """It is a fault in the client."""
    draw = WAYS[way]("text", lambda: found)
    with pytest.raises(TypeError, match="a refill must return"):
        draw()


# --- as objects of Python


def test_a_factory_is_a_function_without_parameters() -> None:
    """Frameworks look at its signature; they take what is iterable for a collection."""
    draw = Client("/nowhere").factory("v7")
    assert inspect.signature(draw) == inspect.Signature()
    assert inspect.getdoc(draw) == "Return the next id."
    assert not isinstance(draw, Iterable)


@pytest.mark.parametrize("arguments", [((1,), {}), ((), {"kind": "v1"})])
@pytest.mark.parametrize("way", ["called", "function"])
def test_arguments_are_refused(way: str, arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
    """As by any function that has none."""
    draw = WAYS[way]("text", lambda: (None, "id"))
    given, named = arguments
    with pytest.raises(TypeError, match="argument"):
        draw(*given, **named)
    assert draw() == "id"


@pytest.mark.parametrize("made", ["factory", "iter"])
@pytest.mark.parametrize("way", [pickle.dumps, copy.copy, copy.deepcopy])
def test_neither_is_pickled_or_copied(way: Callable[[Any], Any], made: str) -> None:
    """The error names what can be."""
    draw = getattr(Client("/nowhere"), made)("v7")
    with pytest.raises(TypeError, match="pickle the client, its methods, or the functions"):
        way(draw)


@pytest.mark.parametrize("name", ["Cutter", "Mark"])
def test_the_other_types_are_not_pickled_either(name: str) -> None:
    """Two of a kind would make the same ids."""
    made = core.Mark() if name == "Mark" else Hand().cutter
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(made)


def test_the_types_cannot_be_changed() -> None:
    """Nor can they be subclassed: a subclass could change what an id is made of."""
    for type_ in (core.Mark, core.Cutter, core.Draw, core.Ids):
        with pytest.raises(TypeError, match="immutable"):
            type_.extra = 1
        with pytest.raises(TypeError, match="not an acceptable base type"):
            type("Sub", (type_,), {})


# --- the functions of the module


def drawing(found: list[str]) -> tuple[Any, Callable[[], Any]]:
    """Return a function that draws what is in *found*, and the Draw behind it."""
    draw = core.Draw("text", lambda: (None, found.pop(0)))
    return function(draw), draw


def test_a_function_that_is_changed_does_what_it_was_changed_to() -> None:
    """No call of it takes the shortcut then."""
    function, _ = drawing(["a", "b"])
    assert function() == "a"

    def outer() -> Callable[[], Any]:
        draw = 5

        def drawn() -> Any:
            return draw

        return drawn

    function.__code__ = outer().__code__
    assert type(function()) is core.Draw


@pytest.mark.parametrize("other", [str, 5, core.Mark, core.Ids("text", lambda: (None, "c"))])
def test_a_function_whose_closure_is_changed_asks_what_is_there(other: Any) -> None:
    """Whatever it is."""
    function, _ = drawing(["a"])
    function.__closure__[0].cell_contents = other
    with pytest.raises(AttributeError, match="has no attribute 'next'"):
        function()
    function.__closure__[0].cell_contents = SimpleNamespace(next=other)
    assert function() is other


def test_a_function_whose_closure_is_changed_by_a_refill_returns_its_id() -> None:
    """The Draw, which only the closure had, stays until the call has ended."""

    def refill() -> tuple[None, str]:
        cells[0].cell_contents = SimpleNamespace(next="b")
        return None, "a"

    shortened = function(core.Draw("text", refill))
    cells = shortened.__closure__
    assert [shortened(), shortened()] == ["a", "b"]


def test_only_a_function_that_calls_it_is_a_shortcut() -> None:
    """All others would do something else than they say."""
    _, draw = drawing([])
    for other in (lambda: 5, lambda: drawing, test_only_a_function_that_calls_it_is_a_shortcut):
        with pytest.raises(TypeError, match="in its closure"):
            core.shortcut(other, draw)
    with pytest.raises(TypeError):
        core.shortcut(len, draw)


TELLS = """
import inspect, json, sys, uuidd_client
told = {}
for name in uuidd_client.__all__:
    public = getattr(uuidd_client, name)
    told[name] = [
        type(public).__name__, public.__module__, public.__qualname__, public.__doc__,
        str(inspect.signature(public)), str(getattr(public, "__annotations__", None)),
    ]
for name, method in vars(uuidd_client.Client).items():
    if callable(method):
        told["Client." + name] = [method.__doc__, str(inspect.signature(method))]
json.dump([uuidd_client.implementation, told], sys.stdout)
"""


@pytest.mark.process
def test_both_implementations_export_the_same() -> None:
    """Names, signatures and docstrings."""
    told = []
    for wanted in ("off", "require"):
        done = subprocess.run(
            [sys.executable, "-c", TELLS],
            env={**os.environ, "UUIDD_EXTENSION": wanted},
            check=True,
            capture_output=True,
            timeout=PATIENCE,
        )
        told.append(json.loads(done.stdout))
    assert [implementation for implementation, _ in told] == ["python", "c"]
    assert told[0][1] == told[1][1]
    assert len(told[0][1]) > 25


# --- what is kept


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Return a daemon with lanes, whose clock is the system's."""
    world = World(tmp_path / "s", Clock())
    with world.server() as server:
        yield server
    world.lanes.close()


def test_a_client_that_is_dropped_closes_its_connections_at_once(tmp_path: Path) -> None:
    """Without the garbage collector: nothing of it is in a cycle."""
    gc.collect()
    gc.disable()
    try:
        with Server(tmp_path / "s", grants()) as server:
            client = Client(server.path, fallback=False)
            draw, ids = client.factory("v7", "text"), client.iter("v1")
            client.uuid1()
            channel = client._session.get().channel("utc")
            draw()
            next(ids)
            gone = weakref.ref(channel)
            del client, channel
            assert gone() is not None
            del draw, ids
            assert gone() is None
    finally:
        gc.enable()


def use(server: Server, count: int) -> None:
    """Draw in all ways from a client of its own, and drop it."""
    with Client(server.path, fallback=False, max_age=0.001) as client:
        kinds: Any = KINDS
        for kind in kinds:
            draw: Callable[[], Any] = client.factory(kind)
            ids = client.iter(kind, "text")
            for _ in range(count):
                draw()
                next(ids)
            client.make(kind, count)
        client.make("v7", count, "bytes")
    server.requests.clear()


def test_nothing_leaks(server: Server) -> None:
    """Of ids, of clients and of errors; counted are blocks of memory and references."""
    lanes = Lanes(FOREVER)

    def once() -> None:
        use(server, 100)
        hand = Hand("v7").hold(lanes).hold(lanes)
        for form in ("uuid", "text", "bytes"):
            hand.now += 100
            assert hand.one(form)
            hand.cutter.many(form, 1 << 58, 10, (0, 0, 0, 0, 0), True)
        for wrong in ((), ("uuid", 1 << 58, 10, 5, True), ("hex", 1, 1, (0,) * 5, True)):
            with pytest.raises((TypeError, ValueError)):
                hand.cutter.many(*wrong)
        with pytest.raises(TypeError):
            core.Draw("text", lambda: 5)()

    for _ in range(3):
        once()
    gc.collect()
    none, yes = sys.getrefcount(None), sys.getrefcount(core.Cutter)
    tracemalloc.start()
    try:
        once()
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(5):
            once()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        lanes.close()
    # There were more than 10,000 ids, of which each would leave 16 bytes or more. The fake daemon
    # keeps a kilobyte of each client, and more where sanitizers slow the client down: it asks more.
    assert after - before < 40_000
    assert abs(sys.getrefcount(core.Cutter) - yes) < 20
    assert sys.version_info >= (3, 12) or abs(sys.getrefcount(None) - none) < 500


def test_the_collector_finds_cycles() -> None:
    """Through the function that refills, and through the clock of a cutter."""

    class Held:
        pass

    def cycle() -> weakref.ref[Held]:
        held, hand = Held(), Hand()
        draw = core.Draw("text", lambda: (hand.cutter, held))
        hand.between = draw
        assert draw() is held
        return weakref.ref(held)

    gone = cycle()
    assert gone() is not None
    gc.collect()
    assert gone() is None


def test_ids_are_not_seen_before_they_are_whole() -> None:
    """A list that is being made is not found by way of the garbage collector."""
    seen: list[int] = []

    def read(count: int) -> bytes:
        lists = (it for it in gc.get_objects() if type(it) is list)
        seen.append(sum(len(it) == 3777 for it in lists))
        return bytes(count)

    hand = Hand("v4", random=read)
    made = hand.cutter.many("uuid", 0, 3777, (0, 0, 0, 0, None), False)
    assert len(seen) > 10
    assert not any(seen)
    assert gc.is_tracked(made)


def test_the_public_functions_are_of_the_extension() -> None:
    """Here, where it is installed."""
    assert uuidd_client.implementation == "c"
    (cell,) = uuidd_client.uuid7.__closure__ or ()
    assert type(cell.cell_contents) is core.Draw

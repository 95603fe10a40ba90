"""``uuidd_client.opentelemetry``: ids of traces and spans."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import format_trace_id

from tests.client.raw import of_child
from uuidd_client import Client, renew
from uuidd_client.opentelemetry import IdGenerator
from uuidd_client.testing import fixed_ids

pytestmark = pytest.mark.usefixtures("implementation")

MANY = 4_000


def assert_even(values: list[int], bits: int) -> None:
    """Fail if a bit is set so often, or so rarely, as happens once in 10**15 times."""
    for bit in range(bits):
        ones = Counter(value >> bit & 1 for value in values)[1]
        assert abs(ones - len(values) / 2) < 4 * len(values) ** 0.5, bit


def test_trace_ids_rise_and_end_in_56_random_bits(client: Client) -> None:
    generator = IdGenerator(client)
    made = [generator.generate_trace_id() for _ in range(MANY)]
    assert sorted({*made}) == made
    assert_even(made, 56)
    ms = [value >> 80 for value in made]
    assert ms[0] <= ms[-1] < ms[0] + 600_000
    assert generator.is_trace_id_random()


def test_span_ids_are_64_random_bits(client: Client) -> None:
    generator = IdGenerator(client)
    made = [generator.generate_span_id() for _ in range(MANY)]
    assert len({*made}) == MANY
    assert all(0 < value < 1 << 64 for value in made)
    assert_even(made, 64)


def test_without_the_fallback_traces_go_on(place: Path) -> None:
    """A program that refuses ids without a daemon is still traced."""
    with Client(place / "absent", fallback=False) as client:
        generator = IdGenerator(client)
        made = [generator.generate_trace_id() for _ in range(100)]
    assert len({*made}) == 100
    assert all(0 < value < 1 << 128 for value in made)


@pytest.mark.parametrize(
    ("generate", "bits"), [("generate_trace_id", 128), ("generate_span_id", 64)]
)
def test_with_a_wrong_variable_in_the_environment_traces_go_on(
    client: Client, monkeypatch: pytest.MonkeyPatch, generate: str, bits: int
) -> None:
    """The next id of another kind tells of it."""
    monkeypatch.setenv("UUIDD_TIMEOUT", "soon")
    made = [getattr(IdGenerator(client), generate)() for _ in range(100)]
    assert len({*made}) == 100
    assert all(0 < value < 1 << bits for value in made)
    with pytest.raises(ValueError, match="UUIDD_TIMEOUT is 'soon'"):
        client.uuid7()


def test_opentelemetry_finds_it_by_its_name() -> None:
    [found] = entry_points(group="opentelemetry_id_generator", name="uuidd")
    assert found.load() is IdGenerator


def test_a_tracer_uses_it() -> None:
    provider = TracerProvider(id_generator=IdGenerator())
    with fixed_ids() as ids:
        expected = ids.make("ulid", 1, "uuid")[0].hex
    with fixed_ids(), provider.get_tracer("test").start_as_current_span("here") as span:
        assert format_trace_id(span.get_span_context().trace_id) == expected
    provider.shutdown()


@pytest.mark.process
def test_a_forks_child_makes_other_ids(client: Client) -> None:
    generator = IdGenerator(client)

    def made() -> list[list[int]]:
        makers = (generator.generate_trace_id, generator.generate_span_id)
        return [[make() for _ in range(20)] for make in makers]

    made()
    theirs = json.loads(of_child(lambda: json.dumps(made()).encode()))
    for ours, others in zip(made(), theirs, strict=True):
        assert len({*ours, *others}) == 40


@pytest.mark.parametrize("generate", ["generate_trace_id", "generate_span_id"])
def test_an_id_of_a_life_that_has_ended_is_not_used(
    client: Client, monkeypatch: pytest.MonkeyPatch, generate: str
) -> None:
    """A handler that forks may run after the draw: the child would have the same id."""
    factory, drawn = Client.factory, list[Any]()

    def ending(client: Any, *words: Any) -> Callable[[], Any]:
        draw: Callable[[], Any] = factory(client, *words)

        def ended() -> Any:
            drawn.append(draw())
            if len(drawn) == 1:
                renew()
            return drawn[-1]

        return ended

    monkeypatch.setattr(Client, "factory", ending)
    assert getattr(IdGenerator(client), generate)()
    assert len(drawn) == 2

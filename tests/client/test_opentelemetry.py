"""``uuidd_client.opentelemetry``: ids of traces and spans."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import format_trace_id

from uuidd_client import Client
from uuidd_client.opentelemetry import IdGenerator
from uuidd_client.testing import fixed_ids

pytestmark = pytest.mark.usefixtures("implementation")

MANY = 4_000


@pytest.fixture
def client(place: Path) -> Iterator[Client]:
    """A client of the implementation under test, whose daemon is not there."""
    with Client(place / "absent") as client:
        yield client


def assert_even(values: list[int], bits: int) -> None:
    """Fail if a bit is set so often, or so rarely, as happens once in 10**15 times."""
    for bit in range(bits):
        ones = Counter(value >> bit & 1 for value in values)[1]
        assert abs(ones - len(values) / 2) < 4 * len(values) ** 0.5, bit


def test_trace_ids_rise_and_end_in_56_random_bits(client: Client) -> None:
    """They begin with the time, as ULIDs do."""
    generator = IdGenerator(client)
    made = [generator.generate_trace_id() for _ in range(MANY)]
    assert sorted({*made}) == made
    assert_even(made, 56)
    ms = [value >> 80 for value in made]
    assert ms[0] <= ms[-1] < ms[0] + 600_000
    assert generator.is_trace_id_random()


def test_span_ids_are_64_random_bits(client: Client) -> None:
    """None comes twice, and none is zero."""
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


def test_opentelemetry_finds_it_by_its_name() -> None:
    """OTEL_PYTHON_ID_GENERATOR=uuidd."""
    [found] = entry_points(group="opentelemetry_id_generator", name="uuidd")
    assert found.load() is IdGenerator


def test_a_tracer_uses_it() -> None:
    """With fixed ids, its traces are the same in each run."""
    provider = TracerProvider(id_generator=IdGenerator())
    with fixed_ids() as ids:
        expected = ids.make("ulid", 1, "uuid")[0].hex
    with fixed_ids(), provider.get_tracer("test").start_as_current_span("here") as span:
        assert format_trace_id(span.get_span_context().trace_id) == expected
    provider.shutdown()


@pytest.mark.process
def test_a_forks_child_makes_other_ids(client: Client) -> None:
    """Of traces and of spans."""
    generator = IdGenerator(client)
    generator.generate_trace_id(), generator.generate_span_id()
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            warnings.simplefilter("ignore")
            for _ in range(20):
                os.write(write, generator.generate_trace_id().to_bytes(16, "big"))
                os.write(write, generator.generate_span_id().to_bytes(8, "big"))
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    theirs = os.read(read, 20 * 24)
    os.close(read)
    os.close(write)
    ours = [generator.generate_trace_id().to_bytes(16, "big") for _ in range(20)]
    spans = [generator.generate_span_id().to_bytes(8, "big") for _ in range(20)]
    assert len(theirs) == 20 * 24
    assert not {theirs[at : at + 16] for at in range(0, len(theirs), 24)} & {*ours}
    assert not {theirs[at + 16 : at + 24] for at in range(0, len(theirs), 24)} & {*spans}

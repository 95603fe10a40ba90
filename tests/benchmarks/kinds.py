"""How long one id of the steady kinds takes, against the libraries that Python has for each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import uuidd_client
from tests.benchmarks.daemons import ours
from tests.benchmarks.making import row, side
from tests.benchmarks.place import Missing, Place
from tests.benchmarks.rounds import interleaved
from tests.benchmarks.table import Row

READ = 100_000
"""Ids that are read in one go."""


def rows(place: Place, rounds: int) -> Iterator[Row]:
    """Compare uuid7, ulid and snowflake with a library's each, and time the reading of ids."""
    try:
        import snowflake
        import ulid
        import uuid_utils.compat
    except ImportError as missing:
        raise Missing(f"{missing.name} (pip install -e '.[bench]')") from missing
    generator = snowflake.SnowflakeGenerator(5)
    peers: list[tuple[str, Callable[[], Any], Callable[[], Any], float]] = [
        ("uuid7() / uuid_utils.compat.uuid7()", uuidd_client.uuid7, uuid_utils.compat.uuid7, 2),
        ("ulid() / str(ulid.ULID())", uuidd_client.ulid, lambda: str(ulid.ULID()), 3),
        # That gives None once a millisecond's 4,096 are used, which is no work, and no id.
        ("snowflake() / snowflake-id", uuidd_client.snowflake, lambda: _waited(generator), 3),
    ]
    with ours(place, "--worker=5"):
        for name, mine, theirs, at_least in peers:
            ours_took, theirs_took = interleaved(
                rounds, side("draw()", draw=mine), side("draw()", draw=theirs)
            )
            yield row(name, ours_took, theirs_took, at_least)
        yield from _reading()


def _waited(generator: Iterator[int | None]) -> int:
    while (made := next(generator)) is None:
        pass
    return made


def _reading() -> Iterator[Row]:
    """Time parsing, and inspection to the fields of the likeliest reading."""
    for kind in ("v7", "ulid", "snowflake"):
        texts = uuidd_client.Client().make(kind, READ, form="text")
        begun = time.perf_counter()
        for text in texts:
            uuidd_client.inspect(text)
        parsed = time.perf_counter() - begun
        begun = time.perf_counter()
        for text in texts:
            uuidd_client.inspect(text)[0].fields  # noqa: B018  (it is made when it is asked for)
        seconds = time.perf_counter() - begun
        yield Row(f"parse {READ} of {kind}", parsed, "s", at_most=1)
        yield Row(f"inspect {READ} of {kind}", seconds, "s", at_most=1)

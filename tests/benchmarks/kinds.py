"""How long one id of the steady kinds takes, against the libraries that Python has for each."""

from __future__ import annotations

import time
from collections.abc import Iterator

import uuidd_client
from tests.benchmarks import peers
from tests.benchmarks.daemons import ours
from tests.benchmarks.making import BURST_REST_SECONDS, Peer, burst, compared, row, safe, side
from tests.benchmarks.place import Missing, Place
from tests.benchmarks.rounds import interleaved
from tests.benchmarks.table import Result, Row

WORKER = 5

READ = 100_000
"""Ids that are read in one go."""

BURST = 4000
"""Snowflakes at once; in the rest before each burst ten times as many become free: a worker has
4,096 a millisecond."""

NEXT = "while next(drawn) is None: pass"
"""snowflake-id gives None once a millisecond's 4,096 are used, which is no id."""

RATE = "one worker has 4,096,000 a second, 244 ns each"


def rows(place: Place, rounds: int) -> Iterator[Result]:
    """Compare each kind with a library's, and time the reading of ids."""
    # uuid7 is marked safe when it came from the daemon, as all that share its timeline then do.
    with ours(place, f"--worker={WORKER}"), safe(uuidd_client.uuid7, uuidd_client.uuid6):
        yield from compared(
            "uuid7()",
            side("draw()", draw=uuidd_client.uuid7),
            rounds,
            Peer("uuid_utils.compat.uuid7()", "uuid_utils.compat", "uuid7", at_least=2),
            Peer("c_uuid_v7.compat.uuid7()", "c_uuid_v7.compat", "uuid7"),
            Peer("uuid6.uuid7()", "uuid6", "uuid7"),
            Peer("c_uuid_v7.uuid7(), own type", "c_uuid_v7", "uuid7"),
            Peer("uuid_utils.uuid7(), own type", "uuid_utils", "uuid7"),
            Peer("fastuuid.uuid7(), own type", "fastuuid", "uuid7"),
        )
        yield from compared(
            "uuid6()",
            side("draw()", draw=uuidd_client.uuid6),
            rounds,
            Peer("uuid6.uuid6()", "uuid6", "uuid6"),
            Peer("uuid_utils.compat.uuid6()", "uuid_utils.compat", "uuid6"),
        )
        yield from compared(
            "ulid()",
            side("draw()", draw=uuidd_client.ulid),
            rounds,
            Peer("str(ulid.ULID())", "ulid", "ULID", "str(draw())", at_least=3),
        )
        yield from compared(
            "ksuid()",
            side("draw()", draw=uuidd_client.ksuid),
            rounds,
            Peer("str(ksuid.Ksuid())", "ksuid", "Ksuid", "str(draw())"),
        )
        yield from _snowflakes(rounds)
        yield from _reading()


def _snowflakes(rounds: int) -> Iterator[Result]:
    """Compare without a pause, where both may wait for the clock, and within the rate."""
    try:
        theirs = peers.load("snowflake").SnowflakeGenerator(WORKER)
    except Missing as missing:
        yield Missing(f"snowflake() / snowflake-id: {missing}")
        return
    mine, others, my_bursts, other_bursts = interleaved(
        rounds,
        side("draw()", draw=uuidd_client.snowflake),
        side(NEXT, drawn=theirs),
        burst("draw()", calls=BURST, draw=uuidd_client.snowflake),
        burst(NEXT, calls=BURST, drawn=theirs),
    )
    yield row("snowflake() / snowflake-id", mine, others, 3, RATE)
    note = f"{BURST:,} at once, then {BURST_REST_SECONDS * 1e3:g} ms of rest: within the rate"
    yield row("snowflake() / snowflake-id, in bursts", my_bursts, other_bursts, 3, note)


def _reading() -> Iterator[Row]:
    """Time parsing, and inspection to the fields of the likeliest reading."""
    for kind in ("v7", "ulid", "snowflake"):
        texts = uuidd_client.Client(fallback=False).make(kind, READ, form="text")
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

"""What makers of ids are compared, in which groups, and at which pace."""

from __future__ import annotations

from dataclasses import dataclass, replace

BATCH = 1000
MILLION = 1_000_000
WORKER = 5


@dataclass(frozen=True, slots=True)
class Maker:
    """What makes ids in one process: *statement*, after *setup*, makes *ids*.

    *safe* makes a UUID that has to be marked as safe. *at_least* is the goal for how many times as
    fast ours is.
    """

    name: str
    setup: str
    statement: str = "draw()"
    ids: int = 1
    safe: str = ""
    at_least: float | None = None


@dataclass(frozen=True, slots=True)
class Pace:
    """How a turn is spent: *bursts* times a *rest* in seconds, and then *calls* at once."""

    calls: int
    bursts: int
    rest: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """A maker of ours, others that do the same, and the pace of all; None is without rest."""

    mine: Maker
    others: tuple[Maker, ...] = ()
    pace: Pace | None = None
    at_most: float | None = None
    note: str = ""


def _uuid(kind: str) -> Maker:
    # All kinds that rise share one timeline, and v6 and v7 tell where it comes from.
    return Maker(f"{kind}()", f"from uuidd_client import {kind} as draw", safe="draw()")


def _text(kind: str) -> Maker:
    return Maker(f"{kind}()", f"from uuidd_client import {kind} as draw")


def _peer(
    name: str,
    module: str,
    draw: str,
    statement: str = "draw()",
    at_least: float | None = None,
    ids: int = 1,
) -> Maker:
    setup = f"from {module} import {draw} as draw"
    return Maker(name, setup, statement, ids=ids, at_least=at_least)


def _client(name: str, statement: str, ids: int = 1, more: str = "") -> Maker:
    setup = f"from uuidd_client import Client; client = Client(fallback=False); {more}"
    return Maker(name, setup, statement, ids=ids, safe="client.uuid1()")


UUID1 = _uuid("uuid1")

STDLIB = replace(_peer("stdlib uuid1() with C uuidd", "uuid", "uuid1", at_least=3.5), safe="draw()")
STDLIB_TEXT = replace(
    STDLIB, name="str(stdlib uuid1()) with C uuidd", statement="str(draw())", at_least=None
)

TEXT = _client(
    'next(client.iter("v1", form="text"))',
    "next(drawn)",
    more='drawn = client.iter("v1", form="text")',
)

WITHOUT_DAEMON = (
    Comparison(
        UUID1,
        (
            _peer("stdlib uuid1(), no daemon", "uuid", "uuid1", at_least=20),
            _peer("stdlib uuid4(), no daemon", "uuid", "uuid4"),
        ),
    ),
)

BESIDE_UTIL_LINUX = (
    Comparison(UUID1, (STDLIB, _peer("stdlib uuid4() with C uuidd", "uuid", "uuid4"))),
    Comparison(TEXT, (STDLIB_TEXT, _peer("str(stdlib uuid4())", "uuid", "uuid4", "str(draw())"))),
)

REST_SECONDS = 0.2
CALLS = 20

FEW = {1: Pace(CALLS, bursts=2, rest=REST_SECONDS), 9: Pace(CALLS, bursts=1, rest=REST_SECONDS)}
"""How many programs make a few ids now and then, each by itself, and the pace of each."""

NOW_AND_THEN = (
    Comparison(
        replace(UUID1, name=f"uuid1(), {CALLS} each {REST_SECONDS} s"),
        (
            replace(STDLIB, at_least=2),
            _peer("uuid_utils.compat.uuid1()", "uuid_utils.compat", "uuid1"),
        ),
    ),
    Comparison(
        replace(_uuid("uuid7"), name=f"uuid7(), {CALLS} each {REST_SECONDS} s"),
        (
            replace(STDLIB, at_least=2),
            _peer("uuid_utils.compat.uuid7()", "uuid_utils.compat", "uuid7"),
            _peer("fastuuid7.uuid7()", "fastuuid7", "uuid7"),
        ),
    ),
)

ONE = (
    Comparison(
        UUID1,
        (
            _peer("uuid_utils.compat.uuid1()", "uuid_utils.compat", "uuid1", at_least=2.2),
            _peer("uuid_utils.uuid1(), own type", "uuid_utils", "uuid1"),
            _peer("fastuuid.uuid1(), own type", "fastuuid", "uuid1"),
        ),
    ),
    Comparison(
        TEXT,
        (
            _peer("str(uuid_utils.uuid1())", "uuid_utils", "uuid1", "str(draw())", at_least=1.0),
            _peer("str(fastuuid.uuid4())", "fastuuid", "uuid4", "str(draw())"),
        ),
    ),
)

UUIDS = f'client.make("v1", {BATCH})'
TEXTS = f'client.make("v1", {BATCH}, form="text")'
PACKED = f'client.make("v1", {MILLION}, form="bytes")'

FAST_TEXTS = _peer(
    f"fastuuid.uuid4_as_strings_bulk({BATCH})",
    "fastuuid",
    "uuid4_as_strings_bulk",
    f"draw({BATCH})",
    at_least=4,
    ids=BATCH,
)

BULK = (
    Comparison(
        _client(UUIDS, UUIDS, BATCH),
        (
            _peer(
                f"fastuuid.uuid4_bulk({BATCH})",
                "fastuuid",
                "uuid4_bulk",
                f"draw({BATCH})",
                at_least=1.1,
                ids=BATCH,
            ),
        ),
    ),
    Comparison(
        _client(TEXTS, TEXTS, BATCH),
        (FAST_TEXTS,),
        note="a clock has 10 million ticks a second, 100 ns each",
    ),
    Comparison(
        _client(f"{TEXTS}, in bursts", TEXTS, BATCH),
        (FAST_TEXTS,),
        Pace(calls=20, bursts=10, rest=0.01),
        note="20 at once, then 10 ms of rest: within the rate of the clock",
    ),
    Comparison(
        _client(PACKED, PACKED, MILLION),
        pace=Pace(calls=1, bursts=1, rest=0.2),
        at_most=25,
        note="each after 0.2 s of rest: a clock has 10 million ticks a second",
    ),
)

# None comes once the 4,096 ids of a millisecond are used; it is not an id.
SNOWFLAKES = Maker(
    "snowflake-id",
    f"from snowflake import SnowflakeGenerator; drawn = SnowflakeGenerator({WORKER})",
    "while next(drawn) is None: pass",
    at_least=3,
)

KINDS = (
    Comparison(
        _uuid("uuid7"),
        (
            _peer("uuid_utils.compat.uuid7()", "uuid_utils.compat", "uuid7", at_least=2),
            _peer("c_uuid_v7.compat.uuid7()", "c_uuid_v7.compat", "uuid7"),
            _peer("uuid6.uuid7()", "uuid6", "uuid7"),
            _peer("c_uuid_v7.uuid7(), own type", "c_uuid_v7", "uuid7"),
            _peer("uuid_utils.uuid7(), own type", "uuid_utils", "uuid7"),
            _peer("fastuuid.uuid7(), own type", "fastuuid", "uuid7"),
        ),
    ),
    Comparison(
        _uuid("uuid6"),
        (
            _peer("uuid6.uuid6()", "uuid6", "uuid6"),
            _peer("uuid_utils.compat.uuid6()", "uuid_utils.compat", "uuid6"),
        ),
    ),
    Comparison(
        _text("ulid"), (_peer("str(ulid.ULID())", "ulid", "ULID", "str(draw())", at_least=3),)
    ),
    Comparison(_text("ksuid"), (_peer("str(ksuid.Ksuid())", "ksuid", "Ksuid", "str(draw())"),)),
    Comparison(
        _text("snowflake"),
        (SNOWFLAKES,),
        note="one worker has 4,096,000 a second, 244 ns each",
    ),
    Comparison(
        replace(_text("snowflake"), name="snowflake(), in bursts"),
        (SNOWFLAKES,),
        # In each rest ten times as many become free.
        Pace(calls=4000, bursts=10, rest=0.01),
        note="4,000 at once, then 10 ms of rest: within the rate",
    ),
)


def _inspecting(kind: str, part: str = "") -> Comparison:
    maker = _client(
        f"inspect({kind}){part}",
        f"for text in texts: inspect(text){part}",
        BATCH,
        f'from uuidd_client import inspect; texts = client.make("{kind}", {BATCH}, form="text")',
    )
    return Comparison(maker, at_most=10_000)


INSPECT = tuple(
    _inspecting(kind, part) for kind in ("v7", "ulid", "snowflake") for part in ("", "[0].fields")
)

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
    fast ours is with its C extension.
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


def _uuid(kind: str) -> Maker:
    # All kinds that rise share one timeline, and v6 and v7 tell where it comes from.
    return replace(_text(kind), safe="draw()")


def _text(kind: str) -> Maker:
    return Maker(f"{kind}()", f"from uuidd_client import {kind} as draw")


def _client(statement: str, ids: int = 1, more: str = "", name: str = "") -> Maker:
    setup = f"from uuidd_client import Client; client = Client(fallback=False); {more}"
    return Maker(name or statement, setup, statement, ids=ids, safe="client.uuid1()")


WITHOUT_C = "import os; os.environ['UUIDD_EXTENSION'] = 'off'; "
"""What comes before the import of a client that is to do without its C extension."""


def in_python(maker: Maker) -> Maker:
    """Return a maker of ours that does without the C extension."""
    return replace(maker, name=f"{maker.name}, in Python", setup=WITHOUT_C + maker.setup)


def _peer(
    path: str,
    name: str = "{}()",
    at_least: float | None = None,
    *,
    ids: int = 1,
    text: bool = False,
) -> Maker:
    """Return what calls the function at *path*: for one id, or for *ids* at once."""
    module, _, function = path.rpartition(".")
    call = "draw()" if ids == 1 else f"draw({ids})"
    return Maker(
        name.format(path),
        f"from {module} import {function} as draw",
        f"str({call})" if text else call,
        ids=ids,
        at_least=at_least,
    )


OWN_TYPE = "{}(), own type"
BULK_OF = f"{{}}({BATCH})"

UUID1 = _uuid("uuid1")
STDLIB = replace(_peer("uuid.uuid1", "stdlib uuid1() with C uuidd", 3.5), safe="draw()")
TEXT = _client(
    "next(drawn)",
    more='drawn = client.iter("v1", form="text")',
    name='next(client.iter("v1", form="text"))',
)

WITHOUT_DAEMON = (
    Comparison(
        UUID1,
        (
            _peer("uuid.uuid1", "stdlib uuid1(), no daemon", 20),
            _peer("uuid.uuid4", "stdlib uuid4(), no daemon"),
        ),
    ),
)

BESIDE_UTIL_LINUX = (
    Comparison(UUID1, (STDLIB,)),
    Comparison(
        TEXT,
        (
            replace(
                _peer("uuid.uuid1", "str(stdlib uuid1()) with C uuidd", text=True), safe="draw()"
            ),
        ),
    ),
)

REST_SECONDS = 0.2
CALLS = 20

FEW = (
    Comparison(
        replace(_uuid("uuid7"), name=f"uuid7(), {CALLS} each {REST_SECONDS} s"),
        (
            replace(STDLIB, at_least=5),
            _peer("uuid_utils.compat.uuid7", at_least=1.5),
            _peer("fastuuid7.uuid7", at_least=0.8),
        ),
        Pace(CALLS, bursts=2, rest=REST_SECONDS),
    ),
)
"""A program that makes a few ids now and then."""

ONE = (
    Comparison(
        UUID1,
        (
            _peer("uuid_utils.compat.uuid1", at_least=6),
            _peer("uuid_utils.uuid1", OWN_TYPE),
        ),
    ),
    Comparison(TEXT, (_peer("uuid_utils.uuid1", "str({}())", 1.0, text=True),)),
    Comparison(
        _client(
            "draw()", more='draw = client.factory("v7", "text")', name='factory("v7", "text")()'
        ),
        (
            _peer("fastuuid7.uuid7_str", at_least=1.5),
            _peer("fastuuidv7.uuid7_str", at_least=0.6),
        ),
    ),
)


def _in_bursts(mine: Maker, other: Maker) -> Comparison:
    return Comparison(
        replace(mine, name=f"{mine.name}, in bursts"),
        (other,),
        Pace(calls=20, bursts=10, rest=0.01),
    )


BULK = (
    Comparison(
        _client(f'client.make("v1", {BATCH})', BATCH),
        (_peer("fastuuid.uuid4_bulk", BULK_OF, 1.1, ids=BATCH),),
    ),
    _in_bursts(
        _client(f'client.make("v1", {BATCH}, form="text")', BATCH),
        _peer("fastuuid.uuid4_as_strings_bulk", BULK_OF, 4, ids=BATCH),
    ),
    _in_bursts(
        _client(f'client.make("v7", {BATCH})', BATCH),
        _peer("fastuuid7.uuid7_many", BULK_OF, 1.5, ids=BATCH),
    ),
    Comparison(
        _client(f'client.make("v1", {MILLION}, form="bytes")', MILLION),
        pace=Pace(calls=1, bursts=1, rest=0.2),
        at_most=25,
    ),
)

SNOWFLAKES = Maker(
    "snowflake-id",
    # None comes once the 4,096 ids of a millisecond are used; it is not an id.
    "from snowflake import SnowflakeGenerator as Generator;"
    f" draw = filter(None, Generator({WORKER})).__next__",
    at_least=2,
)

KINDS = (
    Comparison(
        _uuid("uuid7"),
        (
            _peer("uuid_utils.compat.uuid7", at_least=2),
            _peer("c_uuid_v7.compat.uuid7"),
            _peer("fastuuid7.uuid7", at_least=2),
            _peer("uuid6.uuid7"),
            _peer("fastuuidv7.uuid7", OWN_TYPE),
            _peer("uuid_utils.uuid7", OWN_TYPE),
        ),
    ),
    Comparison(_uuid("uuid6"), (_peer("uuid_utils.compat.uuid6"),)),
    Comparison(
        _text("ulid"),
        (
            _peer("ulid.ULID", "str({}())", 3, text=True),
            _peer("ulid_transform.ulid_now", at_least=0.8),
        ),
    ),
    Comparison(_text("ksuid"), (_peer("cyksuid.v2.ksuid", "str({}())", 1, text=True),)),
    Comparison(_text("snowflake"), (SNOWFLAKES,)),
)

PROMISING = (
    UUID1,
    _uuid("uuid7"),
    Maker(
        "Client(max_age=0).uuid7()",
        "from uuidd_client import Client; draw = Client(max_age=0).uuid7",
    ),
    replace(STDLIB, name="uuid.uuid1()"),
    _peer("uuid_utils.compat.uuid1"),
    _peer("uuid_utils.compat.uuid7"),
    _peer("c_uuid_v7.compat.uuid7"),
    _peer("fastuuid.uuid7"),
    _peer("fastuuid7.uuid7"),
    _peer("fastuuidv7.uuid7_str"),
    _peer("lastuuid.uuid7"),
    _peer("uuid6.uuid7"),
    _peer("uuid7_rs.compat.uuid7"),
    _peer("ulid.ULID", "str({}())", text=True),
    _peer("ulid_transform.ulid_now"),
    _peer("pyulid.ulid"),
    _peer("ksuid.Ksuid", "str({}())", text=True),
    _peer("cyksuid.v2.ksuid", "str({}())", text=True),
    SNOWFLAKES,
)
"""One maker of each library, to try what its ids can be relied on for."""

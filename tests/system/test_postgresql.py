"""PostgreSQL's own view of our ids, and the statements of the recipe."""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

import pytest

from tests import kinds
from tests.fleet.servers import PASSWORD, USER, Postgresql, running
from tests.fleet.servers import Server as Engine
from tests.tools import need, run
from uuidd.core.ids import nodes, times, uuids, versions
from uuidd.core.ids.kinds import FORMATS, TIMES
from uuidd.core.ids.ticks import UNIX_EPOCH
from uuidd_client.command import bounds

RECIPE = Path(__file__).parents[2] / "client" / "recipes" / "postgresql.sql"

MS = 1_645_557_742_000
"""2022-02-22T19:22:22Z, as in the statements."""

TEXT_KINDS = ("ksuid", "push_id")

Rows = list[list[str]]


class Server:
    """A PostgreSQL of its own."""

    def __init__(self, engine: Engine) -> None:
        port = engine.ports[0][0]
        self.url = f"postgresql://{USER}:{quote(PASSWORD)}@127.0.0.1:{port}/postgres"

    def psql(self, script: str) -> Rows:
        """Return the rows that *script* prints, in one session. The first error fails the test."""
        done = self._psql(script)
        assert done.returncode == 0, done.stderr
        return [line.split("|") for line in done.stdout.splitlines()]

    def refused(self, statement: str) -> str:
        """Return the error of a statement that must have one."""
        done = self._psql(statement)
        assert done.returncode != 0, done.stdout
        return done.stderr

    def load(self, table: str, columns: str, rows: Iterable[Iterable[object]]) -> None:
        """Make a table of these rows."""
        self.psql(f"DROP TABLE IF EXISTS {table}; CREATE TABLE {table} ({columns});")
        self.fill(table, rows)

    def fill(self, table: str, rows: Iterable[Iterable[object]]) -> None:
        """Put these rows, and no others, into a table."""
        lines = "".join("\t".join(map(str, row)) + "\n" for row in rows)
        self.psql(f"TRUNCATE {table};\nCOPY {table} FROM stdin;\n{lines}\\.\n")

    def _psql(self, script: str) -> subprocess.CompletedProcess[str]:
        return run(
            *(need("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", self.url),
            input=script,
            env={"PATH": os.environ.get("PATH", os.defpath), "PGTZ": "Asia/Kathmandu"},
        )


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running(Postgresql) as engine:
        yield Server(engine)


@pytest.fixture(scope="module")
def statements(server: Server) -> str:
    found = RECIPE.read_text()
    server.psql(found)
    return found


def v1_fields(count: int) -> list[kinds.Gregorian]:
    """Return fields of v1 from the first tick to the last, all years alike, the ends among them."""
    draw = random.Random(1)
    drawn = [
        kinds.Gregorian(draw.getrandbits(60), draw.getrandbits(14), draw.getrandbits(48))
        for _ in range(count - 2)
    ]
    highest = kinds.Gregorian((1 << 60) - 1, (1 << 14) - 1, (1 << 48) - 1)
    return [kinds.Gregorian(0, 0, 0), highest, *drawn]


def built() -> Iterator[tuple[str, ...]]:
    for tick, clock_seq, node in v1_fields(1000):
        whole = tick - tick % 10
        id = uuids.to_text(versions.gregorian("v1", whole, clock_seq, node))
        yield times.text(whole, 10), str(clock_seq), nodes.to_text(node), id


def timed() -> Iterator[tuple[str, ...]]:
    for fields in v1_fields(1000):
        yield uuids.to_text(versions.gregorian("v1", *fields)), times.text(fields.tick, 10)


def turned() -> Iterator[tuple[str, ...]]:
    for value in (versions.gregorian("v1", *fields) for fields in v1_fields(1000)):
        yield uuids.to_text(value), uuids.to_text(versions.v1_to_v6(value))


@pytest.mark.usefixtures("statements")
@pytest.mark.parametrize(
    ("call", "columns", "rows"),
    [
        ("uuid_v1(a, b, c)", "a timestamptz, b int, c macaddr, given uuid", built),
        ("uuid_v1_time(a)", "a uuid, given timestamptz", timed),
        ("uuid_v1_to_v6(a)", "a uuid, given uuid", turned),
    ],
)
def test_a_function_gives_what_ours_gives(
    server: Server, call: str, columns: str, rows: Callable[[], Iterator[tuple[str, ...]]]
) -> None:
    server.load("expected", columns, rows())
    query = f"SELECT * FROM expected WHERE {call} IS DISTINCT FROM given;"  # noqa: S608 - our own
    assert server.psql(query) == []


@pytest.mark.usefixtures("statements")
@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("uuid_v1('1582-10-14T23:59:59.999999Z', 0, '0:0:0:0:0:0')", "time out of range"),
        ("uuid_v1('5236-03-31T21:21:00.684698Z', 0, '0:0:0:0:0:0')", "time out of range"),
        ("uuid_v1('infinity', 0, '0:0:0:0:0:0')", "out of range|infinity|cannot"),
        ("uuid_v1(now(), -1, '0:0:0:0:0:0')", "clock_seq is not 0 to 16383"),
        ("uuid_v1(now(), 16384, '0:0:0:0:0:0')", "clock_seq is not 0 to 16383"),
        ("uuid_v1_time('1ec9414c-232a-6b00-b3c8-9f6bdeced846')", "is not a v1"),
        ("uuid_v1_time('c232ab00-9414-11ec-73c8-9f6bdeced846')", "is not a v1"),
        ("uuid_v1_to_v6('017f22e2-79b0-7000-8000-000000000000')", "is not a v1"),
        ("uuid_v1_to_v6('c232ab00-9414-11ec-c3c8-9f6bdeced846')", "is not a v1"),
    ],
)
def test_what_does_not_fit_is_an_error(server: Server, call: str, reason: str) -> None:
    assert re.search(reason, server.refused(f"SELECT {call};"))


def uuids_at(kind: str, ms: int) -> list[str]:
    tick = UNIX_EPOCH + ms * 10_000
    ends = {
        "v6": [
            versions.gregorian("v6", tick, 0, 0),
            versions.gregorian("v6", tick + 9999, 0x3FFF, (1 << 48) - 1),
        ],
        "v7": [*FORMATS["v7"].bounds(ms)],
        "ulid": [ms << 80, (ms + 1 << 80) - 1],
    }
    return [uuids.to_text(id) for id in ends[kind]]


def text_of(kind: str, ms: int, rest: int) -> str:
    """Return an id of a time, with *rest* for what it has besides."""
    if kind == "ksuid":
        return kinds.text("ksuid", ms // 1000 - 1_400_000_000 << 128 | ms % 1000 << 100 | rest)
    return kinds.text("push_id", ms << 72 | rest)


def texts_at(kind: str, ms: int) -> list[str]:
    return [text_of(kind, ms, rest) for rest in (0, (1 << 72) - 1)]


BOUNDED = {
    **dict.fromkeys(("v7", "v6", "ulid"), ("orders", uuids_at)),
    **dict.fromkeys(TEXT_KINDS, ("events", texts_at)),
}
"""The kinds of which the recipe has bounds: the table, and what the ids of a millisecond are."""


def beside(statements: str) -> dict[str, tuple[str, str]]:
    """Return the commands in comments, and the statements below them, by their kinds."""
    found = re.findall(r"^-- uuidctl (bounds (\S+).*)\n([^;]*;)", statements, flags=re.MULTILINE)
    return {kind: (command, statement) for command, kind, statement in found}


@pytest.mark.parametrize("kind", BOUNDED)
def test_the_bounds_are_those_that_the_command_beside_them_prints(
    statements: str, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    parser = argparse.ArgumentParser()
    bounds.add_to(parser.add_subparsers())
    assert beside(statements).keys() == BOUNDED.keys()
    command, statement = beside(statements)[kind]
    given = parser.parse_args(command.split())
    given.do(given)
    printed = [line.split()[1] for line in capsys.readouterr().out.splitlines()]
    assert re.findall(r"'(.*?)'", statement) == printed


@pytest.mark.parametrize("kind", BOUNDED)
def test_the_bounds_find_the_ids_of_their_second_alone(
    server: Server, statements: str, kind: str
) -> None:
    """Those at both ends and within it, and none of the seconds beside it."""
    table, at = BOUNDED[kind]
    inside = [id for ms in (MS, MS + 500, MS + 999) for id in at(kind, ms)]
    outside = [id for ms in (MS - 1, MS + 1000) for id in at(kind, ms)]
    server.fill(table, ([id] for id in (*inside, *outside)))
    assert {id for (id,) in server.psql(beside(statements)[kind][1])} == set(inside)


@pytest.mark.usefixtures("statements")
@pytest.mark.parametrize("kind", TEXT_KINDS)
def test_text_sorts_by_time_with_collate_c_alone(server: Server, kind: str) -> None:
    """By a language's rules, as most databases sort, letters are not in their bytes' order."""
    texts = [text_of(kind, MS + 1_234_567 * step, step << 50) for step in range(1000)]
    assert texts == sorted(texts)
    server.fill("events", ([text] for text in reversed(texts)))
    assert server.psql("SELECT id FROM events ORDER BY id;") == [[text] for text in texts]
    found = server.psql('SELECT id FROM events ORDER BY id COLLATE "en-x-icu";')
    assert found != [[text] for text in texts]


def test_the_index_on_the_time_serves_v1(server: Server, statements: str) -> None:
    """The last statement gives the v1 of its second in order of time, from the index."""
    first = UNIX_EPOCH + MS * 10_000
    ticks = [first - 1, first + 9_999_990, first + 5, first + 10_000_000]
    server.fill("visits", ([uuids.to_text(versions.gregorian("v1", tick, 1, 2))] for tick in ticks))
    query = statements.split(";")[-2]
    expected = [
        [uuids.to_text(versions.gregorian("v1", tick, 1, 2))] for tick in (ticks[2], ticks[1])
    ]
    assert server.psql(f"{query};") == expected
    plan = server.psql(f"SET enable_seqscan = off; EXPLAIN {query};")
    assert re.search(r"visits_by_time.*Index Cond: \(\(uuid_v1_time\(id\) >=", str(plan)), plan


def test_the_example_is_the_v1_that_we_build(server: Server, statements: str) -> None:
    call = re.search(r"^SELECT uuid_v1\('(.*?)', (\d+), '(.*?)'\);", statements, re.MULTILINE)
    assert call is not None
    tick = times.tick_of(datetime.fromisoformat(call[1]), TIMES["v1"])
    ours = uuids.to_text(versions.gregorian("v1", tick, int(call[2]), nodes.node(call[3])))
    assert server.psql(call[0]) == [[ours]]

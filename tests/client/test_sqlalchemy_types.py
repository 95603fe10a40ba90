"""The columns of ``uuidd_client.sqlalchemy``, on SQLite and as statements of other databases."""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Column, Connection, MetaData, Table, create_engine, literal, select
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.mysql.base import MySQLDialect
from sqlalchemy.dialects.oracle.base import OracleDialect
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.exc import StatementError
from sqlalchemy.schema import CreateTable
from sqlalchemy.types import TypeDecorator

import uuidd_client
from tests import kinds
from uuidd_client.sqlalchemy import Flake, Ksuid, PushId, Ulid
from uuidd_client.testing import fixed_ids

TYPES: dict[type[TypeDecorator[str]], tuple[Callable[[], str], Callable[[int, int], str]]] = {
    Ulid: (uuidd_client.ulid, lambda ms, rest: kinds.text("ulid", ms << 80 | rest)),
    Flake: (uuidd_client.flake, lambda ms, rest: kinds.text("flake", ms << 64 | 5 << 16 | rest)),
    Ksuid: (
        uuidd_client.ksuid,
        lambda ms, rest: kinds.text("ksuid", (ms // 1000 - 1400000000) << 128 | rest),
    ),
    PushId: (uuidd_client.push_id, lambda ms, rest: kinds.text("push_id", ms << 72 | rest)),
}

Type = type[TypeDecorator[str]]

each_type = pytest.mark.parametrize("kind", TYPES)


@pytest.fixture
def connection() -> Iterator[Connection]:
    """A connection to a database in memory."""
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def created(connection: Connection, kind: Type, **settings: Any) -> Table:
    """Return a new table with a column of a type."""
    ids = Table("ids", MetaData(), Column("id", kind, **settings))
    ids.create(connection)
    return ids


@each_type
def test_a_function_is_the_default_of_a_column(connection: Connection, kind: Type) -> None:
    draw = TYPES[kind][0]
    ids = created(connection, kind, primary_key=True, default=draw)
    with fixed_ids():
        expected = draw()
    with fixed_ids():
        connection.execute(ids.insert())
    assert connection.scalar(select(ids.c.id)) == expected


@each_type
def test_the_database_sorts_and_compares_by_time(connection: Connection, kind: Type) -> None:
    """Whatever the length of the texts, and whatever the case of their letters."""
    draw = random.Random(3)
    times = draw.sample(range(1_400_000_000, 4_294_967_295), 200)
    texts = {time: TYPES[kind][1](time * 1000, draw.getrandbits(16)) for time in times}
    ids = created(connection, kind, primary_key=True)
    connection.execute(ids.insert(), [{"id": text} for text in texts.values()])
    in_order = [texts[time] for time in sorted(times)]
    assert connection.scalars(select(ids.c.id).order_by(ids.c.id)).all() == in_order
    later = select(ids.c.id).where(ids.c.id > in_order[49], ids.c.id <= in_order[59])
    assert {*connection.scalars(later)} == {*in_order[50:60]}
    assert connection.scalar(select(ids.c.id).where(ids.c.id.in_(in_order[7:8])))


@each_type
def test_an_id_in_the_text_of_a_statement_is_the_same_id(
    connection: Connection, kind: Type
) -> None:
    """As in the condition of an index, where a database takes no parameters."""
    ids = created(connection, kind)
    text = TYPES[kind][1](1_645_557_742_000, 5)
    insert, delete = ids.insert().values(id=text), ids.delete().where(ids.c.id == text)
    as_text = {"literal_binds": True}
    connection.exec_driver_sql(str(insert.compile(connection, compile_kwargs=as_text)))
    assert connection.execute(delete).rowcount == 1
    connection.execute(insert)
    written = str(delete.compile(connection, compile_kwargs=as_text))
    assert connection.exec_driver_sql(written).rowcount == 1


@pytest.mark.parametrize(
    ("dialect", "ulid", "push_id"),
    [
        ("postgresql", "'017f22e2-79b0-0000-0000-000000000005'", r"'\x{}'::bytea"),
        ("mysql", "X'017f22e279b000000000000000000005'", "X'{}'"),
        ("oracle", "HEXTORAW('017f22e279b000000000000000000005')", "HEXTORAW('{}')"),
        ("mssql", "0x017f22e279b000000000000000000005", "0x{}"),
    ],
)
def test_each_database_has_its_way_to_write_bytes(dialect: str, ulid: str, push_id: str) -> None:
    known = registry.load(dialect)()
    packed = "2d4d77587362616b2d2d2d2d2d2d2d2d2d2d2d34"
    for kind, literal_text in ((Ulid, ulid), (PushId, push_id.format(packed))):
        text = TYPES[kind][1](1_645_557_742_000, 5)
        written = select(literal(text, kind)).compile(
            dialect=known, compile_kwargs={"literal_binds": True}
        )
        assert f"SELECT {literal_text} AS " in str(written)


@each_type
@pytest.mark.parametrize("wrong", ["no id!", b"short", 5])
def test_what_is_no_id_is_refused(connection: Connection, kind: Type, wrong: object) -> None:
    ids = created(connection, kind)
    with pytest.raises(StatementError, match=re.escape(repr(wrong).strip("'"))):
        connection.execute(ids.insert(), {"id": wrong})
    assert connection.scalars(select(ids.c.id)).all() == []


def test_text_in_lower_case_bytes_and_a_uuid_are_the_same_ulid(connection: Connection) -> None:
    text = "01FWHE4YDG001MR2KR543M8B4S"
    value = kinds.number("ulid", text)
    ids = created(connection, Ulid)
    connection.execute(ids.insert(), {"id": text.lower()})
    for same in (text, text.lower(), value.to_bytes(16, "big"), uuid.UUID(int=value)):
        assert connection.scalar(select(ids.c.id).where(ids.c.id == same)) == text


def test_no_value_is_none(connection: Connection) -> None:
    ids = created(connection, Ulid)
    connection.execute(ids.insert(), {"id": None})
    assert connection.scalars(select(ids.c.id)).all() == [None]


@pytest.mark.parametrize(
    ("dialect", "types"),
    [
        (PGDialect(), {Ulid: "UUID", Flake: "UUID", Ksuid: "BYTEA", PushId: "BYTEA"}),  # type: ignore[no-untyped-call]  # theirs has no types
        (
            MySQLDialect(),
            {Ulid: "BINARY(16)", Flake: "BINARY(16)", Ksuid: "BINARY(20)", PushId: "BINARY(20)"},
        ),
        (OracleDialect(), {Ulid: "RAW(16)", Flake: "RAW(16)", Ksuid: "RAW(20)"}),
    ],
    ids=["postgresql", "mysql", "oracle"],
)
def test_the_column_has_the_smallest_type_that_can_be_a_key(
    dialect: Any, types: dict[Type, str]
) -> None:
    for kind, name in types.items():
        table = Table("ids", MetaData(), Column("id", kind, primary_key=True))
        assert f"id {name} NOT NULL" in str(CreateTable(table).compile(dialect=dialect))

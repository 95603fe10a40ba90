"""Columns of SQLAlchemy for ids that are text in Python, and bits in the database.

    >>> from uuidd_client import ulid
    >>> from uuidd_client.sqlalchemy import Ulid
    >>> id: Mapped[str] = mapped_column(Ulid, primary_key=True, default=ulid)

``Ulid`` and ``Flake`` are 16 bytes, of the type ``uuid`` on PostgreSQL. ``Ksuid`` is 20 bytes, and
``PushId`` the 20 bytes of its text. So the database compares and sorts them by time, whatever its
collation is. UUIDs and Snowflakes need no type of their own: use ``Uuid`` and ``BigInteger``.

This module needs the extra ``sqlalchemy``.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Literal

from sqlalchemy import BINARY, Dialect, LargeBinary, Uuid
from sqlalchemy.dialects.oracle import RAW
from sqlalchemy.types import TypeDecorator, TypeEngine

from uuidd.core.ids.checks import shown
from uuidd.core.ids.kinds import FORMATS, Kind

__all__ = ["Flake", "Ksuid", "PushId", "Ulid", "render_item"]

_UUID_SIZE = 16

_LITERALS = {"postgresql": r"'\x{}'::bytea", "oracle": "HEXTORAW('{}')", "mssql": "0x{}"}
"""How a statement writes bytes in hex, by the name of the dialect; all others do as SQL has it."""


class _Id(TypeDecorator[str]):
    """A column whose values are the text of ids of *form*, kept as *size* bytes."""

    impl = LargeBinary
    cache_ok = True

    form: Kind
    size: int

    @property
    def python_type(self) -> type[str]:
        """The type of the values: str."""
        return str

    def as_uuid(self, dialect: Dialect) -> bool:
        """Whether a database of *dialect* keeps the ids in its own type for UUIDs."""
        return self.size == _UUID_SIZE and dialect.name == "postgresql"

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the type of the column in a database of *dialect*."""
        kept: TypeEngine[Any]
        if self.as_uuid(dialect):
            kept = Uuid()
        elif dialect.name in ("postgresql", "sqlite"):
            kept = LargeBinary()
        elif dialect.name == "oracle":
            kept = RAW(self.size)
        else:
            # A BLOB could not be a key.
            kept = BINARY(self.size)
        return dialect.type_descriptor(kept)

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """Return what the database gets for an id: text, its bytes, or if it has 128 bits a UUID.

        Raises ValueError, naming the text, if it is not an id of this kind, and TypeError.
        """
        if value is None:
            return None
        packed = self.packed(value)
        return uuid.UUID(bytes=packed) if self.as_uuid(dialect) else packed

    def literal_processor(self, dialect: Dialect) -> Callable[[Any], str]:
        """Return the function that writes an id in the text of a statement."""

        def literal(value: Any) -> str:
            bound = self.process_bind_param(value, dialect)
            if isinstance(bound, uuid.UUID):
                return f"'{bound}'"
            return _LITERALS.get(dialect.name, "X'{}'").format(bound.hex())

        return literal

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        """Return the text of an id in the database."""
        if value is None:
            return None
        return self.unpacked(value.bytes if isinstance(value, uuid.UUID) else bytes(value))

    def packed(self, value: Any) -> bytes:
        """Return the bytes of an id."""
        kind = type(self).__name__
        if isinstance(value, str):
            return self.form.from_text(value).to_bytes(self.size, "big")
        if isinstance(value, uuid.UUID) and self.size == _UUID_SIZE:
            return value.bytes
        if isinstance(value, bytes):
            if len(value) != self.size:
                raise ValueError(f"{shown(value)} is no {kind}: it is not {self.size} bytes")
            return value
        raise TypeError(f"{shown(value)} is no {kind}; pass its text")

    def unpacked(self, value: bytes) -> str:
        """Return the text of an id that was packed."""
        return self.form.to_text(int.from_bytes(value, "big"))


class Ulid(_Id):
    """ULIDs: text in Python, ``uuid`` on PostgreSQL, and 16 bytes in other databases."""

    cache_ok = True
    form, size = FORMATS["ulid"], 16


class Flake(_Id):
    """Flakes: text in Python, ``uuid`` on PostgreSQL, and 16 bytes in other databases.

    They sort by time in the database, where their texts do not.
    """

    cache_ok = True
    form, size = FORMATS["flake"], 16


class Ksuid(_Id):
    """KSUIDs: text in Python, and 20 bytes in the database."""

    cache_ok = True
    form, size = FORMATS["ksuid"], 20


class PushId(_Id):
    """Push IDs: text in Python, and the 20 ASCII bytes of this text in the database."""

    cache_ok = True
    form, size = FORMATS["push_id"], 20

    def packed(self, value: Any) -> bytes:
        """Return the bytes of an id."""
        text = value.decode("ascii", "replace") if isinstance(value, bytes) else value
        if not isinstance(text, str):
            raise TypeError(f"{shown(value)} is no PushId; pass its text")
        self.form.from_text(text)
        return text.encode()

    def unpacked(self, value: bytes) -> str:
        """Return the text of an id that was packed."""
        return value.decode()


def render_item(kind: str, item: object, context: Any) -> str | Literal[False]:
    """Return the code of a column's type in a migration of Alembic, and import this module there.

    Pass this as ``render_item`` to ``context.configure`` in ``env.py``.
    """
    if kind != "type" or not isinstance(item, _Id):
        return False
    context.imports.add(f"import {__name__}")
    return f"{__name__}.{type(item).__name__}()"

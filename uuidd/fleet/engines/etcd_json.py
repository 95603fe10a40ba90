"""The JSON of etcd's gateway: a key or value is base64, and an error may be of any shape."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from uuidd.fleet.coordinator import Away, one_line
from uuidd.fleet.record import register_number


class understood:  # noqa: N801 - used as a function is
    """Raises Away where an answer is not of the shape that etcd's have."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, (ValueError, TypeError, KeyError, AttributeError)):
            raise Away(f"its answer about {self._where} is not etcd's") from error


def message(answer: dict[str, Any]) -> str:
    """Return why etcd refuses a request, as one line."""
    return one_line(answer.get("message") or answer.get("error") or "no reason")


def put(key: str, value: bytes) -> dict[str, Any]:
    """Return a write as a part of a transaction."""
    return {"request_put": {"key": text(key), "value": base64(value)}}


def text(key: str) -> str:
    """Return a key as it is sent."""
    return base64(key.encode())


def base64(data: bytes | None) -> str:
    """Return a value as it is sent."""
    return b64encode(data or b"").decode()


def number_of(key: str) -> int | None:
    """Return the number of a register's key, None if the key is no register's."""
    return register_number(key.rpartition("/")[2])

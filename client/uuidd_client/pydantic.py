"""Types of Pydantic for ids that are text: they are checked, and described in JSON schemas.

    >>> class Order(BaseModel):
    ...     id: Ulid = Field(default_factory=ulid)

A value is the text of an id, as the functions of ``uuidd_client`` return it. A ``Snowflake`` is an
int; in JSON it is text, because numbers in JavaScript have 53 bits. For UUIDs use Pydantic's own
types, such as ``UUID7``.

This module needs the extra ``pydantic``.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, WithJsonSchema

from uuidd.core.ids.kinds import FORMATS

__all__ = ["Flake", "Ksuid", "PushId", "Snowflake", "Ulid"]

_SNOWFLAKE_BITS = 63


def _checked(kind: str) -> Any:
    """Return a check that returns the usual text of an id; ULIDs may be in lower case."""
    form = FORMATS[kind]
    return AfterValidator(lambda text: form.to_text(form.from_text(text)))


def _described(title: str, pattern: str, example: str) -> Any:
    return WithJsonSchema(
        {"type": "string", "title": title, "pattern": pattern, "examples": [example]}
    )


def _from_digits(value: object) -> object:
    """Return the int that a text of digits shows, and what is no text as it is."""
    if not isinstance(value, str):
        return value
    if value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    raise ValueError("a Snowflake is an integer, as text 1 to 19 decimal digits")


Ulid = Annotated[
    str,
    _checked("ulid"),
    _described("ULID", "^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$", "01FWHE4YDG001MR2KR543M8B4S"),
]
"""A ULID of 26 characters. Those in lower case are changed to upper case."""

Ksuid = Annotated[
    str,
    _checked("ksuid"),
    _described("KSUID", "^[0-9A-Za-z]{27}$", "25Tizqai8eZik1qR1EvIC392XO4"),
]
"""A KSUID of 27 characters."""

PushId = Annotated[
    str,
    _checked("push_id"),
    _described("Push ID", "^[-0-9A-Z_a-z]{20}$", "-MwXsbak--Dgn917Hapb"),
]
"""A Push ID of 20 characters."""

Flake = Annotated[
    str,
    _checked("flake"),
    _described("Flake", "^[0-9A-Za-z]{1,22}$", "AGkDJqavTaOUW0hKy0"),
]
"""A Flake in base 62, of up to 22 characters."""

Snowflake = Annotated[
    int,
    Field(ge=0, lt=1 << _SNOWFLAKE_BITS, strict=True),
    BeforeValidator(_from_digits),
    PlainSerializer(str, return_type=str, when_used="json"),
    _described("Snowflake", "^[0-9]{1,19}$", "1496203729957814272"),
]
"""A Snowflake: an int, or its decimal text, which it is in JSON."""

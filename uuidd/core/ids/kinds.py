"""The kinds of ids that are made now, each with its timeline and its forms.

How each is made, in each form, is in ``recipes``, which takes longer to import.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Kind(NamedTuple):
    """*timeline* is ``utc``, ``steady``, or empty for ids without a time.

    *forms* are those that the kind has; the first is the one in which it is mostly used.
    """

    timeline: str
    forms: tuple[str, ...]


KINDS: Mapping[str, Kind] = {
    "v1": Kind("utc", ("uuid", "text", "bytes")),
    "v4": Kind("", ("uuid", "text", "bytes")),
    "v6": Kind("utc", ("uuid", "text", "bytes")),
    "v7": Kind("steady", ("uuid", "text", "bytes")),
    "snowflake": Kind("steady", ("int", "text", "bytes")),
    "flake": Kind("steady", ("text", "int", "bytes")),
    "ulid": Kind("steady", ("text", "uuid", "bytes")),
    "ksuid": Kind("steady", ("text", "bytes")),
    "push_id": Kind("steady", ("text",)),
}

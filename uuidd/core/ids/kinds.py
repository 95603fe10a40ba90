"""The kinds of ids that the daemon and the client make, each with its timeline and its forms.

How each kind is made is in ``layouts``.
"""

from __future__ import annotations

from collections.abc import Mapping


class Kind:
    """A kind's *timeline*, which is ``utc``, ``steady``, or empty for ids without a time.

    ``snowflake`` is that part of ``steady`` for which the host has a worker number.

    *forms* are the forms in which its ids can be made; the first is the default.
    """

    __slots__ = ("forms", "timeline")

    def __init__(self, timeline: str, forms: tuple[str, ...]) -> None:
        self.timeline = timeline
        self.forms = forms


KINDS: Mapping[str, Kind] = {
    "v1": Kind("utc", ("uuid", "text", "bytes")),
    "v4": Kind("", ("uuid", "text", "bytes")),
    "v6": Kind("utc", ("uuid", "text", "bytes")),
    "v7": Kind("steady", ("uuid", "text", "bytes")),
    "snowflake": Kind("snowflake", ("int", "text", "bytes")),
    "flake": Kind("steady", ("text", "int", "bytes")),
    "ulid": Kind("steady", ("text", "uuid", "bytes")),
    "ksuid": Kind("steady", ("text", "bytes")),
    "push_id": Kind("steady", ("text",)),
}

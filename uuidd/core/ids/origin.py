"""What an id tells beside its time and random bits: who made it."""

from __future__ import annotations

from typing import NamedTuple

from uuidd.core.ids.snowflake import TWITTER_EPOCH


class Origin(NamedTuple):
    """The node, and what goes with it by kind.

    *clock_seq* is for v1 and v6; *worker*, the machine number or None, and *epoch*, in Unix
    milliseconds, are for Snowflakes.
    """

    node: int
    clock_seq: int = 0
    worker: int | None = None
    epoch: int = TWITTER_EPOCH

"""Taking a block of the utc timeline as the daemon does."""

from __future__ import annotations

from uuidd.core.timeline import Block
from uuidd.core.timeline.outcomes import NeedsSwitch
from uuidd.core.timeline.utc import Utc


def take(utc: Utc, count: int, *, now: int, whole: bool = False, avoid: int | None = None) -> Block:
    """Take a block; where the timeline asks for a switch, switch once and take again."""
    try:
        return utc.take(count, now=now, whole=whole)
    except NeedsSwitch:
        utc.switch(now=now, avoid=avoid)
    return utc.take(count, now=now, whole=whole)

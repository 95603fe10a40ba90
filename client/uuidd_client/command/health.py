"""What is wrong with a daemon that answers, as its status tells it: for ``status --check``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from uuidd.core.wire.methods import SAVE_SECONDS

LEAD_SECONDS = 0.01
"""UTC may step back by so much without any effect on the steady kinds."""


def faults(status: dict[str, Any]) -> Iterator[str]:
    """Give what keeps some callers from getting the ids that they ask for, most urgent first."""
    saves, steady = status["saves"], status["steady"]
    if saves["failing"]:
        yield f"saves of the state fail ({saves['trouble']})"
    elif saves["under_way_seconds"] > SAVE_SECONDS:
        # Too late for the requests that wait for it.
        yield f"a save of the state has taken {saves['under_way_seconds']:.1f} s so far"
    if status["volatile"]:
        yield "v1 and v6 come from a volatile node"
    lead = steady["lead"]
    if steady["held_for"]:
        yield f"the state was lost, so the steady kinds are held for {steady['held_for']:.1f} s"
    elif lead > steady["max_lead"]:
        yield f"the steady kinds are refused: they are {lead:.1f} s ahead of UTC"
    elif lead > LEAD_SECONDS and steady["rollback"] in ("refuse", "wait"):
        done = "are refused" if steady["rollback"] == "refuse" else "wait"
        yield f"the steady kinds {done} until UTC, which was set back, catches up ({lead:.1f} s)"

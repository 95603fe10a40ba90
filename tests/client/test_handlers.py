"""Signal handlers that draw in the middle of a draw, where there is no daemon."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from uuid import UUID

import pytest

from uuidd_client import Client
from uuidd_client.system import SYSTEM_CLOCK, ClientClock

pytestmark = pytest.mark.usefixtures("implementation")

SECONDS = 0.3


class Set(ClientClock):
    """The system's clock, whose UTC is set back by *back* seconds."""

    back = 0

    def utc_ns(self) -> int:
        """Return UTC in nanoseconds since 1970."""
        return SYSTEM_CLOCK.utc_ns() - self.back * 1_000_000_000


@pytest.mark.parametrize("back", [0, 100])
@pytest.mark.parametrize("draw", [Client.uuid7, Client.ulid])
def test_ids_rise_under_signals_without_a_daemon(
    tmp_path: Path,
    draw: Callable[[Client], UUID | str],
    back: int,
) -> None:
    """Each id is above all that had been drawn when its own draw began, a handler's also.

    Also when UTC has stepped back, so that what is drawn leads it.
    """
    # Blocks are short-lived, so that many signals come in the middle of a request for one.
    clock = Set()
    client = Client(tmp_path / "absent", max_age=0.0001, _clock=clock)
    highest = draw(client)
    clock.back = back
    handled = fallen = 0
    found = [highest]

    def handle(_: int, __: FrameType | None) -> None:
        nonlocal highest, handled, fallen
        for _ in range(3):
            before, id = highest, draw(client)
            handled += 1
            fallen += not id > before  # type: ignore[operator]  # both are of one type
            highest = max(highest, id)
            found.append(id)

    restored = signal.signal(signal.SIGALRM, handle)
    try:
        end = time.monotonic() + SECONDS
        # On a busy machine fewer signals come in that time.
        while time.monotonic() < end or handled <= 30:
            # One at a time, lest handlers come in between handlers without an end.
            signal.setitimer(signal.ITIMER_REAL, 0.0001 + len(found) % 397 * 1e-6)
            for _ in range(50):
                before, id = highest, draw(client)
                fallen += not id > before  # type: ignore[operator]  # likewise
                highest = max(highest, id)
                found.append(id)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, restored)
    assert len(set(found)) == len(found)
    assert fallen == 0

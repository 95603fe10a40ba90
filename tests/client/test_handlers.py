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


def test_ids_after_a_signal_handlers_are_above_them_without_a_daemon(tmp_path: Path) -> None:
    """What the handler got in the middle of a request is below all that is drawn later."""
    inside: list[UUID] = []
    signals = iter([signal.SIGUSR1] * 10)

    class Interrupted(ClientClock):
        def utc_ns(self) -> int:
            for number in signals:
                signal.raise_signal(number)
                break
            return SYSTEM_CLOCK.utc_ns()

    client = Client(tmp_path / "absent", _clock=Interrupted())
    before = signal.signal(signal.SIGUSR1, lambda *_: inside.append(client.uuid7()))
    try:
        for number in range(1, 10):
            client.make("v7", 1)
            after = client.uuid7()
            assert len(inside) >= min(number, 9)
            assert after > max(inside)
    finally:
        signal.signal(signal.SIGUSR1, before)


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

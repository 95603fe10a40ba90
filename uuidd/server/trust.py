"""Withholds the steady kinds after a start until the kernel holds the clock for good enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.kernel_clock import Quality, UnknownError, quality
from uuidd.refused import Refused
from uuidd.server import events

LOOK_SECONDS = 1.0
"""Between two looks at the clock's quality while the steady kinds are withheld."""


def check_sync(required: float | None, ask: Callable[[], Quality] = quality) -> None:
    """Check that the kernel says how good the clock is, if that is *required*. Raises Refused."""
    if required is None:
        return
    try:
        ask()
    except UnknownError as unknown:
        raise Refused(
            f"--require-sync {required:g}: the kernel does not say how good the clock is"
            f" ({unknown}); leave out the option or, under systemd, set ProtectClock=no and"
            " SystemCallFilter=adjtimex clock_adjtime in a drop-in of the service"
        ) from None


def withheld(required: float | None, ask: Callable[[], Quality] = quality) -> str:
    """Return why steady ids are withheld now, in a clause; "" if they are not."""
    if required is None:
        return ""
    try:
        lack = ask().lack(required)
    except UnknownError as unknown:
        lack = f"the kernel does not say how good the clock is ({unknown})"
    if not lack:
        return ""
    return (
        f"{lack}, and --require-sync withholds steady after a start until its error is at most"
        f" {required:g} s"
    )


class Trust:
    """Releases *timelines* once the clock's error is at most *required* seconds; None for at once.

    *ask* asks the kernel, and *read* reads the clock.
    """

    def __init__(
        self,
        timelines: Timelines,
        read: Callable[[], Reading],
        required: float | None = None,
        ask: Callable[[], Quality] = quality,
    ) -> None:
        self._steady = timelines.steady
        self._read = read
        self._required = required
        self._ask = ask

    async def run(self) -> None:
        """Look at the clock each second until the steady kinds can begin, then return."""
        if not self._steady.withheld:
            return
        events.withheld(self._steady.withheld)
        while why := withheld(self._required, self._ask):
            self._steady.withheld = why
            await trio.sleep(LOOK_SECONDS)
        at = self._read()
        self._steady.release(now=at.now, elapsed=at.elapsed)
        events.released(self._steady, at)

    def status(self) -> dict[str, Any]:
        """Return the clock's quality for ``status``; what is not known is None, with a reason."""
        found: dict[str, Any] = {
            "synchronised": None,
            "max_error": None,
            "leap": None,
            "unknown": "",
            "required_error": self._required,
            "withheld": self._steady.withheld,
        }
        try:
            now = self._ask()
        except UnknownError as unknown:
            found["unknown"] = str(unknown)
        else:
            found["synchronised"] = now.synchronised
            found["max_error"] = now.max_error
            found["leap"] = now.leap
        return found

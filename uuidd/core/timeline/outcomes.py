"""Why nothing can be given out just now: what the timelines raise instead of a block.

None of these is a fault. Each says what has to happen before a further try can succeed.
"""

from __future__ import annotations


class NotNow(Exception):
    """Nothing was given out, and nothing has changed. The subclass says why."""


class NoneFree(NotNow):
    """No tick is free. *wait* is the number of ticks after which there will be."""

    def __init__(self, wait: int) -> None:
        super().__init__(f"no tick is free for {wait} ticks")
        self.wait = wait


class NeedsSave(NotNow):
    """The horizon is reached: a save of the state has to complete first."""


class NeedsSwitch(NotNow):
    """UTC stepped back, or the stored node can serve again: another generation has to serve."""


class TooFarAhead(NotNow):
    """The steady timeline is *lead* ticks ahead of UTC; only *most* are allowed, 0 for none."""

    def __init__(self, lead: int, most: int) -> None:
        super().__init__(f"{lead} ticks ahead of UTC, and {most} is the most")
        self.lead = lead
        self.most = most


class NoNumber(NotNow):
    """The host has no worker number, or its fence ends before now: Snowflakes cannot be made."""


class Withheld(NotNow):
    """Steady gives out nothing before the clock is good enough; the message says what it lacks."""


class Closed(NotNow):
    """The timeline has stopped for good: its last state is being saved."""

"""The epochs of Snowflakes, which may be moved to an earlier time but not to a later one.

A Snowflake holds the time since its epoch. Under a later epoch that span is shorter, so each
Snowflake of a past as long as the difference is made again. Under an earlier one it is longer than
any that was used so far, and goes on to rise with the steady timeline.
"""

from __future__ import annotations

from collections.abc import Mapping

NO_EPOCHS: Mapping[int, int] = {}


class LaterEpoch(Exception):
    """The epoch is later than *earliest*, one that the machine number was used with."""

    def __init__(self, earliest: int) -> None:
        super().__init__(f"the epoch {earliest} was used before")
        self.earliest = earliest


def with_epoch(epochs: Mapping[int, int], machine: int, epoch: int) -> Mapping[int, int]:
    """Give *epochs*, the earliest epoch by machine number, with *epoch* for *machine*.

    Raises LaterEpoch when that is later than the one there.
    """
    earliest = epochs.get(machine, epoch)
    if epoch > earliest:
        raise LaterEpoch(earliest)
    return {**epochs, machine: epoch}

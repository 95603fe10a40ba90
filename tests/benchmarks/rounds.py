"""Rounds in which all sides take turns, so that what disturbs one disturbs the others too."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

Side = Callable[[], float]
"""Measures one side once."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """The median of the single rounds' ratios; *low* and *high* are their quartiles."""

    value: float
    low: float
    high: float


def interleaved(rounds: int, *sides: Side) -> list[list[float]]:
    """Give each side's *rounds* measurements, taken in turns: A B A B. An unmeasured one precedes.

    The result has a list for each side.
    """
    for side in sides:
        side()
    taken = [[side() for side in sides] for _ in range(rounds)]
    return [list(measured) for measured in zip(*taken, strict=True)]


def ratio(upper: list[float], lower: list[float]) -> Ratio:
    """Give how many times *lower* is *upper*, both from the same rounds."""
    single = [one / other for one, other in zip(upper, lower, strict=True)]
    value = median(single)
    if len(single) < 2:
        return Ratio(value, value, value)
    low, _, high = statistics.quantiles(single, n=4, method="inclusive")
    return Ratio(value, low, high)


def median(measured: list[float]) -> float:
    """Give the median."""
    return statistics.median(measured)

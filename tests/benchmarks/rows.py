"""What benchmarks yield: rows; and the rounds that their figures come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TypeAlias, TypeVar

RATES = frozenset({"req/s", "million/s"})
"""Units of which more is better. Of all others less is."""

OTHER_CHECKOUT = "the other checkout"

Taken = TypeVar("Taken")

Side = Callable[[], Taken]
"""Measures one side of a comparison once."""


class Missing(Exception):
    """Something that a benchmark needs is not here; one line says what, and how to get it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the results; each of its lists has one figure for each run.

    *ours* is measured in *unit*. *beside* names what it is compared with, "" for nothing.
    *ratios* says how many times as fast as *theirs* ours is. *at_least* is a goal for the ratio,
    and *at_most* one for ours. *depends* says that other machines may have quite another ratio.
    """

    name: str
    unit: str
    ours: list[float]
    beside: str = ""
    theirs: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    at_least: float | None = None
    at_most: float | None = None
    depends: bool = False

    @property
    def goal(self) -> str:
        """The goal in words; "" when there is none."""
        if self.at_least is not None:
            return f"ratio >= {self.at_least:g}"
        return "" if self.at_most is None else f"ours <= {self.at_most:g}"

    @property
    def met(self) -> bool | None:
        """Whether the median of the runs meets the goal; None when there is none."""
        if self.at_least is not None:
            return bool(self.ratios) and median(self.ratios) >= self.at_least
        return None if self.at_most is None else median(self.ours) <= self.at_most


Result: TypeAlias = Row | Missing
"""What a benchmark yields: a Missing stands for rows that are left out."""


def interleaved(rounds: int, *sides: Side[Taken]) -> list[list[Taken]]:
    """Return a list for each side of its *rounds* measurements, taken in turns: A B A B.

    One round that is not counted comes first.
    """
    for side in sides:
        side()
    taken = [[side() for side in sides] for _ in range(rounds)]
    return [list(measured) for measured in zip(*taken, strict=True)]


def compared(
    name: str,
    beside: str,
    unit: str,
    ours: Sequence[float],
    theirs: Sequence[float],
    at_least: float | None = None,
) -> Row:
    """Return one run's row for two sides that took turns: medians, and the median of the ratios."""
    faster, slower = (ours, theirs) if unit in RATES else (theirs, ours)
    ratio = median([one / other for one, other in zip(faster, slower, strict=True)])
    figures = [_rounded(median(ours))], beside, [_rounded(median(theirs))], [_rounded(ratio)]
    return Row(name, unit, *figures, at_least=at_least)


def alone(name: str, unit: str, ours: Sequence[float], at_most: float | None = None) -> Row:
    """Return one run's row for a figure that is compared with nothing."""
    return Row(name, unit, [_rounded(median(ours))], at_most=at_most)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def joined(runs: Iterable[Iterable[Row]]) -> list[Row]:
    """Return each row once, with the figures of all runs."""
    found: dict[tuple[str, str], Row] = {}
    for row in (row for rows in runs for row in rows):
        before = found.get((row.name, row.beside), replace(row, ours=[], theirs=[], ratios=[]))
        found[row.name, row.beside] = replace(
            row,
            ours=before.ours + row.ours,
            theirs=before.theirs + row.theirs,
            ratios=before.ratios + row.ratios,
        )
    return list(found.values())


def number(value: float) -> str:
    """Return a figure as text, with about three digits."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"

"""The results, and a table of them, each against its goal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tests.benchmarks.place import Missing
from tests.benchmarks.rounds import Ratio

HEAD = ("", "ours", "theirs", "unit", "ratio", "quartiles", "goal", "met", "")
_LEFT = (0, 3, 8)


@dataclass(frozen=True, slots=True)
class Row:
    """One result: *ours* and perhaps *theirs*, in *unit*, and their *ratio*.

    *at_least* is a goal for the ratio, and then more is better; so is *ratio_at_most*, and then
    less is. *at_most* is a goal for ours.
    """

    name: str
    ours: float
    unit: str
    theirs: float | None = None
    ratio: Ratio | None = None
    at_least: float | None = None
    ratio_at_most: float | None = None
    at_most: float | None = None
    note: str = ""

    @property
    def goal(self) -> str:
        """The goal in words; "" when there is none."""
        if self.at_least is not None:
            return f"ratio >= {self.at_least:g}"
        if self.ratio_at_most is not None:
            return f"ratio <= {self.ratio_at_most:g}"
        return "" if self.at_most is None else f"ours <= {self.at_most:g}"

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None when there is none."""
        if self.at_least is not None:
            return self.ratio is not None and self.ratio.value >= self.at_least
        if self.ratio_at_most is not None:
            return self.ratio is not None and self.ratio.value <= self.ratio_at_most
        return None if self.at_most is None else self.ours <= self.at_most

    def cells(self) -> tuple[str, ...]:
        """The row as it is printed."""
        return (
            self.name,
            number(self.ours),
            "" if self.theirs is None else number(self.theirs),
            self.unit,
            f"{self.ratio.value:.2f}" if self.ratio else "",
            f"{self.ratio.low:.2f} .. {self.ratio.high:.2f}" if self.ratio else "",
            self.goal,
            {True: "yes", False: "NO", None: ""}[self.met],
            self.note,
        )


@dataclass(frozen=True, slots=True)
class Curve:
    """How long a round trip takes: microseconds by percentile."""

    name: str
    microseconds: dict[float, float]


Result: TypeAlias = Row | Curve | Missing
"""What a benchmark gives: a Missing stands for rows that it has to leave out."""


def lines(rows: list[Row]) -> list[str]:
    """Give the lines of a table with a head, its columns aligned."""
    if not rows:
        return []
    cells = [HEAD, *(row.cells() for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if index in _LEFT else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]


def number(value: float) -> str:
    """Give a figure to three digits or so."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"

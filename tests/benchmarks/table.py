"""A table of results, each against its goal."""

from __future__ import annotations

from dataclasses import dataclass

from tests.benchmarks.rounds import Ratio

HEAD = ("", "ours", "theirs", "unit", "ratio", "quartiles", "goal", "met", "")
_LEFT = (0, 3, 8)


@dataclass(frozen=True, slots=True)
class Row:
    """One result: *ours* and perhaps *theirs*, in *unit*, and their *ratio*, more being better.

    *at_least* is a goal for the ratio, *at_most* one for ours.
    """

    name: str
    ours: float
    unit: str
    theirs: float | None = None
    ratio: Ratio | None = None
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""

    @property
    def goal(self) -> str:
        """The goal in words; "" when there is none."""
        if self.at_least is not None:
            return f"ratio >= {self.at_least:g}"
        return "" if self.at_most is None else f"ours <= {self.at_most:g}"

    @property
    def met(self) -> str:
        """Whether the goal is met: yes, NO, or "" when there is none."""
        if self.at_least is not None:
            return "yes" if self.ratio and self.ratio.value >= self.at_least else "NO"
        if self.at_most is not None:
            return "yes" if self.ours <= self.at_most else "NO"
        return ""

    def cells(self) -> tuple[str, ...]:
        """The row as it is printed."""
        return (
            self.name,
            _number(self.ours),
            "" if self.theirs is None else _number(self.theirs),
            self.unit,
            f"{self.ratio.value:.2f}" if self.ratio else "",
            f"{self.ratio.low:.2f} .. {self.ratio.high:.2f}" if self.ratio else "",
            self.goal,
            self.met,
            self.note,
        )


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


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"

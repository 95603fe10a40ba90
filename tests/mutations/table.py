"""The table of what was broken, and who saw it."""

from __future__ import annotations

from typing import NamedTuple

from tests.mutations.mutation import Mutation


class Row(NamedTuple):
    """A mutation that was tried."""

    mutation: Mutation
    caught: bool
    seen_by: str
    seconds: float


class Table:
    """Lines of a table of *mutations*, to be printed one by one."""

    def __init__(self, mutations: list[Mutation]) -> None:
        self._widths = [
            max(map(len, column)) for column in zip(*(m[:3] for m in mutations), strict=True)
        ]

    @property
    def head(self) -> str:
        """The first line."""
        return self._line("name", "what was broken", "file", "seconds", "seen by")

    def line(self, row: Row) -> str:
        """Give the line of a row."""
        name, why, file, *_ = row.mutation
        # Parameters of a test may have spaces and be long.
        seen_by = row.seen_by.partition("[")[0]
        return self._line(name, why, file, f"{row.seconds:.1f}", seen_by)

    def _line(self, *cells: str) -> str:
        *left, seconds, seen_by = cells
        padded = [cell.ljust(width) for cell, width in zip(left, self._widths, strict=True)]
        return "  ".join([*padded, seconds.rjust(len("seconds")), seen_by])

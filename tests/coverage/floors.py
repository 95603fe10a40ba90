"""The table of floors: what has to be executed of each file of the product, in percent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

REASON_BELOW = 90
"""A floor below it has a reason."""

MARGIN = 1
"""Points by which a run may be below a floor, for runs differ."""

HEAD = """\
# The least percentage of the lines and branches of each file that tests have to execute; then the
# reason, if that is below 90. `python -m tests.coverage` measures and compares. With --raise it
# raises floors; nothing lowers them.
"""


class Floor(NamedTuple):
    """A line of the table."""

    percent: int
    reason: str = ""


def read(text: str) -> dict[str, Floor]:
    """Return the floors that a table has, by the paths of their files."""
    floors = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            path, percent, *reason = line.split(maxsplit=2)
            floors[path] = Floor(int(percent), "".join(reason))
    return floors


def written(floors: Mapping[str, Floor]) -> str:
    """Return the table that ``read`` reads, in the order of the paths."""
    width = max(map(len, floors), default=0)
    rows = (
        f"{path:{width}} {floor.percent:3} {floor.reason}".rstrip()
        for path, floor in sorted(floors.items())
    )
    return HEAD + "\n" + "".join(f"{row}\n" for row in rows)


def raised(floors: Mapping[str, Floor], found: Mapping[str, float]) -> dict[str, Floor]:
    """Return floors with those of *found* where they are higher, and for all its files."""
    new = {}
    for path, percent in found.items():
        old = floors.get(path, Floor(0))
        whole = max(old.percent, math.floor(percent))
        new[path] = Floor(whole, old.reason if whole < REASON_BELOW else "")
    return new


def complaints(floors: Mapping[str, Floor], found: Mapping[str, float]) -> list[str]:
    """Return a line for each file that is below its floor, and for each that is in one only."""
    lines = []
    for path in sorted({*floors, *found}):
        floor = floors.get(path)
        if floor is None:
            lines.append(f"{path} has no floor: add one with --raise")
        elif path not in found:
            lines.append(f"{path} has a floor, but there is no such file: remove the floor")
        elif found[path] < floor.percent - MARGIN:
            lines.append(
                f"{path}: tests execute {found[path]:.1f} %, but its floor is {floor.percent} %:"
                " add tests"
            )
        elif floor.percent < REASON_BELOW and not floor.reason:
            lines.append(f"{path}: its floor is {floor.percent} %: say why beside it, or add tests")
    return lines

"""Places that are used, in any order, and the next that are free.

Each used place points to a later one, and no place between the two is free. Following these
pointers finds the next free place. Then all pointers on the way are set to it, so that many repeats
of one place cost little more than the first (Tarjan's union-find, on integers).
"""

from __future__ import annotations


class Used:
    """The places that are used. Not for two threads."""

    def __init__(self) -> None:
        self.later: dict[int, int] = {}

    def free(self, place: int) -> int:
        """Return the first free place at or past *place*."""
        later = self.later
        found = place
        while found in later:
            found = later[found]
        while place != found:
            later[place], place = found, later[place]
        return found

    def add(self, place: int) -> None:
        """Use a free place."""
        self.later[place] = place + 1

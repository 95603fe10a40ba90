"""The ring: the generations of the stored node, their marks and horizons, and which is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from uuidd.core.ids.nodes import RandomBits, random_node
from uuidd.core.timeline.generation import GENERATION_BITS, LANE_BITS, Generation
from uuidd.core.timeline.state import Horizon, Node


class Ring:
    """The *size* generations of *node*, with the *marks* of a saved state. None is open at first.

    *number* is the one that is open, or was the last to be. *horizon* is its horizon. *floor* is
    a mark of all generations if the node is fixed. *avoid* returns a clock sequence that another
    program uses now with a fixed node, or None. *none_before* is a tick before which none can be
    opened.
    """

    __slots__ = (
        "_avoid",
        "_top_at_save",
        "floor",
        "horizon",
        "horizons",
        "marks",
        "node",
        "none_before",
        "number",
        "open",
        "size",
    )

    def __init__(
        self,
        node: Node,
        number: int,
        *,
        marks: Mapping[int, int],
        floor: int,
        size: int,
        avoid: Callable[[], int | None],
    ) -> None:
        self.node = node
        self.number = number
        self.marks = dict(marks)
        self.floor = floor
        self.size = size
        self._avoid = avoid
        self.horizons = {each: Horizon(mark) for each, mark in self.marks.items()}
        self.horizon = self.horizon_of(number)
        self.open: Generation | None = None
        self.none_before = 0
        self._top_at_save = 0

    def mark(self, number: int) -> int:
        """The tick from which on a generation can be opened: all that it gave out lies before."""
        mark = self.marks.get(number, 0)
        return max(mark, self.floor) if self.node.fixed else mark

    def open_next(self, now: int, *, drawn: bool = False) -> Generation | None:
        """Open the next generation whose mark lies not past *now*; return it, or None.

        Unless *drawn* tells that the next was just drawn, the search begins far from another
        program's.
        """
        first, avoided = self.number + 1, self._avoided()
        if avoided is not None and not drawn:
            first = avoided + self.size // 2
        for number in ((first + step) % self.size for step in range(self.size)):
            if self.mark(number) <= now:
                self.open_number(number)
                return self.open
        # So that requests before that tick need not search the ring again.
        self.none_before = min(self.mark(number) for number in range(self.size))
        return None

    def open_number(self, number: int) -> None:
        """Open the generation *number*, from its mark on."""
        self.number = number
        self.horizon = self.horizon_of(number)
        self.open = Generation(number, node=self.node.value, begin=self.mark(number))

    def horizon_of(self, number: int) -> Horizon:
        """The horizon of a generation; one that is in no save yet may give out nothing."""
        return self.horizons.setdefault(number, Horizon())

    def leave(self, end: int) -> None:
        """Close the open generation. Its mark is *end*, or the end of what it gave out if later."""
        if self.open is not None:
            self.marks[self.number] = max(self.open.top, end)
            self.open = None

    def draw(self, random: RandomBits) -> None:
        """Draw the generation to open next, but not that of another program.

        Nor one that a copy of this machine uses: it goes on with this one and, after a step of UTC,
        with the next one.
        """
        used = {self.number, (self.number + 1) % self.size, self._avoided()}
        others = [each for each in range(self.size) if each not in used] or [*range(self.size)]
        self.number = (others[random(GENERATION_BITS) % len(others)] - 1) % self.size

    def renew(self, end: int, random: RandomBits) -> None:
        """Leave what a copy of this machine has too: the open generation, and a node not fixed.

        The mark is found as ``leave`` does, past all that the copy may have given out. The next
        generation to open is drawn. None gives out anything before a save completes that has not
        begun yet.
        """
        # The copy may have given out all that the disk allows.
        self.leave(max(end, self.horizon.highest))
        if not self.node.fixed:
            self.node = Node(random_node(random), "random")
        self.draw(random)
        self.void_saves()

    def begin_save(self, end: int) -> dict[int, int]:
        """Return the marks to save. That of the open generation is found as ``leave`` does.

        They count for the horizons from here on.
        """
        marks = dict(self.marks)
        self._top_at_save = 0
        if self.open is not None:
            self._top_at_save = self.open.top
            marks[self.number] = max(self.open.top, end)
        for number, mark in marks.items():
            self.horizon_of(number).begin_save(mark)
        return marks

    def end_save(self, marks: Mapping[int, int], *, completed: bool) -> None:
        """Take note of how the save of *marks* ended."""
        for number, mark in marks.items():
            self.horizon_of(number).end_save(mark, completed=completed)

    def void_saves(self) -> None:
        """Let no generation give out anything before a later save completes."""
        for horizon in self.horizons.values():
            horizon.void()

    @property
    def used(self) -> bool:
        """Whether the open generation gave out anything since the last ``begin_save``."""
        return self.open is not None and self.open.top != self._top_at_save

    def _avoided(self) -> int | None:
        """The generation of another program under a fixed node; None if none is known."""
        used = self._avoid() if self.node.fixed else None
        return None if used is None else used >> LANE_BITS

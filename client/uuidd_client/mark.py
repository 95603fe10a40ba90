"""A mark: the end of the ticks that are used, which several users of ticks raise without a lock."""

from __future__ import annotations

from types import ModuleType


class Mark:
    """The *end* of the ticks that are used: all before it are, 0 at first."""

    __slots__ = ("end",)

    def __init__(self) -> None:
        self.end = 0

    def raise_to(self, end: int, /) -> int:
        """Raise it to *end*, unless it is there already; return what it was."""
        # One line without a call: there CPython changes neither to another thread nor to a signal
        # handler, and a debugger does not stop.
        was, self.end = self.end, end if self.end < end else self.end  # noqa: FURB136  (a call)
        return was


def new_mark(core: ModuleType | None) -> Mark:
    """Return a mark of the C extension *core*, or of Python if that is None."""
    mark: Mark = Mark() if core is None else core.Mark()
    return mark

"""How ids are drawn: functions and iterators, which ask a session only where they have to."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from uuidd_client import extension
from uuidd_client.per_process import PerProcess
from uuidd_client.session import Session
from uuidd_client.supply import Direct, Run
from uuidd_client.system import ClientClock

if TYPE_CHECKING:
    from uuidd_client._core import Cutter

Draw = TypeVar("Draw", bound=Callable[[], Any])

_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()

_NO_EPOCHS = memoryview(bytes(8)).cast("Q")
_EMPTY: Run = (list[str]().pop, 0.0, memoryview(bytes(8)).cast("d"), _NO_EPOCHS, 0)


class _Ids:
    """An endless iterator over what *draw* returns, which threads may share."""

    __slots__ = ("_draw",)

    def __init__(self, draw: Callable[[], Any]) -> None:
        self._draw = draw

    def __iter__(self) -> _Ids:
        return self

    def __next__(self) -> Any:
        # Both are of Python, so no handler of a signal can fork between the two.
        return self._draw()


class Drawing:
    """Draws ids of *session*, by the extension *core*, or without it if that is None.

    *clock* is that of the session.
    """

    def __init__(
        self, session: PerProcess[Session], core: ModuleType | None, clock: ClientClock
    ) -> None:
        self._session = session
        self._core = core
        self._clock = clock
        self._cells: dict[tuple[str, str], list[Any]] = {}

    def forget_runs(self) -> None:
        """Ask the session for the next id of each kind."""
        for cell in list(self._cells.values()):
            cell[:] = _EMPTY, None

    def iterate(self, kind: str, form: str) -> Iterator[Any]:
        """Return an endless iterator over ids of *kind* in *form*."""
        if self._core is not None:
            ids: Iterator[Any] = self._core.Ids(form, self._refill(kind, form))
            return ids
        return _Ids(self.factory(kind, form))

    def factory(self, kind: str, form: str, wait: bool = True) -> Callable[[], Any]:
        """Return a function that returns one id; without *wait*, it may raise MustWait."""
        if self._core is not None:
            refill = self._refill(kind, form, wait)
            compiled: Callable[[], Any] = self._core.Draw(form, refill)
            return compiled
        if not _GIL:
            return self._locked(kind, form, wait)
        cell, refill = self._cell(kind, form, wait)
        utc = self._clock.utc_seconds

        def draw() -> Any:
            """Return the next id."""
            take, begin, deadline, epochs, epoch = cell[0]
            try:
                drawn = take()
                if begin <= utc() < deadline[0] and epochs[0] == epoch and drawn is not None:
                    return drawn
            except IndexError:
                pass
            return refill()

        return draw

    def _refill(
        self, kind: str, form: str, wait: bool = True
    ) -> Callable[[], tuple[Cutter | None, Any]]:
        """Return a function that returns a cutter for ids of *kind*, and one id, in *form*."""

        def one(session: Session) -> tuple[Cutter | None, Any]:
            return session.one(kind, form, wait=wait)

        call = self._session.call
        return lambda: call(one)

    def _locked(self, kind: str, form: str, wait: bool = True) -> Callable[[], Any]:
        """Return a factory for an interpreter without the GIL, which takes the session's lock."""
        session = self._session

        def draw() -> Any:
            """Return the next id."""
            return session.call(lambda session: session.make(kind, 1, form, wait=wait))[0]

        return draw

    def _cell(self, kind: str, form: str, wait: bool = True) -> tuple[list[Any], Callable[[], Any]]:
        """Return a list that holds the run which all factories of *kind* and *form* share.

        The function beside it returns the next id if the run has none: one that is made directly,
        or the first of a new run, which it puts there.
        """
        cell: list[Any] = self._cells.setdefault((kind, form), [_EMPTY, None])
        session = self._session

        def run(session: Session) -> tuple[Run, Direct, Any]:
            return session.run(kind, form, wait=wait)

        def refill() -> Any:
            if cell[1] is not None:
                direct, always = cell[1]
                # So the next call of draw finds its id without an exception, which would take
                # longer than all the rest.
                cell[0] = direct, 0.0, always, _NO_EPOCHS, 0
                drawn = direct()
                # Here nothing is called any more, because a handler could fork in it.
                if drawn is not None:
                    return drawn
            cell[0], cell[1], drawn = session.call(run)
            return drawn

        return cell, refill


def function(draw: Draw) -> Draw:
    """Return *draw*, or if the extension made it, a function of Python that calls it.

    Programs look for functions, and for what only those have: a name, annotations and attributes.
    """
    core = extension.core
    if core is None or not isinstance(draw, core.Draw):
        return draw

    def drawn() -> Any:
        """Return the next id."""
        return draw.next

    core.shortcut(drawn, draw)
    return drawn  # type: ignore[return-value]  # it is called as the other is, and returns the same

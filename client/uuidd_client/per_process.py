"""Values of which each process has its own: a fork's child gets nothing of its parent's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from uuidd_client.errors import DaemonUnavailable


class Owned:
    """A value that belongs to the process that made it."""

    alive: memoryview[float]
    """Holds 1.0 in the process that made the value, and 0.0 in that process's children."""

    child: dict[str, Any]
    """The place for the value that a child makes instead."""


Value = TypeVar("Value", bound=Owned)
Result = TypeVar("Result")


class Forked(Exception):
    """Raised in a fork's child by what belongs to its parent."""


class PerProcess(Generic[Value]):
    """The value that *make* makes in each process, at its first use there.

    In a fork's child, *drop* is called with the value of its parent. There is no lock, because a
    child could find it held. Instead each place for a value is filled once, by ``setdefault``,
    which is atomic: all threads and signal handlers of a process find the same value there.
    """

    def __init__(
        self, make: Callable[[], Value], drop: Callable[[Value], None] = lambda _: None
    ) -> None:
        self._make = make
        self._drop = drop
        self._place: dict[str, Value] = {}

    def get(self) -> Value:
        """Return the value of this process."""
        place = self._place
        while True:
            value = place.get("value")
            if value is None:
                value = place.setdefault("value", self._make())
            if value.alive[0]:
                self._place = place
                return value
            self._drop(value)
            place = value.child

    def exchange(self, other: PerProcess[Value]) -> None:
        """Exchange with *other* what makes the values, and those that have been made."""
        self._make, other._make = other._make, self._make
        self._drop, other._drop = other._drop, self._drop
        self._place, other._place = other._place, self._place

    def made(self) -> bool:
        """Whether this process, or the one that it was forked from, has made a value."""
        return "value" in self._place

    def call(self, use: Callable[[Value], Result]) -> Result:
        """Return what *use* returns for the value of this process.

        A signal handler may fork in the middle of *use*, and return in the child too. The result
        belongs to the parent alone: the child drops it, and calls *use* with a value of its own.
        """
        while True:
            value = self._place.get("value")
            if value is None or not value.alive[0]:
                value = self.get()
            try:
                result = use(value)
            except (Forked, DaemonUnavailable):
                if value.alive[0]:
                    raise
            else:
                # This is the last look: after it, no handler runs before the caller has the result.
                if value.alive[0]:
                    return result

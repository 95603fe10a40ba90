"""What this host asks of an engine about registers, and what it remembers of the answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import trio

from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.fleet.coordinator import Changed, Coordinator, Found
from uuidd.fleet.record import Record

_Answer = TypeVar("_Answer")


@dataclass(slots=True)
class Attempt:
    """A claim that was written without an answer so far; the register tells whether it is there."""

    number: int
    token: str
    begin: int


class Questions:
    """Asks an engine, and calls *answered* with how many seconds each answer took.

    *found* is the register of this host's number as it was read or written last, None if it has to
    be read again. *attempt* is a write of a new claim that has no answer so far.
    """

    def __init__(self, timelines: Timelines, read: Callable[[], Reading]) -> None:
        self._steady = timelines.steady
        self._read = read
        self.answered: Callable[[float], None] = lambda _: None
        self.found: Found | None = None
        self.attempt: Attempt | None = None
        self._drops = 0

    def steady(self) -> int:
        """Return the tick of the steady clock."""
        at = self._read()
        return self._steady.read(now=at.now, elapsed=at.elapsed)

    def now(self) -> int:
        """Return the tick of UTC."""
        return self._read().now

    async def timed(self, question: Awaitable[_Answer]) -> _Answer:
        """Return the answer. Raises Changed if the claim was dropped meanwhile."""
        begun = trio.current_time()
        with self.undropped():
            answer = await question
            self.answered(trio.current_time() - begun)
        return answer

    def drop(self) -> None:
        """Forget what was found, and what is being asked: it was about a claim that was dropped."""
        self._drops += 1
        self.found = self.attempt = None

    @contextmanager
    def undropped(self) -> Iterator[None]:
        """Raise Changed at the end if the claim was dropped meanwhile."""
        drops = self._drops
        yield
        if drops != self._drops:
            # The claim is not this host's alone any more.
            raise Changed

    async def write(
        self, engine: Coordinator, number: int, record: Record, found: Found | None
    ) -> None:
        """Write a record over the one that was found, and remember its version."""
        self.found = None
        version = await self.timed(
            engine.write(number, record, None if found is None else found.version)
        )
        self.found, self.attempt = Found(record, version), None

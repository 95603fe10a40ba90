"""Cutters of both implementations, with a clock, random bytes and a life that a test chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from tests import kinds
from tests.client.fakes import NODE, START
from tests.kinds import KINDS
from uuidd.core.ids.places import Origin
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd_client import extension
from uuidd_client.cutter import Cutter
from uuidd_client.life import FOREVER, Source, word

core: Any = extension.core
"""The extension, or None."""

CUTTERS: dict[str, Any] = (
    {"python": Cutter} if core is None else {"c": core.Cutter, "python": Cutter}
)
"""The implementations that are here."""

BLOCK = Origin(NODE, clock_seq=0x1234, worker=5)
LANE = Origin(NODE, clock_seq=0x305, lane=5)
TOKEN = (1 << 64) - 5


class Hand:
    """A cutter that *new* makes, and what it reads: *now*, in ticks, and *random* bytes.

    It lives as long as ``alive[0]`` is 1. Its sources may be used before the tick ``horizon[0]``,
    and while ``token[0]`` is TOKEN. The clock is read *readings* times, and calls *between* then.
    """

    def __init__(
        self, new: Any, max_age: float = 0.1, random: Callable[[int], bytes] | None = None
    ) -> None:
        self.now = START + 10 * TICKS_PER_SECOND
        self.readings = 0
        self.between: Callable[[], object] = lambda: None
        self.alive, self.horizon, self.token = word(1), word(FOREVER), word(TOKEN)
        self.cutter: Cutter = new(self.alive, max_age, self._clock, random)

    def _clock(self) -> int:
        self.readings += 1
        now = self.now
        self.between()
        return (now - UNIX_EPOCH) * 100

    def source(self, first: int, end: int, **other: Any) -> Source:
        """Return a block of the places from *first* to *end*, for all times."""
        watch = self.horizon, self.token, TOKEN
        return Source(first, end, 0, FOREVER, BLOCK, True, False, *watch)._replace(**other)

    def block(self, first: int = START, count: int = 10, **other: Any) -> Hand:
        """Let the cutter have a block."""
        self.cutter.source = self.source(first, first + count, **other)
        return self

    def lane(self, **other: Any) -> Hand:
        """Let the cutter have a lane."""
        self.cutter.source = self.source(0, 0, origin=LANE, lane=True)._replace(**other)
        return self

    def all(self) -> Hand:
        """Let the cutter have what v4 is made of."""
        return self.block(0, FOREVER, origin=Origin(0), safe=False)

    def one(self, kind: str = "v1", form: str | None = None) -> Any:
        """Return the next id, or None."""
        return self.cutter.one(kind, form or KINDS[kind].forms[0])

    def many(
        self,
        count: int,
        kind: str = "v1",
        form: str | None = None,
        source: Source | None = None,
    ) -> list[Any]:
        """Return up to so many ids, those that are in one piece one by one."""
        made = self.cutter.many(kind, form or KINDS[kind].forms[0], count, source)
        return kinds.apart(kind, made)

    def tick(self, kind: str = "v1", form: str | None = None) -> int | None:
        """Return the tick of the next id, or None."""
        made = self.one(kind, form)
        return None if made is None else kinds.tick(kind, made)

    def ticks(self, count: int, kind: str = "v1", form: str | None = None) -> list[int | None]:
        """Return the ticks of the next ids."""
        return [self.tick(kind, form) for _ in range(count)]


def _many(hand: Hand, source: Source | None = None) -> list[UUID]:
    return hand.many(1, "v1", "uuid", source)


def _packed(hand: Hand, source: Source | None = None) -> list[UUID]:
    return [UUID(bytes=id) for id in hand.many(1, "v1", "bytes", source)]


def _of_another(way: Callable[[Hand, Source | None], list[UUID]]) -> Callable[[Hand], list[UUID]]:
    def cut(hand: Hand) -> list[UUID]:
        source, hand.cutter.source = hand.cutter.source, None
        made = way(hand, source)
        hand.cutter.source = source
        return made

    return cut


WAYS: dict[str, Callable[[Hand], list[UUID]]] = {
    "one": lambda hand: [made for made in [hand.one("v1", "uuid")] if made is not None],
    "many": _many,
    "packed": _packed,
}
"""How a v1 is cut: they return a list of it, or of none."""

PASSED: dict[str, Callable[[Hand], list[UUID]]] = {
    "many of a source": _of_another(_many),
    "packed of a source": _of_another(_packed),
}
"""The same, of the source of the cutter, which is passed to it while it has none."""

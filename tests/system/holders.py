"""Programs that draw ids from leases, one by one, and leave in a file all that they were given.

The words of ``main`` are SOCKET FILE TIMEOUT FALLBACK CHILDREN.
"""

from __future__ import annotations

import contextlib
import itertools
import select
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

from tests.forks import Program
from tests.judge import Span, assert_apart, assert_rising, of_id
from tests.rig import Daemon, until
from tests.system.children import each_child
from uuidd_client import Client, DaemonUnavailable
from uuidd_client.system import SYSTEM_CLOCK

ENTRY = Struct("=16s?QQ?")
"""An id, whether it is marked safe, a tick that its own may not lie past, how many nanoseconds the
call took, and whether UTC was set back meanwhile."""

BURSTS = (5, 20, 100)
"""How many ids are drawn at once: one by one, or from runs that are made ahead."""

PAUSE = 0.02
"""Seconds between two bursts."""

AT_ONCE = 16
"""How many children live at once."""


class Drawn(NamedTuple):
    """What an entry of the file says; *at* is the tick that the id's own may not lie past."""

    id: int
    safe: bool
    at: int
    took: int
    set_back: bool

    @property
    def is_v1(self) -> bool:
        """Whether it is a v1; otherwise it is a v7."""
        return self.id >> 76 & 15 == 1

    @property
    def tick(self) -> int:
        """The tick of the id."""
        return of_id(self.id).first

    @property
    def span(self) -> Span:
        """What no other id may share: of a v7 of the fallback, the whole id."""
        if self.is_v1 or self.safe:
            return of_id(self.id)
        return Span("v7 of the fallback", self.id, self.id + 1)


class Holder(Program):
    """A program that draws from the daemon at *path* until the context ends.

    With *children* it does so once, and then each of them, its forks, once.
    """

    def __init__(
        self,
        path: Path,
        file: Path,
        *,
        timeout: float = 20,
        fallback: bool = True,
        children: int = 0,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        words = path, file, timeout, int(fallback), children
        super().__init__(__name__, *words, environment=environment)
        self._file = file

    def more(self, count: int = 400) -> None:
        """Wait until it has drawn *count* ids more."""
        wanted = self._size() + count * ENTRY.size
        until(lambda: self._size() >= wanted, instead=lambda: f"{self._size()} of {wanted} bytes")

    def _size(self) -> int:
        return self._file.stat().st_size if self._file.exists() else 0

    def drawn(self) -> list[Drawn]:
        """Return what it has drawn, in order."""
        data = self._file.read_bytes()
        whole = len(data) - len(data) % ENTRY.size
        return [
            Drawn(int.from_bytes(id, "big"), *rest) for id, *rest in ENTRY.iter_unpack(data[:whole])
        ]

    def last(self, count: int = 40) -> list[Drawn]:
        """Return the last ids that it has drawn."""
        return self.drawn()[-count:]


@contextlib.contextmanager
def holders(daemon: Daemon, folder: Path, count: int, **settings: Any) -> Iterator[list[Holder]]:
    """Provide programs that draw from *daemon*, once each has its lease."""
    paths = [folder / f"{daemon.pid}-{number}" for number in range(count)]
    before = leases(daemon)["out"]
    with contextlib.ExitStack() as running:
        yielded = [running.enter_context(Holder(daemon.socket, path, **settings)) for path in paths]
        await_leases(daemon, before + count)
        yield yielded


def leases(daemon: Daemon) -> dict[str, Any]:
    """Return what the daemon's status tells of leases."""
    found: dict[str, Any] = daemon.call("status")["leases"]
    return found


def await_leases(daemon: Daemon, count: int) -> None:
    """Wait until so many leases are held."""
    until(lambda: leases(daemon)["out"] == count, instead=lambda: leases(daemon))


def assert_sound(drawn: Iterable[list[Drawn]], *, utc_set_back: bool = False) -> None:
    """Fail if an id or its tick came twice, lay in the future, or was out of order.

    *drawn* is what each process drew. Once UTC was set back, v1 may be out of order where it was,
    and v7 lie in the future.
    """
    spans: list[Span] = []
    for number, some in enumerate(drawn):
        spans += [each.span._replace(taker=f"process {number}") for each in some]
        assert_rising(each.id for each in some if not each.is_v1)
        v1 = [each for each in some if each.is_v1]
        for one, next in itertools.pairwise(v1):
            back = utc_set_back and (next.set_back or next.at < one.at)
            assert one.tick < next.tick or back, (one, next)
        late = [each for each in some if each.tick > each.at and (each.is_v1 or not utc_set_back)]
        assert not late, late[:5]
    assert spans
    assert_apart(spans)


def main(words: list[str]) -> None:
    """Draw until standard input ends; a daemon that is not there is asked again."""
    path, name, timeout, fallback, children = words
    warnings.simplefilter("ignore", RuntimeWarning)
    client = Client(path, fallback=fallback == "1", timeout=float(timeout))
    draws = [client.uuid1, client.uuid7, client.factory("v1"), client.factory("v7")]
    with open(name, "ab", buffering=0) as file:
        for number, burst in enumerate(itertools.cycle(BURSTS)):
            file.write(_burst(draws, burst))
            if children and number == len(BURSTS):
                each_child(
                    int(children),
                    AT_ONCE,
                    lambda: _draw_once(draws, file.write),
                    # The parent draws on beside them.
                    lambda: file.write(_burst(draws, BURSTS[0])),
                )
            if select.select([sys.stdin], [], [], PAUSE)[0]:
                return


def _burst(draws: list[Callable[[], uuid.UUID]], count: int) -> bytes:
    entries = []
    for draw in draws:
        for _ in range(count // 4 + 1):
            wanted, begun = SYSTEM_CLOCK.utc_tick(), time.monotonic_ns()
            try:
                drawn = draw()
            except DaemonUnavailable:
                break
            took = time.monotonic_ns() - begun
            without_step, now = wanted + took // 100, SYSTEM_CLOCK.utc_tick()
            safe = drawn.is_safe is uuid.SafeUUID.safe
            at, set_back = max(without_step, now), now < without_step
            entries.append(ENTRY.pack(drawn.bytes, safe, at, took, set_back))
    return b"".join(entries)


def _draw_once(draws: list[Callable[[], uuid.UUID]], write: Callable[[bytes], object]) -> None:
    for burst in BURSTS:
        write(_burst(draws, burst))
        time.sleep(PAUSE)

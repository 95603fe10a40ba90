"""Programs that draw ids through our client, and leave in a file all that they were given.

The words of ``main`` are SOCKET FILE SETTINGS, the last as JSON.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

from tests import kinds
from tests.forks import Program
from tests.judge import Span, assert_apart, assert_rising, of_id
from tests.rig import Daemon, until
from tests.tools import in_private_mounts
from uuidd.cli import arguments
from uuidd.core.ids.ticks import UNIX_EPOCH
from uuidd_client import Client, DaemonUnavailable, channel

KINDS = tuple(kinds.KINDS)

ENTRY = Struct("=20sB?4q")
"""The number of an id, its place in KINDS, and whether it is marked safe; then in nanoseconds UTC
and the monotonic clock before the draw, the monotonic clock and UTC after it."""

SETTINGS: dict[str, Any] = {
    "timeout": 20,
    "fallback": True,
    # Otherwise the program fails at the first id that it cannot get.
    "go_on": True,
    "max_age": 0.1,
    "kinds": ("v1", "v7"),
    # How many ids are drawn at once, in turn: one by one, or from runs that are made ahead.
    "bursts": (5, 20, 100),
    # Seconds between two bursts.
    "pause": 0.02,
    # How many of each kind are made at once with each burst.
    "list": 0,
    # "blocks": as where all lanes are taken. "stdlib": by Python's own uuid1.
    "way": "leases",
}

Draw = Callable[[], Sequence[Any]]
"""Makes one id or many."""


class Drawn(NamedTuple):
    """What an entry of the file says. UTC before and after the draw is in ticks."""

    kind: str
    id: int
    safe: bool
    asked: int
    asked_ns: int
    had_ns: int
    had: int

    @property
    def is_v1(self) -> bool:
        """Whether it is a v1."""
        return self.kind == "v1"

    @property
    def tick(self) -> int:
        """The tick of the id."""
        return kinds.tick(self.kind, self.id)

    @property
    def at(self) -> int:
        """The tick that the id's own may not lie past, also where UTC was set back meanwhile."""
        return max(self.had, self.unstepped)

    @property
    def unstepped(self) -> int:
        """UTC after the draw, if it was not set meanwhile."""
        return self.asked + (self.had_ns - self.asked_ns) // 100

    @property
    def span(self) -> Span:
        """What no other id may share: of a v7 of the fallback, and of most kinds, the whole id."""
        if self.kind in kinds.GREGORIAN or (self.kind == "v7" and self.safe):
            return of_id(self.id)
        return Span(self.kind, self.id, self.id + 1)


class Holder(Program):
    """A program that draws from the daemon at *path* until the context ends; see SETTINGS."""

    def __init__(
        self,
        path: Path,
        file: Path,
        *,
        environment: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        assert settings.keys() <= SETTINGS.keys()
        words = path, file, json.dumps({**SETTINGS, **settings})
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
        return read(self._file)

    def until_safe(self) -> None:
        """Wait until the last ids that it has drawn are all marked safe."""
        until(lambda: all_safe(self.drawn()[-40:]))

    def until_unsafe(self) -> None:
        """Wait until one of the last ids is not marked safe."""
        until(lambda: not all_safe(self.drawn()[-40:]))


def all_safe(drawn: list[Drawn]) -> bool:
    """Whether all ids are marked safe."""
    return all(each.safe for each in drawn)


def read(file: Path) -> list[Drawn]:
    """Return what a program has left in its file."""
    data = file.read_bytes()
    whole = len(data) - len(data) % ENTRY.size
    return [
        Drawn(
            KINDS[kind],
            int.from_bytes(id, "big"),
            safe,
            asked // 100 + UNIX_EPOCH,
            asked_ns,
            had_ns,
            had // 100 + UNIX_EPOCH,
        )
        for id, kind, safe, asked, asked_ns, had_ns, had in ENTRY.iter_unpack(data[:whole])
    ]


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


def requests(daemon: Daemon) -> tuple[int, int]:
    """Return how many ids, and leases, the daemon has been asked for."""
    status = daemon.call("status")
    return status["requests"]["rpc"]["ids"], status["leases"]["granted"]


def assert_sound(drawn: Iterable[list[Drawn]], *, utc_set_back: bool = False) -> None:
    """Fail if an id or its tick came twice, lay in the future, or was out of order.

    *drawn* is what each process drew. Once UTC was set back, v1 and v6 may be out of order where it
    was. The steady kinds may lie in the future then, as after a crash.
    """
    spans: list[Span] = []
    for number, some in enumerate(drawn):
        spans += [each.span._replace(taker=f"process {number}") for each in some]
        for kind in kinds.STEADY:
            assert_rising(each.id for each in some if each.kind == kind)
        for kind in kinds.GREGORIAN:
            for one, next in itertools.pairwise(each for each in some if each.kind == kind):
                back = utc_set_back and (next.had < next.unstepped or next.at < one.at)
                assert one.tick < next.tick or back, (one, next)
        dated = kinds.GREGORIAN if utc_set_back else kinds.TIMED
        late = [each for each in some if each.kind in dated and each.tick > each.at]
        assert not late, late[:5]
    assert spans
    assert_apart(spans)


def main(words: list[str]) -> None:
    """Draw until standard input ends; a daemon that is not there is asked again."""
    path, name, settings = words[0], words[1], json.loads(words[2])
    warnings.simplefilter("ignore", RuntimeWarning)
    draws = [("v1", _one(uuid.uuid1))]
    if settings["way"] == "stdlib":
        _be_where_libuuid_asks(path, words)
    else:
        client = Client(
            path,
            fallback=settings["fallback"],
            timeout=settings["timeout"],
            max_age=settings["max_age"],
        )
        draws = list(_draws(client, settings["kinds"], settings["list"]))
    if settings["way"] == "blocks":
        channel.LEASABLE.clear()
    missed = (DaemonUnavailable,) if settings["go_on"] else ()
    draw = partial(_burst, draws, missed)
    with open(name, "ab", buffering=0) as file:
        for burst in itertools.cycle(settings["bursts"]):
            file.write(draw(burst))
            if select.select([sys.stdin], [], [], settings["pause"])[0]:
                return


def _be_where_libuuid_asks(path: str, words: list[str]) -> None:
    """Let the daemon at *path* be found where libuuid looks: this begins again in other mounts."""
    if words[3:] != ["inside"]:
        inside = in_private_mounts(sys.executable, "-m", __spec__.name, *words, "inside")
        os.execvp(inside[0], inside)  # noqa: S606  (no shell is needed)
    Path(arguments.SOCKET).symlink_to(path)


def _draws(client: Client, wanted: Sequence[str], many: int) -> Iterator[tuple[str, Draw]]:
    """Yield each way in which *client* makes an id of the kinds, or *many* of them."""
    methods: dict[str, Callable[[], Any]] = {"v1": client.uuid1, "v7": client.uuid7}
    kind: Any
    for kind in wanted:
        if kind in methods:
            yield kind, _one(methods[kind])
        yield kind, _one(client.factory(kind))
        if many:
            yield kind, partial(client.make, kind, many)


def _one(draw: Callable[[], Any]) -> Draw:
    return lambda: (draw(),)


def _burst(
    draws: list[tuple[str, Draw]], missed: tuple[type[BaseException], ...], count: int
) -> bytes:
    entries = []
    for kind, draw in draws:
        for _ in range(max(1, count // len(draws))):
            asked, asked_ns = time.time_ns(), time.monotonic_ns()
            try:
                ids = draw()
            except missed:
                break
            times = asked, asked_ns, time.monotonic_ns(), time.time_ns()
            entries += [(kind, id, *times) for id in ids]
    return b"".join(
        ENTRY.pack(
            kinds.number(kind, id).to_bytes(20, "big"),
            KINDS.index(kind),
            getattr(id, "is_safe", None) is uuid.SafeUUID.safe,
            *times,
        )
        for kind, id, *times in entries
    )


if __name__ == "__main__":
    main(sys.argv[1:])

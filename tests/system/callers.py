"""Callers of every sort, which keep what they are given, so that what came twice is found."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.judge import Judge, Span, assert_rising, of_block, of_id
from tests.rig import PATIENCE, Connection, Daemon
from tests.system.holders import Holder, assert_sound, holders
from uuidd.core.ids import uuids
from uuidd.core.ids.ticks import UNIX_EPOCH
from uuidd.core.wire import libuuid
from uuidd_client import Client, DaemonUnavailable

if TYPE_CHECKING:
    from uuidd_client.client import Kind

PAUSE = 0.001
"""Seconds between two calls of a caller: many calls, and yet time for others on the machine."""

OF_UTC = ("take", "take whole", "make v1", "libuuid", "client v1")
OF_STEADY = ("take steady", "make v7", "client v7")
"""The callers: each asks for ticks of one timeline in one way."""

BLOCKS: dict[str, tuple[object, ...]] = {
    "take": ("utc", 100, False),
    "take whole": ("utc", 1000, True),
    "take steady": ("steady", 100),
    # A tenth of a second at once meets what was taken at about this moment.
    "take wide": ("utc", 1_000_000, False),
    "take wide whole": ("utc", 1_000_000, True),
    "take steady wide": ("steady", 1_000_000),
}
"""What is asked of the method "take"."""


def given_in(block: dict[str, Any]) -> Span:
    """Return what was given out in a block, as the wire has it."""
    steady = "clock_seq" not in block
    place = (0,) if steady else (int.from_bytes(block["node"], "big"), block["clock_seq"])
    return Span(place, block["first"], block["first"] + block["count"])


class RefusedError(Exception):
    """The daemon's answer was an error, or none."""


class Callers:
    """Callers of every sort at *daemon*: ``take`` and ``make`` by rpc, libuuid's, and our client's.

    *ahead* returns by how many seconds at most the daemon's UTC is ahead of ours; no tick of utc
    may lie past that. *judge* knows all that was given: a draw fails with Repeated if a tick came
    before. A test that ends the daemon while they draw does so in the context ``down``, and starts
    another daemon there.
    """

    def __init__(
        self,
        daemon: Daemon,
        *,
        ahead: Callable[[], float] = lambda: 0.0,
        judge: Judge | None = None,
    ) -> None:
        self._daemon = daemon
        self._ahead = ahead
        self.judge = judge or Judge()
        self.refused_to: dict[str, list[str]] = defaultdict(list)
        """What was answered to each caller instead of ids."""
        self.slowest = 0.0
        """The seconds that the slowest call took."""
        self._answered = dict.fromkeys(OF_UTC + OF_STEADY, 0)
        self._firsts: dict[str, list[int]] = defaultdict(list)
        self._faults: list[str] = []
        self._connections: dict[str, Connection] = {}
        self._came = threading.Condition()
        self._up = threading.RLock()
        self._downs = 0
        self._seen: dict[str, int] = {}
        self._failures: list[BaseException] = []
        # Two, because the calls of one wait for each other.
        self._clients = {
            kind: Client(daemon.socket, fallback=False, max_age=0.005, timeout=PATIENCE)
            for kind in ("v1", "v7")
        }

    @property
    def nodes(self) -> set[int]:
        """The nodes of all that utc gave."""
        return {place[0] for place in self.judge.spans if len(place) == 2}

    @property
    def refused(self) -> list[str]:
        """All that was refused."""
        return list(itertools.chain(*self.refused_to.values()))

    def draw(self, times: int = 1) -> None:
        """Let all callers call, one after the other."""
        for _ in range(times):
            for name in self._answered:
                self._draw(name)

    def take_wide(self) -> None:
        """Take as much at once as there may be."""
        for name in ("take wide", "take wide whole", "take steady wide"):
            self._note(name)

    @contextlib.contextmanager
    def drawing(self) -> Iterator[None]:
        """Let all callers call at once, each in a thread, while the context lasts."""
        done = threading.Event()
        self._failures.clear()

        def run(name: str) -> None:
            try:
                while not done.wait(PAUSE):
                    self._draw_through_ends(name)
                    with self._came:
                        self._came.notify_all()
            except BaseException as failure:
                with self._came:
                    self._failures.append(failure)
                    self._came.notify_all()

        threads = [threading.Thread(target=run, args=[name]) for name in self._answered]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            done.set()
            for thread in threads:
                thread.join(PATIENCE)
        assert not [thread for thread in threads if thread.is_alive()]
        self._raise_failure()

    def _raise_failure(self) -> None:
        for failure in self._failures:
            raise AssertionError("a caller failed") from failure

    def _draw_through_ends(self, name: str) -> None:
        with self._up:
            downs = self._downs
        if self._seen.get(name) != downs:
            # Its connection is one to a daemon that was there before.
            self._forget(name)
        self._seen[name] = downs
        try:
            self._draw(name)
        except (OSError, EOFError):
            self._forget(name)
            # Cut off in the midst of it by the daemon's end, or else by a fault of the daemon.
            with self._up:
                if self._downs == downs:
                    raise

    @contextlib.contextmanager
    def down(self) -> Iterator[None]:
        """Keep all from connecting meanwhile: inside, the daemon is ended and started."""
        with self._up:
            self._downs += 1
            yield

    def more(self, times: int = 2) -> None:
        """Wait until each caller that draws has been answered *times* more."""
        wanted = {name: answered + times for name, answered in self._answered.items()}

        def came() -> bool:
            return all(self._answered[name] >= count for name, count in wanted.items())

        with self._came:
            self._came.wait_for(lambda: came() or self._failures, PATIENCE)
        self._raise_failure()
        assert came(), (self._answered, wanted)

    def assert_nothing_is_refused(self) -> None:
        """Fail if anything is refused from now on."""
        # What was refused before now its caller may be just about to note.
        self.more(1)
        refused = len(self.refused)
        self.more(3)
        assert self.refused[refused:] == []

    def hang_up(self) -> None:
        """Leave the connections; the next call makes new ones."""
        for name in list(self._connections):
            self._forget(name)
        for client in self._clients.values():
            client.close()

    def assert_sound(self) -> None:
        """Fail if steady went back for one caller, utc was ahead, or one of both gave nothing."""
        assert not self._faults, self._faults[:5]
        for firsts in self._firsts.values():
            assert_rising(firsts)
        assert {len(place) for place in self.judge.spans} == {1, 2}

    def _draw(self, name: str) -> None:
        """Call once. Raises OSError or EOFError when the daemon is gone in the midst of it."""
        begun = time.monotonic()
        try:
            self._note(name)
        except RefusedError as refused:
            self.refused_to[name].append(str(refused))
        self.slowest = max(self.slowest, time.monotonic() - begun)
        self._answered[name] += 1

    def _note(self, name: str) -> None:
        before = self._ahead()
        spans = self._given(name)
        if "steady" in name or "v7" in name:
            self._firsts[name] += [span.first for span in spans]
        elif name != "client v1":
            # Our client reads its own clock, which the daemon's may have left.
            ahead = max(before, self._ahead())
            latest = (time.time_ns() + round(ahead * 1e9)) // 100 + UNIX_EPOCH
            past = max(span.end for span in spans) - 1 - latest
            if past > 0:
                self._faults.append(f"{name}: {past} ticks past now")
        for span in spans:
            self.judge.note(span._replace(taker=name))

    def _given(self, name: str) -> list[Span]:
        if name in BLOCKS:
            return [given_in(self._ask(name, "take", *BLOCKS[name]))]
        match name.split():
            case ["make", kind]:
                texts = self._ask(name, "make", kind, 10)
                return [of_id(uuids.from_text(text)) for text in texts]
            case ["client", "v1" | "v7" as kind]:
                return self._by_client(kind)
            case _:
                return [self._by_libuuid()]

    def _by_libuuid(self) -> Span:
        with self._up:
            connected = self._daemon.connect()
        with connected as connection:
            connection.sock.sendall(libuuid.pack_request(libuuid.Op.BULK_TIME_UUID, 64))
            reply = libuuid.unpack_body(connection.sock.recv(64))
        if reply is None:
            raise EOFError
        return of_block(libuuid.unpack_block(reply))

    def _by_client(self, kind: Kind) -> list[Span]:
        try:
            return [of_id(id.int) for id in self._clients[kind].make(kind, 10, "uuid")]
        except DaemonUnavailable as error:
            if error.reason in ("unavailable", "busy"):
                raise RefusedError(error.cause) from error
            raise EOFError from error

    def _ask(self, name: str, method: str, *params: object) -> Any:
        if name not in self._connections:
            with self._up:
                self._connections[name] = self._daemon.connect()
        _, _, error, result = self._connections[name].ask(method, *params)
        if error is not None:
            raise RefusedError(error)
        return result

    def _forget(self, name: str) -> None:
        connection = self._connections.pop(name, None)
        if connection is not None:
            connection.sock.close()


@contextlib.contextmanager
def under_load(
    daemon: Daemon,
    folder: Path,
    count: int,
    *,
    callers: Callers | None = None,
    utc_set_back: bool = False,
    **settings: Any,
) -> Iterator[tuple[Callers, list[Holder]]]:
    """Let callers of every sort, and *count* programs with leases, draw while the context lasts.

    At its end what callers got is judged, and what programs got: no tick came twice, none lay in
    the future, and each got its own in order. The *settings* are those of the programs.
    """
    callers = callers or Callers(daemon)
    with holders(daemon, folder, count, **settings) as drawing, callers.drawing():
        yield callers, drawing
    callers.hang_up()
    callers.assert_sound()
    assert_sound((holder.drawn() for holder in drawing), utc_set_back=utc_set_back)

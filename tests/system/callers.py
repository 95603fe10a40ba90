"""Callers of every sort, which keep what they are given, so that what came twice is found."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.judge import Judge, Span, assert_rising, of_block, of_id
from tests.rig import PATIENCE, Connection, Daemon
from uuidd.core.ids import uuids, versions
from uuidd.core.ids.ticks import UNIX_EPOCH
from uuidd.core.wire import libuuid
from uuidd_client import Client, DaemonUnavailable

if TYPE_CHECKING:
    from uuidd_client.client import Kind

PAUSE = 0.001
"""Seconds between two calls of a caller: many calls, and yet time for others on the machine."""


def given_in(block: dict[str, Any]) -> Span:
    """Return what was given out in a block, as the wire has it."""
    steady = "clock_seq" not in block
    place = (0,) if steady else (int.from_bytes(block["node"], "big"), block["clock_seq"])
    return Span(place, block["first"], block["first"] + block["count"])


class RefusedError(Exception):
    """The daemon's answer was an error, or none."""


class Caller:
    """A caller that draws by *call*.

    *answered* counts the calls that came to an end, *slowest* is the longest of them in seconds,
    *refused* what was answered instead of ids.
    """

    def __init__(self, name: str, call: Callable[[], None]) -> None:
        self.name = name
        self._call = call
        self.answered = 0
        self.slowest = 0.0
        self.refused: list[str] = []

    def draw(self) -> None:
        """Call once. Raises OSError or EOFError when the daemon is gone in the midst of it."""
        begun = time.monotonic()
        try:
            self._call()
        except RefusedError as refused:
            self.refused.append(str(refused))
        self.slowest = max(self.slowest, time.monotonic() - begun)
        self.answered += 1


class Callers:
    """Callers of every sort at *daemon*: ``take`` and ``make`` by rpc, libuuid's, and our client's.

    *ahead* returns by how many seconds at most the daemon's UTC is ahead of ours; no tick of utc
    may lie past that. *max_age* is our client's. *faults* are the ticks in the future. *judge*
    knows all that was given: a draw fails with Repeated if a tick came before. A test that ends the
    daemon while they draw does so in the context ``down``, and starts another daemon there.
    """

    def __init__(
        self,
        daemon: Daemon,
        *,
        ahead: Callable[[], float] = lambda: 0.0,
        max_age: float = 0.005,
        judge: Judge | None = None,
    ) -> None:
        self._daemon = daemon
        self._ahead = ahead
        self.judge = judge or Judge()
        self._firsts: dict[str, list[int]] = {}
        self.faults: list[str] = []
        self._connections: dict[str, Connection] = {}
        self._came = threading.Condition()
        self._up = threading.RLock()
        self._downs = 0
        self._seen: dict[str, int] = {}
        self._failures: list[BaseException] = []
        # Two, because the calls of one wait for each other.
        self._clients = {
            kind: Client(daemon.socket, fallback=False, max_age=max_age, timeout=5)
            for kind in ("v1", "v7")
        }
        self.of_utc = [
            Caller("take", partial(self._take, "take", 100, False)),
            Caller("take whole", partial(self._take, "take whole", 1000, True)),
            Caller("make v1", self._make_v1),
            Caller("libuuid", self._libuuid),
            Caller("client v1", self._client_v1),
        ]
        self.of_steady = [
            Caller("take steady", partial(self.take_steady, 100)),
            Caller("make v7", self._make_v7),
            Caller("client v7", self._client_v7),
        ]

    @property
    def all(self) -> list[Caller]:
        """All callers."""
        return [*self.of_utc, *self.of_steady]

    @property
    def spaces(self) -> set[tuple[int, ...]]:
        """The nodes and clock sequences of all that utc gave."""
        return {place for place in self.judge.spans if len(place) == 2}

    @property
    def nodes(self) -> set[int]:
        """The nodes of all that utc gave."""
        return {node for node, _ in self.spaces}

    @property
    def refused(self) -> list[str]:
        """All that was refused."""
        return [refused for caller in self.all for refused in caller.refused]

    @property
    def slowest(self) -> float:
        """The seconds that the slowest call took."""
        return max(caller.slowest for caller in self.all)

    def draw(self, times: int = 1) -> None:
        """Let all callers call, one after the other."""
        for _ in range(times):
            for caller in self.all:
                caller.draw()

    def take_wide(self) -> None:
        """Take a tenth of a second at once, which meets what was taken at about this moment."""
        self._take("wide", 1_000_000, False)
        self._take("wide", 1_000_000, True)
        self.take_steady(1_000_000)

    @contextlib.contextmanager
    def drawing(self) -> Iterator[None]:
        """Let all callers call at once, each in a thread, while the context lasts."""
        done = threading.Event()
        self._failures.clear()

        def run(caller: Caller) -> None:
            try:
                while not done.wait(PAUSE):
                    self._draw(caller)
                    with self._came:
                        self._came.notify_all()
            except BaseException as failure:
                self._failures.append(failure)
                with self._came:
                    self._came.notify_all()

        threads = [threading.Thread(target=run, args=[caller]) for caller in self.all]
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

    def _draw(self, caller: Caller) -> None:
        with self._up:
            downs = self._downs
        if self._seen.get(caller.name) != downs:
            # Its connection is one to a daemon that was there before.
            self._forget(caller.name)
        self._seen[caller.name] = downs
        try:
            caller.draw()
        except (OSError, EOFError):
            self._forget(caller.name)
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
        wanted = [(caller, caller.answered + times) for caller in self.all]

        def came() -> bool:
            return all(caller.answered >= count for caller, count in wanted)

        with self._came:
            self._came.wait_for(lambda: came() or self._failures, PATIENCE)
        self._raise_failure()
        assert came(), [(caller.name, caller.answered, count) for caller, count in wanted]

    def refused_so_far(self) -> int:
        """Count what was refused before now, also what its caller was just about to note."""
        self.more(1)
        return len(self.refused)

    def hang_up(self) -> None:
        """Leave the connections; the next call makes new ones."""
        for name in list(self._connections):
            self._forget(name)
        for client in self._clients.values():
            client.close()

    def assert_sound(self) -> None:
        """Fail if steady went back for one caller, utc was ahead, or one of both gave nothing."""
        assert not self.faults, self.faults[:5]
        for firsts in self._firsts.values():
            assert_rising(firsts)
        assert {len(place) for place in self.judge.spans} == {1, 2}

    def take_steady(self, count: int) -> None:
        """Take of the steady timeline."""
        block = self._ask("take steady", "take", "steady", count)
        self._note_steady("take steady", given_in(block))

    def _take(self, name: str, count: int, whole: bool) -> None:
        before = self._ahead()
        block = self._ask(name, "take", "utc", count, whole)
        self._check(name, block["first"] + block["count"] - 1, before)
        self.judge.note(given_in(block)._replace(taker=name))

    def _make_v1(self) -> None:
        before = self._ahead()
        ids = [uuids.from_text(text) for text in self._ask("make v1", "make", "v1", 10)]
        self._check("make v1", max(versions.gregorian_fields(id).tick for id in ids), before)
        self._note_v1("make v1", ids)

    def _libuuid(self) -> None:
        before = self._ahead()
        with self._up:
            connected = self._daemon.connect()
        with connected as connection:
            connection.sock.sendall(libuuid.pack_request(libuuid.Op.BULK_TIME_UUID, 64))
            reply = libuuid.unpack_body(connection.sock.recv(64))
        if reply is None:
            raise EOFError
        given = libuuid.unpack_block(reply)
        self._check("libuuid", given.first + given.count - 1, before)
        self.judge.note(of_block(given)._replace(taker="libuuid"))

    def _client_v1(self) -> None:
        self._note_v1("client v1", [id.int for id in self._by_client("v1")])

    def _make_v7(self) -> None:
        self._note_v7(
            "make v7", [uuids.from_text(text) for text in self._ask("make v7", "make", "v7", 10)]
        )

    def _client_v7(self) -> None:
        self._note_v7("client v7", [id.int for id in self._by_client("v7")])

    def _by_client(self, kind: Kind) -> list[UUID]:
        try:
            return self._clients[kind].make(kind, 10, "uuid")
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

    def _check(self, name: str, last: int, before: float) -> None:
        ahead = max(before, self._ahead())
        latest = (time.time_ns() + round(ahead * 1e9)) // 100 + UNIX_EPOCH
        if last > latest:
            self.faults.append(f"{name}: {last - latest} ticks past now")

    def _note_v1(self, name: str, ids: list[int]) -> None:
        for id in ids:
            self.judge.note(of_id(id)._replace(taker=name))

    def _note_v7(self, name: str, ids: list[int]) -> None:
        for id in ids:
            self._note_steady(name, of_id(id))

    def _note_steady(self, name: str, span: Span) -> None:
        self.judge.note(span._replace(taker=name))
        self._firsts.setdefault(name, []).append(span.first)

"""After a fork, or a clone of the machine, no two processes draw the same id (P1)."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.client.breaking import come_between
from tests.client.fakes import Server, grants
from tests.client.raw import of_child, raw_fork
from tests.rig import PATIENCE, Daemon
from tests.tools import output
from uuidd.core.ids.kinds import KINDS
from uuidd_client import Client
from uuidd_client.times import Backfill

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("implementation")]

SECONDS = 1.5

STRIDE = 11
"""Of how many points one is tried; each way begins at another."""


@pytest.fixture(autouse=True)
def _no_warning() -> Iterator[None]:
    """Of the fork of a process that has threads, and in a child of the missing daemon."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


Fork = Callable[[], int | Callable[[], int | None]]


class Family:
    """A process and those that *fork* made, each of which leaves its ids in a file.

    In the parent *fork* returns a pid, or what waits for the child's exit status.
    """

    def __init__(self, fork: Fork) -> None:
        self._fork = fork
        self._waits: list[Callable[[], int | None]] = []
        self._parent = os.getpid()
        self._file = os.memfd_create("ids")
        # So that no child writes over or into what another writes.
        fcntl.fcntl(self._file, fcntl.F_SETFL, os.O_APPEND)

    @property
    def children(self) -> int:
        """How many were made."""
        return len(self._waits)

    def is_child(self) -> bool:
        """Whether this process was forked."""
        return os.getpid() != self._parent

    def fork(self) -> None:
        """Fork, as a handler that returns in both; a child's does not fork again."""
        if not self.is_child():
            made = self._fork()
            self._waits.append(made if callable(made) else lambda: os.waitpid(made, 0)[1])

    @contextlib.contextmanager
    def failing(self) -> Iterator[None]:
        """End a child that fails, rather than let it go on with the tests."""
        try:
            yield
        except BaseException:
            if not self.is_child():
                raise
            traceback.print_exc()
            os._exit(1)

    def end(self, ids: list[str]) -> list[str]:
        """Return the ids of all; the children end here. A child that failed has left none."""
        if self.is_child():
            os.write(self._file, b"".join(b"%s\n" % id.encode() for id in ids))
            os._exit(0)
        for wait in self._waits:
            assert wait() == 0
        theirs = os.pread(self._file, os.fstat(self._file).st_size, 0).decode().split("\n")[:-1]
        os.close(self._file)
        return ids + theirs


CHILDREN, THREADS, EACH = 8, 3, 2000


def by_multiprocessing(work: Callable[[], object]) -> Fork:
    """Return what makes children that do *work*, and end."""

    def fork() -> Callable[[], int | None]:
        child = get_context("fork").Process(target=work)
        child.start()

        def wait() -> int | None:
            child.join()
            return child.exitcode

        return wait

    return fork


FORKS: dict[str, Callable[[Callable[[], object]], Fork]] = {
    "os": lambda _: os.fork,
    "raw": lambda _: raw_fork,
    "multiprocessing": by_multiprocessing,
}


@contextlib.contextmanager
def drawing(_: Client, draw: Callable[[], object]) -> Iterator[None]:
    """Let threads draw."""
    done = threading.Event()

    def draw_on() -> None:
        while not done.is_set():
            draw()

    with ThreadPoolExecutor(THREADS) as pool:
        working = [pool.submit(draw_on) for _ in range(THREADS)]
        try:
            yield
        finally:
            done.set()
        for each in working:
            each.result()


@contextlib.contextmanager
def locked(client: Client, _: object) -> Iterator[None]:
    """Let a thread be in the channel."""
    held, done = threading.Event(), threading.Event()

    def use(_: object) -> None:
        held.set()
        done.wait()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(client._channels.call, lambda channel: channel.in_turn(use))
        held.wait()
        try:
            yield
        finally:
            done.set()


BUSY: dict[str, Callable[[Client, Callable[[], object]], AbstractContextManager[object]]] = {
    "nothing": lambda *_: contextlib.nullcontext(),
    "drawing": drawing,
    "locked": locked,
}
"""What other threads do at the fork."""


@pytest.mark.parametrize("served", [True, False])
@pytest.mark.parametrize(
    ("way", "busy"),
    [
        *((way, "nothing") for way in FORKS),
        ("os", "drawing"),
        *((way, "locked") for way in ("os", "raw")),
    ],
)
def test_no_id_comes_twice_after_a_fork(
    daemon: Daemon, place: Path, way: str, busy: str, served: bool
) -> None:
    """A child that was born with the lock held does not hang either."""
    client = Client(daemon.socket if served else place / "absent")
    draws = [client.factory("v1"), client.factory("v6"), client.iter("v6", "text").__next__]
    ids: list[str] = []

    def draw() -> None:
        for one in draws:
            ids.extend([str(one()) for _ in range(EACH)])
        ids.extend(client.make("v1", EACH, "text"))

    def child() -> None:
        # One that waits for ever fails.
        signal.alarm(60)
        ids.clear()
        draw()
        family.end(ids)

    family = Family(FORKS[way](child))
    draw()
    with BUSY[busy](client, draw), family.failing():
        for _ in range(CHILDREN):
            family.fork()
        if family.is_child():
            child()
        if busy != "locked":
            draw()
    draw()
    found = family.end(ids)
    assert len(found) == len(ids) + CHILDREN * 4 * EACH
    assert len(set(found)) == len(found)


def test_a_child_closes_the_socket_of_its_parent(path: Path) -> None:
    """It does not hang up on its parent."""
    with Server(path, grants()) as server, Client(path, fallback=False, max_age=0) as client:

        def descriptors() -> int:
            client.uuid1()
            return len(os.listdir("/proc/self/fd"))

        before = descriptors()
        # The child has both ends of a pipe.
        assert int(of_child(lambda: b"%d" % (descriptors() - 2))) == before
        assert descriptors() == before
    assert (server.connections, len(server.requests)) == (2, 3)


def at_each_point(
    draw: Callable[[int, Family], list[Any]], first: int = 1, step: int = 1, least: int = 10
) -> Iterator[tuple[list[str], list[str]]]:
    """Return the ids of this process, and those of all, where *draw* lets a handler fork.

    It is told at which point: the *first*, and each *step* further, until there are no more. There
    have to be more than *least* points.
    """
    for at in itertools.count(first, step):
        family = Family(raw_fork if at % 5 == 0 else os.fork)
        with family.failing():
            ids = [str(id) for id in draw(at, family)]
        found = family.end(ids)
        if not family.children:
            assert at > least
            return
        yield ids, found


WAYS: dict[str, Callable[[Client], list[Any]]] = {
    "drawn": lambda client: [client.uuid7()],
    "utc": lambda client: [client.uuid1()],
    "made": lambda client: client.make("ulid", 3),
    "joined": lambda client: [client.make("v1", 1, form="bytes")],
    "random": lambda client: client.make("v4", 3),
    "asked": lambda client: [client.flake()],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("served", [True, False])
def test_no_id_comes_twice_wherever_a_handler_forks(
    daemon: Daemon, tmp_path: Path, way: str, served: bool
) -> None:
    path = daemon.socket if served else tmp_path / "absent"

    def draw(at: int, family: Family) -> list[Any]:
        # The first draw opens the connection, and the second asks for a lease. Each Flake is a
        # request, and so is each draw without a daemon.
        with Client(path, max_age=0, fallback=not served, timeout=20) as client:
            if at % 2:
                WAYS[way](client)
            ids = come_between(partial(WAYS[way], client), at, family.fork)
            return ids + WAYS[way](client)

    for ids, found in at_each_point(draw, 1 + list(WAYS).index(way), STRIDE):
        assert len(set(found)) == len(found) == 2 * len(ids)


@pytest.mark.parametrize("way", ["drawn", "utc"])
def test_no_id_of_a_lease_comes_twice_wherever_a_handler_forks(
    daemon: Daemon, way: str, implementation: str
) -> None:
    with Client(daemon.socket, max_age=0, fallback=False, timeout=20) as client:
        for _ in range(3):
            WAYS[way](client)

        def draw(at: int, family: Family) -> list[Any]:
            ids = come_between(partial(WAYS[way], client), at, family.fork)
            return ids + WAYS[way](client)

        # The extension is one point.
        for ids, found in at_each_point(draw, least=1 if implementation == "c" else 5):
            assert len(set(found)) == len(found) == 2 * len(ids)


@pytest.mark.parametrize("served", [True, False])
def test_a_handler_may_fork_and_draw_wherever_it_comes(
    daemon: Daemon, tmp_path: Path, served: bool
) -> None:
    """What it comes into is not there any more in the child, which begins again with its own."""
    path = daemon.socket if served else tmp_path / "absent"

    def draw(at: int, family: Family) -> list[Any]:
        ids: list[Any] = []
        with Client(path, max_age=0, fallback=not served, timeout=20) as client:
            client.uuid7()

            def fork_and_draw() -> None:
                family.fork()
                ids.append(client.uuid7())

            ids.append(come_between(client.uuid7, at, fork_and_draw))
        return ids

    for _, found in at_each_point(draw, step=2):
        assert len(set(found)) == len(found) == 4


def test_a_child_of_a_handler_leaves_the_parents_connection_alone(path: Path) -> None:
    """The parent's answer is the parent's, and its connection stays open."""
    with Server(path, grants()) as server:
        client = Client(path, max_age=0, fallback=False, timeout=20)
        client.uuid1()
        children = 0
        for _, found in at_each_point(
            lambda at, family: [come_between(client.uuid1, at, family.fork)], step=STRIDE
        ):
            assert len(set(found)) == len(found) == 2
            children += 1
        client.close()
    assert server.connections == 1 + children


def test_ids_are_distinct_under_signals_whose_handler_forks(daemon: Daemon) -> None:
    """Also where real signals come in a system call."""
    client = Client(daemon.socket, max_age=0, fallback=False, timeout=20)
    draw = client.factory("v7", "text")
    family = Family(os.fork)
    ids = [draw()]
    inherited = 0

    def handle(_: int, frame: FrameType | None) -> None:
        nonlocal inherited
        # Behind a draw that has ended, both would have its id: then the program itself has forked.
        if frame is not None and frame.f_code.co_filename != __file__:
            family.fork()
            if family.is_child():
                inherited = len(ids)

    before = signal.signal(signal.SIGALRM, handle)
    try:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and family.children < 300 and not family.is_child():
            signal.setitimer(signal.ITIMER_REAL, 0.0001 + len(ids) % 397 * 1e-6)
            for _ in range(10):
                ids.append(draw())
                ids += client.make("v1", 2, form="text")
                ids.append(client.flake())
        ids += [draw() for _ in range(20)]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    found = family.end(ids[inherited:])
    assert family.children
    assert len(set(found)) == len(found)


def test_a_backfill_gives_no_id_twice_wherever_a_handler_forks() -> None:
    """The child that comes back into the middle of a take is told that the ids are its parent's."""

    def draw(at: int, family: Family) -> list[Any]:
        ids = Backfill("v1", clock_seq=5, node=7)
        try:
            return [come_between(partial(ids.take, 10**17), at, family.fork)]
        except RuntimeError as error:
            return [str(error).split()[0]]

    for _, found in at_each_point(draw, least=5):
        assert sorted(found)[1:] == ["this"]


def in_both(signal: str, folder: Path) -> dict[str, int]:
    """Return how many ids came in both clones, by their kind and the way in which they were drawn.

    *signal* is how both clones learn of it.
    """
    words = sys.executable, "-m", "tests.client.cloning", signal, folder
    told = json.loads(output(*words, timeout=6 * PATIENCE))
    return {name: common for name, (_, common) in told.items()}


@pytest.mark.parametrize(("alone", "without"), [("", set()), ("alone,", {"snowflake"})])
def test_without_a_signal_ids_of_each_kind_come_in_both_clones(
    alone: str, without: set[str], tmp_path: Path
) -> None:
    """So the clones of these tests share what the signal has to end."""
    found = in_both(f"{alone}none", tmp_path)
    repeated = {name.partition(",")[0] for name, common in found.items() if common}
    assert repeated == set(KINDS) - without


@pytest.mark.parametrize("signal", ["page", "renew", "alone,renew", "real,page"])
def test_after_the_signal_no_id_comes_in_both_clones(signal: str, tmp_path: Path) -> None:
    found = in_both(signal, tmp_path)
    assert len(found) > 65
    assert {name: common for name, common in found.items() if common} == {}

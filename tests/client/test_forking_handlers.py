"""Signal handlers that fork in the middle of a draw, and return in both processes."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.client.breaking import come_between
from tests.client.fakes import Server, grants
from tests.client.raw import raw_fork
from tests.rig import Daemon
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


class Family:
    """A process and those that its handler forked, each of which leaves its ids in a file."""

    def __init__(self, fork: Callable[[], int] = os.fork) -> None:
        self._fork = fork
        self._parent = os.getpid()
        self._file = os.memfd_create("ids")
        # So that no child writes over or into what another writes.
        fcntl.fcntl(self._file, fcntl.F_SETFL, os.O_APPEND)
        self.children = 0

    def is_child(self) -> bool:
        """Whether this process was forked."""
        return os.getpid() != self._parent

    def fork(self) -> None:
        """Fork, as a handler that returns in both; a child's does not fork again."""
        if not self.is_child():
            self.children += 1
            self._fork()

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
        for _ in range(self.children):
            assert os.wait()[1] == 0
        theirs = os.pread(self._file, os.fstat(self._file).st_size, 0).decode().split("\n")[:-1]
        os.close(self._file)
        return ids + theirs


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
    """In the middle of a request for a block: the child has ids of its own."""
    path = daemon.socket if served else tmp_path / "absent"
    for at in itertools.count(1 + list(WAYS).index(way), STRIDE):
        # The first draw opens the connection, and the second asks for a lease. Each Flake is a
        # request, and so is each draw without a daemon.
        client = Client(path, max_age=0, fallback=not served, timeout=20)
        family = Family(raw_fork if at % 5 == 0 else os.fork)
        if at % 2:
            WAYS[way](client)
        with family.failing():
            ids = come_between(partial(WAYS[way], client), at, family.fork)
            ids += WAYS[way](client)
        found = family.end([str(id) for id in ids])
        client.close()
        if not family.children:
            break
        assert len(set(found)) == len(found) == 2 * len(ids), at
    assert at > 10


@pytest.mark.parametrize("way", ["drawn", "utc"])
def test_no_id_of_a_lease_comes_twice_wherever_a_handler_forks(
    daemon: Daemon, way: str, implementation: str
) -> None:
    """The lane is the parent's, and the child asks for its own."""
    with Client(daemon.socket, max_age=0, fallback=False, timeout=20) as client:
        for _ in range(3):
            WAYS[way](client)
        for at in itertools.count(1):
            family = Family(raw_fork if at % 2 else os.fork)
            with family.failing():
                ids = come_between(partial(WAYS[way], client), at, family.fork)
                ids += WAYS[way](client)
            found = family.end([str(id) for id in ids])
            if not family.children:
                break
            assert len(set(found)) == len(found) == 2 * len(ids), at
    # The extension is one point.
    assert at > (1 if implementation == "c" else 5)


@pytest.mark.parametrize("served", [True, False])
def test_a_handler_may_fork_and_draw_wherever_it_comes(
    daemon: Daemon, tmp_path: Path, served: bool
) -> None:
    """What it comes into is not there any more in the child, which begins again with its own."""
    path = daemon.socket if served else tmp_path / "absent"
    for at in itertools.count(1, 2):
        client = Client(path, max_age=0, fallback=not served, timeout=20)
        client.uuid7()
        family = Family()
        ids: list[str] = []

        def fork_and_draw(
            client: Client = client, family: Family = family, ids: list[str] = ids
        ) -> None:
            family.fork()
            ids.append(str(client.uuid7()))

        with family.failing():
            ids.append(str(come_between(client.uuid7, at, fork_and_draw)))
        found = family.end(ids)
        client.close()
        if not family.children:
            break
        assert len(set(found)) == len(found) == 4, at
    assert at > 10


def test_a_child_of_a_handler_leaves_the_parents_connection_alone(tmp_path: Path) -> None:
    """Wherever it forks: the parent's answer is the parent's, and its connection stays open."""
    with Server(tmp_path / "s", grants()) as server:
        client = Client(tmp_path / "s", max_age=0, fallback=False, timeout=20)
        client.uuid1()
        children = 0
        for at in itertools.count(1, STRIDE):
            family = Family()
            with family.failing():
                ids = [str(come_between(client.uuid1, at, family.fork))]
            found = family.end(ids)
            assert len(set(found)) == len(found) == 1 + family.children
            children += family.children
            if not family.children:
                break
        client.close()
    assert at > 10
    assert server.connections == 1 + children


def test_ids_are_distinct_under_signals_whose_handler_forks(daemon: Daemon) -> None:
    """Wherever real signals come, in a system call also, parent and children share no id."""
    client = Client(daemon.socket, max_age=0, fallback=False, timeout=20)
    draw = client.factory("v7", "text")
    family = Family()
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


def test_a_child_born_while_its_thread_waited_for_another_does_not_hang(daemon: Daemon) -> None:
    """The lock that the other thread holds is nobody's in the child."""
    client = Client(daemon.socket, fallback=False, timeout=20)
    client.uuid1()
    held, done = threading.Event(), threading.Event()
    family = Family()

    def use(_: object) -> None:
        held.set()
        done.wait()

    def hold() -> None:
        client._channels.call(lambda channel: channel.in_turn(use))

    def fork(*_: object) -> None:
        family.fork()
        done.set()

    other = threading.Thread(target=hold)
    other.start()
    held.wait()
    before = signal.signal(signal.SIGALRM, fork)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        ids = client.make("v1", 2, form="text")
    finally:
        signal.signal(signal.SIGALRM, before)
    found = family.end(ids)
    other.join()
    assert family.children == 1
    assert len(set(found)) == len(found) == 4


def test_a_backfill_gives_no_id_twice_wherever_a_handler_forks() -> None:
    """The child that comes back into the middle of a take is told that the ids are its parent's."""
    for at in itertools.count(1):
        ids = Backfill("v1", clock_seq=5, node=7)
        family = Family()
        with family.failing():
            try:
                taken = [str(come_between(partial(ids.take, 10**17), at, family.fork))]
            except RuntimeError as error:
                taken = [str(error).split()[0]]
        found = family.end(taken)
        if not family.children:
            break
        assert sorted(found)[1:] == ["this"], at
    assert at > 5

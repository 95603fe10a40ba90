"""What all tests of the client share."""

from __future__ import annotations

import io
import os
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.client.cutters import CUTTERS
from tests.client.fakes import Answer, Server, Time
from tests.client.lanes import Lanes, World
from tests.rig import PATIENCE, Daemon
from uuidd_client import Client, connection, extension, notices
from uuidd_client.command import main
from uuidd_client.connection import Stream

IMPLEMENTATIONS = [
    pytest.param(name, marks=pytest.mark.extension if name == "c" else ()) for name in CUTTERS
]
"""What the client can make ids with here; UUIDD_EXTENSION=require demands both."""

collect_ignore_glob = ["test_core_*.py"] if extension.core is None else []
"""Tests of the extension itself."""

WORKER = 5
"""The worker number of the daemon that tests share."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use the shared daemon, which is a process."""
    for item in items:
        here = Path(__file__).parent in item.path.parents
        if here and isinstance(item, pytest.Function) and "daemon" in item.fixturenames:
            item.add_marker("process")


@pytest.fixture(params=IMPLEMENTATIONS)
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the client makes ids with, here and in processes that the test starts: each in turn.

    The functions of the module ``uuidd_client`` are an exception: they have been made before.
    """
    chosen: str = request.param
    if chosen == "python":
        monkeypatch.setattr(extension, "core", None)
        monkeypatch.setattr(extension, "implementation", "python")
    monkeypatch.setenv("UUIDD_EXTENSION", "require" if chosen == "c" else "off")
    return chosen


@pytest.fixture(params=IMPLEMENTATIONS)
def new(request: pytest.FixtureRequest) -> Any:
    """Return the class of cutters: that of each implementation in turn."""
    return CUTTERS[request.param]


@pytest.fixture(autouse=True)
def _warned_already(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fallback warns once in a process; here it has warned, unless a test says otherwise."""
    monkeypatch.setattr(notices, "_warned_in", os.getpid())


@pytest.fixture(autouse=True)
def _room_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of a process has room for a few lines a minute; here each test has all of it."""
    lines_at = deque([-notices.MINUTE] * notices.LINES, maxlen=notices.LINES)
    monkeypatch.setattr(notices, "_lines_at", lines_at)


@pytest.fixture(scope="session")
def daemon() -> Iterator[Daemon]:
    """A daemon for all tests that do not end or change it."""
    with Daemon(f"--worker={WORKER}") as daemon:
        yield daemon


@pytest.fixture
def client(place: Path) -> Iterator[Client]:
    """A client of the implementation under test, whose daemon is not there."""
    with Client(place / "absent") as client:
        yield client


@pytest.fixture
def time() -> Time:
    """A clock that is moved by hand, ten seconds past START."""
    return Time(10)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where a socket may be made."""
    return tmp_path / "s"


Serve = Callable[..., tuple[Server, Client]]
"""Takes what a daemon says, and settings of a client; returns both."""


@pytest.fixture
def serve(path: Path, time: Time) -> Iterator[Serve]:
    """Start a daemon, and make a client of it that has the clock of the test."""
    with ExitStack() as stack:

        def serve(answer: Answer, **settings: Any) -> tuple[Server, Client]:
            server = stack.enter_context(Server(path, answer))
            return server, stack.enter_context(Client(path, _clock=time, **settings))

        yield serve


@pytest.fixture
def world(path: Path, time: Time) -> Iterator[World]:
    """Return a daemon with lanes, which is not there yet."""
    world = World(path, time)
    yield world
    world.lanes.close()


@pytest.fixture
def lanes(time: Time) -> Iterator[Lanes]:
    """The page of a daemon, and leases of its lanes."""
    lanes = Lanes(clock=time)
    yield lanes
    lanes.close()


@pytest.fixture
def turns_are_short() -> Iterator[None]:
    """Let threads take turns as often as Python can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


class Waits(list[float]):
    """The seconds of each wait for an answer; *lasting* returns for how long it waits, of those.

    *streams* are the connections that waited.
    """

    lasting: Callable[[float], float] = staticmethod(lambda seconds: seconds)

    def __init__(self) -> None:
        super().__init__()
        self.streams: list[Stream] = []


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    """Return the waits of all connections that are opened from now on."""
    found = Waits()

    class Watched(Stream):
        def wait_for_bytes(self, seconds: float) -> None:
            found.append(seconds)
            found.streams.append(self)
            super().wait_for_bytes(found.lasting(seconds))

    monkeypatch.setattr(connection, "Stream", Watched)
    return found


Found = TypeVar("Found")


def together(*works: Callable[[], Found]) -> list[Found]:
    """Do each in a thread of its own, all at once, and return what they returned."""
    ready = threading.Barrier(len(works))

    def do(work: Callable[[], Found]) -> Found:
        ready.wait(PATIENCE)
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return [future.result() for future in [pool.submit(do, work) for work in works]]


Uuidctl = Callable[..., tuple[int, str, str]]
"""``uuidctl`` in this process: returns its exit status, output and errors."""


@pytest.fixture
def uuidctl(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Uuidctl:
    """The command, with *stdin* as its input; without a daemon unless a test names a *socket*."""

    def run(
        *arguments: str, socket: Path | None = None, stdin: bytes | None = None
    ) -> tuple[int, str, str]:
        monkeypatch.setenv("UUIDD_SOCKET", str(socket or "/nowhere/s"))
        # To restore it after the test: uuidctl new replaces it.
        monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        try:
            status = main(arguments)
        except SystemExit as ended:
            status = int(ended.code or 0)
        return status, *capsys.readouterr()

    return run

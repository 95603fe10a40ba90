"""Without a daemon ids go on, unmarked; with one again they are the daemon's."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID, SafeUUID

import pytest

from tests.client.fakes import Server, grants
from tests.rig import Daemon
from uuidd.core.ids.kinds import KINDS
from uuidd_client import Client, DaemonUnavailable, extension, notices

pytestmark = pytest.mark.usefixtures("implementation")


@pytest.fixture(autouse=True)
def _no_warning() -> Iterator[None]:
    """The warning comes once a process; what is tested of it is tested in processes of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def test_ids_go_on_without_a_daemon_and_are_not_marked_safe(tmp_path: Path) -> None:
    """Without a socket ids are made in the process, from a random node."""
    client = Client(tmp_path / "absent")
    ids = [client.uuid1() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert {id.is_safe for id in ids} == {SafeUUID.unknown}
    assert {id.node >> 40 & 1 for id in ids} == {1}


@pytest.mark.process
def test_ids_rise_from_the_daemon_to_the_fallback_and_back() -> None:
    """Wherever they come from, the ids of a process rise while UTC does."""
    with Daemon() as daemon:
        client = Client(daemon.socket, max_age=0.001)
        ids: list[UUID] = []

        def draw_until(mark: SafeUUID) -> None:
            begun = time.monotonic()
            while not ids or ids[-1].is_safe is not mark:
                ids.append(client.uuid1())
                assert time.monotonic() - begun < 10
            ids.extend(client.uuid1() for _ in range(2000))

        draw_until(SafeUUID.safe)
        daemon.kill()
        draw_until(SafeUUID.unknown)
        daemon.start()
        draw_until(SafeUUID.safe)
    times = [id.time for id in ids]
    assert times == sorted(set(times))


def test_the_environment_forbids_the_fallback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UUIDD_FALLBACK=0 is for administrators whose programs did not ask."""
    monkeypatch.setenv("UUIDD_FALLBACK", "0")
    with pytest.raises(DaemonUnavailable):
        Client(tmp_path / "absent").uuid1()


DRAWS: list[Callable[[Client], object]] = [
    lambda client: client.uuid1(),
    lambda client: client.uuid7(),
    lambda client: client.make("v6", 3),
    lambda client: client.make("ulid", 3, "bytes"),
    lambda client: next(client.iter("v1", "text")),
    lambda client: client.factory("ksuid")(),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_the_warning_names_the_line_that_drew(
    draw: Callable[[Client], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From whatever depth it comes, a line of the program; in Python 3.11 one of the client."""
    monkeypatch.setattr(notices, "_warned_in", 0)
    with pytest.warns(RuntimeWarning, match="/nowhere/s") as warned:
        draw(Client("/nowhere/s"))
    line = draw.__code__.co_firstlineno
    assert len(warned) == 1
    if sys.version_info >= (3, 12):
        assert (warned[0].filename, warned[0].lineno) == (__file__, line)


@pytest.mark.process
def test_one_warning_a_process_says_what_is_wrong(tmp_path: Path) -> None:
    """However many clients and calls there are, one line tells of the missing daemon."""
    program = (
        "from uuidd_client import Client, uuid1\n"
        "for _ in range(3): uuid1(); Client().uuid6(); Client(max_age=0).uuid1()"
    )
    path = str(tmp_path / "absent")
    said = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "UUIDD_SOCKET": path},
        capture_output=True,
        check=True,
        timeout=60,
        text=True,
    ).stderr
    assert said.count("RuntimeWarning") == 1
    assert f"no answer from uuidd at {path}: No such file or directory" in said


HEAVY = {
    "asyncio",
    "copy",
    "dataclasses",
    "inspect",
    "logging",
    "socket",
    "subprocess",
    "threading",
    "trio",
    "typing",
    "uuidd.core.timeline.state",
    "uuidd_client.readings",
    "uuidd_client.times",
}


def imported_by(*parts: str) -> list[set[str]]:
    """Return the modules that each of these *parts* of a program imports."""
    program = "import sys, warnings\nwarnings.simplefilter('ignore')\n"
    for part in parts:
        program += f"before = set(sys.modules)\n{part}\nprint(*set(sys.modules) - before)\n"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=60, text=True, check=True
    )
    return [set(line.split()) for line in done.stdout.splitlines()]


@pytest.mark.process
def test_the_import_brings_nothing_heavy() -> None:
    """The workers of a server that start at once all pay for it."""
    (imported,) = imported_by("import uuidd_client")
    assert not imported & HEAVY
    # What makes ids in Python only where no extension does.
    assert ("uuidd.core.ids.bulk" in imported) == (extension.core is None)


@pytest.mark.process
@pytest.mark.parametrize("kind", KINDS)
def test_no_id_imports_anything(kind: str, tmp_path: Path) -> None:
    """A signal handler or a fork in the middle of a draw comes into no import."""
    make = f"Client({str(tmp_path / 'absent')!r}).make({kind!r}, 3)"
    if kind == "snowflake":
        make = f"with suppress(DaemonUnavailable): {make}"
    before = "from contextlib import suppress\nfrom uuidd_client import Client, DaemonUnavailable"
    assert imported_by(before, make)[1] == set()


@pytest.mark.parametrize("reused", [True, False])
def test_a_process_that_closed_all_descriptors_draws_on(path: Path, reused: bool) -> None:
    """Their number may then be that of a file of the daemon, which stays open."""
    with Server(path, grants()) as server, contextlib.ExitStack() as stack:
        client = stack.enter_context(Client(path, fallback=False, max_age=0))
        client.uuid1()
        descriptor = _descriptor_of_the_connection(path)
        os.close(descriptor)
        file = stack.enter_context(open(os.devnull)) if reused else None
        assert file is None or file.fileno() == descriptor
        client.uuid1()
        assert (server.connections, len(server.requests)) == (2, 2)
        # A new connection could have the number of a file that was closed.
        assert file is None or os.path.samestat(os.fstat(file.fileno()), os.stat(os.devnull))


def _descriptor_of_the_connection(path: Path) -> int:
    """Return the number of this process's connection to the socket at *path*."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            # Python would leave the copy of what is no socket open.
            if stat.S_ISSOCK(os.stat(int(name)).st_mode):
                with socket.socket(fileno=os.dup(int(name))) as found:
                    if found.getpeername() == str(path):
                        return int(name)
    raise AssertionError("there is no connection")


@pytest.mark.parametrize("seconds", [1e30, 1e305, 10**400])
def test_times_beyond_all_clocks_are_without_an_end(daemon: Daemon, seconds: float) -> None:
    """The system's own structures hold less than a float does, and a float less than an int."""
    with Client(daemon.socket, fallback=False, timeout=seconds, max_age=seconds) as client:
        assert client.uuid1().is_safe is SafeUUID.safe


def test_for_no_ids_nobody_is_asked() -> None:
    """There are none of them, with a daemon or without."""
    with Client("/nowhere", fallback=False) as client:
        assert client.make("v1", 0) == []
        assert client.make("snowflake", 0, "bytes") == b""

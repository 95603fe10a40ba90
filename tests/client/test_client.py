from __future__ import annotations

import contextlib
import gc
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any
from uuid import UUID, SafeUUID

import pytest

from tests.client import beside_util_linux, threading_and_forking
from tests.client.fakes import Server, granted, grants, result
from tests.rig import Daemon
from tests.tools import in_private_mounts, need
from uuidd_client import Client, DaemonUnavailable

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.usefixtures("implementation")

PATIENCE = 60.0


def test_few_requests_serve_many_ids(daemon: Daemon) -> None:
    """Blocks grow with demand, so that drawing one by one is no round trip each."""

    def requests() -> int:
        return int(daemon.call("status")["requests"]["rpc"]["requests"])

    with Client(daemon.socket, fallback=False, timeout=10) as client:
        before = requests()
        for _ in range(50_000):
            client.uuid1()
        assert requests() - before < 1000


SECONDS = "it must be a number of seconds"

WRONG: list[tuple[Callable[..., object], tuple[object, ...], type[Exception], str]] = [
    (Client.make, ("v9", 1), ValueError, "kind is 'v9'; it must be one of v1, v4, v6"),
    (Client.make, ("", 1), ValueError, "kind is ''; it must be one of v1, v4, v6"),
    (Client.make, (["v1"], 1), ValueError, r"kind is \['v1'\]; it must be one of v1, v4, v6"),
    (Client.make, (10**5000, 1), ValueError, "kind is <int too long to show>; it must be one of"),
    (
        Client.make,
        ("v1", 1, "hex"),
        ValueError,
        "form is 'hex'; the forms of v1 are uuid, text, by",
    ),
    (Client.make, ("v1", 1, ["text"]), ValueError, r"form is \['text'\]; the forms of v1 are uuid"),
    (Client.make, ("v1", -1), ValueError, "count is -1; it must be 0 or more"),
    (Client.make, ("v1", -(10**5000)), ValueError, "count is <int too long to show>; it must be 0"),
    (
        Client.make,
        ("v1", 10_000_001),
        ValueError,
        "count is 10000001; make returns 10000000 ids at most: .* iter, which has no",
    ),
    (
        Client.make,
        ("v1", 2**70),
        ValueError,
        "count is 1180591620717411303424; make returns 100000",
    ),
    (
        Client.make,
        ("v1", 10**5000),
        ValueError,
        "count is <int too long to show>; make returns 100",
    ),
    *(
        (Client.make, ("v1", count), TypeError, f"count is {count!r}; it must be an int")
        for count in (True, 1.0, "1", None)
    ),
    (Client.iter, ("v3",), ValueError, "kind is 'v3'"),
    (
        Client.iter,
        ("v1", "hex"),
        ValueError,
        "form is 'hex'; the forms of v1 are uuid, text, bytes",
    ),
    *(
        (Client, (socket,), TypeError, r"socket is .*; it must be a path: a str or an os")
        for socket in (5, 1.5, ["/run/uuidd/request"])
    ),
    *(
        (
            Client,
            (None, True, age),
            ValueError,
            f"max_age is {age!r}; it must be a finite number of sec",
        )
        for age in (-0.1, float("nan"), float("inf"))
    ),
    (
        Client,
        (None, True, -(10**5000)),
        ValueError,
        "max_age is <int too long to show>; it must be",
    ),
    *(
        (
            Client,
            (None, True, 0.1, timeout),
            ValueError,
            "timeout is .*; it must be a finite number of sec",
        )
        for timeout in (0.0, -1.0, float("nan"), float("inf"))
    ),
    *(
        (Client, (None, True, *times), TypeError, f"{name} is .*; {SECONDS}")
        for value in ("1", True, [1])
        for name, times in (("max_age", (value,)), ("timeout", (0.1, value)))
    ),
    (Client, (None, True, None), TypeError, f"max_age is None; {SECONDS}"),
]


@pytest.mark.parametrize(("call", "arguments", "error", "words"), WRONG)
def test_a_wrong_argument_is_refused_by_name_and_rule(
    call: Callable[..., object], arguments: tuple[object, ...], error: type[Exception], words: str
) -> None:
    """Before the first id, and before anything is asked of the daemon."""
    given = arguments if call is Client else (Client("/nowhere", fallback=False), *arguments)
    with pytest.raises(error, match=words):
        call(*given)


def test_a_socket_is_a_path(daemon: Daemon) -> None:
    """It may be text or a Path."""
    for path in (daemon.socket, str(daemon.socket)):
        with Client(path, fallback=False) as client:
            client.uuid1()


def test_nothing_is_connected_before_the_first_id() -> None:
    """A client can be made at import, wherever there is no daemon yet."""
    Client("/nowhere/s", fallback=False).close()


def test_close_hangs_up(tmp_path: Path) -> None:
    """Also while blocks are left; the next id needs another connection."""
    with Server(tmp_path / "s", grants()) as server:
        client = Client(tmp_path / "s", max_age=0)
        client.uuid1()
        client.uuid1()
        assert server.connections == 1
        client.close()
        client.close()
        client.uuid1()
        assert server.connections == 2
        client.close()


# --- who answers is no daemon


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n",
        lambda _: None,
        lambda request: result(request, granted(0, 0)),
        lambda request: result(request, "a text"),
        lambda request: b"\x94\x01\x4d" + result(request, granted(0, 1))[3:],
    ],
)
def test_ids_go_on_beside_a_server_that_is_no_daemon(
    tmp_path: Path, answer: Callable[[bytes], bytes | None]
) -> None:
    """No id is made of what is no answer, and nothing but DaemonUnavailable is raised."""
    path = tmp_path / "s"
    with Server(path, answer):
        with Client(path) as client:
            assert {id.is_safe for id in client.make("v1", 10)} == {SafeUUID.unknown}
        with Client(path, fallback=False) as client, pytest.raises(DaemonUnavailable):
            client.uuid1()


# --- threads and signals


class Alarm(Exception):
    """What a signal handler raises."""


def _raise(_: int, __: FrameType | None) -> None:
    raise Alarm


def test_a_signal_handler_may_end_a_call(tmp_path: Path) -> None:
    """A call that waits is ended by what the handler raises, and other threads can go on."""
    path = tmp_path / "s"
    before = signal.signal(signal.SIGALRM, _raise)
    try:
        with socket.socket(socket.AF_UNIX) as deaf:
            deaf.bind(str(path))
            deaf.listen()
            client = Client(path, timeout=PATIENCE)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(Alarm):
                client.uuid1()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    found: list[UUID] = []
    thread = threading.Thread(target=lambda: found.append(client.uuid1()))
    thread.start()
    thread.join(PATIENCE)
    assert [id.is_safe for id in found] == [SafeUUID.unknown]


def test_calls_that_signals_broke_off_give_no_id_twice(daemon: Daemon) -> None:
    """Wherever an exception comes, no id is given out again, and other threads can draw."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.client.interrupted", str(daemon.socket)],
        capture_output=True,
        check=True,
        timeout=PATIENCE,
        text=True,
    )
    told = json.loads(done.stdout)
    assert told.pop("alarms") > 10
    assert told == {"again": 0, "stuck": False}


# --- forks and processes


@pytest.mark.parametrize("way", ["drawing", "locked", "locked-raw"])
@pytest.mark.parametrize("served", [True, False])
def test_no_id_comes_twice_when_a_thread_is_busy_at_the_fork(
    daemon: Daemon, tmp_path: Path, way: str, served: bool
) -> None:
    """A child draws ids of its own, even if it was born with the lock held, and does not hang."""
    path = daemon.socket if served else tmp_path / "absent"
    folder = tmp_path / "drawn"
    folder.mkdir()
    subprocess.run(
        [sys.executable, "-m", "tests.client.threading_and_forking", way, str(folder)],
        env={**os.environ, "UUIDD_SOCKET": str(path)},
        check=True,
        timeout=PATIENCE,
    )
    files = list(folder.iterdir())
    ids = [id for file in files for id in file.read_text().split()]
    assert len(files) == 1 + threading_and_forking.CHILDREN
    assert len(ids) >= len(files) * 3 * threading_and_forking.EACH
    assert len(set(ids)) == len(ids)


@pytest.mark.process
def test_a_child_has_a_connection_of_its_own(tmp_path: Path) -> None:
    """It closes the socket that it inherited, and does not hang up on its parent."""
    path = tmp_path / "s"
    program = (
        "import os, sys; from uuidd_client import Client\n"
        "client = Client(sys.argv[1], fallback=False, max_age=0)\n"
        "client.uuid1()\n"
        "if not (pid := os.fork()):\n"
        "    client.uuid1()\n"
        "    os._exit(len(os.listdir('/proc/self/fd')))\n"
        "theirs = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
        "client.uuid1()\n"
        "sys.exit(theirs != len(os.listdir('/proc/self/fd')))\n"
    )
    with Server(path, grants()) as server:
        subprocess.run([sys.executable, "-c", program, str(path)], check=True, timeout=PATIENCE)
    assert (server.connections, len(server.requests)) == (2, 3)


RISING = ("v6", "v7", "ulid", "snowflake")


@pytest.fixture(scope="module")
def drawn_in_turn(daemon: Daemon) -> dict[str, list[str]]:
    """Four processes draw in turn, 100 ids of each of several kinds."""
    command = [sys.executable, "-m", "tests.client.in_turn", str(daemon.socket)]
    found: dict[str, list[str]] = {kind: [] for kind in RISING}
    with contextlib.ExitStack() as stack:
        processes = []
        for _ in range(4):
            process = stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            stack.callback(process.kill)
            processes.append(process)
        for kind, process in itertools.product(RISING, processes * 25):
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{kind}\n")
            process.stdin.flush()
            found[kind].append(process.stdout.readline())
    return found


@pytest.mark.parametrize("kind", RISING)
def test_without_any_age_the_ids_of_all_processes_rise(
    drawn_in_turn: dict[str, list[str]], kind: str
) -> None:
    """Processes that draw in turn get ids in the order in which they asked."""
    found = drawn_in_turn[kind]
    assert len(found) == 100
    # All Snowflakes of these centuries have 19 digits.
    assert found == sorted(set(found))


# --- util-linux's uuidd


def util_linuxs_uuidd() -> str:
    """Return the path of util-linux's uuidd, which is named as ours is."""
    need("uuidgen")
    path = "/usr/sbin/uuidd"
    return path if os.access(path, os.X_OK) else need("uuidd of util-linux")


@pytest.fixture(scope="module")
def beside() -> dict[str, Any]:
    """What came of drawing from util-linux's uuidd."""
    done = subprocess.run(
        in_private_mounts(
            sys.executable, "-m", "tests.client.beside_util_linux", util_linuxs_uuidd()
        ),
        capture_output=True,
        check=True,
        timeout=PATIENCE,
        text=True,
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.system
def test_ids_of_util_linuxs_daemon_are_safe_and_distinct(beside: dict[str, Any]) -> None:
    """It is a daemon that reserves what it gives, so its ids are as good."""
    assert beside["distinct"] == beside["safe"] == 2 * beside_util_linux.COUNT


@pytest.mark.system
def test_util_linuxs_daemon_is_asked_in_bulk(beside: dict[str, Any]) -> None:
    """It takes a connection for each request, so there are few of them."""
    assert beside["by_many"] < 20
    assert beside["by_one"] < 200


@pytest.mark.system
def test_util_linuxs_daemon_has_no_status(beside: dict[str, Any]) -> None:
    """A user who asks for it is told why there is none."""
    assert beside["status"].endswith("as util-linux's does if it does not know the request")


def test_a_client_that_is_dropped_hangs_up_at_once(daemon: Daemon) -> None:
    """It is in no cycle of references, so no collector has to come first."""
    gc.disable()
    try:
        client = Client(daemon.socket, fallback=False)
        client.uuid1()
        [channel] = client._channels.made.values()
        connection = weakref.ref(channel.connection)
        del channel
        del client
        assert connection() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("mode", "program"),
    [
        # A hook keeps the names of the program alive until those of the modules are gone.
        ("-Xdev", "sys.excepthook = lambda *_: client\nclient.uuid1(); uuid7()"),
        ("-Xdev", "sys.excepthook = lambda *_: ids\nids = client.iter('v7'); next(ids)"),
        ("-Xdev", "atexit.register(client.uuid1); atexit.register(uuid7)"),
        ("-Xdev", "threading.Thread(target=lambda: main.join() or client.uuid1()).start()"),
        # With -Xdev, Python 3.11.2 itself crashes under a daemon thread.
        (
            "-Wdefault",
            "threading.Thread(target=lambda: [*iter(client.uuid1, 0)], daemon=True).start()",
        ),
    ],
)
def test_a_process_ends_without_a_word(daemon: Daemon, mode: str, program: str) -> None:
    """A connection that is left open is no complaint, nor is an id that is drawn at the end."""
    head = (
        "import atexit, sys, threading\n"
        "from uuidd_client import Client, uuid7\n"
        "client = Client(fallback=False, max_age=0); main = threading.main_thread()\n"
    )
    done = subprocess.run(
        [sys.executable, mode, "-c", head + program],
        env={**os.environ, "UUIDD_SOCKET": str(daemon.socket)},
        capture_output=True,
        timeout=PATIENCE,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")

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
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any
from uuid import UUID, SafeUUID

import msgpack
import pytest

from tests.client import beside_util_linux, threading_and_forking
from tests.client.breaking import break_off
from tests.client.fakes import Server, granted, grants, refused, result
from tests.rig import Daemon, until
from tests.tools import in_private_mounts, need
from uuidd_client import Client, DaemonUnavailable
from uuidd_client.connection import Stream

if TYPE_CHECKING:
    from uuidd_client.client import Kind

pytestmark = pytest.mark.usefixtures("implementation")

PATIENCE = 60.0


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    """A client that gets its ids from the daemon, or an error."""
    with Client(daemon.socket, fallback=False, timeout=10) as client:
        yield client


def requests(daemon: Daemon) -> int:
    """Return the number of rpc requests that the daemon has had before this one."""
    with daemon.connect() as connection:
        count: int = connection.call("status")["requests"]["rpc"]["requests"]
    return count


# --- an id


# --- many ids


def test_few_requests_serve_many_ids(daemon: Daemon, client: Client) -> None:
    """Blocks grow with demand, so that drawing one by one is no round trip each."""
    before = requests(daemon)
    for _ in range(50_000):
        client.uuid1()
    assert requests(daemon) - before < 1000


# --- arguments


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("v9", 1), "kind is 'v9'; it must be one of v1, v4, v6"),
        (("", 1), "kind is ''; it must be one of v1, v4, v6"),
        (("v1", -1), "count is -1; it must be 0 or more"),
        (
            ("v1", 10_000_001),
            "count is 10000001; make returns 10000000 ids at most: .* iter, which has no",
        ),
        (("v1", 2**70), "count is 1180591620717411303424; make returns 10000000 ids at most"),
        (("v1", 10**5000), "count is <int too long to show>; make returns 10000000 ids at most"),
        (("v1", -(10**5000)), "count is <int too long to show>; it must be 0 or more"),
        ((["v1"], 1), r"kind is \['v1'\]; it must be one of v1, v4, v6"),
        ((10**5000, 1), "kind is <int too long to show>; it must be one of v1, v4, v6"),
        (("v1", 1, "hex"), "form is 'hex'; the forms of v1 are uuid, text, bytes"),
    ],
)
def test_make_refuses_values_by_name_and_rule(
    client: Client, arguments: tuple[Any, ...], words: str
) -> None:
    """The error says which value was wrong, and what may be."""
    with pytest.raises(ValueError, match=words):
        client.make(*arguments)


@pytest.mark.parametrize("count", [True, 1.0, "1", None])
def test_make_refuses_what_is_no_count(client: Client, count: Any) -> None:
    """A count is an int, and True is none."""
    with pytest.raises(TypeError, match=f"count is {count!r}; it must be an int"):
        client.make("v1", count)


@pytest.mark.parametrize("socket", [5, 1.5, ["/run/uuidd/request"]])
def test_a_client_refuses_what_is_no_path(socket: Any) -> None:
    """The error names the argument."""
    with pytest.raises(TypeError, match=r"socket is .*; it must be a path: a str or an os"):
        Client(socket)


def test_iter_refuses_before_the_first_id(client: Client) -> None:
    """Who names a wrong kind or form is told so at once."""
    with pytest.raises(ValueError, match="kind is 'v3'"):
        client.iter("v3")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="form is 'hex'; the forms of v1 are uuid, text, bytes"):
        client.iter("v1", form="hex")  # type: ignore[call-overload]


def test_an_age_that_python_does_not_write_is_refused() -> None:
    """The error is ours, and not that of showing so long a number."""
    with pytest.raises(ValueError, match="max_age is <int too long to show>; it must be 0 or more"):
        Client(max_age=-(10**5000))


@pytest.mark.parametrize("max_age", [-0.1, float("nan"), float("inf")])
def test_an_impossible_age_is_refused(max_age: float) -> None:
    """max_age is a number of seconds that passes."""
    with pytest.raises(ValueError, match=f"max_age is {max_age!r}; it must be 0 or more seconds"):
        Client(max_age=max_age)


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("nan"), float("inf")])
def test_an_impossible_time_out_is_refused(timeout: float) -> None:
    """Timeout is a number of seconds that passes, and not none at all."""
    with pytest.raises(ValueError, match=r"timeout is .*; it must be more than 0 seconds"):
        Client(timeout=timeout)


def test_a_socket_is_a_path(daemon: Daemon) -> None:
    """A path may be text or a Path; a number is refused."""
    for path in (daemon.socket, str(daemon.socket)):
        with Client(path, fallback=False) as client:
            client.uuid1()
    with pytest.raises(TypeError):
        Client(7)  # type: ignore[arg-type]


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
        client.uuid1()
        assert server.connections == 2
        client.close()


def test_a_closed_client_connects_anew(client: Client) -> None:
    """close() hangs up, and no more."""
    before = client.uuid1()
    client.close()
    client.close()
    assert before != client.uuid1()
    assert client.status()["pid"]


def test_status_has_no_fallback() -> None:
    """Nobody else can tell how the daemon does."""
    with pytest.raises(DaemonUnavailable, match="/nowhere/s"):
        Client("/nowhere/s").status()


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


@pytest.mark.parametrize("kind", ["v7", "ulid", "flake", "snowflake"])
def test_a_block_whose_epoch_has_49_bits_is_an_unusable_answer(tmp_path: Path, kind: Kind) -> None:
    """Also for the kinds that have no epoch."""
    path = tmp_path / "s"
    block = granted(0, 1) | {"epoch": 1 << 48}
    with (
        Server(path, lambda request: result(request, block)),
        Client(path, fallback=False) as client,
        pytest.raises(DaemonUnavailable, match="an unusable answer: a map is not a block"),
    ):
        client.factory(kind)()


def test_an_iterator_goes_on_after_an_error(daemon: Daemon) -> None:
    """An iterator that had no daemon has ids as soon as there is one."""
    with Daemon() as other, Client(other.socket, fallback=False) as client:
        other.stop()
        ids = client.iter("v1")
        for _ in range(2):
            with pytest.raises(DaemonUnavailable):
                next(ids)
        other.start()
        assert next(ids).is_safe is SafeUUID.safe


# --- threads and signals


def test_threads_never_draw_the_same(client: Client) -> None:
    """Eight threads at one client, with others that make many and that share an iterator."""
    texts = client.iter("v1", form="text")
    found: list[list[int]] = []

    def one_by_one() -> None:
        found.append([client.uuid1().int for _ in range(20_000)])

    def many() -> None:
        found.extend([id.int for id in client.make("v1", 37)] for _ in range(300))

    def shared() -> None:
        found.append([UUID(next(texts)).int for _ in range(5000)])

    threads = [threading.Thread(target=one_by_one) for _ in range(8)]
    threads += [threading.Thread(target=way) for way in (many, many, shared, shared)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    ids = [id for part in found for id in part]
    assert len(ids) == len(set(ids)) == 8 * 20_000 + 2 * 300 * 37 + 2 * 5000


def test_an_id_of_one_timeline_is_not_held_up_by_a_wait_for_the_other(tmp_path: Path) -> None:
    """A v1 is drawn, and the status told, while a v7 waits for the daemon's disk."""
    path = tmp_path / "s"

    def slow(request: bytes) -> bytes:
        method, params = msgpack.unpackb(request)[2:]
        if method == "status":
            return result(request, {})
        if params[0] == "utc":
            return result(request, granted(0, 1))
        return b"" if params[3] else refused(request, "must_wait: the state is being saved")

    failed: list[DaemonUnavailable] = []
    drawn_from = Client(path, fallback=False)

    def draw() -> None:
        with pytest.raises(DaemonUnavailable) as caught:
            drawn_from.uuid7()
        failed.append(caught.value)

    with drawn_from:
        thread = threading.Thread(target=draw)
        with Server(path, slow) as server:
            thread.start()
            until(lambda: len(server.requests) == 2)
            assert drawn_from.uuid1().is_safe is SafeUUID.safe
            assert drawn_from.status() == {}
            assert thread.is_alive()
        thread.join(PATIENCE)
    assert len(failed) == 1


def test_threads_share_one_line(tmp_path: Path) -> None:
    """Threads that draw at once do so over one connection, one after another."""
    path = tmp_path / "s"
    with Server(path, grants()) as server, Client(path, fallback=False, max_age=0) as client:
        threads = [
            threading.Thread(target=lambda: [client.uuid1() for _ in range(100)]) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
    assert (server.connections, len(server.requests)) == (1, 400)


@contextlib.contextmanager
def handling(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Let *handler* handle SIGALRM."""
    before = signal.signal(signal.SIGALRM, handler)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Alarm(Exception):
    """What a signal handler raises."""


def _raise(_: int, __: FrameType | None) -> None:
    raise Alarm


def test_a_signal_handler_may_end_a_call(tmp_path: Path) -> None:
    """A call that waits is ended by what the handler raises, and other threads can go on."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as deaf, handling(_raise):
        deaf.bind(str(path))
        deaf.listen()
        client = Client(path, timeout=PATIENCE)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Alarm):
            client.uuid1()
    found: list[UUID] = []
    thread = threading.Thread(target=lambda: found.append(client.uuid1()))
    thread.start()
    thread.join(PATIENCE)
    assert [id.is_safe for id in found] == [SafeUUID.unknown]


def test_a_signal_handler_may_draw_in_the_middle_of_a_draw(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It neither waits for ever nor disturbs the connection on which an answer is due."""
    client.uuid1()
    found: list[UUID] = []
    original = Stream.receive
    inside: list[bool] = []

    def receive(self: Stream, count: int, seconds: float) -> tuple[bytes, list[int]]:
        if not inside:
            inside.append(True)
            signal.raise_signal(signal.SIGALRM)
        return original(self, count, seconds)

    monkeypatch.setattr(Stream, "receive", receive)
    with handling(lambda *_: found.extend([client.uuid1(), *client.make("v1", 5)])):
        found += client.make("v1", 100_000)
    assert len(set(found)) == 100_006
    assert {id.is_safe for id in found} == {SafeUUID.safe}


def test_ids_after_a_signal_handlers_are_above_them(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left of the block in use when a handler drew, which is older, is given up."""
    # Flakes always come from blocks. These are so many that the next block is larger than needed.
    client.make("flake", 10_000)
    inside: list[int] = []
    signals = iter([signal.SIGALRM])
    with handling(lambda *_: inside.extend(client.make("flake", 1, "int"))):
        original = Stream.receive

        def receive(self: Stream, count: int, seconds: float) -> tuple[bytes, list[int]]:
            received = original(self, count, seconds)
            for number in signals:
                signal.raise_signal(number)
            return received

        monkeypatch.setattr(Stream, "receive", receive)
        while not inside:
            client.make("flake", 1)
    assert client.make("flake", 1, "int")[0] > inside[0]


def test_a_call_that_is_broken_off_anywhere_leaves_the_client_free(client: Client) -> None:
    """Other threads can draw, also as long as the traceback of what broke it off is kept."""
    for at in itertools.count(1):
        broken = break_off(lambda: client.make("v1", 1), at)
        if broken is None:
            break
        thread = threading.Thread(target=client.make, args=["v1", 1], daemon=True)
        thread.start()
        thread.join(10)
        assert not thread.is_alive(), at
        assert broken.__traceback__
    assert at > 5


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
    """Neither of parent and child reads the other's answers."""
    path = tmp_path / "s"
    program = (
        "import os, sys; from uuidd_client import Client\n"
        "client = Client(sys.argv[1], fallback=False, max_age=0)\n"
        "client.uuid1()\n"
        "if pid := os.fork(): os.waitpid(pid, 0)\n"
        "client.uuid1()\n"
    )
    with Server(path, grants()) as server:
        subprocess.run([sys.executable, "-c", program, str(path)], check=True, timeout=PATIENCE)
    assert (server.connections, len(server.requests)) == (2, 3)


@pytest.mark.process
def test_a_child_leaves_its_parents_connection_open(tmp_path: Path) -> None:
    """The child closes the socket that it inherited, and does not hang up on its parent."""
    path = tmp_path / "s"
    program = (
        "import os, sys; from uuidd_client import Client\n"
        "client = Client(sys.argv[1], fallback=False, max_age=0)\n"
        "client.uuid1()\n"
        "if not (pid := os.fork()):\n"
        "    client.uuid1()\n"
        "    os._exit(len(os.listdir('/proc/self/fd')))\n"
        "mine = len(os.listdir('/proc/self/fd'))\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != mine)\n"
    )
    with Server(path, grants()) as server:
        subprocess.run([sys.executable, "-c", program, str(path)], check=True, timeout=PATIENCE)
    assert server.connections == 2


def test_without_any_age_each_snowflake_is_a_round_trip(daemon: Daemon) -> None:
    """With max_age=0 the daemon is asked for each id that cannot hold a lane, in every form."""
    with Client(daemon.socket, fallback=False, max_age=0) as client:
        client.snowflake()
        before = requests(daemon)
        client.snowflake()
        client.make("flake", 5)
        next(client.iter("snowflake", form="text"))
        assert requests(daemon) - before == 1 + 7


def test_without_any_age_no_id_of_a_lease_is_a_round_trip(daemon: Daemon) -> None:
    """With max_age=0 each id of a lane has a reading of UTC of its own, in every form."""
    with Client(daemon.socket, fallback=False, max_age=0) as client:
        client.make("v1", 2)
        before = requests(daemon)
        client.uuid1()
        client.make("v1", 5)
        next(client.iter("v6", form="text"))
        assert requests(daemon) - before == 1


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

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import sys
import threading
import weakref
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any
from uuid import UUID, SafeUUID

import freezegun
import pytest

from tests.client import beside_util_linux, travelling
from tests.client.fakes import Server, grants
from tests.client.lanes import Clock, World
from tests.rig import PATIENCE, Daemon
from tests.tools import in_private_mounts, need_their_uuidd, output, run
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd_client import Client, DaemonUnavailable
from uuidd_client.system import given_timeout, may_fall_back

if TYPE_CHECKING:
    from uuidd_client.client import Kind

pytestmark = pytest.mark.usefixtures("implementation")

KIND, FORM = "it must be one of v1, v4, v6", "the forms of v1 are uuid, text, bytes"
COUNT, PATH = "it must be an int", "it must be a path: a str or an os"
FINITE, SECONDS = "it must be a finite number of sec", "it must be a number of seconds"
HUGE = "<int too long to show>"

WRONG: list[tuple[str, tuple[Any, ...], type[Exception], str]] = [
    ("make", ("v9", 1), ValueError, f"kind is 'v9'; {KIND}"),
    ("make", (["v1"], 1), ValueError, rf"kind is \['v1'\]; {KIND}"),
    ("make", (10**5000, 1), ValueError, f"kind is {HUGE}; {KIND}"),
    ("make", ("v1", 1, "hex"), ValueError, f"form is 'hex'; {FORM}"),
    ("make", ("v1", 1, ["text"]), ValueError, rf"form is \['text'\]; {FORM}"),
    ("make", ("v1", -1), ValueError, "count is -1; it must be 0 or more"),
    ("make", ("v1", -(10**5000)), ValueError, f"count is {HUGE}; it must be 0 or more"),
    ("make", ("v1", 10_000_001), ValueError, "count is 10000001; make returns 10000000 ids at"),
    ("make", ("v1", 10**5000), ValueError, f"count is {HUGE}; make .* iter, which has no limit"),
    *(
        ("make", ("v1", it), TypeError, f"count is {it!r}; {COUNT}")
        for it in (True, 1.0, "1", None)
    ),
    ("iter", ("v3",), ValueError, f"kind is 'v3'; {KIND}"),
    ("iter", ("v1", "hex"), ValueError, f"form is 'hex'; {FORM}"),
    *(("Client", (it,), TypeError, f"socket is .*; {PATH}") for it in (5, 1.5, ["/run/s"])),
    *(
        ("Client", (None, it), TypeError, f"fallback is {it!r}; it must be True or False")
        for it in ("no", 0, None)
    ),
    *(
        ("Client", (None, True, age), ValueError, f"max_age is {age!r}; {FINITE}")
        for age in (-0.1, float("nan"), float("inf"))
    ),
    ("Client", (None, True, -(10**5000)), ValueError, f"max_age is {HUGE}; {FINITE}"),
    *(
        ("Client", (None, True, 0.1, timeout), ValueError, f"timeout is .*; {FINITE}")
        for timeout in (0.0, -1.0, float("nan"), float("inf"))
    ),
    *(
        ("Client", (None, True, it), TypeError, rf"max_age is .*; {SECONDS}")
        for it in ("1", True, [1], None)
    ),
    *(
        ("Client", (None, True, 0.1, it), TypeError, f"timeout is .*; {SECONDS}")
        for it in ("1", True, [1])
    ),
]


@pytest.mark.parametrize(("call", "arguments", "error", "words"), WRONG)
def test_a_wrong_argument_is_refused_by_name_and_rule(
    call: str, arguments: tuple[Any, ...], error: type[Exception], words: str
) -> None:
    client = Client("/nowhere", fallback=False)
    with pytest.raises(error, match=words):
        (Client if call == "Client" else getattr(client, call))(*arguments)


def test_any_finite_number_of_seconds_will_do(path: Path) -> None:
    """Also one that Python takes for no time-out."""
    for seconds in (1e300, 10**400):
        with Server(path, grants()), Client(path, True, seconds, seconds) as client:
            assert client.uuid1().is_safe is SafeUUID.safe


@pytest.mark.parametrize(
    ("given", "seconds"),
    # An empty variable is as good as none, and a time-out beyond all clocks as the longest.
    [(None, None), ("", None), ("3", 3.0), ("0.05", 0.05), ("1e300", 3e7)],
)
def test_the_environment_sets_the_time_out(
    given: str | None, seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UUIDD_TIMEOUT")
    if given is not None:
        monkeypatch.setenv("UUIDD_TIMEOUT", given)
    assert given_timeout() == seconds


@pytest.mark.parametrize("given", ["soon", "0", "-1", "nan", "inf", "0.2 s", " "])
@pytest.mark.parametrize("fallback", [True, False])
def test_a_bad_time_out_in_the_environment_is_one_clear_error(
    given: str, fallback: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UUIDD_TIMEOUT", given)
    refusal = f"UUIDD_TIMEOUT is {given!r}; it must be a finite number of"
    with pytest.raises(ValueError, match=refusal):
        Client("/nowhere/s", fallback=fallback).uuid1()


@pytest.mark.parametrize("given", ["maybe", "no", "False", " 0"])
@pytest.mark.parametrize("fallback", [True, False])
def test_a_bad_fallback_in_the_environment_is_one_clear_error(
    given: str, fallback: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To take it for yes would make ids that are not marked safe."""
    monkeypatch.setenv("UUIDD_FALLBACK", given)
    with pytest.raises(ValueError, match=f"UUIDD_FALLBACK is {given!r}; it must be 0 or 1"):
        Client("/nowhere/s", fallback=fallback).uuid1()


def test_the_argument_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UUIDD_TIMEOUT", "soon")
    with Client("/nowhere/s", timeout=0.1) as client:
        client.uuid1()


@pytest.mark.parametrize(
    ("wanted", "variable", "may"),
    [
        *((True, None, True), (True, "1", True), (True, "", True), (True, "0", False)),
        *((False, None, False), (False, "1", False)),
    ],
)
def test_the_fallback_takes_the_callers_and_the_administrators_consent(
    wanted: bool, variable: str | None, may: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either may forbid it, and neither can order what the other forbade."""
    monkeypatch.delenv("UUIDD_FALLBACK", raising=False)
    if variable is not None:
        monkeypatch.setenv("UUIDD_FALLBACK", variable)
    assert may_fall_back(wanted) is may


def test_close_hangs_up(path: Path) -> None:
    with Server(path, grants()) as server, Client(path, max_age=0) as client:
        client.uuid1()
        client.uuid1()
        assert server.connections == 1
        client.close()
        client.close()
        client.uuid1()
        assert server.connections == 2


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", None])
def test_ids_go_on_beside_a_server_that_is_no_daemon(path: Path, said: bytes | None) -> None:
    with Server(path, said):
        with Client(path) as client:
            assert {id.is_safe for id in client.make("v1", 10)} == {SafeUUID.unknown}
        with Client(path, fallback=False) as client, pytest.raises(DaemonUnavailable):
            client.uuid1()


class Alarm(Exception):
    """What a signal handler raises."""


def _raise(_: int, __: FrameType | None) -> None:
    raise Alarm


def test_a_signal_handler_may_end_a_call(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("kind", ["v6", "v7", "ulid", "snowflake"])
def test_without_any_age_the_ids_of_all_clients_rise(daemon: Daemon, kind: Kind) -> None:
    with contextlib.ExitStack() as stack:
        clients = [
            stack.enter_context(Client(daemon.socket, fallback=False, max_age=0, timeout=10))
            for _ in range(4)
        ]
        # All Snowflakes of these centuries have 19 digits.
        found = [next(client.iter(kind, "text")) for client in clients * 25]
    assert found == sorted(set(found))


@pytest.mark.system
def test_util_linuxs_daemon_gives_safe_ids_in_bulk_and_no_status() -> None:
    words = "-m", "tests.client.beside_util_linux", need_their_uuidd()
    program = in_private_mounts(sys.executable, *words)
    told = json.loads(output(*program, timeout=3 * PATIENCE))
    status = told.pop("status")
    assert status.endswith("as util-linux's does if it does not know the request")
    # It takes a connection for each block.
    assert told.pop("by_many") < 20
    assert told.pop("by_one") < 200
    assert told == dict.fromkeys(("distinct", "safe"), 2 * beside_util_linux.COUNT)


def test_a_client_that_is_dropped_hangs_up_at_once(path: Path) -> None:
    """It is in no cycle of references, so no collector has to come first."""
    gc.collect()
    gc.disable()
    try:
        with Server(path, grants()):
            client = Client(path, fallback=False)
            draw, ids = client.factory("v7", "text"), client.iter("v1")
            client.uuid1()
            draw()
            next(ids)
            [channel] = client._channels.made.values()
            gone = weakref.ref(channel.connection)
            del client, channel
            assert gone() is not None
            del draw, ids
            assert gone() is None
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
    environment = {**os.environ, "UUIDD_SOCKET": str(daemon.socket)}
    words = sys.executable, mode, "-c", head + program
    done = run(*words, env=environment, timeout=3 * PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.process
@pytest.mark.parametrize("tool", travelling.TOOLS)
@pytest.mark.parametrize("served", [True, False])
def test_a_clock_of_a_test_neither_holds_up_nor_repeats(
    tool: str, served: bool, daemon: Daemon
) -> None:
    """Frozen, in the past, in the future and back: ids differ, and have the real time after it."""
    socket = daemon.socket if served else "/nowhere/s"
    words = sys.executable, "-m", "tests.client.travelling", tool, socket
    told: dict[str, Any] = json.loads(output(*words, timeout=3 * PATIENCE))
    drawn = len(travelling.KINDS) * 2 * travelling.EACH * 7
    assert (told["again"], told["drawn"]) == (0, drawn)
    assert told["longest"] < 10
    assert all(abs(lag) < 60 * TICKS_PER_SECOND for lag in told["lags"][1::2])


@pytest.mark.process
def test_a_client_that_is_made_under_freezegun_uses_its_lease(tmp_path: Path) -> None:
    with World(tmp_path / "s", Clock()).server() as server, freezegun.freeze_time("2030-01-01"):
        client = Client(tmp_path / "s", fallback=False)
        while not server.asked:
            client.uuid7()
        before = len(server.requests)
        for _ in range(1000):
            client.uuid7()
        assert len(server.requests) < before + 100
        client.close()

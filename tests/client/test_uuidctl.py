"""The ``uuidctl`` command, as a user meets it."""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.client.fakes import Server, result
from tests.rig import PATIENCE, Daemon
from uuidd_client.command import main

pytestmark = pytest.mark.process

UUIDCTL = [
    sys.executable,
    "-c",
    "import sys; from uuidd_client.command import main; sys.exit(main())",
]


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """A daemon for all tests here."""
    with Daemon("--worker=5") as daemon:
        yield daemon


def uuidctl(*arguments: str, socket: Path | None = None) -> tuple[int, str, str]:
    """Give the exit status, the output and the errors of ``uuidctl`` with these arguments."""
    done = subprocess.run(
        [*UUIDCTL, *arguments],
        env={**os.environ, "UUIDD_SOCKET": str(socket or "/nowhere/s")},
        capture_output=True,
        timeout=PATIENCE,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(("kind", "version"), [("v1", 1), ("v4", 4), ("v6", 6), ("v7", 7)])
def test_new_makes_as_many_ids_as_are_wanted(daemon: Daemon, kind: str, version: int) -> None:
    """One a line, all of the kind, none twice."""
    status, out, err = uuidctl("new", "-k", kind, "-n", "12000", socket=daemon.socket)
    ids = [UUID(line) for line in out.splitlines()]
    assert (status, err) == (0, "")
    assert len(set(ids)) == 12000
    assert {id.version for id in ids} == {version}


@pytest.mark.parametrize(
    ("kind", "length"),
    [("snowflake", 19), ("flake", 18), ("ulid", 26), ("ksuid", 27), ("push_id", 20)],
)
def test_new_makes_ids_that_are_no_uuids(daemon: Daemon, kind: str, length: int) -> None:
    """As their kind writes them, in their order."""
    status, out, err = uuidctl("new", "-k", kind, "-n", "1000", socket=daemon.socket)
    ids = out.splitlines()
    assert (status, err) == (0, "")
    assert ids == sorted(set(ids))
    assert [len(id) for id in ids] == [length] * 1000


def test_new_makes_no_snowflake_without_a_daemon() -> None:
    """One line says why, and nothing is printed."""
    status, out, err = uuidctl("new", "-k", "snowflake")
    assert (status, out) == (1, "")
    assert err == "uuidctl: no answer from uuidd at /nowhere/s: No such file or directory\n"


@pytest.mark.parametrize(
    ("kind", "id"),
    [
        ("v3", "5df41881-3aed-3515-88a7-2f4a814cf09e"),
        ("v5", "2ed6657d-e927-568b-95e1-2665a8aea6a2"),
    ],
)
@pytest.mark.parametrize("namespace", ["dns", "DNS", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"])
def test_new_makes_the_id_of_a_name(kind: str, id: str, namespace: str) -> None:
    """The examples of RFC 9562, A.2 and A.4; no daemon is asked."""
    name = ["--namespace", namespace, "--name", "www.example.com"]
    assert uuidctl("new", "-k", kind, *name) == (0, f"{id}\n", "")


def test_new_refuses_what_is_no_namespace() -> None:
    """The line names the value, and what may be."""
    status, out, err = uuidctl("new", "-k", "v5", "--namespace", "example.com", "--name", "x")
    assert (status, out) == (1, "")
    assert err == (
        "uuidctl: --namespace is 'example.com'; it must be a UUID or one of dns, url, oid, x500\n"
    )


def test_new_makes_one_v1_unless_told_otherwise(daemon: Daemon) -> None:
    """The plain command gives the plain thing."""
    status, out, err = uuidctl("new", socket=daemon.socket)
    assert (status, err) == (0, "")
    assert UUID(out.strip()).version == 1


def test_new_prints_json(daemon: Daemon) -> None:
    """One array of texts."""
    status, out, _ = uuidctl("new", "-n", "3", "--json", socket=daemon.socket)
    assert status == 0
    assert len({UUID(text) for text in json.loads(out)}) == 3


def test_new_without_a_daemon_says_so_and_makes_ids() -> None:
    """The line goes to standard error, so that the ids can be used."""
    status, out, err = uuidctl("new")
    assert status == 0
    assert UUID(out.strip()).version == 1
    (line,) = err.splitlines()
    assert line.startswith("uuidctl: no answer from uuidd at /nowhere/s: No such file")


def test_new_ends_in_order_when_its_reader_has_seen_enough(daemon: Daemon) -> None:
    """A closed pipe is no error to show."""
    shell = '"$@" new -n 200000 | head -1'
    done = subprocess.run(
        ["sh", "-c", shell, "sh", *UUIDCTL],
        env={**os.environ, "UUIDD_SOCKET": str(daemon.socket)},
        capture_output=True,
        timeout=PATIENCE,
        text=True,
        check=True,
    )
    assert (len(done.stdout), done.stderr) == (37, "")


@pytest.mark.parametrize(
    "wrong",
    [
        ["new", "-n", "0"],
        ["new", "-n", "x"],
        ["new", "-n", "-1"],
        ["new", "-k", "v9"],
        ["new", "-k", "v5"],
        ["new", "-k", "v3", "--name", "x"],
        ["new", "-k", "v5", "--namespace", "dns", "--name", "x", "-n", "2"],
        ["new", "-k", "v7", "--name", "x"],
        ["fly"],
        [],
        ["run"],
        ["run", "--"],
        ["inspect"],
    ],
)
def test_wrong_usage_is_told_with_status_2(wrong: list[str]) -> None:
    """Nothing is printed but how to use it, and what was wrong."""
    status, out, err = uuidctl(*wrong)
    assert (status, out) == (2, "")
    assert "error: " in err.splitlines()[-1]


def test_inspect_shows_what_an_id_is_made_of() -> None:
    """The RFC's example, in capitals and braces (RFC 9562, A.1)."""
    status, out, err = uuidctl("inspect", "{C232AB00-9414-11EC-B3C8-9F6BDECED846}")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "c232ab00-9414-11ec-b3c8-9f6bdeced846",
        "  kind       v1",
        "  variant    RFC 9562",
        "  time       2022-02-22T19:22:22.0000000Z",
        "  timestamp  138648505420000000",
        "  clock_seq  13256",
        "  node       9f:6b:de:ce:d8:46 (random)",
        "  full_on    5236-03-31",
    ]


def test_inspect_refuses_what_is_no_id() -> None:
    """One line, and nothing of the others either."""
    status, out, err = uuidctl("inspect", "c232ab00-9414-11ec-b3c8-9f6bdeced846", "--", "-1")
    assert (status, out) == (1, "")
    (line,) = err.splitlines()
    assert line.startswith("uuidctl: '-1' is not a")


def test_status_is_there_for_people(daemon: Daemon) -> None:
    """One screen, which begins with what matters most."""
    status, out, err = uuidctl("status", socket=daemon.socket)
    assert (status, err) == (0, "")
    assert f" serving, pid {daemon.process.pid}, up " in out.splitlines()[0]
    assert len(out.splitlines()) < 25


def test_status_is_there_for_programs(daemon: Daemon) -> None:
    """--json gives what the daemon told, as it is."""
    _, out, _ = uuidctl("status", "--json", socket=daemon.socket)
    status = json.loads(out)
    assert status["pid"] == daemon.process.pid
    assert status["limits"]["connections"] == 16384


def test_status_without_a_daemon_is_one_line() -> None:
    """Status 1, the path and the cause."""
    assert uuidctl("status") == (
        1,
        "",
        "uuidctl: no answer from uuidd at /nowhere/s: No such file or directory\n",
    )


def test_the_status_of_another_version_is_told_as_such(tmp_path: Path) -> None:
    """What is not there cannot be shown; what is there can be printed."""
    path = tmp_path / "s"
    with Server(path, lambda request: result(request, {"version": "99"})):
        for form in ([], ["--openmetrics"], ["--watch"]):
            status, out, err = uuidctl("status", *form, socket=path)
            assert (status, out.strip()) == (1, "")
            assert err.startswith("uuidctl: the daemon's status cannot be shown, it may be of")
        status, out, err = uuidctl("status", "--json", socket=path)
        assert (status, json.loads(out), err) == (0, {"version": "99"}, "")


def test_a_status_that_json_cannot_tell_is_one_line(tmp_path: Path) -> None:
    """MessagePack has values that JSON has not."""
    path = tmp_path / "s"
    with Server(path, lambda request: result(request, {"node": b"\xff"})):
        status, out, err = uuidctl("status", "--json", socket=path)
    assert (status, out) == (1, "")
    assert err.startswith("uuidctl: the daemon's status cannot be written as JSON: ")


def test_run_ends_in_order_at_a_signal_before_its_reader_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The signal's own end is told, and not that of a thread that never began."""
    monkeypatch.setattr(threading.Thread, "start", lambda _: signal.raise_signal(signal.SIGTERM))
    with pytest.raises(SystemExit) as ended:
        main(["run", "--", "true"])
    assert ended.value.code == 128 + signal.SIGTERM


def test_errors_go_nowhere_rather_than_among_the_ids() -> None:
    """Where standard error is closed, standard output stays for what was asked for."""
    shell = ["sh", "-c", 'exec "$@" status 2>&-', "sh", *UUIDCTL]
    environment = {**os.environ, "UUIDD_SOCKET": "/nowhere/s"}
    done = subprocess.run(
        shell, env=environment, stdout=subprocess.PIPE, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout) == (1, b"")


@pytest.mark.parametrize("command", ["new", "status", "bench"])
def test_a_bad_time_out_in_the_environment_is_told_in_a_line(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line names the variable, its value and the rule."""
    monkeypatch.setenv("UUIDD_TIMEOUT", "soon")
    assert main([command]) == 1
    assert capsys.readouterr().err == (
        "uuidctl: UUIDD_TIMEOUT is 'soon'; it must be a number of seconds above 0\n"
    )


def test_run_says_when_there_is_no_folder_for_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line that tells of TMPDIR."""

    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "TemporaryDirectory", full)
    assert main(["run", "--", "true"]) == 1
    assert capsys.readouterr().err == (
        "uuidctl: no temporary folder can be made: No space left on device; name one in TMPDIR\n"
    )


def test_run_gives_its_command_a_daemon_of_its_own() -> None:
    """Ids within are safe; afterwards daemon and folder are gone."""
    program = (
        "import os; from uuidd_client import uuid1, Client;"
        "print(uuid1().is_safe, os.environ['UUIDD_SOCKET'], Client().status()['pid'])"
    )
    status, out, err = uuidctl("run", "--", sys.executable, "-c", program)
    assert (status, err) == (0, "")
    is_safe, socket, pid = out.split()
    assert is_safe == "SafeUUID.safe"
    assert not Path(socket).parent.exists()
    assert not Path("/proc", pid).exists()


@pytest.mark.parametrize(("command", "status"), [("exit 7", 7), ("kill -9 $$", 137), ("true", 0)])
def test_run_ends_as_its_command_did(command: str, status: int) -> None:
    """The command's status is passed on, 128 and the number for a signal."""
    assert uuidctl("run", "--", "sh", "-c", command)[0] == status


def test_run_gives_its_daemon_a_worker_number() -> None:
    """So that Snowflakes can be tried."""
    command = [*UUIDCTL, "new", "-k", "snowflake"]
    status, out, err = uuidctl("run", "--worker", "7", "--", *command)
    assert (status, err) == (0, "")
    assert int(out) >> 12 & 0x3FF == 7


def test_run_says_when_there_is_no_such_command() -> None:
    """One line, status 1."""
    status, out, err = uuidctl("run", "--", "/nowhere/command")
    assert (status, out) == (1, "")
    assert err == "uuidctl: /nowhere/command cannot be run: No such file or directory\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_run_passes_a_signal_on_and_clears_up(number: signal.Signals) -> None:
    """The command is ended by it; the daemon and its folder go too."""
    with subprocess.Popen(
        [*UUIDCTL, "run", "--", "sh", "-c", "echo $UUIDD_SOCKET; exec sleep 60"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        socket = Path(process.stdout.readline().strip())
        assert socket.exists()
        process.send_signal(number)
        assert process.wait(PATIENCE) == 128 + number
    assert not socket.parent.exists()


def test_an_output_that_is_full_is_one_line(daemon: Daemon) -> None:
    """Neither a traceback nor silence."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*UUIDCTL, "new"],
            env={**os.environ, "UUIDD_SOCKET": str(daemon.socket)},
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == ("uuidctl: standard output cannot be written: No space left on device\n")


def test_run_leaves_no_daemon_when_it_is_killed() -> None:
    """Even SIGKILL of uuidctl ends the private daemon."""
    program = "import sys; from uuidd_client import Client; print(Client().status()['pid'])"
    with subprocess.Popen(
        [
            *UUIDCTL,
            "run",
            "--",
            "sh",
            "-c",
            '"$@"; exec sleep 3',
            "sh",
            sys.executable,
            "-c",
            program,
        ],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        daemon = os.pidfd_open(int(process.stdout.readline()))
        process.kill()
        assert select.select([daemon], [], [], PATIENCE)[0]
        os.close(daemon)


def test_a_closed_output_is_a_failure(daemon: Daemon) -> None:
    """Ids that went nowhere are not told as made."""
    shell = ["sh", "-c", 'exec "$@" new >&-', "sh", *UUIDCTL]
    environment = {**os.environ, "UUIDD_SOCKET": str(daemon.socket)}
    done = subprocess.run(
        shell, env=environment, timeout=PATIENCE, check=False, stderr=subprocess.PIPE
    )
    assert (done.returncode, done.stderr) == (1, b"uuidctl: standard output is closed\n")

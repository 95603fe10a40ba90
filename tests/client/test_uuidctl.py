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
from pathlib import Path
from uuid import UUID

import pytest

import uuidd
from tests.client.conftest import Uuidctl
from tests.client.fakes import UUIDCTL, Server, result
from tests.kinds import KINDS, number
from tests.rig import PATIENCE, Daemon
from tests.tools import in_private_mounts, run
from uuidd_client import extension
from uuidd_client.command import main

NOWHERE = "uuidctl: no answer from uuidd at /nowhere/s: No such file or directory\n"


def in_shell(
    script: str, *arguments: str, socket: Path | str = "/nowhere/s"
) -> subprocess.CompletedProcess[str]:
    """Run a script of the shell, in which "$@" is ``uuidctl`` with *arguments*."""
    environment = {**os.environ, "UUIDD_SOCKET": str(socket)}
    return run("sh", "-c", script, "sh", *UUIDCTL, *arguments, env=environment)


@pytest.mark.parametrize(("kind", "version"), [("v1", 1), ("v4", 4), ("v6", 6), ("v7", 7)])
def test_new_makes_as_many_ids_as_are_wanted(
    daemon: Daemon, uuidctl: Uuidctl, kind: str, version: int
) -> None:
    status, out, err = uuidctl("new", "-k", kind, "-n", "12000", socket=daemon.socket)
    ids = [UUID(line) for line in out.splitlines()]
    assert (status, err) == (0, "")
    assert len(set(ids)) == 12000
    assert {id.version for id in ids} == {version}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind].alphabet])
def test_new_makes_ids_that_are_not_uuids(daemon: Daemon, uuidctl: Uuidctl, kind: str) -> None:
    status, out, err = uuidctl("new", "-k", kind, "-n", "1000", socket=daemon.socket)
    ids = out.splitlines()
    assert (status, err) == (0, "")
    assert ids == sorted(set(ids))
    assert len({number(kind, id) for id in ids}) == 1000


@pytest.mark.parametrize(
    ("kind", "id"),
    [
        ("v3", "5df41881-3aed-3515-88a7-2f4a814cf09e"),
        ("v5", "2ed6657d-e927-568b-95e1-2665a8aea6a2"),
    ],
)
@pytest.mark.parametrize("namespace", ["dns", "DNS", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"])
def test_new_makes_the_id_of_a_name(uuidctl: Uuidctl, kind: str, id: str, namespace: str) -> None:
    """The examples of RFC 9562, A.2 and A.4; no daemon is needed."""
    name = ["--namespace", namespace, "--name", "www.example.com"]
    assert uuidctl("new", "-k", kind, *name) == (0, f"{id}\n", "")


def test_new_prints_json(daemon: Daemon, uuidctl: Uuidctl) -> None:
    status, out, _ = uuidctl("new", "-n", "3", "--json", socket=daemon.socket)
    assert status == 0
    assert {UUID(text).version for text in json.loads(out)} == {1}
    assert len(set(json.loads(out))) == 3


@pytest.mark.process
def test_new_without_a_daemon_says_so_and_makes_ids() -> None:
    """The line goes to standard error, so that the ids can be used."""
    done = in_shell('"$@"', "new")
    assert done.returncode == 0
    assert UUID(done.stdout.strip()).version == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(NOWHERE.strip())


def test_new_ends_quietly_when_its_reader_ends(daemon: Daemon) -> None:
    done = in_shell('"$@" | head -1', "new", "-n", "200000", socket=daemon.socket)
    assert (len(done.stdout), done.stderr) == (37, "")


@pytest.mark.parametrize(
    "wrong",
    [
        # A part of an option's name could mean another option in a later version.
        *("new --co=5", "status --js", "", "fly", "run", "run --", "inspect", "bounds"),
        *("bounds v7", "bounds v7 1 2 3", "bounds v7 1 --unit day", "new -k v7 --name x"),
        *("new -n 0", "new -n x", "new -n -1", "new -k v9", "new -k v5", "new -k v3 --name x"),
        *("new -k v5 --namespace dns --name x -n 2", "inspect -k v9 1"),
        *("inspect --epoch x 1", "inspect --epoch -5 1"),
        # Standard input among other ids, and bits of no kind.
        *("inspect - 1", "inspect --raw 1"),
    ],
)
def test_wrong_usage_is_reported_with_status_2(uuidctl: Uuidctl, wrong: str) -> None:
    status, out, err = uuidctl(*wrong.split())
    assert (status, out) == (2, "")
    usage, *_, told = err.splitlines()
    assert usage.startswith("usage: uuidctl")
    assert "error: " in told


BAD_TIMEOUT = "UUIDD_TIMEOUT is 'soon'; it must be a finite number of seconds above 0"


@pytest.mark.parametrize(
    ("command", "timeout", "told"),
    [
        ("new -k snowflake", "", "no answer from uuidd at /nowhere/s: No such file or directory"),
        ("renew", "", "no answer from uuidd at /nowhere/s: No such file or directory"),
        ("new", "soon", BAD_TIMEOUT),
        ("status", "soon", BAD_TIMEOUT),
        (
            "new -k v5 --namespace example.com --name x",
            "",
            "--namespace is 'example.com'; it must be a UUID or one of dns, url, oid, x500",
        ),
        ("new -k v5 --namespace dns --name \udcff", "", "--name '\\udcff' is not text in UTF-8"),
    ],
)
def test_what_cannot_be_done_is_one_line_with_status_1(
    uuidctl: Uuidctl, monkeypatch: pytest.MonkeyPatch, command: str, timeout: str, told: str
) -> None:
    """The line names the value and the rule, and nothing is printed."""
    monkeypatch.setenv("UUIDD_TIMEOUT", timeout)
    assert uuidctl(*command.split()) == (1, "", f"uuidctl: {told}\n")


@pytest.mark.process
def test_a_command_that_cannot_be_run_is_one_line(uuidctl: Uuidctl) -> None:
    told = "uuidctl: /nowhere/command cannot be run: No such file or directory\n"
    assert uuidctl("run", "--", "/nowhere/command") == (1, "", told)


def test_the_status_of_another_version_is_reported_as_such(
    tmp_path: Path, uuidctl: Uuidctl
) -> None:
    """What is not there cannot be shown; what is there can be printed."""
    path = tmp_path / "s"
    with Server(path, lambda request: result(request, {"version": "99"})):
        for form, code in (([], 1), (["--prometheus"], 1), (["--watch"], 1), (["--check"], 2)):
            status, out, err = uuidctl("status", *form, socket=path)
            assert (status, out.strip()) == (code, "")
            assert err.startswith("uuidctl: the daemon's status cannot be shown, it may be of")
        status, out, err = uuidctl("status", "--json", socket=path)
        assert (status, json.loads(out), err) == (0, {"version": "99"}, "")


def test_what_json_has_no_form_for_is_shown_as_python_shows_it(
    tmp_path: Path, uuidctl: Uuidctl
) -> None:
    """MessagePack has values that JSON does not have."""
    path = tmp_path / "s"
    with Server(path, lambda request: result(request, {"node": b"\xff", b"\xff": 1})):
        status, out, err = uuidctl("status", "--json", socket=path)
    assert (status, json.loads(out), err) == (0, {"node": "b'\\xff'"}, "")


# --- output that cannot be written


@pytest.mark.parametrize(
    ("script", "code", "out", "err"),
    [
        ('exec "$@" 2>&-', 1, "", ""),
        ('exec "$@" >&-', 1, "", "uuidctl: standard output is closed\n"),
        (
            'exec "$@" >/dev/full',
            1,
            "",
            "uuidctl: standard output cannot be written: No space left on device\n",
        ),
    ],
)
def test_output_that_cannot_be_written_is_a_failure(
    daemon: Daemon, script: str, code: int, out: str, err: str
) -> None:
    """One line says so, unless standard error is closed; that line never goes among the ids."""
    socket = "/nowhere/s" if "2>&-" in script else daemon.socket
    command = "status" if "2>&-" in script else "new"
    done = in_shell(script, command, socket=socket)
    assert (done.returncode, done.stdout, done.stderr) == (code, out, err)


# --- run


@pytest.mark.process
def test_run_gives_its_command_a_daemon_of_its_own() -> None:
    """With the worker number that is asked for; afterwards the daemon and its folder are gone."""
    program = (
        "import os; from uuidd_client import snowflake, uuid1, Client;"
        "print(uuid1().is_safe, snowflake() >> 12 & 0x3FF, Client().status()['pid']);"
        "print(os.environ['UUIDD_SOCKET'])"
    )
    done = in_shell('"$@"', "run", "--worker", "7", "--", sys.executable, "-c", program)
    assert (done.returncode, done.stderr) == (0, "")
    is_safe, worker, pid, socket = done.stdout.split()
    assert (is_safe, worker) == ("SafeUUID.safe", "7")
    assert not Path(socket).parent.exists()
    assert not Path("/proc", pid).exists()


@pytest.mark.process
@pytest.mark.parametrize(("command", "status"), [("exit 7", 7), ("kill -9 $$", 137)])
def test_run_ends_as_its_command_did(uuidctl: Uuidctl, command: str, status: int) -> None:
    assert uuidctl("run", "--", "sh", "-c", command) == (status, "", "")


def test_run_says_when_there_is_no_folder_for_it(
    monkeypatch: pytest.MonkeyPatch, uuidctl: Uuidctl
) -> None:

    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "TemporaryDirectory", full)
    assert uuidctl("run", "--", "true") == (
        1,
        "",
        "uuidctl: no temporary folder can be made: No space left on device; name one in TMPDIR\n",
    )


@pytest.mark.process
def test_run_ends_in_order_at_a_signal_before_its_reader_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ends by the signal, and not by an error of the thread that was never started."""
    monkeypatch.setattr(threading.Thread, "start", lambda _: signal.raise_signal(signal.SIGTERM))
    with pytest.raises(SystemExit) as ended:
        main(["run", "--", "true"])
    assert ended.value.code == 128 + signal.SIGTERM


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_run_passes_a_signal_on_and_cleans_up(number: signal.Signals) -> None:
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


@pytest.mark.process
def test_run_leaves_a_signal_ignored_that_was_ignored() -> None:
    """As nohup does it, for the command too."""
    done = in_shell('trap "" HUP; "$@"', "run", "--", "sh", "-c", "kill -HUP $$; echo alive")
    assert (done.returncode, done.stdout, done.stderr) == (0, "alive\n", "")


@pytest.mark.process
def test_run_passes_on_a_signal_that_comes_while_it_starts_its_command() -> None:
    done = in_shell('"$@"', "run", "--", "sh", "-c", "kill $PPID; exec sleep 60")
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGTERM, "", "")


@pytest.mark.process
def test_run_leaves_no_daemon_when_it_is_killed() -> None:
    program = "from uuidd_client import Client; print(Client().status()['pid'])"
    script = '"$@"; exec sleep 3'
    with subprocess.Popen(
        [*UUIDCTL, "run", "--", "sh", "-c", script, "sh", sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        daemon = os.pidfd_open(int(process.stdout.readline()))
        process.kill()
        assert select.select([daemon], [], [], PATIENCE)[0]
        os.close(daemon)


@pytest.mark.parametrize(("implementation", "language"), [("c", "C"), ("python", "Python")])
def test_the_version_tells_what_makes_ids(
    uuidctl: Uuidctl, monkeypatch: pytest.MonkeyPatch, implementation: str, language: str
) -> None:
    monkeypatch.setattr(extension, "implementation", implementation)
    line = f"uuidctl {uuidd.version()}, makes ids in {language}\n"
    assert uuidctl("--version") == uuidctl("-V") == (0, line, "")


class BrokenInput:
    """A standard input that fails where no command looks for it."""

    @property
    def buffer(self) -> object:
        """Fail."""
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_an_error_that_is_none_of_the_output_is_told_as_it_is(
    uuidctl: Uuidctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", BrokenInput())
    assert uuidctl("inspect", "-") == (1, "", "uuidctl: [Errno 5] Input/output error\n")


@pytest.mark.process
@pytest.mark.usefixtures("as_root")
def test_where_a_service_says_why_it_fails_is_told() -> None:
    """Callers only see that there is no answer: systemd keeps its socket open."""
    environment = {name: value for name, value in os.environ.items() if name != "UUIDD_SOCKET"}
    done = run(*in_private_mounts(*UUIDCTL, "status"), env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        "uuidctl: no answer from uuidd at /run/uuidd/request: No such file or directory; if it is a"
        " service, see journalctl -u uuidd\n",
    )

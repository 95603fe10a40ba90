"""The ``uuidctl`` command, as a user meets it."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from uuid import UUID

import pytest

import uuidd
from tests.client.conftest import Uuidctl
from tests.client.fakes import UUIDCTL, Server
from tests.kinds import KINDS, number
from tests.rig import PATIENCE, Daemon
from tests.tools import need, run
from uuidd_client import Client, DaemonUnavailable, extension
from uuidd_client.command import main
from uuidd_client.private_daemon import read_log

NOWHERE = "no answer from uuidd at /nowhere/s: No such file or directory"


def in_shell(
    script: str, *arguments: str, socket: Path | str = "/nowhere/s"
) -> subprocess.CompletedProcess[str]:
    """Run a script of the shell, in which "$@" is ``uuidctl`` with *arguments*."""
    environment = {**os.environ, "UUIDD_SOCKET": str(socket)}
    return run("sh", "-c", script, "sh", *UUIDCTL, *arguments, env=environment)


@pytest.mark.parametrize("kind", KINDS)
def test_new_makes_as_many_ids_as_are_wanted(daemon: Daemon, uuidctl: Uuidctl, kind: str) -> None:
    status, out, err = uuidctl("new", "-k", kind, "-n", "20000", socket=daemon.socket)
    assert (status, err) == (0, "")
    assert len({number(kind, id) for id in out.splitlines()}) == len(out.splitlines()) == 20000


@pytest.mark.parametrize(("flag", "version"), [("-t", 1), ("-r", 4), ("-6", 6), ("-7", 7)])
def test_the_short_options_of_uuidgen_choose_kind_and_number(
    uuidctl: Uuidctl, flag: str, version: int
) -> None:
    code, out, _ = uuidctl("new", flag, "-C", "3")
    assert code == 0
    found: list[Any] = [UUID(line).version for line in out.splitlines()]
    assert found == [version] * 3


@pytest.mark.process
@pytest.mark.parametrize("flag", ["-t", "-r"])
def test_uuidgen_makes_the_same_version(uuidctl: Uuidctl, flag: str) -> None:
    theirs = UUID(run(need("uuidgen"), flag).stdout.strip())
    assert UUID(uuidctl("new", flag)[1].strip()).version == theirs.version


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


def test_new_prints_an_array_of_many_ids(uuidctl: Uuidctl) -> None:
    _, out, _ = uuidctl("new", "-k", "v4", "-n", "10001", "--json")
    assert out.count("\n") == 1
    assert len({UUID(text) for text in json.loads(out)}) == 10001


def test_new_prints_an_array_as_the_ids_are_made(daemon: Daemon) -> None:
    """So any number of ids takes little memory."""
    script = 'ulimit -v 4000000; "$@" | head -c 40'
    done = in_shell(script, "new", "-n", "1000000000000", "--json", socket=daemon.socket)
    assert (len(done.stdout), done.stdout[:2], done.stderr) == (40, '["', "")


@pytest.mark.process
def test_new_without_a_daemon_says_so_and_makes_ids() -> None:
    """The line goes to standard error, so that the ids can be used."""
    done = in_shell('"$@"', "new")
    assert done.returncode == 0
    assert UUID(done.stdout.strip()).version == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"uuidctl: {NOWHERE}")


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


@pytest.mark.parametrize("word", ["v9", "v7", "5"])
def test_a_word_that_belongs_to_no_option_of_new_is_refused_with_the_kinds(
    uuidctl: Uuidctl, word: str
) -> None:
    status, out, err = uuidctl("new", word)
    assert (status, out) == (2, "")
    assert err.splitlines()[-1] == (
        f"uuidctl new: error: {word!r} belongs to no option; name the kind of id with -k (v1, v4,"
        " v6, v7, snowflake, flake, ulid, ksuid, push_id, v3, v5), and how many with -n"
    )


BAD_TIMEOUT = "UUIDD_TIMEOUT is 'soon'; it must be a finite number of seconds above 0"
BAD_FALLBACK = "UUIDD_FALLBACK is 'no'; it must be 0 or 1"


@pytest.mark.parametrize(
    ("command", "variable", "code", "told"),
    [
        ("new -k snowflake", "", 1, NOWHERE),
        ("renew", "", 1, NOWHERE),
        ("new", "TIMEOUT=soon", 1, BAD_TIMEOUT),
        ("renew", "TIMEOUT=soon", 1, BAD_TIMEOUT),
        ("status", "TIMEOUT=soon", 1, BAD_TIMEOUT),
        ("status --check", "TIMEOUT=soon", 2, BAD_TIMEOUT),
        ("new", "FALLBACK=no", 1, BAD_FALLBACK),
        ("status", "FALLBACK=no", 1, BAD_FALLBACK),
        ("metrics", "FALLBACK=no", 1, BAD_FALLBACK),
        ("metrics --listen 127.0.0.1:0", "FALLBACK=no", 1, BAD_FALLBACK),
        ("status --check", "FALLBACK=no", 2, BAD_FALLBACK),
        (
            "new -k v5 --namespace example.com --name x",
            "",
            1,
            "--namespace is 'example.com'; it must be a UUID or one of dns, url, oid, x500",
        ),
        ("new -k v5 --namespace dns --name \udcff", "", 1, "--name '\\udcff' is not text in UTF-8"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    uuidctl: Uuidctl,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    variable: str,
    code: int,
    told: str,
) -> None:
    name, _, value = variable.partition("=")
    monkeypatch.setenv(f"UUIDD_{name or 'TIMEOUT'}", value)
    assert uuidctl(*command.split()) == (code, "", f"uuidctl: {told}\n")


def test_an_empty_path_of_the_socket_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """As of a variable that is not set: the daemon of the host would answer instead."""
    with pytest.raises(SystemExit):
        main(["--socket", "", "status"])
    line = capsys.readouterr().err.splitlines()[-1]
    assert line == "uuidctl: error: argument -s/--socket: the path is empty"


@pytest.mark.parametrize(
    ("words", "code"), [("status", 1), ("metrics", 1), ("status --watch", 1), ("status --check", 2)]
)
def test_the_status_of_another_version_is_reported_as_such(
    path: Path, uuidctl: Uuidctl, words: str, code: int
) -> None:
    with Server(path, {"version": "99"}):
        status, out, err = uuidctl(*words.split(), socket=path)
    assert (status, out.strip()) == (code, "")
    assert err.startswith("uuidctl: the daemon's status cannot be shown, it may be of")


def test_json_shows_any_status(path: Path, uuidctl: Uuidctl) -> None:
    """MessagePack has values that JSON does not have; they are shown as Python shows them."""
    with Server(path, {"node": b"\xff", b"\xff": 1}):
        status, out, err = uuidctl("status", "--json", socket=path)
    assert (status, json.loads(out), err) == (0, {"node": "b'\\xff'"}, "")


@pytest.mark.process
def test_renew_says_what_it_did(uuidctl: Uuidctl) -> None:
    """A second one within 10 s is joined with the next that is saved."""
    with Daemon() as daemon:
        assert uuidctl("renew", socket=daemon.socket) == (0, "renewed, 0 leases ended\n", "")
        assert uuidctl("renew", socket=daemon.socket) == (
            0,
            "renewed, 0 leases ended; the state is saved within 10 s\n",
            "",
        )


def test_a_name_of_two_lines_is_told_in_one(uuidctl: Uuidctl) -> None:
    status, out, err = uuidctl("status", socket=Path("/nowhere/one\ntwo"))
    line = "uuidctl: no answer from uuidd at /nowhere/one\\ntwo: No such file or directory\n"
    assert (status, out, err) == (1, "", line)


def test_a_user_who_may_not_renew_gets_one_line(path: Path, uuidctl: Uuidctl) -> None:
    with Server(path, "not_permitted: renew is for root"):
        status, out, err = uuidctl("renew", socket=path)
    assert (status, out) == (1, "")
    assert err.startswith("uuidctl: ")
    assert "renew is for root" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("script", "command", "err"),
    [
        ('exec "$@" 2>&-', "status", ""),
        ('exec "$@" >&-', "new", "standard output is closed"),
        (
            'exec "$@" >/dev/full',
            "new",
            "standard output cannot be written: No space left on device",
        ),
    ],
)
def test_output_that_cannot_be_written_is_a_failure(
    daemon: Daemon, script: str, command: str, err: str
) -> None:
    """One line says so, unless standard error is closed; that line never goes among the ids."""
    done = in_shell(script, command, socket="/nowhere/s" if command == "status" else daemon.socket)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (f"uuidctl: {err}\n" if err else "")


@pytest.mark.process
def test_run_gives_its_command_a_daemon_of_its_own() -> None:
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
@pytest.mark.parametrize(
    ("command", "status", "told"),
    [
        ("sh -c exit\t7", 7, ""),
        ("sh -c kill\t-9\t$$", 137, ""),
        (
            "/nowhere/command",
            1,
            "uuidctl: /nowhere/command cannot be run: No such file or directory\n",
        ),
    ],
)
def test_run_ends_as_its_command_did(
    uuidctl: Uuidctl, command: str, status: int, told: str
) -> None:
    assert uuidctl("run", "--", *command.split(" ")) == (status, "", told)


def test_run_says_when_there_is_no_folder_for_it(
    monkeypatch: pytest.MonkeyPatch, uuidctl: Uuidctl
) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", full)
    told = "no temporary folder can be made: No space left on device; name one in TMPDIR"
    assert uuidctl("run", "--", "true") == (1, "", f"uuidctl: {told}\n")


def test_run_says_when_its_folder_has_too_long_a_path(
    monkeypatch: pytest.MonkeyPatch, uuidctl: Uuidctl, tmp_path: Path
) -> None:
    """A shorter one is named in TMPDIR: there is no option for it."""
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    status, out, err = uuidctl("run", "--", "true")
    assert (status, out) == (1, "")
    assert re.sub("uuidd-[a-z0-9_]{8}/", "uuidd-RANDOM/", err) == (
        f"uuidctl: the socket {folder}/uuidd-RANDOM/request would have a path of"
        f" {len(str(folder)) + 23} bytes, and at most 107 are allowed; name a shorter folder in"
        " TMPDIR\n"
    )
    assert list(folder.iterdir()) == []


@pytest.mark.process
@pytest.mark.parametrize("step", ["__init__", "start"])
def test_run_ends_in_order_at_a_signal_before_its_reader_runs(
    monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def stop(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(threading.Thread, step, stop)
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
        # Also where these tests run under nohup.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        socket = Path(process.stdout.readline().strip())
        assert socket.exists()
        process.send_signal(number)
        assert process.wait(PATIENCE) == 128 + number
    assert not socket.parent.exists()


@pytest.mark.process
def test_run_leaves_a_signal_ignored_that_was_ignored() -> None:
    done = in_shell('trap "" HUP; "$@"', "run", "--", "sh", "-c", "kill -HUP $$; echo alive")
    assert (done.returncode, done.stdout, done.stderr) == (0, "alive\n", "")


@pytest.mark.process
def test_run_passes_on_a_signal_that_comes_while_it_starts_its_command() -> None:
    done = in_shell('"$@"', "run", "--", "sh", "-c", "kill $PPID; exec sleep 60")
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGTERM, "", "")


@pytest.mark.process
def test_run_leaves_no_daemon_when_it_is_killed(place: Path) -> None:
    program = "from uuidd_client import Client; print(Client().status()['pid'])"
    script = '"$@"; exec sleep 3'
    with subprocess.Popen(
        [*UUIDCTL, "run", "--", "sh", "-c", script, "sh", sys.executable, "-c", program],
        # It cannot remove its folder.
        env={**os.environ, "TMPDIR": str(place)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        daemon = os.pidfd_open(int(process.stdout.readline()))
        process.kill()
        assert select.select([daemon], [], [], PATIENCE)[0]
        os.close(daemon)


class Closed(io.StringIO):
    """A standard error whose reader has gone."""

    def write(self, _: str) -> int:
        """Fail as a pipe does."""
        raise BrokenPipeError


@pytest.mark.parametrize("stderr", [None, Closed()])
def test_a_private_daemons_log_is_read_to_its_end_where_nobody_sees_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stderr: io.StringIO | None
) -> None:
    """Nothing of it comes among what the program prints."""
    monkeypatch.setattr("sys.stderr", stderr)
    told: SimpleQueue[str] = SimpleQueue()
    log = [b"uuidd: INFO: started: pid=5\n", b"uuidd: WARNING: one\n", b"uuidd: WARNING: two\n"]
    reader = threading.Thread(target=read_log, args=(log, told))
    reader.start()
    reader.join()
    assert [told.get_nowait(), told.get_nowait()] == ["", "uuidd: WARNING: two"]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("implementation", "language"), [("c", "C"), ("python", "Python")])
def test_the_version_tells_what_makes_ids(
    uuidctl: Uuidctl, monkeypatch: pytest.MonkeyPatch, implementation: str, language: str
) -> None:
    monkeypatch.setattr(extension, "implementation", implementation)
    line = f"uuidctl {uuidd.version()}, makes ids in {language}\n"
    assert uuidctl("--version") == uuidctl("-V") == (0, line, "")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        # It is none of the output.
        (OSError(errno.EIO, "Input/output error"), "[Errno 5] Input/output error"),
        # Callers only see that there is no answer: systemd keeps the socket of its service open.
        (
            DaemonUnavailable("/run/uuidd/request", "refused"),
            "no answer from uuidd at /run/uuidd/request: refused; if it is a service, see"
            " journalctl -u uuidd",
        ),
    ],
)
def test_an_error_of_the_client_is_told_with_the_way_out(
    uuidctl: Uuidctl, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    def fail(_: object) -> None:
        raise error

    monkeypatch.setattr(Client, "status", fail)
    assert uuidctl("status", "--json") == (1, "", f"uuidctl: {told}\n")

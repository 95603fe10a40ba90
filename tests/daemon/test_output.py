"""The ``uuidd`` command where its output cannot be written, or what it needs is not there."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.rig import Daemon
from tests.tools import run

pytestmark = pytest.mark.process

PROJECT = Path(__file__).parents[2]

UUIDD = [sys.executable, "-m", "uuidd"]
UUIDCTL = [
    sys.executable,
    "-c",
    "import sys; from uuidd_client.command import main; sys.exit(main())",
]


def shell(script: str, *arguments: object, command: Sequence[str] = UUIDD) -> tuple[int, str, str]:
    """Return the exit status, the output and the errors of a shell that runs *script*.

    Its ``$@`` is *command* with *arguments*.
    """
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    words = ["bash", "-o", "pipefail", "-c", script, "bash", *command, *arguments]
    done = run(*words, env=environment)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        (UUIDD, ["-t"]),
        (UUIDD, ["-r"]),
        (UUIDD, ["--help"]),
        (UUIDD, ["--version"]),
        (UUIDCTL, ["status", "--help"]),
    ],
)
def test_a_full_output_is_told_in_a_line(command: list[str], asked: list[str]) -> None:
    """With status 1, for what was to be shown is lost."""
    with Daemon() if asked[0] in ("-t", "-r") else contextlib.nullcontext() as daemon:
        socket = [f"--socket={daemon.socket}"] if daemon else []
        status, _, err = shell('"$@" >/dev/full', *asked, *socket, command=command)
    name = "uuidd" if command is UUIDD else "uuidctl"
    assert status == 1
    assert err == f"{name}: standard output cannot be written: No space left on device\n"


def test_what_the_output_cannot_encode_is_escaped(tmp_path: Path) -> None:
    script = 'PYTHONIOENCODING=utf-8:strict "$@"'
    told = f"No uuidd at {tmp_path}/\\udcff.\n"
    assert shell(script, "-k", f"--socket={tmp_path}/\udcff") == (0, told, "")


def test_a_reader_that_has_seen_enough_is_no_error_to_show() -> None:
    with Daemon() as daemon:
        asked = ["-r", "-n", "1000000000", f"--socket={daemon.socket}"]
        _, out, err = shell('"$@" | head -2', *asked)
    assert (out.splitlines()[0], len(out.splitlines()), err) == ("List of UUIDs:", 2, "")


@pytest.mark.parametrize(
    "command",
    ["-F", "--check", "--reset-steady", "-F --worker=zk://h1/u --worker-secret=./rel"],
)
def test_a_path_in_a_folder_that_was_removed_is_told(tmp_path: Path, command: str) -> None:
    script = f'mkdir {tmp_path}/gone && cd {tmp_path}/gone && rmdir $PWD && "$@"'
    line = (
        "uuidd: rel is below the current folder, which was removed; name a whole path, or go to"
        " another folder\n"
    )
    assert shell(script, *command.split(), "-P", "--state=rel") == (1, "", line)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_a_command_with_a_closed_descriptor_does_what_it_does(closed: str) -> None:
    """What it says there is lost, as of util-linux's uuidd: the status is 0, or 1 of an error."""
    with Daemon() as daemon:
        asked = ["-t", f"--socket={daemon.socket}"]
        status, out, err = shell(f'"$@" {closed}', *asked)
        assert (status, err) == (0, "")
        assert bool(out) == (">&-" not in closed.split())
        with daemon.connect() as connection:
            assert connection.call("status")["requests"]["libuuid"]["ids"] == 1
    status, out, err = shell(f'"$@" {closed}', "-t", f"--socket={daemon.socket}")
    assert (status, out) == (1, "")
    assert bool(err) == ("2>&-" not in closed)


@pytest.mark.parametrize("closed", ["2>&-", ">&- 2>&- <&-"])
def test_a_daemon_with_a_closed_descriptor_serves_and_ends_well(
    tmp_path: Path, closed: str
) -> None:
    state, path = tmp_path / "state", tmp_path / "s"
    state.mkdir()
    started = f"""
        "$@" -F -T 60 --socket={path} --state={state} {closed} & daemon=$!
        until "$@" -t --socket={path}; do sleep 0.01; done
        kill $daemon && wait $daemon
    """
    status, out, err = shell(started, "-P")
    assert (status, len(out), "Traceback" in err) == (0, 37, False)
    assert ("started:" in err) == ("2>&-" not in closed)


def test_a_usage_error_is_for_standard_error_alone() -> None:
    assert shell('"$@" 2>&-', "--nonsense") == (2, "", "")


def test_a_count_is_told_as_util_linuxs_uuidd_tells_it() -> None:
    expected = {
        "-tn0": "ID\n",
        "-tn1": "ID and 0 subsequent UUIDs\n",
        "-tn2": "ID and 1 subsequent UUID\n",
        "-tn3": "ID and 2 subsequent UUIDs\n",
        "-rn0": "ID\n",
        "-rn1": "List of UUIDs:\n\tID\n",
        "-rn2": "List of UUIDs:\n\tID\n\tID\n",
    }
    with Daemon() as daemon:
        found = {asked: shell('"$@"', asked, f"--socket={daemon.socket}") for asked in expected}
    assert {(status, err) for status, _, err in found.values()} == {(0, "")}
    uuid = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
    assert {asked: uuid.sub("ID", out) for asked, (_, out, _) in found.items()} == expected

"""The ``uuidd`` command where its output cannot be written, or what it needs is not there."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rig import PATIENCE, Daemon

UUIDD = [sys.executable, "-m", "uuidd"]


def shell(script: str, *arguments: str) -> tuple[int, str, str]:
    """Give the exit status, the output and the errors of a shell that runs *script*."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", script, "bash", *UUIDD, *arguments],
        capture_output=True,
        timeout=PATIENCE,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("option", ["-t", "-r"])
def test_a_full_output_is_told_in_a_line(option: str) -> None:
    """With status 1, for the id is lost."""
    with Daemon() as daemon:
        status, _, err = shell('"$@" >/dev/full', option, f"--socket={daemon.socket}")
    assert (status, err) == (
        1,
        "uuidd: standard output cannot be written: No space left on device\n",
    )


def test_a_reader_that_has_seen_enough_is_no_error_to_show() -> None:
    """And the list ends when nobody reads on."""
    with Daemon() as daemon:
        asked = ["-r", "-n", "1000000000", f"--socket={daemon.socket}"]
        _, out, err = shell('"$@" | head -2', *asked)
    assert (out.splitlines()[0], len(out.splitlines()), err) == ("List of UUIDs:", 2, "")


def test_too_few_descriptors_are_told_before_anything_is_made(tmp_path: Path) -> None:
    """A daemon that could serve nobody does not start, nor say that it has."""
    state = tmp_path / "state"
    state.mkdir()
    done = subprocess.run(
        [*UUIDD, "-P", f"--socket={tmp_path / 's'}", f"--state={state}"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)),
        capture_output=True,
        timeout=PATIENCE,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("uuidd: at most 40 descriptors may be open, and uuidd needs 96")
    assert len(done.stderr.splitlines()) == 1
    assert sorted(os.listdir(tmp_path)) == ["state"]
    assert not os.listdir(state)


def test_an_empty_path_is_refused(tmp_path: Path) -> None:
    """It comes from a variable that is not set, and would be the folder one is in."""
    status, _, err = shell('cd "$0"; "$@"', "--state", "")
    assert status == 2
    assert err.endswith("argument --state: the path is empty\n")


def test_a_pipe_in_the_states_place_is_refused(tmp_path: Path) -> None:
    """Without waiting for somebody to write to it."""
    os.mkfifo(tmp_path / "state")
    status, _, err = shell('"$@"', "-F", "-P", f"--socket={tmp_path / 's'}", f"--state={tmp_path}")
    assert (status, err) == (1, f"uuidd: {tmp_path / 'state'} is no file; remove it\n")


def test_defaults_that_are_not_there_are_told_of(tmp_path: Path) -> None:
    """The daemon starts, for no options are options too, but a name may be mistyped."""
    with Daemon(f"--defaults={tmp_path / 'typo'}") as daemon:
        assert daemon.lines[0] == (
            f"uuidd: WARNING: there is no file {tmp_path}/typo, so no option comes from it"
        )

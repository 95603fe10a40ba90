"""Ctrl-C while a command is being imported, or is at its end: status 130, and no traceback."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.tools import run

pytestmark = pytest.mark.system

SCRIPTS = Path(__file__).parents[2] / "uuidd" / "scripts"

INTERRUPT = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
"""What a module does here that Ctrl-C interrupts while it is imported."""


def interrupted(
    tmp_path: Path, module: str, *command: str, ignored: bool = False
) -> tuple[int, str, str]:
    """Return what a command does if Ctrl-C comes while it imports *module*."""
    (tmp_path / f"{module}.py").write_text(INTERRUPT)
    done = run(
        sys.executable,
        SCRIPTS / command[0],
        *command[1:],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        preexec_fn=(lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if ignored else None,
    )
    return done.returncode, done.stdout, done.stderr


IMPORTED = [
    *(("uuidctl", it) for it in ("uuidd_client", "threading", "argparse", "json", "tempfile")),
    ("uuidctl", "subprocess"),
    *(("uuidd", it) for it in ("uuidd", "argparse", "logging", "trio")),
]


@pytest.mark.parametrize(("command", "module"), IMPORTED)
def test_an_interrupted_start_ends_without_a_traceback(
    tmp_path: Path, command: str, module: str
) -> None:
    daemon = ("-F", "-P", f"--socket={tmp_path}/s", f"--state={tmp_path}")
    words = ("new",) if command == "uuidctl" else daemon
    assert interrupted(tmp_path, module, command, *words) == (130, "", "")
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("name", ["uuidd", "uuidctl"])
def test_an_end_is_not_interrupted_by_a_traceback(tmp_path: Path, name: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, os, signal\natexit.register(os.kill, os.getpid(), signal.SIGINT)\n"
    )
    status, _, err = interrupted(tmp_path, "none", name, "--help")
    assert (status, err) == (130, "")


def test_a_command_that_ignores_interrupts_goes_on_ignoring_them(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPT)
    status, out, _ = interrupted(tmp_path, "none", "uuidctl", "--help", ignored=True)
    assert (status, out.split()[0]) == (0, "usage:")

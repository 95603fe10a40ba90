"""A trial: pytest run on a copy, and what came of it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.mutations.tree import environment

MAX_SECONDS = 50.0
"""A run that takes longer hangs: that is seen too, but by nobody's assertion."""

PASSED, FAILED = 0, 1
"""What pytest exits with; more is an error of another kind, as a module that cannot be imported."""

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


class Trial(NamedTuple):
    """How a run ended: pytest's *status*, None if it hung; the first test that failed; its time."""

    status: int | None
    failed: str
    seconds: float
    output: str


def run(tree: Path, tests: Sequence[str]) -> Trial:
    """Run tests of the copy in *tree* until the first fails."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "--tb=short", "--color=no"]
    # Profile and import check are in a plugin; no cache is kept, and nothing runs side by side.
    command += ["-p", "tests.mutations.profile", "--hypothesis-profile=mutations"]
    command += ["-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    begun = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=tree,
        env=environment(tree),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    status: int | None
    try:
        output, _ = process.communicate(timeout=MAX_SECONDS)
        status = process.returncode
    except subprocess.TimeoutExpired:
        output, status = _ended(process), None
    finally:
        _end_group(process.pid)
    first = _FAILED.search(output)
    return Trial(status, first[1] if first else "", time.monotonic() - begun, output)


def _ended(process: subprocess.Popen[str]) -> str:
    """End a run that hangs as Ctrl-C does, so that it cleans up, or else at once."""
    process.send_signal(signal.SIGINT)
    try:
        output, _ = process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        _end_group(process.pid)
        output, _ = process.communicate()
    return output


def _end_group(group: int) -> None:
    """End what a broken run left behind: its daemons, in the session that was made for it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)

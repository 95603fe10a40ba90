"""A trial: pytest run on a copy of the project, whole or broken, and what came of it."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import uuidd
from extension.build_hook import CannotCompile, compiled, place, put_in_place
from tests.coverage.measuring import TOP
from tests.mutations.folders import folder

PARTS = ("uuidd", "client", "tests", "systemd", "pyproject.toml")

MAX_SECONDS = 50.0
"""A run that takes longer hangs, and that counts as seen."""

MAX_BYTES = 2 << 30
"""The memory of a run that eats more fails. Its address space has no limit: etcd maps 10 GB."""

PASSED, FAILED = 0, 1
"""What pytest exits with; more is an error of another kind, as a module that cannot be imported."""

CANNOT_COMPILE = 100

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)

_NO_MEMORY = re.compile(r"^E .*\bMemoryError\b", re.MULTILINE)

_running: set[subprocess.Popen[str]] = set()
_broken_off = False


class Trial(NamedTuple):
    """How a run ended: pytest's *status*, None if it hung; the tests that failed; its time."""

    status: int | None
    failed: tuple[str, ...]
    seconds: float
    output: str

    @property
    def crashed(self) -> bool:
        """Whether a signal ended it, which broken C leads to."""
        return self.status is not None and self.status < 0

    @property
    def ate_memory(self) -> bool:
        """Whether a test failed because there was no memory."""
        return _NO_MEMORY.search(self.output) is not None

    @property
    def caught(self) -> bool:
        """Whether a test failed, hung or crashed; a warning when all have passed is not enough."""
        failed = self.status == FAILED and bool(self.failed)
        return self.status is None or self.crashed or failed


@contextlib.contextmanager
def copied(origin: Path = TOP) -> Iterator[Path]:
    """Provide a copy of the checkout, or of a copy with what was compiled of it."""
    compiled = shutil.ignore_patterns("__pycache__") if origin == TOP else None
    with folder() as around:
        tree = around / "tree"
        tree.mkdir()
        for part in PARTS:
            if (origin / part).is_dir():
                shutil.copytree(origin / part, tree / part, ignore=compiled)
            else:
                shutil.copy2(origin / part, tree / part)
        yield tree


def run_broken(
    tree: Path,
    file: str,
    source: bytes,
    tests: Sequence[str],
    *,
    seconds: float = MAX_SECONDS,
    until_one_fails: bool = True,
) -> Trial:
    """Run tests on the copy in *tree* with *source* as a *file*; the copy is whole afterwards."""
    path = tree / file
    before, changed_at = path.read_bytes(), path.stat().st_mtime
    try:
        path.write_bytes(source)
        with _compiled_again(tree) if path.suffix in (".c", ".h") else contextlib.nullcontext():
            return run(tree, tests, seconds=seconds, until_one_fails=until_one_fails)
    except CannotCompile as error:
        return Trial(CANNOT_COMPILE, (), 0.0, str(error))
    finally:
        path.write_bytes(before)
        # What was compiled of it is of this time, and is good again.
        os.utime(path, (changed_at, changed_at))


@contextlib.contextmanager
def _compiled_again(tree: Path) -> Iterator[None]:
    """Compile the C extension of the copy in *tree*, for as long as the context lasts."""
    with tempfile.TemporaryDirectory(dir=tree.parent) as folder:
        built = compiled(tree, Path(folder), uuidd.__version__)
        whole = Path(folder, "whole") if place(tree).exists() else None
        if whole is not None:
            shutil.copy2(place(tree), whole)
        put_in_place(tree, built)
        try:
            yield
        finally:
            put_in_place(tree, whole)


def run(
    tree: Path,
    tests: Sequence[str],
    *,
    compiling: bool = False,
    seconds: float = MAX_SECONDS,
    until_one_fails: bool = True,
) -> Trial:
    """Run tests of the copy in *tree*, *until one fails* or all of them.

    What is compiled is kept if *compiling*, and then there is no limit of *seconds*.
    """
    # A test that is named is run, of whichever tier it is.
    command = pytest_command("-rfE", "--tb=short", "-m", "", *tests)
    command += ["-x"] if until_one_fails else []
    begun = time.monotonic()
    with _started(command, tree, compiling=compiling) as process:
        status: int | None
        try:
            output, _ = process.communicate(timeout=None if compiling else seconds)
            status = process.returncode
        except subprocess.TimeoutExpired:
            output, status = _ended(process), None
    failed = tuple(dict.fromkeys(_FAILED.findall(output)))
    return Trial(status, failed, time.monotonic() - begun, output)


def pytest_command(*arguments: str) -> list[str]:
    """Return what runs pytest on a copy: it keeps no cache, and nothing runs side by side."""
    command = [sys.executable, "-m", "pytest", "-q", "--color=no"]
    # Profile and import check are in a plugin.
    command += ["-p", "tests.mutations.profile", "--hypothesis-profile=mutations"]
    return [*command, "-p", "no:cacheprovider", "-p", "no:xdist", *arguments]


def environment(tree: Path, temporary: str) -> dict[str, str]:
    """Return the environment in which programs, and those that they start, import the copy."""
    # What is installed in editable mode comes after PYTHONPATH.
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tree), str(tree / "client")]),
        "TMPDIR": temporary,
    }


@contextlib.contextmanager
def _started(command: list[str], tree: Path, *, compiling: bool) -> Iterator[subprocess.Popen[str]]:
    with tempfile.TemporaryDirectory(dir=tree.parent, ignore_cleanup_errors=True) as temporary:
        variables = environment(tree, temporary)
        if not compiling:
            variables["PYTHONDONTWRITEBYTECODE"] = "1"
        process = subprocess.Popen(
            command,
            cwd=tree,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        with started(process):
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(process.pid, resource.RLIMIT_DATA, (MAX_BYTES, MAX_BYTES))
            yield process


@contextlib.contextmanager
def started(process: subprocess.Popen[str]) -> Iterator[None]:
    """End a process, and all of the session that was made for it, after the context or before."""
    _running.add(process)
    try:
        if _broken_off:
            raise RuntimeError("broken off")
        yield
    finally:
        _running.discard(process)
        _end_group(process.pid)
        process.wait()


def end_all() -> None:
    """End what runs, and let nothing else begin; the threads that wait for it go on."""
    global _broken_off
    _broken_off = True
    for process in list(_running):
        _end_group(process.pid)


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

"""Throw-away copies of the project, and how to run programs of theirs."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
"""Of the checkout."""

PARTS = ("uuidd", "client", "tests", "systemd", "pyproject.toml")


@contextlib.contextmanager
def unbroken() -> Iterator[Path]:
    """Give a copy of the checkout, without what is compiled of it."""
    with _folder() as tree:
        for part in PARTS:
            if (ROOT / part).is_dir():
                leave = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / part, tree / part, ignore=leave)
            else:
                shutil.copy2(ROOT / part, tree / part)
        yield tree


@contextlib.contextmanager
def copied(origin: Path) -> Iterator[Path]:
    """Give a copy of a copy, with what was compiled of it: so each run needs not compile all."""
    with _folder() as tree:
        shutil.copytree(origin, tree, dirs_exist_ok=True)
        yield tree


def environment(tree: Path) -> dict[str, str]:
    """Give the environment in which programs, and those that they start, import the copy."""
    # What is installed in editable mode comes after PYTHONPATH.
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tree), str(tree / "client")]),
        "TMPDIR": str(tree.parent / "tmp"),
    }


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    # In memory where that can be: it is the tests that are tried, not a busy disk.
    shm = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(
        prefix="mutation-", dir=shm, ignore_cleanup_errors=True
    ) as name:
        (Path(name) / "tmp").mkdir()
        (Path(name) / "tree").mkdir()
        yield Path(name) / "tree"

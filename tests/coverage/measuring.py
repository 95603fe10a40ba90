"""Run tests under coverage, and tell which file of the checkout a measured file is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest_uuidd
import uuidd
import uuidd_client

TOP = Path(__file__).parents[2]
"""Of the checkout."""

SETTINGS = TOP / "pyproject.toml"
"""Where coverage finds what it measures."""

PACKAGES = {
    "uuidd": uuidd,
    "client/uuidd_client": uuidd_client,
    "client/pytest_uuidd": pytest_uuidd,
}
"""By their folders in the checkout. They may be installed elsewhere."""


def run_tests(
    arguments: Sequence[str],
    folder: Path,
    *,
    jobs: int,
    measured: bool = True,
    variables: Mapping[str, str] | None = None,
    quiet: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run pytest; what is *measured* is in files of *folder* whose names begin with "data"."""
    command = [sys.executable, *(["-m", "coverage", "run"] if measured else []), "-m", "pytest"]
    command += ["-q", "-n", str(jobs), "--dist", "loadfile", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(
        command,
        cwd=TOP,
        env={**os.environ, "COVERAGE_FILE": f"{folder}/data", **(variables or {})},
        capture_output=quiet,
        text=True,
        check=False,
    )


def in_checkout(measured: Path) -> str | None:
    """Return the path in the checkout of a file of an imported package; None for another file."""
    for place, package in PACKAGES.items():
        base = Path(package.__file__ or "").parent
        if base in measured.parents:
            return f"{place}/{measured.relative_to(base)}"
    return None

"""The C programs of the benchmarks, compiled when they are needed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.benchmarks.place import Missing, Place


def compiled(place: Place, name: str, *, library: str | None = None, package: str = "") -> Path:
    """Give the path of the program made from ``<name>.c``, and from *library* if it needs one.

    Raises Missing without a compiler, or without the library, which is in Debian's *package*.
    """
    program = place.folder / name
    if program.exists():
        return program
    cc = shutil.which("cc")
    if cc is None:
        raise Missing("it needs a C compiler, cc (Debian: gcc, libc6-dev)")
    source = Path(__file__).with_name(f"{name}.c")
    link = [f"-l{library}"] if library else []
    done = subprocess.run(
        [cc, "-O2", "-Wall", "-Wextra", "-o", program, source, *link],
        capture_output=True,
        text=True,
        timeout=60,
    )
    if done.returncode:
        first = (done.stderr.strip() or "the compiler failed").splitlines()[0]
        if library:
            raise Missing(f"it needs lib{library} with its header (Debian: {package}): {first}")
        raise RuntimeError(f"{source} does not compile: {first}")
    return program

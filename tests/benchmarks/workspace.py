"""Where benchmarks run: checkouts, a temporary folder, compiled C, and mounts of their own."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.rows import Missing

CLONE_NEWNS = 0x00020000
"""From <linux/sched.h>; os.unshare came with Python 3.12."""

SPARE_DESCRIPTORS = 64
"""What a process opens besides connections."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout of uuidd at *root*, and the interpreter that has it installed."""

    root: Path
    python: Path

    def command(self, *arguments: str | Path) -> list[str]:
        """Return the command that runs its interpreter, which imports only what is installed."""
        # Without -P it would import the checkout that is the working directory.
        return [str(self.python), "-P", *map(str, arguments)]


THIS = Checkout(Path(__file__).parents[2], Path(sys.executable))


@dataclass(frozen=True, slots=True)
class Workspace:
    """A temporary *folder* for all files, and the *environment* of the programs that are run.

    With an *other* checkout, ours is compared with that, and with nothing else.
    """

    folder: Path
    environment: dict[str, str]
    other: Checkout | None = None


def checkout(root: Path) -> Checkout:
    """Return the checkout at *root* with the interpreter of its ``.venv``.

    Raises Missing when there is none, or when it imports uuidd from elsewhere.
    """
    root = root.resolve()
    found = Checkout(root, root / ".venv" / "bin" / "python")
    _must_be_installed(found)
    return found


def _must_be_installed(checkout: Checkout) -> None:
    install = f"run: cd {checkout.root} && python3 -m venv .venv && .venv/bin/pip install -e ."
    if not checkout.python.exists():
        raise Missing(f"there is no {checkout.python}; {install}")
    show = "import uuidd, uuidd_client; print(uuidd.__file__); print(uuidd_client.__file__)"
    done = subprocess.run(
        checkout.command("-c", show), capture_output=True, text=True, timeout=60, cwd="/"
    )
    for path in done.stdout.splitlines() or ["nowhere"]:
        if not Path(path).is_relative_to(checkout.root):
            raise Missing(f"{checkout.python} imports uuidd from {path}; {install}")


@contextlib.contextmanager
def workspace(other: Checkout | None = None) -> Iterator[Workspace]:
    """Make a workspace, and remove it. Each module is compiled once, as after an installation."""
    with tempfile.TemporaryDirectory(prefix="uuidd-benchmarks-") as name:
        # Beyond it, files have the modes that their makers choose.
        Path(name).chmod(0o711)
        environment = dict(os.environ)
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["PYTHONPYCACHEPREFIX"] = os.path.join(name, "pycache")
        yield Workspace(Path(name), environment, other)


def allow_connections(count: int) -> None:
    """Let this process and its children have *count* connections each. Raises Missing if not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + SPARE_DESCRIPTORS
    if hard != resource.RLIM_INFINITY and wanted > hard:
        raise Missing(f"it needs {wanted:,} open files; ulimit -n allows {hard:,} at most")
    if soft != resource.RLIM_INFINITY and wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def compiled(space: Workspace, name: str, *, library: str | None = None, package: str = "") -> Path:
    """Return the path of the program made from ``<name>.c``, and from *library* if it needs one.

    Raises Missing without a compiler, or without the library, which is in Debian's *package*.
    """
    program = space.folder / name
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


@contextlib.contextmanager
def private(*folders: Path) -> Iterator[None]:
    """Put an empty file system over each folder that only this process and its children see.

    Raises Missing without root.
    """
    if os.geteuid() != 0:
        raise Missing("it needs root, for a mount namespace of its own")
    _leave_mounts_of_others()
    with contextlib.ExitStack() as undo:
        for folder in folders:
            if not folder.exists():
                folder.mkdir()
                undo.callback(folder.rmdir)
            subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True, timeout=10)
            undo.callback(_unmount, folder)
        yield


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", "-l", folder], check=True, timeout=10)


def _leave_mounts_of_others() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS):
        cause = os.strerror(ctypes.get_errno())
        raise Missing(f"it needs a mount namespace of its own: {cause}")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True, timeout=10)

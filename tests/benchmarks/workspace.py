"""Where benchmarks run: checkouts, a temporary folder, compiled C, and mounts of their own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.rows import Missing
from tests.tools import in_private_mounts

LIBUUID_SOCKET = Path("/run/uuidd/request")
LIBUUID_STATE = Path("/var/lib/libuuid")
"""Both paths are compiled into libuuid."""


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
    install = f"run: cd {root} && python3 -m venv .venv && .venv/bin/pip install -e ."
    if not found.python.exists():
        raise Missing(f"there is no {found.python}; {install}")
    show = "import uuidd, uuidd_client; print(uuidd.__file__); print(uuidd_client.__file__)"
    done = subprocess.run(
        found.command("-c", show), capture_output=True, text=True, timeout=60, cwd="/"
    )
    for path in done.stdout.splitlines() or ["nowhere"]:
        if not Path(path).is_relative_to(root):
            raise Missing(f"{found.python} imports uuidd from {path}; {install}")
    return found


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


def compiled(space: Workspace, name: str) -> Path:
    """Return the path of the program made from ``<name>.c``. Raises Missing without a compiler."""
    program = space.folder / name
    if not program.exists():
        source = Path(__file__).with_name(f"{name}.c")
        command = ["cc", "-O2", "-Wall", "-Wextra", "-o", str(program), str(source)]
        try:
            subprocess.run(command, check=True, timeout=60)
        except FileNotFoundError:
            raise Missing("it needs a C compiler, cc (Debian: gcc, libc6-dev)") from None
    return program


def run_in_private_mounts(module: str) -> None:
    """As root, run *module* from its start again where libuuid's folders are its own."""
    if os.geteuid() == 0 and not os.path.ismount(LIBUUID_STATE):
        command = in_private_mounts(sys.executable, "-m", module, *sys.argv[1:])
        os.execv(command[0], command)  # noqa: S606  (the same program)

"""The files of the machine: this Python, the project as pip installs it, and busybox."""

from __future__ import annotations

import compileall
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent

LEFT_OUT = ("test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "config-*")
"""Parts of the standard library that nothing here imports; and packages that pip installed."""


def written(project: Path, folder: Path) -> Path:
    """Write an archive for the kernel, with *project*, into *folder*, and return its path.

    Needs busybox and cpio.
    """
    root = folder / "root"
    (root / "bin").mkdir(parents=True)
    shutil.copy(shutil.which("busybox") or "busybox", root / "bin" / "busybox")
    _add_python(root)
    site = root / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--target", site, project], check=True
    )
    _add_libraries(site.rglob("*.so"), root)
    compileall.compile_dir(site, quiet=2)
    shutil.copy(HERE / "guest.py", root / "guest.py")
    shutil.copy(HERE / "init.sh", root / "init")
    (root / "init").chmod(0o755)
    archive = folder / "initramfs"
    names = b"\0".join(os.fsencode(path.relative_to(root)) for path in sorted(root.rglob("*")))
    with archive.open("wb") as out:
        subprocess.run(
            ["cpio", "-0", "-o", "--quiet", "-H", "newc"],
            input=names,
            cwd=root,
            stdout=out,
            check=True,
        )
    return archive


def _add_python(root: Path) -> None:
    """Add this interpreter and its standard library, at the same paths, and /bin/python."""
    python = Path(os.path.realpath(sys.executable))
    library = Path(sysconfig.get_path("stdlib"))
    kept = root / library.relative_to("/")
    shutil.copytree(
        library,
        kept,
        ignore=shutil.ignore_patterns(*LEFT_OUT, "site-packages", "__pycache__"),
        symlinks=True,
    )
    compileall.compile_dir(kept, quiet=2)
    _add(python, root)
    _add_libraries([python, *kept.rglob("*.so")], root)
    (root / "bin" / "python").symlink_to(python)


def _add_libraries(binaries: Iterable[Path], root: Path) -> None:
    """Add the shared libraries that *binaries* need, as the linker of this system finds them."""
    found = subprocess.run(["ldd", *binaries], stdout=subprocess.PIPE, text=True, check=True).stdout
    for path in sorted({word for word in found.split() if word.startswith("/")} - {":"}):
        library = Path(path.rstrip(":"))
        if not library.is_relative_to(root):
            _add(library, root)


def _add(path: Path, root: Path) -> None:
    there = root / path.relative_to("/")
    if not there.exists():
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, there)

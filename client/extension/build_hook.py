"""The part of the build that compiles the client's C extension, and names the commit.

Hatchling calls it.

A wheel contains the extension if it can be compiled here, and then it is for this version of Python
and this platform. Otherwise it is for any, and a line of the build's output says why. An editable
installation has the extension beside the client's modules.

The environment variable UUIDD_EXTENSION decides: with ``off`` nothing is compiled, and with
``require`` the build fails if the extension cannot be compiled. CC, CFLAGS and LDFLAGS are the
compiler and more of its options.

The version of an installation has the commit of the checkout as its local part, such as
``0.2.0+g1a2b3c4d5e6f``, with ``.dirty`` if a file was changed since. UUIDD_COMMIT names it where
there is no git; if it is empty, the version has no such part. An sdist keeps its version.
"""

from __future__ import annotations

import os
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "uuidd_client"
NAME = f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
"""The file of the extension, which is for this very Python."""

SOURCES = "client/extension"
"""The folder of the C files, in the project."""

VERSION = "uuidd/version"
"""The file that has the version of an installation, in the project and in the wheel."""

# Not those that Python was compiled with: another compiler may not know them. No "-Werror", because
# a newer compiler may warn of more.
OPTIONS = ("-std=gnu11", "-O2", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden")


class CannotCompile(Exception):
    """The extension cannot be compiled here; one line that says why."""


class ExtensionHook(BuildHookInterface[BuilderConfig]):
    """Adds the extension to a wheel, or puts it in the place of an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the extension, before hatchling collects the files of the wheel.

        *version* is the sort of wheel: "standard" or "editable".
        """
        wanted = os.environ.get("UUIDD_EXTENSION") or None
        if wanted not in ("off", "require", None):
            self.app.abort(
                f"UUIDD_EXTENSION is {wanted!r}; it must be 'off', 'require', or not set"
            )
        root = Path(self.root)
        self._folder = tempfile.TemporaryDirectory(prefix="uuidd-build-")
        # The daemon does not ask git, and importlib.metadata takes long to import.
        if version == "editable":
            # The sources may change after this.
            mark = "." if "+" in self.metadata.version else "+"
            Path(root, VERSION).write_text(f"{self.metadata.version}{mark}editable")
        else:
            named = Path(self._folder.name, "version")
            named.write_text(self.metadata.version)
            build_data["force_include"][str(named)] = VERSION
        built = None
        if wanted != "off":
            try:
                built = compiled(root, Path(self._folder.name), release(root))
            except CannotCompile as error:
                if wanted == "require":
                    self._folder.cleanup()
                    self.app.abort(
                        f"the C extension of uuidd_client cannot be compiled ({error}), but"
                        " UUIDD_EXTENSION is 'require': install a C compiler and the headers of"
                        " Python (on Debian: gcc, libc6-dev, python3-dev), or unset UUIDD_EXTENSION"
                    )
                self.app.display_warning(
                    f"uuidd is built without its optional C extension, because it cannot be"
                    f" compiled ({error}): uuidd_client makes ids in Python, which takes longer"
                )
        if version == "editable":
            put_in_place(root, built)
        elif built is not None:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            build_data["force_include"][str(built)] = f"{PACKAGE}/{NAME}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled, once the wheel is written."""
        self._folder.cleanup()


def version(root: Path = Path(__file__).parents[2]) -> str:
    """Return the version of the project at *root*, with its commit if that is known."""
    commit = os.environ.get("UUIDD_COMMIT")
    if commit is None:
        commit = _commit(root)
    return f"{release(root)}+g{commit}" if commit else release(root)


def release(root: Path) -> str:
    """Return the version that is written in the sources of the project at *root*."""
    return str(runpy.run_path(str(root / "uuidd" / "__init__.py"))["__version__"])


def _commit(root: Path) -> str:
    """Return the commit of the checkout at *root*; "" if it is none, or there is no git."""
    if not Path(root, ".git").exists():
        # A folder above it may be a checkout of something else.
        return ""
    command = ["git", "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=.dirty"]
    try:
        done = subprocess.run(command, cwd=root, stdin=subprocess.DEVNULL, capture_output=True)
    except OSError:
        return ""
    return done.stdout.decode("ascii").strip()


def compiled(root: Path, folder: Path, version: str) -> Path:
    """Compile the extension of the project at *root* into *folder*, and return its file.

    Raises CannotCompile.
    """
    if sys.implementation.name != "cpython":
        raise CannotCompile(f"it is for CPython, and this is {sys.implementation.name}")
    built = folder / NAME
    files = sorted(path for path in Path(root, SOURCES).iterdir() if path.suffix in (".c", ".h"))
    digest = sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()
    includes = dict.fromkeys(sysconfig.get_path(name) for name in ("include", "platinclude"))
    command = [
        *_compiler(),
        *OPTIONS,
        *(f"-I{path}" for path in includes),
        f'-DUUIDD_VERSION="{version}"',
        f'-DUUIDD_SOURCE="{digest}"',
        *shlex.split(os.environ.get("CFLAGS", "")),
        *(f"{SOURCES}/{path.name}" for path in files if path.suffix == ".c"),
        *("-o", str(built)),
        *shlex.split(os.environ.get("LDFLAGS", "")),
    ]
    try:
        done = subprocess.run(
            command,
            # So that the file does not depend on where the project is.
            cwd=root,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise CannotCompile(f"{command[0]}: {error.strerror}") from error
    if done.returncode:
        told = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in told if "error:" in line] or told
        raise CannotCompile(errors[0] if errors else f"{command[0]} failed")
    return built


def place(root: Path) -> Path:
    """Return where an editable installation has the extension."""
    return Path(root, "client", PACKAGE, NAME)


def put_in_place(root: Path, built: Path | None) -> None:
    """Put the extension, or none, where an editable installation may have an older one."""
    older = place(root)
    if built is None:
        older.unlink(missing_ok=True)
        return
    # Not written to in place, because running programs use the older one.
    beside = older.with_name(f".{older.name}.new")
    shutil.copy(built, beside)
    beside.replace(older)


def _compiler() -> list[str]:
    """Return the words that start the C compiler: $CC, Python's own, or any."""
    given = shlex.split(os.environ.get("CC", ""))
    if given:
        return given
    pythons = shlex.split(sysconfig.get_config_var("CC") or "")
    for words in (pythons, ["cc"], ["gcc"], ["clang"]):
        if words and shutil.which(words[0]):
            return words
    raise CannotCompile("there is no C compiler")

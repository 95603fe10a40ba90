"""``uuidd install-units``: installs files for systemd, and links, or removes them again."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import uuidd
from uuidd.output import Parser
from uuidd.refused import Refused

COMMAND = "install-units"

BIN = "/opt/uuidd/bin/uuidd"
"""The program that the unit names; it is replaced by the path of this uuidd."""

HIDDEN = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")  # noqa: S108  (only compared)
"""Folders that the service cannot see (ProtectHome=, PrivateTmp=)."""

FILES = {
    "uuidd.service": "etc/systemd/system/uuidd.service",
    "uuidd.socket": "etc/systemd/system/uuidd.socket",
    "uuidd-keep.path": "etc/systemd/system/uuidd-keep.path",
    "uuidd-keep.service": "etc/systemd/system/uuidd-keep.service",
    "uuidd-metrics.service": "etc/systemd/system/uuidd-metrics.service",
    "sysusers.conf": "etc/sysusers.d/uuidd.conf",
    "tmpfiles.conf": "etc/tmpfiles.d/uuidd.conf",
    "udev.rules": "etc/udev/rules.d/70-uuidd.rules",
    "default": "etc/default/uuidd",
}
"""The place of each file. systemd prefers /etc to the folders of packages, so this uuidd replaces
that of util-linux until the files are removed."""

DROP_INS = {
    "coordinator.conf": "etc/systemd/system/uuidd.service.d/coordinator.conf",
    "kernel-log.conf": "etc/systemd/system/uuidd.service.d/kernel-log.conf",
}
"""The place of each drop-in. The first lets the service reach the engine of a fleet. The second
passes the kernel's log by OpenFile=."""

OPEN_FILE = 253
"""The first version of systemd that knows OpenFile=."""

LINKS = (
    "bin/uuidd",
    "bin/uuidctl",
    "share/man/man8/uuidd.8",
    "share/man/man8/uuidd-workers.8",
    "share/man/man1/uuidctl.1",
    "share/bash-completion/completions/uuidd",
    "share/bash-completion/completions/uuidctl",
    "share/zsh/site-functions/_uuidd",
    "share/zsh/site-functions/_uuidctl",
    "share/fish/vendor_completions.d/uuidd.fish",
    "share/fish/vendor_completions.d/uuidctl.fish",
)
"""Links below /usr/local, where shells and man(1) look before /usr. Each leads to the same path in
the environment that uuidd is installed in."""

KEPT = "default"
"""The file that belongs to the administrator once it exists."""

PLACES = {**FILES, **DROP_INS}

NEXT = """Next:
  systemd-sysusers && systemd-tmpfiles --create uuidd.conf
  systemctl daemon-reload
  systemctl enable uuidd.socket uuidd-keep.path && systemctl stop uuidd.service uuidd.socket
  systemctl start uuidd.socket uuidd.service uuidd-keep.path"""

NEXT_AGAIN = """Next:
  systemctl daemon-reload
  systemctl restart uuidd.service
  systemctl try-restart uuidd-metrics.service"""

WANTED = "etc/systemd/system/multi-user.target.wants"
"""Where ``systemctl enable`` makes the links of OURS_ALONE."""

OURS_ALONE = ("uuidd-keep.path", "uuidd-metrics.service")
"""Units that util-linux's package does not have, and that can be enabled."""

LASTING = ("uuidd.socket", "uuidd-keep.path", "sysusers.conf", "tmpfiles.conf")
"""Those of FILES that a restart of the service does not apply."""

# A pattern, because the command fails at a unit that was never started, and has no file any more.
NEXT_UNDONE = """Next:
  systemctl stop uuidd-keep.path 'uuidd-metrics*' uuidd.service uuidd.socket
  systemctl daemon-reload
  systemctl start uuidd.socket    # util-linux's, if it is installed"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of this command's options."""
    made = Parser(
        prog=f"uuidd {COMMAND}",
        description="Install uuidd's units for systemd and its files for sysusers.d, tmpfiles.d,"
        " udev and /etc/default, and link its commands, manual pages and completion into"
        " /usr/local. They take the place of util-linux's uuidd until --undo removes them.",
    )
    made.add_argument(
        "--prefix",
        type=Path,
        default=Path("/"),
        metavar="DIR",
        help="install below this folder (default: /)",
    )
    made.add_argument(
        "--coordinator",
        action="store_true",
        help="also install a drop-in that lets the service reach the network, for --worker URL",
    )
    made.add_argument(
        "--undo",
        action="store_true",
        help="remove what has not been changed since it was installed, and put back what was there"
        " before; the state and the user stay",
    )
    return made


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    given = parser().parse_args(argv)
    if given.undo:
        lines, then = undo(given.prefix), NEXT_UNDONE
    elif given.prefix == Path("/") and not systemd_version():
        raise Refused(
            "there is no systemd here, for which this installs units; start the daemon with: uuidd"
            " --user nobody (with --prefix, units are installed for another system)"
        )
    else:
        then = NEXT_AGAIN if _is_installed(given.prefix) else NEXT
        lines = install(given.prefix, coordinator=given.coordinator, systemd=systemd_version())
    print("\n".join([*lines, then]))
    return 0


def _is_installed(prefix: Path) -> bool:
    """Whether our units are enabled, and a restart of the service is all that they need."""
    return (prefix / WANTED / "uuidd-keep.path").is_symlink() and all(
        _is_ours(name, prefix / FILES[name]) for name in LASTING
    )


def systemd_version() -> int:
    """Return the version of systemd on this host, 0 if there is none."""
    try:
        shown = subprocess.run(
            ["systemctl", "--version"],  # noqa: S607 - the one that the administrator would use
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return 0
    found = re.match(r"systemd (\d+)", shown)
    return int(found[1]) if found else 0


def install(
    prefix: Path, *, program: Path | None = None, coordinator: bool = False, systemd: int = 0
) -> list[str]:
    """Install the files below *prefix*, and return a line on each. Raises Refused.

    *program* is the uuidd that the service runs, by default this one. With *coordinator* the
    service may use the network. *systemd* is the version that will read them.
    """
    program = program or Path(sys.prefix) / "bin" / "uuidd"
    if not re.fullmatch(r"[A-Za-z0-9/._+-]+", os.fspath(program)):
        raise Refused(
            f"this uuidd is {os.fspath(program)!r}, a path with characters that have a meaning in a"
            " unit (systemd.unit(5)); install it at a path of letters, digits and / . _ + -, such"
            " as /opt/uuidd"
        )
    # That of a virtual environment is a link to another, such as one of pyenv.
    python = Path(os.path.realpath(program.parent / "python"))
    elsewhere = "install it elsewhere, for example in a virtual environment at /opt/uuidd"
    another = f"make {program.parents[1]} with another Python, such as /usr/bin/python3"
    for what, path, way in (
        ("this uuidd", program, elsewhere),
        ("the Python of this uuidd", python, another),
    ):
        if any(path.is_relative_to(folder) for folder in HIDDEN):
            raise Refused(
                f"{what} is {path}, which its service cannot see (ProtectHome=, PrivateTmp=); {way}"
            )
    wanted = list(FILES)
    if systemd >= OPEN_FILE:
        wanted.append("kernel-log.conf")
    if coordinator:
        wanted.append("coordinator.conf")
    paths = {name: prefix / PLACES[name] for name in wanted}
    with contextlib.ExitStack() as left:
        # All of them before the first is put in place: on a full disk none is.
        for name, path in paths.items():
            with _changing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                left.callback(_discard, _new(path))
                _new(path).write_text(_text(name).replace(BIN, os.fspath(program)))
                # Whatever the umask: the daemon reads its defaults as a user of its own.
                _new(path).chmod(0o644)
        files = [_put(name, path) for name, path in paths.items()]
    return [*files, *link(prefix, program.parents[1])]


def undo(prefix: Path) -> list[str]:
    """Remove the links and the files below *prefix* that are still as they were installed."""
    return [*_take(prefix), *unlink(prefix)]


@contextlib.contextmanager
def _changing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        way = "; run the command as root" if isinstance(error, PermissionError) else ""
        raise Refused(f"{path} cannot be changed: {error.strerror}{way}") from error


def _put(name: str, path: Path) -> str:
    if name == KEPT and path.exists():
        return f"kept {path}, which exists already"
    said = f"installed {path}"
    with _changing(path):
        if os.path.lexists(path) and not _is_ours(name, path):
            if os.path.lexists(_saved(path)):
                # Of a changed version of ours nothing has to be kept, but of what it replaced.
                said += f"; {_saved(path)} is still the file from before uuidd"
            else:
                path.rename(_saved(path))
                said += f"; the earlier file is now {_saved(path)}"
        _new(path).rename(path)
    return said


def _take(prefix: Path) -> Iterator[str]:
    for name, place in PLACES.items():
        path = prefix / place
        with _changing(path):
            if not os.path.lexists(path):
                if name in FILES:
                    yield f"{path} does not exist"
            elif not _is_ours(name, path):
                yield f"kept {path}, which was changed"
            else:
                path.unlink()
                if name in OURS_ALONE:
                    (prefix / WANTED / name).unlink(missing_ok=True)
                if os.path.lexists(_saved(path)):
                    _saved(path).rename(path)
                    yield f"removed {path}, and restored the earlier file"
                else:
                    yield f"removed {path}"
    ours = {prefix / place for place in DROP_INS.values()}
    for name in ("uuidd.service", "uuidd.socket"):
        folder = prefix / f"{FILES[name]}.d"
        for path in sorted(set(folder.glob("*.conf")) - ours):
            yield f"kept {path}, a drop-in of yours, which util-linux's {name} would obey too"


def _new(path: Path) -> Path:
    """Where the new file is until it is put in place."""
    return path.with_name(path.name + ".new")


def _discard(path: Path) -> None:
    # On a read-only disk this fails even if there is no such file, after a line that says so.
    with contextlib.suppress(OSError):
        path.unlink()


def _saved(path: Path) -> Path:
    """Where a file of the administrator is while ours is in its place."""
    return path.with_name(path.name + ".before-uuidd")


def _is_ours(name: str, path: Path) -> bool:
    """Whether a file is there as this command installs it, whatever program it names."""

    def without_program(text: str) -> str:
        return re.sub(r"(?m)^ExecStart=/\S+ --socket-activation .*", "", text)

    if path.is_symlink() or not path.exists():
        return False
    found = path.read_text(errors="replace")
    return without_program(found) == without_program(_text(name))


def _text(name: str) -> str:
    package = Path(uuidd.__file__).parent
    # A wheel has the files beside the code, a checkout at its top.
    folders = (package / "units", package.parent / "systemd")
    for folder in folders:
        if (folder / name).is_file():
            return (folder / name).read_text()
    raise Refused(
        f"this uuidd has no {name} to install, neither in {folders[0]} nor beside it; the Debian"
        " package has installed its units already"
    )


def link(prefix: Path, environment: Path) -> Iterator[str]:
    """Link to what *environment* has, and yield a line on each link. Raises Refused.

    A link to an earlier environment is replaced. Anything else is left, with a line that says so.
    """
    for name in LINKS:
        path, target = prefix / "usr/local" / name, environment / name
        if not target.exists() or (path.exists() and path.samefile(target)):
            # An editable installation has no manual pages; one in /usr/local needs no links.
            continue
        if os.path.lexists(path) and not _is_our_link(path, name):
            yield f"kept {path}, which is not a link to an environment of uuidd"
            continue
        with _changing(path):
            path.unlink(missing_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(target)
        yield f"linked {path} to {target}"


def unlink(prefix: Path) -> Iterator[str]:
    """Remove the links, and yield a line on each. Raises Refused."""
    for name in LINKS:
        path = prefix / "usr/local" / name
        if _is_our_link(path, name):
            with _changing(path):
                path.unlink()
            yield f"removed {path}"


def _is_our_link(path: Path, name: str) -> bool:
    """Whether *path* is a link to the same path in some environment, which may be gone."""
    return path.is_symlink() and os.readlink(path).endswith(f"/{name}")

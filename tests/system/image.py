"""The image, built by buildah on a base made by mmdebstrap, and run: no registry, no service.

All of it lies in one temporary folder, which goes away with the context.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.rig import PATIENCE, connected, until
from tests.tools import need, output, remove
from uuidd.server.peers import peer_pid
from uuidd_client import Client

PROJECT = Path(__file__).parents[2]

SOCKETS, STATE = "/run/uuidd", "/var/lib/uuidd"
"""The image's volumes."""

BUILDING = 300.0
"""Seconds after which a step of the build has failed a test."""

LEFT_OUT = ("doc", "locale", "man")
LESS = 'rm -r "$1"/usr/share/perl "$1"/usr/lib/*/perl "$1"/usr/lib/*/gconv'
"""What nothing here needs: buildah copies the base several times. Debian's setup needs Perl."""

PACKAGES = "gcc libc6-dev libpython3-dev"
"""What compiles the extension on this base."""

UNPRIVILEGED_PID_1 = """
root=$1 user=$2 sockets=$3 state=$4; shift 4
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount --bind "$sockets" "$root/run/uuidd"
mount --bind "$state" "$root/var/lib/uuidd"
exec chroot --userspec="$user" "$root" env -i "$@"
"""


EXTRAS = ("etcd", "zookeeper", "postgresql")
"""Those that the Dockerfile installs."""


class Image:
    """The image of this project's Dockerfile, and containers of it."""

    def __init__(self) -> None:
        for program in ("buildah", "mmdebstrap", "unshare", "chroot"):
            need(program)
        # Some hundred MB: too much for a /tmp in memory.
        self.folder = Path(tempfile.mkdtemp(prefix="uuidd-image-", dir="/var/tmp"))

    def __enter__(self) -> Image:
        try:
            base = self._base()
            self._build(base, self._wheels())
            self.config = self._config()
            self._container = self._buildah("from", "--pull-never", "localhost/uuidd").strip()
            # This buildah lays a volume of its own over one of ours when there are two.
            volumes = [word for path in (SOCKETS, STATE) for word in ("--volume", f"{path}-")]
            self._buildah("config", *volumes, self._container)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for command in ("umount", "rm"):
            with contextlib.suppress(AssertionError, subprocess.SubprocessError):
                self._buildah(command, "--all")
        remove(self.folder)

    @property
    def root(self) -> Path:
        """The files of the container."""
        return Path(self._buildah("mount", self._container).strip())

    @property
    def command(self) -> list[str]:
        """What the image runs."""
        return [*self.config["Entrypoint"], *(self.config.get("Cmd") or [])]

    def run(
        self,
        volumes: Volumes,
        *command: str,
        options: Sequence[str] = (),
        read_only_sockets: bool = False,
    ) -> list[str]:
        """Return the words that run a command in the container, with its user if none is chosen."""
        sockets = f"{volumes.sockets}:{SOCKETS}{':ro' * read_only_sockets}"
        return [
            # What buildah leaves behind when it is killed ends with its namespace.
            *("unshare", "--pid", "--fork", "--kill-child", "--mount-proc"),
            *self._words("run", "--isolation", "chroot", *options),
            *("--volume", sockets, "--volume", f"{volumes.state}:{STATE}"),
            *(self._container, "--", *command),
        ]

    def as_pid_1(self, volumes: Volumes, *command: str) -> list[str]:
        """Return the words that run a command as its user, as pid 1, on a read-only root."""
        return [
            *("unshare", "--mount", "--propagation=private", "--pid", "--fork"),
            *("sh", "-euc", UNPRIVILEGED_PID_1, "sh", str(self.root), self.config["User"]),
            *(str(volumes.sockets), str(volumes.state), *self.config["Env"], *command),
        ]

    def _words(self, *arguments: str) -> list[str]:
        storage = [f"--root={self.folder / 'storage'}", f"--runroot={self.folder / 'run'}"]
        # Its own temporary files stay where they are when it is killed.
        temporary = ["env", f"TMPDIR={self.folder}"]
        return [*temporary, need("buildah"), *storage, "--storage-driver=vfs", *arguments]

    def _buildah(self, *arguments: str) -> str:
        return output(*self._words(*arguments), timeout=BUILDING)

    def _base(self) -> str:
        """Make an image of a plain Debian with Python."""
        container = self._buildah("from", "scratch").strip()
        root = Path(self._buildah("mount", container).strip())
        output(
            *(need("mmdebstrap"), "--quiet", "--variant=essential", "--dpkgopt=force-unsafe-io"),
            *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in LEFT_OUT),
            *(f"--customize-hook={LESS}", "--include=apt,python3,python3-venv", "bookworm", root),
            timeout=BUILDING,
        )
        self.python = os.readlink(root / "usr/bin/python3").removeprefix("python")
        self._buildah("umount", container)
        self._buildah("commit", "--quiet", "--rm", container, "localhost/base")
        return "localhost/base"

    def _wheels(self) -> Path:
        """Have all wheels that the build needs, by the settings that pip has here."""
        folder = self.folder / "wheels"
        project = tomllib.loads((PROJECT / "pyproject.toml").read_text())
        extras = project["project"]["optional-dependencies"]
        output(
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
            *("--only-binary=:all:", f"--python-version={self.python}", f"--dest={folder}"),
            *(*project["build-system"]["requires"], *project["project"]["dependencies"]),
            *(name for extra in EXTRAS for name in extras[extra]),
            timeout=BUILDING,
        )
        return folder

    def _build(self, base: str, wheels: Path) -> None:
        self._buildah(
            *("bud", "--quiet", "--isolation=chroot", "--format=docker", "--pull-never"),
            *(f"--volume={wheels}:/given:ro", "--build-arg=PIP_FIND_LINKS=/given"),
            *("--build-arg=PIP_NO_INDEX=1", f"--build-arg=BASE={base}"),
            f"--build-arg=BUILD_PACKAGES={PACKAGES}",
            *("--tag=localhost/uuidd", str(PROJECT)),
        )

    def _config(self) -> dict[str, Any]:
        told = json.loads(self._buildah("inspect", "--type=image", "localhost/uuidd"))
        config: dict[str, Any] = told["Docker"]["config"]
        return config


class Volumes:
    """Folders for the image's volumes; of its user, if *owner* says no other."""

    def __init__(self, folder: Path, owner: int) -> None:
        self.sockets, self.state = folder / "sockets", folder / "state"
        for volume in (self.sockets, self.state):
            volume.mkdir()
            os.chown(volume, owner, owner)

    @property
    def socket(self) -> Path:
        """The daemon's socket, as seen from outside."""
        return self.sockets / "request"

    def client(self) -> Client:
        """Return a client outside of the container."""
        return Client(self.socket, fallback=False)


def end(process: subprocess.Popen[Any]) -> None:
    """End a process that ``Image.run`` has the words of, and all that is in its container."""
    # With the first process of a pid namespace the kernel ends all others. unshare's own
    # --kill-child does not reach one that has changed its user.
    with contextlib.suppress(ProcessLookupError):
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)
    process.kill()
    process.wait(PATIENCE)


class Started:
    """A daemon in a container, which *command* starts, for as long as the context lasts."""

    def __init__(self, volumes: Volumes, command: Sequence[str]) -> None:
        self._volumes = volumes
        self._command = command
        self._log = volumes.state.with_name("log")

    def __enter__(self) -> Started:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log
            )
        try:
            until(lambda: "INFO: started:" in self.log() or self._process.poll() is not None)
            assert self._process.poll() is None, f"the daemon did not start: {self.log()}"
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            end(self._process)

    def log(self) -> str:
        """Return what it has logged."""
        return self._log.read_text()

    @property
    def pid(self) -> int:
        """Its pid outside of the container."""
        with connected(self._volumes.socket) as sock:
            return peer_pid(sock)

    def stop(self, seconds: float = PATIENCE) -> int:
        """Send SIGTERM to the daemon itself, which has to end in that time.

        Returns the exit status of the container.
        """
        end = os.pidfd_open(self.pid)
        try:
            signal.pidfd_send_signal(end, signal.SIGTERM)
            assert select.select([end], [], [], seconds)[0]
        finally:
            os.close(end)
        return self._process.wait(PATIENCE)

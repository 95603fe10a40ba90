"""A Debian that is booted, with systemd, in namespaces of its own; and callers that draw on.

The tree is made by mmdebstrap, or is a copy of the one that $UUIDD_TEST_ROOT names. No network, and
no power over the clock.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self
from uuid import UUID

from tests.judge import assert_no_id_twice, assert_rising
from tests.rig import PATIENCE, Connection, until
from tests.system.holders import Holder
from tests.tools import need, output, remove, run

PROJECT = Path(__file__).parents[2]

PACKAGES = "systemd,systemd-sysv,dbus,python3,python3-venv,uuid-runtime"

UUIDD, UUIDCTL = "/opt/uuidd/bin/uuidd", "/opt/uuidd/bin/uuidctl"
"""Our commands inside."""

BUILDING = 300.0
"""Seconds after which a step that makes or installs packages has failed the tests."""

REPACK = r"""
mkdir -p /opt/deb/DEBIAN && cd /opt/deb
mkdir -p var/lib/libuuid
dpkg-query --listfiles uuid-runtime | while read -r path; do
    [ ! -f "$path" ] || cp --archive --parents "$path" .
done
for name in conffiles preinst prerm postinst postrm; do
    cp /var/lib/dpkg/info/uuid-runtime.$name DEBIAN/$name
done
dpkg-query --status uuid-runtime | sed '/^Status:/d; /^Conffiles:/,/^[^ ]/{/^Conffiles:/d; /^ /d}' \
    >DEBIAN/control
dpkg-deb -Znone --build . /uuid-runtime.deb
"""
"""Makes a package of the installed uuid-runtime, as there is no network inside."""

SOCKET = "/run/uuidd/request"
DROP_INS = "/etc/systemd/system/uuidd.service.d"

UNPRIVILEGED = ("setpriv", "--bounding-set=-sys_time", "--inh-caps=-all")
"""What is run inside could otherwise set the clock of the host."""


class Booted:
    """A booted system, with our wheel in /opt/uuidd, as long as the context lasts.

    It has PACKAGES and *more* packages of a *release* of Debian.
    """

    uuidctl = UUIDCTL

    def __init__(self, release: str = "bookworm", more: str = "") -> None:
        for program in ("mmdebstrap", "systemd-nspawn", "nsenter", "setpriv", "ip"):
            need(program)
        self._release, self._packages = release, ",".join(filter(None, (PACKAGES, more)))
        self._is_other = bool(more)
        # Some hundred MB: too much for a /tmp in memory.
        self._folder = Path(tempfile.mkdtemp(prefix="uuidd-booted-", dir="/var/tmp"))
        self._root = self._folder / "root"
        # Without one of their own, two systems at once would kill each other's services.
        self._cgroup = _own_cgroup() / self._folder.name
        self._nspawn: subprocess.Popen[bytes] | None = None
        self._leader = 0

    def __enter__(self) -> Self:
        try:
            ready = None if self._is_other else os.environ.get("UUIDD_TEST_ROOT")
            if ready:
                output("cp", "--archive", "--reflink=auto", ready, self._root, timeout=BUILDING)
            else:
                self._make()
            self._boot()
            self._install()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._nspawn is not None:
            # It turns the system off, and takes all mounts away with it.
            self._nspawn.terminate()
            try:
                self._nspawn.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._leader or self._nspawn.pid, signal.SIGKILL)
                self._nspawn.kill()
                self._nspawn.wait(PATIENCE)
        if self._cgroup.exists():
            # The kernel may take a moment to forget the dead.
            until(self._cgroup_is_removed)
        remove(self._folder)

    def path(self, inside: str) -> Path:
        """Return the path, from outside, of one inside."""
        return Path(f"/proc/{self._leader}/root") / inside.lstrip("/")

    def connect(self) -> Connection:
        """Return a new connection to the daemon, from outside."""
        return Connection(self.path(SOCKET))

    def words(self, *command: str) -> list[str]:
        """Return the words that run a command inside, as root."""
        spaces = ("-m", "-u", "-i", "-p", "-n", "-C")
        return [*UNPRIVILEGED, "nsenter", f"--target={self._leader}", *spaces, *command]

    def tried(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Return what a command says inside, and its exit status."""
        return run(*self.words(*command), timeout=3 * PATIENCE)

    def run(self, *command: str) -> str:
        """Return what a command that has to succeed says inside."""
        return output(*self.words(*command), timeout=3 * PATIENCE)

    def shown(self, name: str, unit: str = "uuidd.service") -> str:
        """Return a property of a unit, as systemctl shows it."""
        return self.run("systemctl", "show", "--value", f"--property={name}", unit).strip()

    @property
    def pid(self) -> int:
        """The main pid of the service, inside; 0 for none."""
        return int(self.shown("MainPID"))

    def status(self) -> dict[str, Any]:
        """Return what our daemon says of itself."""
        with self.connect() as connection:
            found: dict[str, Any] = connection.call("status")
        return found

    def now(self) -> float:
        """Return a time behind all that the journal has, for ``journal`` to begin at."""
        self.run("journalctl", "--sync")
        return time.time()

    def journal(self, since: float, *options: str) -> str:
        """Return what the journal has of the service since a time."""
        # Not by a cursor: behind one that is of another unit, journalctl skips the first line.
        named = ("--unit=uuidd.service", f"--since=@{since:.6f}", "--output=cat", "--quiet")
        return self.run("journalctl", *named, *options)

    def logged(self, since: float, *texts: str, level: str = "info") -> str:
        """Return what the journal has since a time, from *level* on, once each text is in it."""

        def look() -> str:
            found = self.journal(since, f"--priority={level}")
            return found if all(text in found for text in texts) else ""

        return until(look, instead=lambda: f"{texts} not all in:\n{self.journal(since)}")

    def serves(self) -> bool:
        """Whether our daemon answers a program inside, and all is well."""
        done = self.tried(self.uuidctl, "status", "--check")
        return done.returncode == 0 and "all is well" in done.stdout

    @property
    def is_ours(self) -> bool:
        """Whether the unit that systemd knows is ours."""
        return self.shown("FragmentPath").startswith("/etc/")

    def take_over(self, *undo: str) -> None:
        """Put our service in the place of util-linux's, or undo that, as our command says."""
        _, _, steps = self.run(UUIDD, "install-units", *undo).partition("Next:\n")
        assert steps
        self.run("sh", "-euc", steps)

    def restart(self) -> None:
        """Restart the service."""
        self.run("systemctl", "restart", "uuidd.service")

    def options(self, words: str) -> None:
        """Write options into the service's file, for its next start."""
        self.path("/etc/default/uuidd").write_text(f'UUIDD_OPTIONS="{words}"\n')

    def drop_in(self, lines: str) -> None:
        """Change the service, from its next start on, by a file of an administrator's."""
        path = self.path(DROP_INS) / "test.conf"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"[Service]\n{lines}\n")
        self.run("systemctl", "daemon-reload")

    @contextlib.contextmanager
    def serving(self) -> Iterator[Booted]:
        """Let our service run as it was installed, before the block and after it."""
        if not self.is_ours:
            self.take_over()
        self.run("systemctl", "start", "uuidd.socket", "uuidd.service")
        try:
            yield self
        finally:
            self.options("")
            self.run("rm", "-rf", DROP_INS)
            self.run("systemctl", "daemon-reload")
            self.restart()

    def reboot(self) -> None:
        """Turn the system off and on again."""
        assert self._nspawn is not None
        self.run("systemctl", "poweroff")
        self._nspawn.wait(PATIENCE)
        until(self._cgroup_is_removed)
        self._boot()

    def _make(self) -> None:
        output(
            *(need("mmdebstrap"), "--quiet", "--variant=essential", "--dpkgopt=force-unsafe-io"),
            *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "locale", "man")),
            *(f"--include={self._packages}", self._release, self._root),
            timeout=BUILDING,
        )

    def _boot(self) -> None:
        self._cgroup.mkdir()
        console = self._folder / "console"
        with console.open("wb") as file:
            # In a session of its own, so that Ctrl-C at the tests does not turn it off first.
            self._nspawn = subprocess.Popen(
                [
                    *("sh", "-euc", 'echo $$ >"$0/cgroup.procs"; exec "$@"', str(self._cgroup)),
                    *("systemd-nspawn", "--register=no", "--keep-unit", "--quiet"),
                    *("--console=read-only", f"--directory={self._root}"),
                    *(f"--machine=uuidd-test-{os.getpid()}", "--private-network"),
                    # Reading it needs no right; what would set it is still refused.
                    *("--system-call-filter=adjtimex clock_adjtime", "--boot"),
                ],
                env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        nspawn = self._nspawn
        children = Path(f"/proc/{nspawn.pid}/task/{nspawn.pid}/children")

        def is_up() -> bool:
            assert nspawn.poll() is None, f"no boot:\n{console.read_text(errors='replace')}"
            self._leader = int((children.read_text().split() or ["0"])[0])
            return (
                bool(self._leader)
                and self.tried("systemctl", "is-system-running").stdout == "running\n"
            )

        try:
            until(is_up, 3 * PATIENCE)
        except AssertionError as error:
            raise AssertionError(
                f"{error}:\n{console.read_text(errors='replace')}\n"
                + self.tried("systemctl", "--failed").stdout
            ) from None

    def _cgroup_is_removed(self) -> bool:
        try:
            for folder, _, _ in os.walk(self._cgroup, topdown=False):
                Path(folder).rmdir()
        except OSError:
            return False
        return True

    def _install(self) -> None:
        """Put our wheel, and what it needs, into a virtual environment inside."""
        wheels = self._folder / "wheels"
        pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
        output(*pip, "wheel", "--no-deps", f"--wheel-dir={wheels}", PROJECT, timeout=BUILDING)
        (wheel,) = wheels.iterdir()
        python = os.readlink(self._root / "usr/bin/python3").removeprefix("python")
        chosen = ("--only-binary=:all:", f"--python-version={python}", f"--dest={wheels}")
        output(*pip, "download", *chosen, wheel, timeout=BUILDING)
        shutil.copytree(wheels, self.path("/opt/wheels"))
        self.run("python3", "-m", "venv", "/opt/uuidd")
        quiet = ("--quiet", "--disable-pip-version-check", "--no-index")
        self.run("/opt/uuidd/bin/pip", "install", *quiet, "--find-links=/opt/wheels", "uuidd")


def _own_cgroup() -> Path:
    """Return the folder of this process's cgroup, of version 2."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    [path] = [line.removeprefix("0::/") for line in lines if line.startswith("0::/")]
    # Beside version 1, version 2 is mounted below it.
    [mount, *_] = (
        folder
        for folder in (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
        if (folder / "cgroup.procs").exists()
    )
    return mount / path


LIBUUID_CALLER = """
import select, sys, threading, time, uuid

def draw():
    before = time.monotonic()
    made = uuid.uuid1()
    print(made, int(made.is_safe is uuid.SafeUUID.safe), before, time.monotonic(), flush=True)

# libuuid keeps what it was granted by thread: a new one asks the daemon, an old one seldom does.
while not select.select([sys.stdin], [], [], 0.002)[0]:
    draw()
    thread = threading.Thread(target=draw)
    thread.start()
    thread.join()
"""
"""Draws by Python's own library, inside, until its standard input ends."""


NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
"""A user that cannot write libuuid's clock file: with it, ids would be safe without a daemon."""


class Drawn(NamedTuple):
    """An id of Python's own library: whether it was called safe, when asked for, when given."""

    id: UUID
    safe: bool
    before: float
    after: float


class LibuuidCaller:
    """An unprivileged caller inside that draws by ``uuid.uuid1()`` while the context lasts."""

    def __init__(self, booted: Booted, folder: Path) -> None:
        self._path = folder / "uuid1"
        words = booted.words(*NOBODY, "/usr/bin/python3", "-c", LIBUUID_CALLER)
        with self._path.open("wb") as out:
            self._caller = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=out)

    def __enter__(self) -> LibuuidCaller:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._caller.communicate(timeout=PATIENCE)
        finally:
            self._caller.kill()
        assert self._caller.wait() == 0

    def drawn(self) -> list[Drawn]:
        """Return all that it has drawn."""
        rows = (line.split() for line in self._path.read_text().splitlines())
        return [Drawn(UUID(made), safe == "1", float(a), float(b)) for made, safe, a, b in rows]

    def some(self) -> tuple[float, float]:
        """Wait for a few ids more; return the time from now to the last of them."""
        begin, size = time.monotonic(), self._path.stat().st_size
        until(lambda: self._path.stat().st_size > size + 4096)
        return begin, time.monotonic()


@contextlib.contextmanager
def callers(booted: Booted, folder: Path) -> Iterator[Callable[[], None]]:
    """Let four callers outside draw through our client; yield what waits until all got more.

    Fails unless each call was answered, no id came twice, and v7 rose.
    """
    with contextlib.ExitStack() as running:
        drawing = [
            running.enter_context(
                # Blocks are given up fast, so that hardly a moment passes without a request.
                Holder(
                    booted.path(SOCKET),
                    folder / f"drawn-{number}",
                    fallback=False,
                    go_on=False,
                    max_age=0.002,
                    timeout=10,
                    bursts=[1],
                    list=20,
                    pause=0,
                )
            )
            for number in range(4)
        ]

        def draw_on() -> None:
            # More than is left of an old block.
            for holder in drawing:
                holder.more(1000)

        draw_on()
        yield draw_on
    drawn = [holder.drawn() for holder in drawing]
    assert_no_id_twice([each.id for each in some] for some in drawn)
    for some in drawn:
        assert_rising(each.id for each in some if each.kind == "v7")

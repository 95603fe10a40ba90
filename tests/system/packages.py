"""What the tests of the Debian package and of the RPM package share."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.rig import until
from tests.system.booted import BUILDING, PROJECT, Booted, callers
from tests.tools import output

OTHER_DAEMON = """
systemctl stop 'uuidd.*'
systemd-run --quiet --unit=other python3 -c '
import os, socket, time
os.makedirs("/run/uuidd", exist_ok=True)
os.path.exists("/run/uuidd/request") and os.remove("/run/uuidd/request")
s = socket.socket(socket.AF_UNIX)
s.bind("/run/uuidd/request")
s.listen()
time.sleep(1000)'
until grep -q "00010000 .* /run/uuidd/request$" /proc/net/unix; do sleep 0.1; done
"""
"""Starts a service "other" that listens at our socket, and is no uuidd."""

NO_SPACE = (
    "mkdir -p /usr/lib/uuidd-python && mount -t tmpfs -o size=200k none /usr/lib/uuidd-python"
)

REFUSED = {
    "a state of another user": (
        "mkdir -p /var/lib/uuidd && chown nobody /var/lib/uuidd",
        "chown -R uuidd: /var/lib/uuidd",
    ),
    "another daemon": (OTHER_DAEMON, "another daemon serves /run/uuidd/request"),
}
"""Why both refuse an installation: what brings the system there, and what the line names."""

ALLOW = "systemctl stop other; umount /usr/lib/uuidd-python; chown root /var/lib/uuidd"
"""What undoes all of that."""


class WithPackage(Booted):
    """A booted Debian, in which *prepare* has built a package of this checkout.

    The checkout is in /src, and what a package is built with in /wheels.
    """

    uuidctl = "uuidctl"

    def __init__(self, release: str, more: str, prepare: str) -> None:
        super().__init__(release, more)
        self._prepare = prepare

    def _install(self) -> None:
        wheels = self._folder / "wheels"
        python = os.readlink(self._root / "usr/bin/python3").removeprefix("python")
        pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download")
        chosen = ("--only-binary=:all:", f"--python-version={python}", f"--dest={wheels}")
        locked = PROJECT / "systemd/package/requirements.txt"
        output(*pip, *chosen, "--require-hashes", "-r", locked, timeout=BUILDING)
        output(*pip, *chosen, "hatchling>=1.25", timeout=BUILDING)
        output("cp", "--archive", wheels, self.path("/wheels"), timeout=BUILDING)
        self.path("/src").mkdir()
        copy = "git ls-files -z | xargs -0 cp --parents --target-directory"
        output("sh", "-euc", f"{copy} {self.path('/src')}", cwd=PROJECT)
        output(*self.words("bash", "-euc", self._prepare), timeout=BUILDING)

    def sh(self, commands: str) -> str:
        """Return what shell commands, which have to succeed, say inside."""
        script = f"export DEBIAN_FRONTEND=noninteractive; {commands}"
        # dpkg would go on after a time-out, and keep its lock from the next test.
        return output(*self.words("sh", "-euc", script), timeout=BUILDING)

    def started_without_systemd(self, install: str) -> str:
        """Install, start and end the daemon where no systemd runs; return what is said."""
        started = "uuidd -F -P --user uuidd & until uuidctl status; do sleep 0.1; done"
        # Another /run, which has no folder of systemd.
        inside = f"mount -t tmpfs none /run; {install}; {started}; kill $!; wait $!"
        return self.sh(f"systemctl stop 'uuidd.*'; unshare -m sh -c '{inside}'")

    def assert_refuses(self, install: str, there: str, line: str) -> None:
        """Fail unless an installation, after *there*, ends with one line that contains *line*."""
        self.sh(there)
        done = self.tried("sh", "-c", install)
        assert done.returncode != 0
        assert sum(line in said for said in done.stderr.splitlines()) == 1, done.stderr

    def assert_unnoticed(self, upgrade: str, folder: Path) -> None:
        """Fail unless callers with leases are served through an upgrade to another daemon."""
        before = self.pid
        with callers(self, folder) as draw_on:
            self.sh(upgrade)
            draw_on()
        until(self.serves)
        assert self.pid not in (0, before)

"""The RPM package: built, installed, upgraded and removed.

Debian has rpm too, so the system is a booted Debian without util-linux's daemon.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig import until
from tests.system.booted import BUILDING, OTHER_DAEMON, WithCheckout, callers
from tests.tools import output

pytestmark = pytest.mark.thorough

INSTALL = "rpm --install --nodeps /package.rpm"

PREPARE = """
dpkg --purge uuid-runtime
cd /src && PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels systemd/rpm/build --nodeps
cp dist/uuidd-python-*.rpm /package.rpm
"""


class Rpm(WithCheckout):
    """A booted system, with our package to install."""

    def _install(self) -> None:
        super()._install()
        output(*self.words("bash", "-euc", PREPARE), timeout=BUILDING)


@pytest.fixture(scope="module")
def rpm() -> Iterator[Rpm]:
    rpm = Rpm(release="trixie", more="rpm,gcc,libc6-dev,python3-dev")
    with rpm:
        yield rpm


@pytest.fixture
def fresh(rpm: Rpm) -> Iterator[Rpm]:
    yield rpm
    rpm.tried("sh", "-c", "systemctl stop other; rpm --erase uuidd-python; rm -rf /var/lib/uuidd")
    rpm.tried("umount", "/usr/lib/uuidd-python")


@pytest.fixture
def installed(fresh: Rpm) -> Rpm:
    """The system with our daemon, started as the package says."""
    _, _, start = fresh.sh(INSTALL).partition("uuidd-python: start the daemon with: ")
    fresh.sh(start)
    until(fresh.serves)
    return fresh


def test_the_package_takes_less_than_40_mb(rpm: Rpm) -> None:
    assert int(rpm.sh("rpm --query --package --queryformat '%{SIZE}' /package.rpm")) < 40_000_000


def test_its_daemon_takes_the_place_of_util_linuxs(rpm: Rpm) -> None:
    assert rpm.sh("rpm --query --package --conflicts /package.rpm") == "uuidd\n"
    assert "uuidd = " in rpm.sh("rpm --query --package --provides /package.rpm")


@pytest.mark.parametrize("command", ["uuidd --version", "uuidctl new"])
def test_each_command_runs(installed: Rpm, command: str) -> None:
    assert installed.sh(command)


def test_running_changes_no_file_of_the_package(installed: Rpm) -> None:
    assert installed.sh("rpm --verify --nodeps uuidd-python") == ""


def test_it_serves_after_a_boot(installed: Rpm) -> None:
    installed.reboot()
    until(installed.serves)


def test_an_upgrade_with_leases_out_is_not_noticed(installed: Rpm, tmp_path: Path) -> None:
    before = installed.pid
    with callers(installed, tmp_path) as draw_on:
        installed.sh("rpm --upgrade --replacepkgs --nodeps /package.rpm")
        draw_on()
    until(installed.serves)
    assert installed.pid not in (0, before)


def test_the_state_stays_when_the_package_is_removed(installed: Rpm) -> None:
    node = installed.status()["node"]
    assert "kept the state in /var/lib/uuidd" in installed.sh("rpm --erase uuidd-python")
    assert installed.shown("LoadState", "uuidd.socket") == "not-found"
    installed.sh(f"{INSTALL} && systemctl start uuidd.socket")
    assert installed.status()["node"] == node


REFUSED = {
    "a state of another user": (
        "mkdir -p /var/lib/uuidd && chown nobody /var/lib/uuidd",
        "chown -R uuidd: /var/lib/uuidd",
    ),
    "another daemon": (OTHER_DAEMON, "another daemon serves /run/uuidd/request"),
    "no space": (
        "mkdir -p /usr/lib/uuidd-python && mount -t tmpfs -o size=200k none /usr/lib/uuidd-python",
        "more space on the /usr/lib/uuidd-python filesystem",
    ),
}
"""Why an installation is refused: what brings the system there, and what the line names."""


@pytest.mark.parametrize("why", REFUSED)
def test_a_refused_installation_leaves_nothing_behind(fresh: Rpm, why: str) -> None:
    there, line = REFUSED[why]
    fresh.sh(there)
    done = fresh.tried("sh", "-c", INSTALL)
    assert done.returncode != 0
    assert sum(line in said for said in done.stderr.splitlines()) == 1, done.stderr
    assert fresh.sh("ls /usr/lib/uuidd-python || true") == ""
    assert not fresh.path("/usr/lib/systemd/system/uuidd.socket").exists()


def test_without_systemd_the_package_says_how_to_start(fresh: Rpm) -> None:
    # Another /run, which has no folder of systemd.
    inside = f"mount -t tmpfs none /run; {INSTALL}; uuidd -F -P --user uuidd & sleep 2"
    done = fresh.sh(f"unshare -m sh -c '{inside}; uuidctl status; kill $!'")
    assert "start the daemon with: uuidd --user uuidd" in done

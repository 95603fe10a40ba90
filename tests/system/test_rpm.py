"""The RPM package: built, installed, upgraded and removed.

Debian has rpm too, so the system is a booted Debian without util-linux's daemon.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig import until
from tests.system.packages import ALLOW, NO_SPACE, REFUSED, WithPackage

pytestmark = pytest.mark.thorough

INSTALL = "rpm --install --nodeps /package.rpm"

PREPARE = """
dpkg --purge uuid-runtime
cd /src && PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels systemd/rpm/build --nodeps
cp dist/uuidd-python-*.rpm /package.rpm
"""


@pytest.fixture(scope="module")
def rpm() -> Iterator[WithPackage]:
    with WithPackage("trixie", "rpm,gcc,libc6-dev,python3-dev", PREPARE) as rpm:
        yield rpm


@pytest.fixture
def fresh(rpm: WithPackage) -> Iterator[WithPackage]:
    yield rpm
    rpm.tried("sh", "-c", f"{ALLOW}; rpm --erase uuidd-python; rm -rf /var/lib/uuidd")


@pytest.fixture
def installed(fresh: WithPackage) -> WithPackage:
    """The system with our daemon, started as the package says."""
    _, _, start = fresh.sh(INSTALL).partition("uuidd-python: start the daemon with: ")
    fresh.sh(start)
    until(fresh.serves)
    return fresh


def test_the_package_takes_less_than_40_mb(rpm: WithPackage) -> None:
    assert int(rpm.sh("rpm --query --package --queryformat '%{SIZE}' /package.rpm")) < 40_000_000


def test_its_daemon_takes_the_place_of_util_linuxs(rpm: WithPackage) -> None:
    assert rpm.sh("rpm --query --package --conflicts /package.rpm") == "uuidd\n"
    assert "uuidd = " in rpm.sh("rpm --query --package --provides /package.rpm")


@pytest.mark.parametrize("command", ["uuidd --version", "uuidctl new"])
def test_each_command_runs(installed: WithPackage, command: str) -> None:
    assert installed.sh(command)


def test_running_changes_no_file_of_the_package(installed: WithPackage) -> None:
    assert installed.sh("rpm --verify --nodeps uuidd-python") == ""


def test_it_serves_after_a_boot(installed: WithPackage) -> None:
    installed.reboot()
    until(installed.serves)


def test_an_upgrade_with_leases_out_is_not_noticed(installed: WithPackage, tmp_path: Path) -> None:
    installed.assert_unnoticed("rpm --upgrade --replacepkgs --nodeps /package.rpm", tmp_path)


def test_the_state_stays_when_the_package_is_removed(installed: WithPackage) -> None:
    node = installed.status()["node"]
    assert "kept the state in /var/lib/uuidd" in installed.sh("rpm --erase uuidd-python")
    assert installed.shown("LoadState", "uuidd.socket") == "not-found"
    installed.sh(f"{INSTALL} && systemctl start uuidd.socket")
    assert installed.status()["node"] == node


@pytest.mark.parametrize(
    ("there", "line"),
    [*REFUSED.values(), (NO_SPACE, "more space on the /usr/lib/uuidd-python filesystem")],
    ids=[*REFUSED, "no space"],
)
def test_a_refused_installation_leaves_nothing_behind(
    fresh: WithPackage, there: str, line: str
) -> None:
    fresh.assert_refuses(INSTALL, there, line)
    assert fresh.sh("ls /usr/lib/uuidd-python || true") == ""
    assert not fresh.path("/usr/lib/systemd/system/uuidd.socket").exists()


def test_without_systemd_the_package_says_how_to_start(fresh: WithPackage) -> None:
    said = fresh.started_without_systemd(INSTALL)
    assert "start the daemon with: uuidd --user uuidd" in said
    assert "serving, pid" in said

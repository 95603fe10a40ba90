"""What the package uuid-runtime, whose units have our units' names, does to our service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rig import until
from tests.system.booted import REPACK, Booted

pytestmark = pytest.mark.thorough

NEWER = r"""
dpkg-deb --raw-extract /uuid-runtime.deb /opt/newer
sed -i 's/^Version: .*/&+newer/' /opt/newer/DEBIAN/control
dpkg-deb -Znone --build /opt/newer /opt/newer.deb
"""
"""Makes a newer package."""

STEPS = {
    "remove": "dpkg --remove uuid-runtime",
    "purge": "dpkg --purge uuid-runtime",
    "purge-later": "dpkg --remove uuid-runtime && sleep 3 && dpkg --purge uuid-runtime",
    "reinstall": "dpkg --install /uuid-runtime.deb",
    "upgrade": "dpkg --install /opt/newer.deb",
    "install-again": "dpkg --purge uuid-runtime && dpkg --install /uuid-runtime.deb",
}


@pytest.fixture(scope="module")
def packages(booted: Booted) -> Booted:
    booted.run("sh", "-euc", REPACK + NEWER)
    return booted


@pytest.fixture
def installed(packages: Booted) -> Iterator[Booted]:
    packages.run("dpkg", "--install", "/uuid-runtime.deb")
    with packages.serving():
        packages.run("systemctl", "start", "uuidd-keep.path")
        yield packages


@pytest.mark.parametrize("step", STEPS)
def test_the_socket_is_open_again_soon_and_after_a_boot(installed: Booted, step: str) -> None:
    installed.run("sh", "-euc", STEPS[step])
    until(installed.serves)
    assert installed.is_ours
    installed.reboot()
    until(installed.serves)
    assert installed.is_ours


def test_a_socket_that_was_stopped_stays_closed(installed: Booted) -> None:
    """What watches for the package is not in an administrator's way."""
    # It still looks after the package's installation.
    until(lambda: installed.shown("ActiveState", "uuidd-keep.service") == "inactive")
    watched = installed.shown("ExecMainStartTimestampMonotonic", "uuidd-keep.service")
    installed.run("systemctl", "stop", "uuidd.socket", "uuidd.service")
    # systemd comes to what happened before this when it answers.
    installed.run("systemctl", "daemon-reload")
    assert installed.shown("ExecMainStartTimestampMonotonic", "uuidd-keep.service") == watched
    assert installed.shown("ActiveState", "uuidd.socket") == "inactive"


def test_a_daemon_that_no_program_can_reach_says_so(installed: Booted) -> None:
    """In its line for systemctl and in the journal, without a request; what it names helps."""
    installed.run("systemctl", "stop", "uuidd-keep.path", "uuidd-keep.service")
    since = installed.now()
    installed.run("rm", "-r", "/run/uuidd")
    line = "the socket is no longer at /run/uuidd/request; systemctl restart uuidd.socket"
    until(lambda: line in installed.shown("StatusText"))
    assert installed.logged(since, line, level="err").startswith("unreachable: ")
    installed.run("sh", "-euc", line.partition("; ")[2])
    until(installed.serves)

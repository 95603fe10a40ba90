"""The Debian package: built, installed, upgraded and removed on booted systems."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig import until
from tests.system.booted import REPACK, LibuuidCaller
from tests.system.packages import ALLOW, NO_SPACE, REFUSED, WithPackage

pytestmark = pytest.mark.thorough

TOOLS = "debhelper,build-essential,gcc,libc6-dev,python3-dev,lintian,debconf"
"""What builds the package and looks it over."""

INSTALL = "dpkg --install /package.deb"
UPGRADE = "dpkg --install /newer.deb"

NO_PACKAGE = "dpkg --purge uuidd-python && dpkg --install /uuid-runtime.deb"
"""What brings a system back to how it was before a test, whatever the test did."""

PREPARE = rf"""
{REPACK}
cd /src && PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels systemd/debian/build
cp dist/uuidd-python_*.deb /package.deb
dpkg-deb --raw-extract /package.deb /opt/newer
sed -i 's/^Version: .*/&+newer/' /opt/newer/DEBIAN/control
dpkg-deb -Znone --build /opt/newer /newer.deb
"""
"""Builds the package, and makes a newer one."""


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def debian(request: pytest.FixtureRequest) -> Iterator[WithPackage]:
    with WithPackage(request.param, TOOLS, PREPARE) as debian:
        yield debian


@pytest.fixture
def fresh(debian: WithPackage) -> Iterator[WithPackage]:
    """The system, with util-linux's daemon alone."""
    yield debian
    debian.tried("sh", "-c", f"{ALLOW}; rm -rf /etc/systemd/system/uuidd.service")
    answer(debian, remove="true")
    debian.sh(NO_PACKAGE)
    debian.sh("systemctl reset-failed; systemctl restart uuidd.socket")


@pytest.fixture
def installed(fresh: WithPackage) -> WithPackage:
    """The system, with our package beside uuid-runtime."""
    fresh.sh(INSTALL)
    until(fresh.serves)
    return fresh


def answer(debian: WithPackage, *, remove: str) -> None:
    """Answer the question of a purge before it is asked."""
    debian.path("/answers").write_text(f"uuidd-python uuidd-python/remove-state boolean {remove}\n")
    debian.sh("debconf-set-selections /answers")


def diverted(debian: WithPackage) -> str:
    return debian.sh("dpkg-divert --list | grep uuidd-python || true")


def test_lintian_finds_no_error(debian: WithPackage) -> None:
    assert "E:" not in debian.sh("lintian --fail-on error --allow-root /package.deb")


def test_the_package_takes_less_than_40_mb(debian: WithPackage) -> None:
    kib = debian.sh("dpkg-deb --field /package.deb Installed-Size")
    assert int(kib) < 40_000


def test_callers_of_libuuid_get_safe_ids_through_installation_and_removal(
    fresh: WithPackage, tmp_path: Path
) -> None:
    with LibuuidCaller(fresh, tmp_path) as caller:
        theirs = caller.some()
        fresh.sh(INSTALL)
        until(fresh.serves)
        node = int(fresh.status()["node"], 16)
        ours = caller.some()
        fresh.sh("dpkg --remove uuidd-python")
        again = caller.some()
    drawn = caller.drawn()
    assert len({each.id for each in drawn}) == len(drawn)
    for begin, end in (theirs, ours, again):
        phase = [each for each in drawn if begin < each.before and each.after < end]
        assert phase
        assert all(each.safe for each in phase)
    assert any(each.id.node == node for each in drawn)


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("uuidd", "/usr/lib/uuidd-python/bin/uuidd"),
        ("uuidctl", "/usr/lib/uuidd-python/bin/uuidctl"),
        ("uuidgen", "/usr/bin/uuidgen"),
        ("uuidparse", "/usr/bin/uuidparse"),
    ],
)
def test_each_command_is_of_its_package(installed: WithPackage, command: str, program: str) -> None:
    assert installed.sh(f"readlink --canonicalize $(command -v {command})") == f"{program}\n"


def test_install_units_does_not_hide_the_units_of_the_package(installed: WithPackage) -> None:
    done = installed.tried("uuidd", "install-units")
    assert done.returncode != 0
    assert "the Debian package has installed its units already" in done.stderr
    assert "/etc" not in installed.shown("FragmentPath")


def test_the_metrics_unit_serves_metrics_and_sees_no_state(installed: WithPackage) -> None:
    installed.sh("systemctl start uuidd-metrics.service")
    script = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9755').read().decode())"
    told = until(lambda: installed.tried("python3", "-c", script).stdout)
    assert "\nuuidd_up 1\n" in told
    pid = installed.shown("MainPID", "uuidd-metrics.service")
    assert installed.tried("cat", f"/proc/{pid}/root/var/lib/uuidd/state").returncode == 1


def test_an_upgrade_restarts_the_metrics_unit_if_it_runs(installed: WithPackage) -> None:
    installed.sh("systemctl start uuidd-metrics.service")
    before = installed.shown("MainPID", "uuidd-metrics.service")
    installed.sh(UPGRADE)
    assert installed.shown("MainPID", "uuidd-metrics.service") not in ("0", before)


def test_an_upgrade_with_leases_out_is_not_noticed(installed: WithPackage, tmp_path: Path) -> None:
    installed.assert_unnoticed(UPGRADE, tmp_path)


def test_the_state_stays_when_the_package_is_removed(installed: WithPackage) -> None:
    node = installed.status()["node"]
    installed.sh(f"dpkg --remove uuidd-python && {INSTALL}")
    until(installed.serves)
    assert installed.status()["node"] == node


@pytest.mark.parametrize(("remove", "left"), [("true", False), ("false", True)])
def test_a_purge_asks_whether_the_state_goes(
    installed: WithPackage, remove: str, left: bool
) -> None:
    answer(installed, remove=remove)
    installed.sh("dpkg --purge uuidd-python")
    assert installed.path("/var/lib/uuidd").exists() == left


@pytest.mark.parametrize(
    "steps",
    [
        "dpkg --remove uuid-runtime",
        "dpkg --purge uuid-runtime",
        "dpkg --install /uuid-runtime.deb",
        "dpkg --purge uuid-runtime && dpkg --install /uuid-runtime.deb",
        f"dpkg --purge uuidd-python && {INSTALL}",
        f"dpkg --purge uuidd-python uuid-runtime && {INSTALL}",
    ],
)
def test_our_daemon_serves_soon_and_after_a_boot(installed: WithPackage, steps: str) -> None:
    installed.sh(steps)
    until(installed.serves)
    installed.reboot()
    until(installed.serves)


@pytest.mark.parametrize("step", ["remove", "purge"])
def test_util_linuxs_daemon_serves_after_ours_has_gone(installed: WithPackage, step: str) -> None:
    installed.sh(f"dpkg --{step} uuidd-python")
    assert diverted(installed) == ""
    installed.reboot()
    assert installed.sh("uuidd -t -n 1 || uuidd -t").strip()
    assert "/usr/sbin/uuidd" in installed.shown("ExecStart")


UNITS = (
    "printf '[Service]\\nExecStart=/opt/uuidd/bin/uuidd -S\\n' >/etc/systemd/system/uuidd.service",
    "/opt/uuidd/bin/uuidd install-units --undo",
)


@pytest.mark.parametrize(
    ("there", "line"),
    [*REFUSED.values(), (NO_SPACE, "No space left on device"), UNITS],
    ids=[*REFUSED, "no space", "units of install-units"],
)
def test_a_refused_installation_leaves_nothing_behind(
    fresh: WithPackage, there: str, line: str
) -> None:
    fresh.assert_refuses(INSTALL, there, line)
    assert diverted(fresh) == ""
    status = fresh.sh("dpkg-query -Wf '${db:Status-Status}' uuidd-python || true")
    assert status in ("", "not-installed")


def test_without_systemd_the_package_says_how_to_start(fresh: WithPackage) -> None:
    said = fresh.started_without_systemd(INSTALL)
    assert "start the daemon with: uuidd --user uuidd" in said
    assert "serving, pid" in said

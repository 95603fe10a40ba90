"""The Debian package: built, installed, upgraded and removed on booted systems."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig import until
from tests.system.booted import BUILDING, OTHER_DAEMON, REPACK, LibuuidCaller, WithCheckout, callers
from tests.tools import output, run

pytestmark = pytest.mark.thorough

TOOLS = "debhelper,build-essential,gcc,libc6-dev,python3-dev,lintian,debconf"
"""What builds the package and looks it over."""

PACKAGE, NEWER = "/package.deb", "/newer.deb"

NO_PACKAGE = "dpkg --purge uuidd-python && dpkg --install /uuid-runtime.deb"
"""What brings a system back to how it was before a test, whatever the test did."""

PREPARE = r"""
cd /src && PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels systemd/debian/build
cp dist/uuidd-python_*.deb /package.deb
dpkg-deb --raw-extract /package.deb /opt/newer
sed -i 's/^Version: .*/&+newer/' /opt/newer/DEBIAN/control
dpkg-deb --build /opt/newer /newer.deb
"""
"""Builds the package, and makes a newer one."""


class Debian(WithCheckout):
    """A booted Debian with uuid-runtime, and with our package and a newer one to install."""

    def _install(self) -> None:
        super()._install()
        output(*self.words("bash", "-euc", REPACK + PREPARE), timeout=BUILDING)


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def debian(request: pytest.FixtureRequest) -> Iterator[Debian]:
    debian = Debian(release=request.param, more=TOOLS)
    with debian:
        yield debian


@pytest.fixture
def fresh(debian: Debian) -> Iterator[Debian]:
    """The system, with util-linux's daemon alone."""
    yield debian
    debian.sh("rm -rf /etc/systemd/system/uuidd.service; umount /usr/lib/uuidd-python || true")
    answer(debian, remove="true")
    debian.sh(NO_PACKAGE)
    debian.sh("systemctl reset-failed; systemctl restart uuidd.socket")


@pytest.fixture
def installed(fresh: Debian) -> Debian:
    """The system, with our package beside uuid-runtime."""
    fresh.sh(f"dpkg --install {PACKAGE}")
    until(fresh.serves)
    return fresh


def answer(debian: Debian, *, remove: str) -> None:
    """Answer the question of a purge before it is asked."""
    debian.path("/answers").write_text(f"uuidd-python uuidd-python/remove-state boolean {remove}\n")
    debian.sh("debconf-set-selections /answers")


def diverted(debian: Debian) -> str:
    return debian.sh("dpkg-divert --list | grep uuidd-python || true")


def test_lintian_finds_no_error(debian: Debian) -> None:
    assert "E:" not in debian.sh(f"lintian --fail-on error --allow-root {PACKAGE}")


def test_the_package_takes_less_than_40_mb(debian: Debian) -> None:
    kib = debian.sh(f"dpkg-deb --field {PACKAGE} Installed-Size")
    assert int(kib) < 40_000


def test_callers_of_libuuid_get_safe_ids_through_installation_and_removal(
    fresh: Debian, tmp_path: Path
) -> None:
    with LibuuidCaller(fresh, tmp_path) as caller:
        theirs = caller.some()
        fresh.sh(f"dpkg --install {PACKAGE}")
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
def test_each_command_is_of_its_package(installed: Debian, command: str, program: str) -> None:
    assert installed.sh(f"readlink --canonicalize $(command -v {command})") == f"{program}\n"


def test_install_units_does_not_hide_the_units_of_the_package(installed: Debian) -> None:
    done = installed.tried("uuidd", "install-units")
    assert done.returncode != 0
    assert "the Debian package has installed its units already" in done.stderr
    assert "/etc" not in installed.shown("FragmentPath")


def test_the_metrics_unit_serves_metrics_and_sees_no_state(installed: Debian) -> None:
    installed.sh("systemctl start uuidd-metrics.service")
    script = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9755').read().decode())"
    told = until(lambda: installed.tried("python3", "-c", script).stdout)
    assert "\nuuidd_up 1.0\n" in told
    pid = installed.shown("MainPID", "uuidd-metrics.service")
    assert installed.tried("cat", f"/proc/{pid}/root/var/lib/uuidd/state").returncode == 1


def test_an_upgrade_restarts_the_metrics_unit_if_it_runs(installed: Debian) -> None:
    installed.sh("systemctl start uuidd-metrics.service")
    before = installed.shown("MainPID", "uuidd-metrics.service")
    installed.sh(f"dpkg --install {NEWER}")
    assert installed.shown("MainPID", "uuidd-metrics.service") not in ("0", before)


def test_an_upgrade_with_leases_out_is_not_noticed(installed: Debian, tmp_path: Path) -> None:
    before = installed.pid
    with callers(installed, tmp_path) as draw_on:
        installed.sh(f"dpkg --install {NEWER}")
        draw_on()
    until(installed.serves)
    assert installed.pid not in (0, before)


def test_the_state_stays_when_the_package_is_removed(installed: Debian) -> None:
    node = installed.status()["node"]
    installed.sh(f"dpkg --remove uuidd-python && dpkg --install {PACKAGE}")
    until(installed.serves)
    assert installed.status()["node"] == node


@pytest.mark.parametrize(("remove", "left"), [("true", False), ("false", True)])
def test_a_purge_asks_whether_the_state_goes(installed: Debian, remove: str, left: bool) -> None:
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
        f"dpkg --purge uuidd-python && dpkg --install {PACKAGE}",
        f"dpkg --purge uuidd-python uuid-runtime && dpkg --install {PACKAGE}",
    ],
)
def test_our_daemon_serves_soon_and_after_a_boot(installed: Debian, steps: str) -> None:
    installed.sh(steps)
    until(installed.serves)
    installed.reboot()
    until(installed.serves)


@pytest.mark.parametrize("step", ["remove", "purge"])
def test_util_linuxs_daemon_serves_after_ours_has_gone(installed: Debian, step: str) -> None:
    installed.sh(f"dpkg --{step} uuidd-python")
    assert diverted(installed) == ""
    installed.reboot()
    assert installed.sh("uuidd -t -n 1 || uuidd -t").strip()
    assert "/usr/sbin/uuidd" in installed.shown("ExecStart")


REFUSED = {
    "units of install-units": (
        "printf '[Service]\\nExecStart=/opt/uuidd/bin/uuidd -S\\n'"
        " >/etc/systemd/system/uuidd.service",
        "/opt/uuidd/bin/uuidd install-units --undo",
    ),
    "a state of another user": (
        "mkdir -p /var/lib/uuidd && chown nobody /var/lib/uuidd",
        "chown -R uuidd: /var/lib/uuidd",
    ),
    "another daemon": (
        f"systemctl stop uuidd.socket uuidd.service; {OTHER_DAEMON}",
        "another daemon serves /run/uuidd/request",
    ),
    "no space": (
        "mkdir -p /usr/lib/uuidd-python && mount -t tmpfs -o size=200k none /usr/lib/uuidd-python",
        "No space left on device",
    ),
}
"""Why an installation is refused: what brings the system there, and what the line names."""


@pytest.mark.parametrize("why", REFUSED)
def test_a_refused_installation_leaves_nothing_behind(fresh: Debian, why: str) -> None:
    there, line = REFUSED[why]
    fresh.sh(there)
    done = fresh.tried("dpkg", "--install", PACKAGE)
    try:
        assert done.returncode != 0
        assert sum(line in said for said in done.stderr.splitlines()) == 1, done.stderr
        assert diverted(fresh) == ""
        status = fresh.sh("dpkg-query -Wf '${db:Status-Status}' uuidd-python || true")
        assert status in ("", "not-installed")
    finally:
        fresh.tried("sh", "-c", "systemctl stop other; chown root /var/lib/uuidd")


def test_without_systemd_the_package_says_how_to_start(fresh: Debian) -> None:
    inside = f"dpkg --install {PACKAGE}; uuidd -F -P --user uuidd & sleep 2; uuidctl status"
    fresh.sh("systemctl stop uuidd.socket uuidd.service")
    # Another /run, which has no folder of systemd.
    done = run(
        *fresh.words("unshare", "-m", "sh", "-c", f"mount -t tmpfs none /run; {inside}; kill $!")
    )
    assert "start the daemon with: uuidd --user uuidd" in done.stdout
    assert "serving, pid" in done.stdout, done.stderr

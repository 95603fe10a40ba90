"""The files for systemd, as its own tools read them, without a boot."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tools import need, run
from uuidd.cli import installing

UNITS = ("uuidd.service", "uuidd.socket", "uuidd-keep.path", "uuidd-keep.service")

EXPOSURE = 1.0
"""What "systemd-analyze security" may say at most, of 10."""

EXPOSURE_IN_A_FLEET = 1.5
"""The same with the drop-in for a fleet, which reaches a network."""


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """A folder with all files where they belong, for a program that is there."""
    installing.install(tmp_path, program=Path("/bin/true"))
    return tmp_path


def units(prefix: Path) -> list[str]:
    """Return the paths of the units."""
    return [str(prefix / "etc/systemd/system" / name) for name in UNITS]


def test_each_file_is_put_where_its_reader_looks(prefix: Path) -> None:
    """Below /etc, so that each comes before a package's file of the same name."""
    found = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if path.is_file()}
    assert found == {
        "etc/systemd/system/uuidd.service",
        "etc/systemd/system/uuidd.socket",
        "etc/systemd/system/uuidd-keep.path",
        "etc/systemd/system/uuidd-keep.service",
        "etc/sysusers.d/uuidd.conf",
        "etc/tmpfiles.d/uuidd.conf",
        "etc/udev/rules.d/70-uuidd.rules",
        "etc/default/uuidd",
    }


def test_systemd_knows_every_word_of_the_units(prefix: Path) -> None:
    """It only warns of an unknown key, so nothing at all may be said."""
    done = run(need("systemd-analyze"), "verify", "--man=no", *units(prefix))
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_a_misspelt_key_would_be_told(prefix: Path) -> None:
    """That silence means something: with one wrong word it is broken."""
    service, *_ = map(Path, units(prefix))
    service.write_text(service.read_text().replace("WatchdogSec=", "WatchDogSecs="))
    assert "WatchDogSecs" in run(need("systemd-analyze"), "verify", "--man=no", str(service)).stderr


def test_the_service_is_closed_to_nearly_all(prefix: Path) -> None:
    """What it could do to its host is rated by systemd, from 0 to 10: at most 1.0 here."""
    service, *_ = units(prefix)
    done = run(need("systemd-analyze"), "security", "--offline=true", "--no-pager", service)
    rated = re.search(r"Overall exposure level for \S+: ([0-9.]+) ", done.stdout)
    assert rated, done
    assert float(rated[1]) <= EXPOSURE


def test_the_service_comes_before_the_programs_that_ask_it(prefix: Path) -> None:
    """It has more of the processors than another service, and in a group with others as well."""
    service, *_ = units(prefix)
    lines = Path(service).read_text().splitlines()
    told = dict(line.split("=", 1) for line in lines if line[:1].isalpha())
    assert int(told["CPUWeight"]) > 100
    assert int(told["Nice"]) < 0


def test_a_fleet_opens_the_network_and_nothing_else(prefix: Path) -> None:
    """The drop-in of --coordinator costs a few points; without it the service stays as it was."""
    alone = installing.FILES["uuidd.service"]
    drop_in = prefix / installing.DROP_INS["coordinator.conf"]
    assert not drop_in.exists()
    installing.install(prefix, program=Path("/bin/true"), coordinator=True)
    done = run(need("systemd-analyze"), "verify", "--man=no", str(prefix / alone))
    assert (done.stdout, done.stderr) == ("", "")
    done = run(
        need("systemd-analyze"), "security", "--offline=true", "--no-pager", str(prefix / alone)
    )
    rated = re.search(r"Overall exposure level for \S+: ([0-9.]+) ", done.stdout)
    assert rated, done
    assert float(rated[1]) <= EXPOSURE_IN_A_FLEET
    installing.undo(prefix)
    assert not drop_in.exists()


def test_sysusers_makes_the_services_user(prefix: Path) -> None:
    """The user has a group of its own, and no login."""
    done = run(need("systemd-sysusers"), "--dry-run", f"--root={prefix}")
    assert done.returncode == 0, done.stderr
    run(need("systemd-sysusers"), f"--root={prefix}")
    [user] = [line for line in (prefix / "etc/passwd").read_text().splitlines() if "uuidd" in line]
    name, _, uid, _, _, home, shell = user.split(":")
    assert (name, home) == ("uuidd", "/var/lib/uuidd")
    assert 0 < int(uid) < 1000
    assert shell.endswith("/nologin")


@pytest.mark.usefixtures("as_root")
def test_tmpfiles_makes_the_services_folders(prefix: Path) -> None:
    """Both are the service's user's alone to write to."""
    run(need("systemd-sysusers"), f"--root={prefix}")
    done = run(need("systemd-tmpfiles"), f"--root={prefix}", "--create", "uuidd.conf")
    assert (done.stderr, done.returncode) == ("", 0)
    passwd = (prefix / "etc/passwd").read_text()
    [uid] = re.findall(r"^uuidd:[^:]*:(\d+):", passwd, re.MULTILINE)
    for folder in ("run/uuidd", "var/lib/uuidd"):
        found = (prefix / folder).stat()
        assert (found.st_uid, found.st_mode & 0o7777) == (int(uid), 0o755)


def options_in(path: Path) -> list[str]:
    """Return the options in the service's file, as the shell takes them over."""
    return run("sh", "-euc", f'. {path}; printf "%s\\n" $UUIDD_OPTIONS').stdout.split()


def test_the_file_of_options_has_none_at_first(prefix: Path) -> None:
    """What it shows is a comment; so a service that was just installed has no options."""
    path = prefix / "etc/default/uuidd"
    assert options_in(path) == []
    shown = [line.removeprefix("# ") for line in path.read_text().splitlines() if "--" in line]
    path.write_text("\n".join(shown))
    assert options_in(path) == ["--worker", "5", "--node", "mac:eth0"]

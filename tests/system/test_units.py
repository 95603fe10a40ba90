"""The files for systemd, as its own tools read them, without a boot."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tools import need, run
from uuidd.cli import installing

UNITS = ("uuidd.service", "uuidd.socket", "uuidd-keep.path", "uuidd-keep.service")


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    installing.install(tmp_path, program=Path("/bin/true"))
    return tmp_path


def units(prefix: Path) -> list[str]:
    return [str(prefix / "etc/systemd/system" / name) for name in UNITS]


def test_systemd_knows_every_word_of_the_units(prefix: Path) -> None:
    """It only warns of an unknown key, so nothing at all may be said."""
    done = run(need("systemd-analyze"), "verify", "--man=no", *units(prefix))
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_the_service_comes_before_the_programs_that_ask_it(prefix: Path) -> None:
    """It has more of the processors than another service, and in a group with others as well."""
    lines = Path(units(prefix)[0]).read_text().splitlines()
    told = dict(line.split("=", 1) for line in lines if line[:1].isalpha())
    assert int(told["CPUWeight"]) > 100
    assert int(told["Nice"]) < 0


def exposure(service: str) -> float:
    """Return how systemd rates what a service could do to its host, from 0 to 10."""
    done = run(need("systemd-analyze"), "security", "--offline=true", "--no-pager", service)
    rated = re.search(r"Overall exposure level for \S+: ([0-9.]+) ", done.stdout)
    assert rated, done
    return float(rated[1])


def test_the_service_is_closed_to_nearly_all(prefix: Path) -> None:
    """With the drop-in of --coordinator, which reaches a network, a little less."""
    service, *_ = units(prefix)
    drop_in = prefix / installing.DROP_INS["coordinator.conf"]
    assert not drop_in.exists()
    assert exposure(service) <= 1.0
    installing.install(prefix, program=Path("/bin/true"), coordinator=True)
    done = run(need("systemd-analyze"), "verify", "--man=no", service)
    assert (done.stdout, done.stderr) == ("", "")
    assert exposure(service) <= 1.5
    installing.undo(prefix)
    assert not drop_in.exists()


def test_sysusers_makes_the_services_user(prefix: Path) -> None:
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
    run(need("systemd-sysusers"), f"--root={prefix}")
    done = run(need("systemd-tmpfiles"), f"--root={prefix}", "--create", "uuidd.conf")
    assert (done.stderr, done.returncode) == ("", 0)
    passwd = (prefix / "etc/passwd").read_text()
    [uid] = re.findall(r"^uuidd:[^:]*:(\d+):", passwd, re.MULTILINE)
    for folder in ("run/uuidd", "var/lib/uuidd"):
        found = (prefix / folder).stat()
        assert (found.st_uid, found.st_mode & 0o7777) == (int(uid), 0o755)


def options_in(path: Path) -> list[str]:
    return run("sh", "-euc", f'. {path}; printf "%s\\n" $UUIDD_OPTIONS').stdout.split()


def test_the_file_of_options_has_none_at_first(prefix: Path) -> None:
    """What it shows is a comment; so a service that was just installed has no options."""
    path = prefix / "etc/default/uuidd"
    assert options_in(path) == []
    shown = [line.removeprefix("# ") for line in path.read_text().splitlines() if "--" in line]
    path.write_text("\n".join(shown))
    assert options_in(path) == ["--worker", "5", "--node", "mac:eth0"]

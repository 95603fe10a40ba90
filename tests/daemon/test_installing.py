"""``uuidd install-units``: what is put in place, and what is taken away again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import uuidd
from tests.rig import PATIENCE
from uuidd.cli import installing
from uuidd.cli.installing import FILES, InstallError, install, undo

PROGRAM = Path("/opt/venv-3.11/bin/uuidd")
UNITS = Path(__file__).parents[2] / "systemd"


def put(prefix: Path) -> list[str]:
    return install(prefix, program=PROGRAM)


def refusal(act: Callable[[], object]) -> str:
    """Give the one line with which *act* is refused."""
    with pytest.raises(InstallError) as refused:
        act()
    (line,) = str(refused.value).splitlines()
    return line


def everything(prefix: Path) -> dict[str, bytes]:
    """Give all files below, by path."""
    return {
        str(path.relative_to(prefix)): path.read_bytes()
        for path in prefix.rglob("*")
        if path.is_file()
    }


def test_all_files_are_put_in_place(tmp_path: Path) -> None:
    """Each with a line on where, readable by all, with nothing else beside them."""
    assert put(tmp_path) == [f"installed {tmp_path / place}" for place in FILES.values()]
    assert set(everything(tmp_path)) == set(FILES.values())
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*") if path.is_file()} == {
        0o644
    }


def test_files_can_be_read_whatever_the_umask(tmp_path: Path) -> None:
    """The daemon reads its defaults as a user of its own."""
    before = os.umask(0o077)
    try:
        put(tmp_path)
    finally:
        os.umask(before)
    assert (tmp_path / FILES["default"]).stat().st_mode & 0o777 == 0o644


def test_the_service_starts_this_program(tmp_path: Path) -> None:
    """Those of its lines that name it do so in full, and nothing else differs from the unit."""
    put(tmp_path)
    ours = (UNITS / "uuidd.service").read_text().splitlines()
    found = (tmp_path / FILES["uuidd.service"]).read_text().splitlines()
    assert [new for old, new in zip(ours, found, strict=True) if old != new] == [
        f"ExecStart={PROGRAM} --socket-activation --defaults /etc/default/uuidd",
        f"ExecReload={PROGRAM} --check --socket-activation --defaults /etc/default/uuidd",
    ]


def test_by_default_it_is_the_program_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The uuidd of the same environment of Python."""
    monkeypatch.setattr(sys, "prefix", "/srv/env")
    install(tmp_path)
    unit = (tmp_path / FILES["uuidd.service"]).read_text()
    assert "\nExecStart=/srv/env/bin/uuidd --socket-activation " in unit


@pytest.mark.parametrize("name", [name for name in FILES if name != "uuidd.service"])
def test_the_other_files_are_as_they_came(tmp_path: Path, name: str) -> None:
    """Byte by byte."""
    put(tmp_path)
    assert (tmp_path / FILES[name]).read_bytes() == (UNITS / name).read_bytes()


def test_to_put_them_again_changes_nothing(tmp_path: Path) -> None:
    """The lines say so of what is the administrator's."""
    put(tmp_path)
    before = everything(tmp_path)
    default = tmp_path / FILES["default"]
    assert put(tmp_path)[-1] == f"kept {default}, which exists already"
    assert everything(tmp_path) == before


def test_the_administrators_options_are_kept(tmp_path: Path) -> None:
    """A newer version brings newer units, and leaves them."""
    default, unit = tmp_path / FILES["default"], tmp_path / FILES["uuidd.service"]
    put(tmp_path)
    default.write_text("UUIDD_OPTIONS=-q\n")
    unit.write_text("an older one\n")
    put(tmp_path)
    assert default.read_text() == "UUIDD_OPTIONS=-q\n"
    assert "[Service]" in unit.read_text()


def test_undo_takes_all_away(tmp_path: Path) -> None:
    """Each with a line; folders stay, for they may be others'."""
    put(tmp_path)
    assert undo(tmp_path) == [f"removed {tmp_path / place}" for place in FILES.values()]
    assert everything(tmp_path) == {}
    assert undo(tmp_path) == [f"{tmp_path / place} does not exist" for place in FILES.values()]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("more", [b"# mine\n", b"\xff\xfe\n"])
def test_undo_leaves_what_was_changed(tmp_path: Path, name: str, more: bytes) -> None:
    """It is somebody's work, whatever bytes it has; the others go."""
    put(tmp_path)
    path = tmp_path / FILES[name]
    path.write_bytes(path.read_bytes() + more)
    assert f"kept {path}, which was changed" in undo(tmp_path)
    assert set(everything(tmp_path)) == {FILES[name]}


def test_undo_takes_away_a_unit_of_another_program(tmp_path: Path) -> None:
    """What was installed from an environment that has gone is ours all the same."""
    install(tmp_path, program=Path("/opt/gone/bin/uuidd"))
    undo(tmp_path)
    assert everything(tmp_path) == {}


@pytest.mark.parametrize("folder", ["/home/me", "/root", "/tmp/x", "/var/tmp/x", "/run/user/0"])
def test_a_program_that_the_service_cannot_see_is_refused(tmp_path: Path, folder: str) -> None:
    """Before anything is written; the line says where it could be."""
    program = Path(folder) / "venv/bin/uuidd"
    assert refusal(lambda: install(tmp_path, program=program)) == (
        f"this uuidd is {program}, which its service cannot see (ProtectHome=, PrivateTmp=);"
        " install it elsewhere, for example in a virtual environment at /opt/uuidd"
    )
    assert everything(tmp_path) == {}


@pytest.mark.parametrize("folder", ["/opt/my venv", "/opt/100%", "/opt/$HOME", "/opt/a\nb", "/ä"])
def test_a_path_that_a_unit_reads_otherwise_is_refused(tmp_path: Path, folder: str) -> None:
    """A space, a percent or a dollar sign has a meaning in ExecStart=."""
    program = Path(folder) / "bin/uuidd"
    with pytest.raises(InstallError, match="a path with characters that have a meaning in a unit"):
        install(tmp_path, program=program)
    assert everything(tmp_path) == {}


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """The line names the file, and why."""
    (tmp_path / "etc").write_text("no folder")
    place = tmp_path / FILES["uuidd.service"]
    assert refusal(lambda: put(tmp_path)) == f"{place} cannot be written: Not a directory"


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk takes no unit away."""
    put(tmp_path)
    before = everything(tmp_path)

    def rename(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", rename)
    assert refusal(lambda: put(tmp_path)) == (
        f"{tmp_path / FILES['uuidd.service']} cannot be written: No space left on device"
    )
    assert everything(tmp_path) == before


def test_a_file_that_cannot_be_taken_away_is_refused(tmp_path: Path) -> None:
    """A folder in its place is told of in a line."""
    place = tmp_path / FILES["uuidd.service"]
    place.mkdir(parents=True)
    assert refusal(lambda: undo(tmp_path)) == f"{place} cannot be removed: Is a directory"


def test_an_installation_without_the_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line says where they were looked for."""
    monkeypatch.setattr(uuidd, "__file__", "/nowhere/uuidd/__init__.py")
    assert refusal(lambda: put(tmp_path)) == (
        "uuidd.service is not in this installation, neither in /nowhere/uuidd/units nor beside it"
    )


# --- the command


def command(*words: str) -> tuple[int, str, str]:
    """Give the exit status, the output and the errors of ``uuidd install-units``."""
    done = subprocess.run(
        [sys.executable, "-m", "uuidd", "install-units", *words],
        capture_output=True,
        timeout=PATIENCE,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("words", [[], ["--undo"]])
def test_the_command_says_what_it_did_and_what_comes_next(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
) -> None:
    """A line on each file, and the commands that make systemd heed them."""
    monkeypatch.setattr(sys, "prefix", "/opt/uuidd")
    assert installing.main([f"--prefix={tmp_path}", *words]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[len(FILES)] == "Next:"
    assert "systemctl daemon-reload" in out
    assert err == ""


@pytest.mark.system
def test_a_failure_of_the_command_is_a_line_and_status_1(tmp_path: Path) -> None:
    """As of all of uuidd's."""
    place = tmp_path / FILES["uuidd.service"]
    place.mkdir(parents=True)
    status, out, err = command(f"--prefix={tmp_path}", "--undo")
    assert (status, out) == (1, "")
    assert err == f"uuidd: {place} cannot be removed: Is a directory\n"


@pytest.mark.system
def test_the_command_has_its_own_help() -> None:
    """And status 2 for wrong usage, as every command."""
    status, out, _ = command("--help")
    assert (status, "--undo" in out) == (0, True)
    status, out, err = command("--wrong")
    assert (status, out) == (2, "")
    assert err.splitlines()[-1] == "uuidd install-units: error: unrecognized arguments: --wrong"


def test_what_was_there_before_is_kept_and_put_back(tmp_path: Path) -> None:
    """An administrator's own file and a masked unit survive an install and its undoing."""
    service = tmp_path / "etc/systemd/system/uuidd.service"
    service.parent.mkdir(parents=True)
    service.write_text("# mine\n")
    mask = service.with_name("uuidd.socket")
    mask.symlink_to("/dev/null")
    lines = installing.install(tmp_path, program=Path("/opt/uuidd/bin/uuidd"))
    assert f"installed {service}; the earlier file is now {service}.before-uuidd" in lines
    installing.install(tmp_path, program=Path("/opt/uuidd/bin/uuidd"))
    assert installing.undo(tmp_path)[0] == (f"removed {service}, and restored the earlier file")
    assert service.read_text() == "# mine\n"
    assert mask.is_symlink()

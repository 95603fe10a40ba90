"""``uuidd install-units``: what is put in place, and what is taken away again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import uuidd
from tests.tools import need, output
from uuidd.cli import installing, main
from uuidd.cli.installing import FILES, LINKS, OPEN_FILE, install, systemd_version, undo
from uuidd.refused import Refused

PROGRAM = Path("/opt/venv-3.11/bin/uuidd")
KERNEL_LOG = "etc/systemd/system/uuidd.service.d/kernel-log.conf"
UNITS = Path(__file__).parents[2] / "systemd"


@pytest.fixture(autouse=True)
def older_systemd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever systemd is here, the command finds one that does not know OpenFile=."""
    monkeypatch.setattr(installing, "systemd_version", lambda: OPEN_FILE - 1)


def put(prefix: Path) -> list[str]:
    """Install for PROGRAM; return the lines on it."""
    return install(prefix, program=PROGRAM)


def refusal(act: Callable[[], object]) -> str:
    """Return the one line with which *act* is refused."""
    with pytest.raises(Refused) as refused:
        act()
    (line,) = str(refused.value).splitlines()
    return line


def everything(prefix: Path) -> dict[str, bytes]:
    """Return all files below, by path."""
    return {
        str(path.relative_to(prefix)): path.read_bytes()
        for path in prefix.rglob("*")
        if path.is_file()
    }


def test_all_files_are_put_in_place(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        assert put(tmp_path) == [f"installed {tmp_path / place}" for place in FILES.values()]
    finally:
        os.umask(before)
    assert everything(tmp_path).keys() == set(FILES.values())
    for name in FILES.keys() - {"uuidd.service"}:
        assert (tmp_path / FILES[name]).read_bytes() == (UNITS / name).read_bytes()
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*") if path.is_file()} == {
        0o644
    }


def test_the_service_starts_this_program(tmp_path: Path) -> None:
    """Those of its lines that name it do so in full, and nothing else differs from the unit."""
    put(tmp_path)
    ours = (UNITS / "uuidd.service").read_text().splitlines()
    found = (tmp_path / FILES["uuidd.service"]).read_text().splitlines()
    assert [new for old, new in zip(ours, found, strict=True) if old != new] == [
        f"ExecStart={PROGRAM} --socket-activation $UUIDD_OPTIONS",
    ]


def test_by_default_it_is_the_program_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", "/srv/env")
    install(tmp_path)
    unit = (tmp_path / FILES["uuidd.service"]).read_text()
    assert "\nExecStart=/srv/env/bin/uuidd --socket-activation " in unit


def test_the_administrators_options_are_kept(tmp_path: Path) -> None:
    default, unit = tmp_path / FILES["default"], tmp_path / FILES["uuidd.service"]
    put(tmp_path)
    default.write_text("UUIDD_OPTIONS=-q\n")
    unit.write_text("an older one\n")
    assert put(tmp_path)[-1] == f"kept {default}, which exists already"
    assert default.read_text() == "UUIDD_OPTIONS=-q\n"
    assert "[Service]" in unit.read_text()


@pytest.mark.parametrize("program", [PROGRAM, Path("/opt/gone/bin/uuidd")])
def test_undo_takes_all_away(tmp_path: Path, program: Path) -> None:
    install(tmp_path, program=program)
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


@pytest.mark.parametrize(("systemd", "installed"), [(252, []), (253, [KERNEL_LOG])])
def test_a_systemd_that_can_open_the_kernels_log_does(
    tmp_path: Path, systemd: int, installed: list[str]
) -> None:
    """An older one gets no drop-in, of which it would warn. Undo takes it away."""
    install(tmp_path, program=PROGRAM, systemd=systemd)
    assert set(everything(tmp_path)) == {*FILES.values(), *installed}
    undo(tmp_path)
    assert everything(tmp_path) == {}


@pytest.mark.process
@pytest.mark.parametrize(
    ("shown", "version"),
    [("echo 'systemd 257 (257.9-1)'; echo +PAM", 257), ("echo no", 0), ("exit 1", 0)],
)
def test_the_version_of_systemd_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: str, version: int
) -> None:
    """A host without systemd has version 0."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert systemd_version() == 0
    (tmp_path / "systemctl").write_text(f"#!/bin/sh\n{shown}\n")
    (tmp_path / "systemctl").chmod(0o755)
    assert systemd_version() == version


def test_undo_names_the_drop_ins_that_are_left(tmp_path: Path) -> None:
    """They are an administrator's, and systemd would read them for util-linux's unit too."""
    install(tmp_path, program=PROGRAM, coordinator=True)
    drop_in = tmp_path / "etc/systemd/system/uuidd.service.d/engine.conf"
    drop_in.write_text("[Service]\nIPAddressAllow=10.0.0.0/24\n")
    assert undo(tmp_path)[-1] == (
        f"kept {drop_in}, a drop-in of yours, which util-linux's uuidd.service would obey too"
    )
    assert set(everything(tmp_path)) == {str(drop_in.relative_to(tmp_path))}


UNSEEN = (
    "which its service cannot see (ProtectHome=, PrivateTmp=);"
    " install it elsewhere, for example in a virtual environment at /opt/uuidd"
)
MEANING = "a path with characters that have a meaning in a unit"


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        *((f, UNSEEN) for f in ("/home/me", "/root", "/tmp/x", "/var/tmp/x", "/run/user/0")),
        *((f, MEANING) for f in ("/opt/my venv", "/opt/100%", "/opt/$HOME", "/opt/a\nb", "/ä")),
    ],
)
def test_a_program_that_the_service_cannot_start_is_refused(
    tmp_path: Path, folder: str, why: str
) -> None:
    """It does not see home and temporary folders, and ExecStart= takes no spaces and such."""
    program = Path(folder) / "bin/uuidd"
    line = refusal(lambda: install(tmp_path, program=program))
    assert why in line
    assert everything(tmp_path) == {}


def test_a_python_that_the_service_cannot_start_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of a virtual environment is a link, as to a Python that pyenv made in root's home."""
    program, hidden = tmp_path / "opt/uuidd/bin/uuidd", tmp_path / "root"
    program.parent.mkdir(parents=True)
    (program.parent / "python").symlink_to(hidden / "python3.11")
    monkeypatch.setattr(installing, "HIDDEN", [str(hidden)])
    line = refusal(lambda: install(tmp_path / "prefix", program=program))
    assert line.startswith(f"the Python of this uuidd is {hidden}/python3.11, which its service")
    assert line.endswith(f"make {tmp_path}/opt/uuidd with another Python, such as /usr/bin/python3")
    assert not (tmp_path / "prefix").exists()


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "etc").write_text("no folder")
    place = tmp_path / FILES["uuidd.service"]
    assert refusal(lambda: put(tmp_path)) == f"{place} cannot be changed: Not a directory"


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path)
    before = everything(tmp_path)

    def rename(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", rename)
    assert refusal(lambda: put(tmp_path)) == (
        f"{tmp_path / FILES['uuidd.service']} cannot be changed: No space left on device"
    )
    assert everything(tmp_path) == before


def test_a_file_that_cannot_be_taken_away_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / FILES["uuidd.service"]
    place.mkdir(parents=True)
    assert main(["install-units", f"--prefix={tmp_path}", "--undo"]) == 1
    assert capsys.readouterr() == ("", f"uuidd: {place} cannot be changed: Is a directory\n")


def test_an_installation_without_the_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uuidd, "__file__", "/nowhere/uuidd/__init__.py")
    assert refusal(lambda: put(tmp_path)) == (
        "uuidd.service is not in this installation, neither in /nowhere/uuidd/units nor beside it"
    )


# --- the command


@pytest.mark.parametrize("words", [[], ["--undo"]])
def test_the_command_says_what_it_did_and_what_comes_next(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
) -> None:
    """A line on each file, and the commands that make systemd use them."""
    monkeypatch.setattr(sys, "prefix", "/opt/uuidd")
    assert installing.main([f"--prefix={tmp_path}", *words]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[len(FILES)] == "Next:"
    assert "systemctl daemon-reload" in out
    assert err == ""


def test_a_second_installation_is_followed_by_a_restart_of_the_service(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", "/opt/uuidd")

    def steps() -> str:
        assert installing.main([f"--prefix={tmp_path}"]) == 0
        return capsys.readouterr().out.partition("Next:\n")[2]

    all_steps = steps()
    assert "systemctl enable" in all_steps
    assert steps() == all_steps
    enabled = tmp_path / installing.ENABLED
    enabled.parent.mkdir()
    enabled.symlink_to(tmp_path / FILES["uuidd-keep.path"])
    assert steps() == "  systemctl daemon-reload\n  systemctl restart uuidd.service\n"
    (tmp_path / FILES["uuidd.socket"]).write_text("an older one\n")
    assert steps() == all_steps
    undo(tmp_path)
    assert not enabled.is_symlink()


def test_the_command_has_its_own_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["install-units", "--help"])
    assert "--undo" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        main(["install-units", "--wrong"])
    line = "uuidd install-units: error: unrecognized arguments: --wrong"
    assert capsys.readouterr().err.splitlines()[-1] == line


def test_what_was_there_before_is_kept_and_put_back(tmp_path: Path) -> None:
    service = tmp_path / "etc/systemd/system/uuidd.service"
    service.parent.mkdir(parents=True)
    service.write_text("# mine\n")
    mask = service.with_name("uuidd.socket")
    mask.symlink_to("/dev/null")
    assert f"installed {service}; the earlier file is now {service}.before-uuidd" in put(tmp_path)
    put(tmp_path)
    assert undo(tmp_path)[0] == f"removed {service}, and restored the earlier file"
    assert service.read_text() == "# mine\n"
    assert mask.is_symlink()


# --- links in /usr/local, by which commands and manual pages are found

SHARE = Path(__file__).parents[2] / "uuidd" / "share"


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment as pip leaves it, with all that is linked to."""
    for name in LINKS:
        path = tmp_path / "opt/uuidd" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "opt/uuidd"


def links(prefix: Path) -> dict[str, str]:
    """Return all links below, with what they lead to."""
    return {
        str(path.relative_to(prefix / "usr/local")): os.readlink(path)
        for path in (prefix / "usr/local").rglob("*")
        if path.is_symlink()
    }


def test_commands_and_manual_are_linked(tmp_path: Path, environment: Path) -> None:
    usr_local = tmp_path / "usr/local"
    assert list(installing.link(tmp_path, environment)) == [
        f"linked {usr_local / name} to {environment / name}" for name in LINKS
    ]
    assert links(tmp_path) == {name: str(environment / name) for name in LINKS}
    assert list(installing.link(tmp_path, environment)) == []
    assert list(installing.unlink(tmp_path)) == [f"removed {usr_local / name}" for name in LINKS]
    assert links(tmp_path) == {}
    assert list(installing.unlink(tmp_path)) == []


def test_links_follow_to_another_environment(tmp_path: Path, environment: Path) -> None:
    list(installing.link(tmp_path, environment))
    newer = environment.with_name("newer")
    environment.rename(newer)
    list(installing.link(tmp_path, newer))
    assert links(tmp_path)["bin/uuidd"] == f"{newer}/bin/uuidd"


def test_what_is_anothers_stays(tmp_path: Path, environment: Path) -> None:
    """A command of the same name that somebody installed there, and its link, are left."""
    bin = tmp_path / "usr/local/bin"
    bin.mkdir(parents=True)
    (bin / "uuidd").write_text("mine")
    (bin / "uuidctl").symlink_to("/usr/bin/other")
    told = list(installing.link(tmp_path, environment))
    assert told[:2] == [
        f"kept {bin / name}, which is not a link to an environment of uuidd"
        for name in ("uuidd", "uuidctl")
    ]
    list(installing.unlink(tmp_path))
    assert (bin / "uuidd").read_text() == "mine"
    assert links(tmp_path) == {"bin/uuidctl": "/usr/bin/other"}


def test_what_the_environment_has_not_is_not_linked(tmp_path: Path, environment: Path) -> None:
    """An editable installation has no manual pages."""
    (environment / "share/man/man8/uuidd.8").unlink()
    list(installing.link(tmp_path, environment))
    assert set(links(tmp_path)) == {*LINKS} - {"share/man/man8/uuidd.8"}


def test_an_installation_in_usr_local_needs_no_links(tmp_path: Path) -> None:
    """It is where the links would be."""
    place = tmp_path / "usr/local/bin/uuidd"
    place.parent.mkdir(parents=True)
    place.write_text("a script")
    assert list(installing.link(tmp_path, tmp_path / "usr/local")) == []
    assert place.read_text() == "a script"


@pytest.mark.system
@pytest.mark.parametrize(("section", "name"), [(8, "uuidd"), (1, "uuidctl")])
def test_man_finds_the_pages_by_their_links(tmp_path: Path, section: int, name: str) -> None:
    """Below /usr/local/share/man, where man(1) looks before /usr/share/man."""
    page = tmp_path / f"opt/uuidd/share/man/man{section}/{name}.{section}"
    page.parent.mkdir(parents=True)
    page.write_text((SHARE / "man" / page.name).read_text())
    list(installing.link(tmp_path, tmp_path / "opt/uuidd"))
    found = output(need("man"), f"--manpath={tmp_path}/usr/local/share/man", "--where", name)
    assert Path(found.strip()).resolve() == page.resolve()

"""``uuidd install-units``: what is put in place, and what is taken away again."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

import uuidd
from tests.tools import failing, need, output, refusal
from uuidd.cli import installing, main
from uuidd.cli.installing import (
    FILES,
    LINKS,
    OPEN_FILE,
    install,
    link,
    systemd_version,
    undo,
    unlink,
)

PROGRAM = Path("/opt/venv-3.11/bin/uuidd")
KERNEL_LOG = "etc/systemd/system/uuidd.service.d/kernel-log.conf"
PROJECT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def older_systemd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever systemd is here, the command finds one that does not know OpenFile=."""
    monkeypatch.setattr(installing, "systemd_version", lambda: OPEN_FILE - 1)


def put(prefix: Path) -> list[str]:
    return install(prefix, program=PROGRAM)


def everything(prefix: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(prefix)): path.read_bytes()
        for path in prefix.rglob("*")
        if path.is_file()
    }


def test_all_files_are_put_in_place_and_the_service_starts_this_program(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        assert put(tmp_path) == [f"installed {tmp_path / place}" for place in FILES.values()]
    finally:
        os.umask(before)
    expected = {place: (PROJECT / "systemd" / name).read_bytes() for name, place in FILES.items()}
    service = expected[FILES["uuidd.service"]]
    line = b"\nExecStart=/opt/uuidd/bin/uuidd --socket-activation $UUIDD_OPTIONS\n"
    assert line in service
    expected[FILES["uuidd.service"]] = service.replace(
        line, line.replace(b"/opt/uuidd/bin/uuidd", os.fsencode(PROGRAM))
    )
    assert everything(tmp_path) == expected
    assert {(tmp_path / place).stat().st_mode & 0o777 for place in FILES.values()} == {0o644}


def test_each_file_is_put_where_its_reader_looks() -> None:
    """Below /etc, so that each comes before a package's file of the same name."""
    units = {f"etc/systemd/system/{name}" for name in FILES if name.startswith("uuidd")}
    assert {*FILES.values()} - units == {
        "etc/sysusers.d/uuidd.conf",
        "etc/tmpfiles.d/uuidd.conf",
        "etc/udev/rules.d/70-uuidd.rules",
        "etc/default/uuidd",
    }
    assert units <= {*FILES.values()}


def test_the_administrators_options_are_kept(tmp_path: Path) -> None:
    default, unit = tmp_path / FILES["default"], tmp_path / FILES["uuidd.service"]
    put(tmp_path)
    default.write_text("UUIDD_OPTIONS=-q\n")
    unit.write_text("an older one\n")
    assert put(tmp_path)[-1] == f"kept {default}, which exists already"
    assert default.read_text() == "UUIDD_OPTIONS=-q\n"
    assert "[Service]" in unit.read_text()


@pytest.mark.parametrize("program", [PROGRAM, Path("/opt/gone/bin/uuidd")])
@pytest.mark.parametrize(("systemd", "more"), [(252, []), (253, [KERNEL_LOG])])
def test_undo_takes_all_away(tmp_path: Path, program: Path, systemd: int, more: list[str]) -> None:
    """A systemd that does not know OpenFile= gets no drop-in, of which it would warn."""
    install(tmp_path, program=program, systemd=systemd)
    assert set(everything(tmp_path)) == {*FILES.values(), *more}
    places = [tmp_path / place for place in FILES.values()]
    assert undo(tmp_path) == [
        f"removed {path}" for path in (*places, *map(tmp_path.joinpath, more))
    ]
    assert everything(tmp_path) == {}
    assert undo(tmp_path) == [f"{path} does not exist" for path in places]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("more", [b"# mine\n", b"\xff\xfe\n"])
def test_undo_leaves_what_was_changed(tmp_path: Path, name: str, more: bytes) -> None:
    put(tmp_path)
    path = tmp_path / FILES[name]
    path.write_bytes(path.read_bytes() + more)
    assert f"kept {path}, which was changed" in undo(tmp_path)
    assert set(everything(tmp_path)) == {FILES[name]}


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


def test_undo_names_the_drop_ins_that_are_left(tmp_path: Path) -> None:
    """They are an administrator's, and systemd would read them for util-linux's unit too."""
    install(tmp_path, program=PROGRAM, coordinator=True)
    drop_in = tmp_path / "etc/systemd/system/uuidd.service.d/engine.conf"
    drop_in.write_text("[Service]\nIPAddressAllow=10.0.0.0/24\n")
    assert undo(tmp_path)[-1] == (
        f"kept {drop_in}, a drop-in of yours, which util-linux's uuidd.service would obey too"
    )
    assert set(everything(tmp_path)) == {str(drop_in.relative_to(tmp_path))}


@pytest.mark.process
@pytest.mark.parametrize(
    ("shown", "version"),
    [("echo 'systemd 257 (257.9-1)'; echo +PAM", 257), ("echo no", 0), ("exit 1", 0), (None, 0)],
)
def test_the_version_of_systemd_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: str | None, version: int
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if shown is not None:
        (tmp_path / "systemctl").write_text(f"#!/bin/sh\n{shown}\n")
        (tmp_path / "systemctl").chmod(0o755)
    assert systemd_version() == version


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
    assert why in refusal(install, tmp_path, program=Path(folder, "bin/uuidd"))
    assert everything(tmp_path) == {}


def test_a_python_that_the_service_cannot_start_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of a virtual environment is a link, as to a Python that pyenv made in root's home."""
    program, hidden = tmp_path / "opt/uuidd/bin/uuidd", tmp_path / "root"
    program.parent.mkdir(parents=True)
    (program.parent / "python").symlink_to(hidden / "python3.11")
    monkeypatch.setattr(installing, "HIDDEN", [str(hidden)])
    line = refusal(install, tmp_path / "prefix", program=program)
    assert line.startswith(f"the Python of this uuidd is {hidden}/python3.11, which its service")
    assert line.endswith(f"make {tmp_path}/opt/uuidd with another Python, such as /usr/bin/python3")
    assert not (tmp_path / "prefix").exists()


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path)
    before = everything(tmp_path)
    monkeypatch.setattr(Path, "rename", failing(errno.ENOSPC))
    service = tmp_path / FILES["uuidd.service"]
    assert refusal(put, tmp_path) == f"{service} cannot be changed: No space left on device"
    assert everything(tmp_path) == before


def test_a_full_disk_leaves_nothing_half_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, last = Path.write_text, tmp_path / FILES["default"]

    def full(path: Path, text: str) -> int:
        if path.parent == last.parent:
            raise OSError(28, "No space left on device")
        return write(path, text)

    monkeypatch.setattr(Path, "write_text", full)
    assert refusal(put, tmp_path) == f"{last} cannot be changed: No space left on device"
    assert everything(tmp_path) == {}


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (errno.EACCES, "Permission denied; run the command as root"),
        (errno.EROFS, "Read-only file system"),
    ],
)
def test_a_place_that_cannot_be_written_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, told: str
) -> None:
    """On a read-only disk not even a file that is not there can be removed."""
    for name in ("write_text", "unlink"):
        monkeypatch.setattr(Path, name, failing(number))
    service = tmp_path / FILES["uuidd.service"]
    assert refusal(put, tmp_path) == f"{service} cannot be changed: {told}"


def test_without_systemd_the_command_says_how_to_start_the_daemon(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(installing, "systemd_version", lambda: 0)
    # Or a failure would change this host.
    monkeypatch.setattr(installing, "install", lambda *_, **__: [])
    assert main(["install-units"]) == 1
    assert capsys.readouterr() == (
        "",
        "uuidd: there is no systemd here, for which this installs units; start the daemon with:"
        " uuidd --user nobody (with --prefix, units are installed for another system)\n",
    )


def test_undo_of_what_is_no_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service = tmp_path / FILES["uuidd.service"]
    service.mkdir(parents=True)
    assert main(["install-units", f"--prefix={tmp_path}", "--undo"]) == 1
    line = f"uuidd: {service} cannot be changed: Is a directory\n"
    assert capsys.readouterr() == ("", line)


def test_an_installation_without_the_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uuidd, "__file__", "/nowhere/uuidd/__init__.py")
    assert refusal(put, tmp_path) == (
        "this uuidd has no uuidd.service to install, neither in /nowhere/uuidd/units nor beside it;"
        " the Debian package has installed its units already"
    )


def test_the_command_says_what_it_did_and_what_comes_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the units are enabled, a restart of the service is all that a new version needs."""
    monkeypatch.setattr(sys, "prefix", "/srv/env")

    def steps(*words: str) -> str:
        assert main(["install-units", f"--prefix={tmp_path}", *words]) == 0
        done, found, then = capsys.readouterr().out.partition("Next:\n")
        assert found
        assert len(done.splitlines()) == len(FILES)
        return then

    all_steps = steps()
    unit = (tmp_path / FILES["uuidd.service"]).read_text()
    assert "\nExecStart=/srv/env/bin/uuidd --socket-activation " in unit
    assert "systemctl daemon-reload" in all_steps
    assert "systemctl enable" in all_steps
    assert steps() == all_steps
    wanted = tmp_path / "etc/systemd/system/multi-user.target.wants"
    wanted.mkdir()
    for name in ("uuidd-keep.path", "uuidd-metrics.service"):
        (wanted / name).symlink_to(tmp_path / FILES[name])
    assert steps() == (
        "  systemctl daemon-reload\n"
        "  systemctl restart uuidd.service\n"
        "  systemctl try-restart uuidd-metrics.service\n"
    )
    (tmp_path / FILES["uuidd.socket"]).write_text("an older one\n")
    assert steps() == all_steps
    undone = steps("--undo")
    assert undone.startswith("  systemctl stop uuidd-keep.path 'uuidd-metrics*' uuidd.service ")
    assert not list(wanted.iterdir())


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment as pip leaves it, with all that is linked to."""
    for name in LINKS:
        path = tmp_path / "opt/uuidd" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "opt/uuidd"


def test_all_that_an_environment_has_is_linked(tmp_path: Path, environment: Path) -> None:
    """An editable installation has no manual pages."""
    (environment / "share/man/man8/uuidd.8").unlink()
    names = [name for name in LINKS if name != "share/man/man8/uuidd.8"]
    places = {name: tmp_path / "usr/local" / name for name in names}
    assert list(link(tmp_path, environment)) == [
        f"linked {place} to {environment / name}" for name, place in places.items()
    ]
    assert [os.readlink(place) for place in places.values()] == [
        str(environment / name) for name in names
    ]
    assert list(unlink(tmp_path)) == [f"removed {place}" for place in places.values()]
    assert [path for path in (tmp_path / "usr").rglob("*") if not path.is_dir()] == []


KEPT = "kept {path}, which is not a link to an environment of uuidd"


@pytest.mark.parametrize(
    ("before", "told", "linked", "left"),
    [
        ("{target}", [], "{target}", ""),
        # The earlier environment may be gone.
        ("/srv/env/bin/uuidd", ["linked {path} to {target}"], "{target}", ""),
        ("/usr/bin/other", [KEPT], "/usr/bin/other", "/usr/bin/other"),
        ("a script", [KEPT], "a script", "a script"),
    ],
)
def test_only_a_link_to_an_environment_is_replaced_and_removed(
    tmp_path: Path, environment: Path, before: str, told: list[str], linked: str, left: str
) -> None:
    path = tmp_path / "usr/local/bin/uuidd"
    words = {"path": path, "target": environment / "bin/uuidd"}

    def found() -> str:
        if path.is_symlink():
            return os.readlink(path)
        return path.read_text() if path.exists() else ""

    path.parent.mkdir(parents=True)
    if before == "a script":
        path.write_text(before)
    else:
        path.symlink_to(before.format(**words))
    lines = [line for line in link(tmp_path, environment) if "/bin/uuidd" in line]
    assert lines == [line.format(**words) for line in told]
    assert found() == linked.format(**words)
    list(unlink(tmp_path))
    assert found() == left


def test_an_installation_in_usr_local_needs_no_links(tmp_path: Path) -> None:
    place = tmp_path / "usr/local/bin/uuidd"
    place.parent.mkdir(parents=True)
    place.write_text("a script")
    assert list(link(tmp_path, tmp_path / "usr/local")) == []
    assert place.read_text() == "a script"


@pytest.mark.system
@pytest.mark.parametrize(("section", "name"), [(8, "uuidd"), (1, "uuidctl")])
def test_man_finds_the_pages_by_their_links(tmp_path: Path, section: int, name: str) -> None:
    """Below /usr/local/share/man, where man(1) looks before /usr/share/man."""
    page = tmp_path / f"opt/uuidd/share/man/man{section}/{name}.{section}"
    page.parent.mkdir(parents=True)
    page.write_text((PROJECT / "uuidd/share/man" / page.name).read_text())
    list(link(tmp_path, tmp_path / "opt/uuidd"))
    found = output(need("man"), f"--manpath={tmp_path}/usr/local/share/man", "--where", name)
    assert Path(found.strip()).resolve() == page.resolve()

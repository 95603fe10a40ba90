"""Links in /usr/local, by which commands and manual pages are found."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.rig import PATIENCE
from tests.tools import need
from uuidd.cli import installing
from uuidd.cli.installing import LINKS

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
    """Give all links below, with what they lead to."""
    return {
        str(path.relative_to(prefix / "usr/local")): os.readlink(path)
        for path in (prefix / "usr/local").rglob("*")
        if path.is_symlink()
    }


def test_commands_and_manual_are_linked(tmp_path: Path, environment: Path) -> None:
    """Each at the path that it has in the environment, with a line on it."""
    told = list(installing.link(tmp_path, environment))
    assert links(tmp_path) == {name: str(environment / name) for name in LINKS}
    place = tmp_path / "usr/local/bin/uuidd"
    assert told[0] == f"linked {place} to {environment}/bin/uuidd"
    assert len(told) == len(LINKS)


def test_to_link_again_changes_nothing(tmp_path: Path, environment: Path) -> None:
    """Nor is there a word on it."""
    list(installing.link(tmp_path, environment))
    assert list(installing.link(tmp_path, environment)) == []


def test_links_follow_to_another_environment(tmp_path: Path, environment: Path) -> None:
    """Also from one that is not there any more."""
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


def test_undo_takes_the_links_away(tmp_path: Path, environment: Path) -> None:
    """Each with a line; and nothing is said where there is none."""
    list(installing.link(tmp_path, environment))
    assert list(installing.unlink(tmp_path)) == [
        f"removed {tmp_path}/usr/local/{name}" for name in LINKS
    ]
    assert links(tmp_path) == {}
    assert list(installing.unlink(tmp_path)) == []


@pytest.mark.system
@pytest.mark.parametrize(("section", "name"), [(8, "uuidd"), (1, "uuidctl")])
def test_man_finds_the_pages_by_their_links(tmp_path: Path, section: int, name: str) -> None:
    """Below /usr/local/share/man, where man(1) looks before /usr/share/man."""
    page = tmp_path / f"opt/uuidd/share/man/man{section}/{name}.{section}"
    page.parent.mkdir(parents=True)
    page.write_text((SHARE / "man" / page.name).read_text())
    list(installing.link(tmp_path, tmp_path / "opt/uuidd"))
    man = [need("man"), f"--manpath={tmp_path}/usr/local/share/man", "--where", name]
    done = subprocess.run(man, capture_output=True, timeout=PATIENCE, text=True, check=True)
    assert Path(done.stdout.strip()).resolve() == page.resolve()

"""Wheels and editable installations, with the C extension and without it."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hatchling.build import build_editable, build_sdist, build_wheel

import uuidd
from tests.tools import need_compiler, output

pytestmark = pytest.mark.process

PROJECT = Path(__file__).parents[2]

EXTENSION = f"uuidd_client/_core{sysconfig.get_config_var('EXT_SUFFIX')}"
STRICT = "-Wall -Wextra -Werror"

MAKES_IDS = """
import uuidd_client, warnings
warnings.simplefilter("ignore")
print(uuidd_client.implementation, uuidd_client.uuid7().version)
"""

VARIABLES = ("UUIDD_EXTENSION", "UUIDD_COMMIT", "CC", "CFLAGS", "LDFLAGS")
"""What a build reads of the environment."""


class Wheel(NamedTuple):
    """A wheel, and what was said when it was built."""

    path: Path
    told: str

    @property
    def tag(self) -> str:
        """What it is for: the end of its name."""
        return self.path.stem.removeprefix(f"uuidd-{uuidd.__version__}-")

    def names(self) -> set[str]:
        """Return the paths in it."""
        with zipfile.ZipFile(self.path) as archive:
            return set(archive.namelist())

    def says(self, folder: Path, script: str) -> str:
        """Unpack it into *folder*; return what a script says that imports it from there."""
        shutil.unpack_archive(self.path, folder, "zip")
        others = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        return output(
            *(sys.executable, "-c", script),
            cwd=folder,
            env={**others, "PYTHONPATH": str(folder), "UUIDD_FALLBACK": "1"},
        )


@contextlib.contextmanager
def building(folder: Path, **variables: str) -> Iterator[io.StringIO]:
    """Provide an environment with these variables to build in *folder*, and what is said there."""
    with pytest.MonkeyPatch.context() as patch:
        for name in VARIABLES:
            patch.delenv(name, raising=False)
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.chdir(folder)
        with contextlib.redirect_stderr(io.StringIO()) as told:
            yield told


class Sources(NamedTuple):
    """A folder with all that comes out of an sdist."""

    folder: Path

    def wheel(self, **variables: str) -> Wheel:
        """Build a wheel."""
        into = Path(tempfile.mkdtemp(dir=self.folder.parent))
        with building(self.folder, **variables) as told:
            path = into / build_wheel(str(into))
        return Wheel(path, told.getvalue())

    def refusal(self, **variables: str) -> str:
        """Return the one line with which a build fails."""
        with building(self.folder, **variables) as told, pytest.raises(SystemExit, match="1"):
            build_wheel(str(self.folder.parent))
        (line,) = told.getvalue().splitlines()
        return line

    def copied(self, folder: Path) -> Sources:
        """Return a copy."""
        return Sources(shutil.copytree(self.folder, folder))


def unpacked(project: Path, into: Path, **variables: str) -> Sources:
    """Return what comes out of the sdist of a project."""
    into.mkdir()
    with building(project, **variables):
        name = build_sdist(str(into))
    output("tar", "-xzf", into / name, "-C", into)
    return Sources(into / name.removesuffix(".tar.gz"))


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    """What comes out of the sdist of this checkout, which needs no compiler."""
    return unpacked(PROJECT, tmp_path_factory.mktemp("built") / "sdist", PATH="")


@pytest.fixture
def checkout(sources: Sources, tmp_path: Path) -> Sources:
    """A checkout that can be changed."""
    return sources.copied(tmp_path / "checkout")


@pytest.fixture(scope="module")
def with_extension(sources: Sources) -> Wheel:
    """A wheel that was built with a compiler, which had nothing to complain of."""
    need_compiler()
    return sources.wheel(CFLAGS=STRICT, UUIDD_EXTENSION="require")


@pytest.fixture(scope="module")
def without(sources: Sources) -> Wheel:
    """A wheel that was built without a compiler."""
    return sources.wheel(PATH="")


def notice(cause: str) -> str:
    """Return what is said of a wheel that has no extension for that cause."""
    return (
        f"uuidd is built without its optional C extension, because it cannot be compiled ({cause}):"
        " uuidd_client makes ids in Python, which takes longer\n"
    )


def required(cause: str) -> str:
    """Return what is said where there should have been an extension."""
    return (
        f"the C extension of uuidd_client cannot be compiled ({cause}), but UUIDD_EXTENSION is"
        " 'require': install a C compiler and the headers of Python (on Debian: gcc, libc6-dev,"
        " python3-dev), or unset UUIDD_EXTENSION"
    )


def test_a_compiler_makes_a_wheel_with_the_extension(with_extension: Wheel, tmp_path: Path) -> None:
    """It is for this Python and this platform."""
    assert with_extension.told == ""
    python, abi, platform = with_extension.tag.split("-")
    assert python == f"cp{sys.version_info[0]}{sys.version_info[1]}"
    assert abi.startswith(python)
    assert platform == sysconfig.get_platform().replace("-", "_")
    assert with_extension.says(tmp_path, MAKES_IDS) == "c 7\n"


def test_without_a_compiler_the_wheel_is_for_every_python(without: Wheel, tmp_path: Path) -> None:
    """A line says so; it makes ids all the same."""
    assert (without.tag, without.told) == ("py3-none-any", notice("there is no C compiler"))
    assert without.says(tmp_path, MAKES_IDS) == "python 7\n"


def test_both_wheels_differ_in_nothing_else(with_extension: Wheel, without: Wheel) -> None:
    """No C source and no part of the build is in either."""
    names = with_extension.names()
    assert names ^ without.names() == {EXTENSION}
    assert not {name for name in names if "extension/" in name or name.endswith((".c", ".h"))}


def test_off_leaves_the_extension_out(sources: Sources, without: Wheel) -> None:
    """As if there were no compiler, but nothing is said."""
    wheel = sources.wheel(UUIDD_EXTENSION="off")
    assert (wheel.path.name, wheel.told) == (without.path.name, "")
    assert wheel.path.read_bytes() == without.path.read_bytes()


def test_a_wheel_is_always_the_same(
    with_extension: Wheel, sources: Sources, tmp_path: Path
) -> None:
    """Bit for bit, wherever it is built."""
    again = sources.copied(tmp_path / "elsewhere").wheel(CFLAGS=STRICT)
    assert again.path.read_bytes() == with_extension.path.read_bytes()


@pytest.mark.parametrize(
    ("variables", "cause"),
    [
        ({"PATH": ""}, "there is no C compiler"),
        ({"CC": "nothing-of-this-name"}, "nothing-of-this-name: No such file or directory"),
        ({"CC": "false"}, "false failed"),
    ],
    ids=["none", "unknown", "failing"],
)
def test_a_required_extension_that_cannot_be_compiled_fails_the_build(
    sources: Sources, variables: dict[str, str], cause: str
) -> None:
    """One line says why, and what to do; without that wish it is a notice."""
    assert sources.refusal(UUIDD_EXTENSION="require", **variables) == required(cause)
    wheel = sources.wheel(**variables)
    assert (wheel.tag, wheel.told) == ("py3-none-any", notice(cause))


def test_what_the_compiler_says_first_is_the_cause(sources: Sources) -> None:
    """As where the headers of Python are missing."""
    need_compiler()
    wheel = sources.wheel(CFLAGS="-nostdinc -I/nowhere")
    assert (wheel.tag, wheel.told.count("\n")) == ("py3-none-any", 1)
    assert ".h: No such file or directory" in wheel.told


def test_another_interpreter_gets_no_extension(
    sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The extension uses what only CPython has."""
    monkeypatch.setattr(sys.implementation, "name", "pypy")
    wheel = sources.wheel()
    cause = "it is for CPython, and this is pypy"
    assert (wheel.tag, wheel.told) == ("py3-none-any", notice(cause))


def test_an_unknown_wish_is_refused(sources: Sources) -> None:
    """In the words in which the client refuses it."""
    line = "UUIDD_EXTENSION is 'never'; it must be 'off', 'require', or not set"
    assert sources.refusal(UUIDD_EXTENSION="never") == line


def test_a_build_leaves_nothing_behind(
    sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither if it succeeds nor if it fails."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    sources.wheel(UUIDD_EXTENSION="off")
    sources.refusal(UUIDD_EXTENSION="require", PATH="")
    assert list(tmp_path.iterdir()) == []


def test_an_editable_installation_replaces_an_older_extension(
    checkout: Sources, tmp_path: Path
) -> None:
    """By another file, so that running programs keep theirs; those of other Pythons stay."""
    need_compiler()
    place = checkout.folder / "client" / EXTENSION
    other = place.with_name("_core.cpython-39-x86_64-linux-gnu.so")
    place.write_bytes(b"old")
    other.write_bytes(b"another's")
    with place.open("rb") as used:
        with building(checkout.folder):
            build_editable(str(tmp_path))
        assert used.read() == b"old"
    assert place.read_bytes().startswith(b"\x7fELF")
    assert {path.name for path in place.parent.glob("*_core*.so*")} == {place.name, other.name}


def test_an_older_extension_is_in_nothing_that_is_built_without_one(
    checkout: Sources, tmp_path: Path
) -> None:
    """It would not be of these sources."""
    place = checkout.folder / "client" / EXTENSION
    place.write_bytes(b"old")
    assert EXTENSION not in checkout.wheel(UUIDD_EXTENSION="off").names()
    with building(checkout.folder, UUIDD_EXTENSION="off"):
        build_editable(str(tmp_path))
    assert not place.exists()


SAYS_VERSION = "import sys; from uuidd.cli import main; sys.exit(main(['--version']))"


@pytest.fixture
def commit(checkout: Sources) -> str:
    """The commit of a checkout with git, in which there is nothing of an sdist."""
    (checkout.folder / "PKG-INFO").unlink()
    git = ("git", "-c", "user.name=nobody", "-c", "user.email=nobody@localhost")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "all")):
        output(*git, *words, cwd=checkout.folder)
    return output("git", "rev-parse", "--short=12", "HEAD", cwd=checkout.folder).strip()


def unchanged(checkout: Sources) -> Sources:
    return checkout


def changed(checkout: Sources) -> Sources:
    with (checkout.folder / "LICENSE").open("a") as file:
        file.write("changed\n")
    return checkout


def of_an_sdist(checkout: Sources) -> Sources:
    """There is no git in it."""
    return unpacked(checkout.folder, checkout.folder.with_name("sdist"))


def within_another(checkout: Sources) -> Sources:
    """Its commit would be that of something else."""
    inner = checkout.copied(checkout.folder.with_name("inner")).folder
    shutil.rmtree(inner / ".git")
    return Sources(inner.rename(checkout.folder / "inner"))


@pytest.mark.parametrize(
    ("made", "named", "part"),
    [
        (unchanged, None, "+g{commit}"),
        (changed, None, "+g{commit}.dirty"),
        (of_an_sdist, None, "+g{commit}"),
        (within_another, None, ""),
        # As where a package or an image is built without git; an empty one is left out.
        (within_another, "1a2b3c4", "+g1a2b3c4"),
        (within_another, "", ""),
    ],
)
def test_a_wheel_says_of_which_commit_it_is(
    checkout: Sources,
    commit: str,
    tmp_path: Path,
    made: Callable[[Sources], Sources],
    named: str | None,
    part: str,
) -> None:
    """Its name has it too, so that pip takes it for another version than that of another commit."""
    variables = {} if named is None else {"UUIDD_COMMIT": named}
    wheel = made(checkout).wheel(UUIDD_EXTENSION="off", **variables)
    version = f"{uuidd.__version__}{part.format(commit=commit)}"
    assert wheel.path.name == f"uuidd-{version}-py3-none-any.whl"
    assert wheel.says(tmp_path / "wheel", SAYS_VERSION) == f"uuidd {version}\n"


def test_an_extension_of_a_checkout_is_used(checkout: Sources, commit: str, tmp_path: Path) -> None:
    """It belongs to the release, whatever the commit is."""
    need_compiler()
    wheel = checkout.wheel(UUIDD_EXTENSION="require")
    assert commit in wheel.path.name
    assert wheel.says(tmp_path / "wheel", MAKES_IDS) == "c 7\n"


def test_an_editable_installation_says_what_it_is(
    checkout: Sources, commit: str, tmp_path: Path
) -> None:
    """The commit is that of the installation, and the files may be changed later."""
    with building(checkout.folder, UUIDD_EXTENSION="off"):
        build_editable(str(tmp_path))
    version = f"{uuidd.__version__}+g{commit}.editable"
    assert output(sys.executable, "-c", SAYS_VERSION, cwd=checkout.folder) == f"uuidd {version}\n"

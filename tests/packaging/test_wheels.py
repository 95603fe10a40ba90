"""Wheels and editable installations, with the C extension and without it."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Callable
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

VARIABLES = ("UUIDD_EXTENSION", "CC", "CFLAGS", "LDFLAGS")
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


Build = Callable[..., Wheel]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What comes out of the sdist of this checkout."""
    folder = tmp_path_factory.mktemp("sdist")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(PROJECT)
        patch.setenv("PATH", "")
        name = build_sdist(str(folder))
    with tarfile.open(folder / name) as archive:
        archive.extractall(folder, filter="data")
    return folder / name.removesuffix(".tar.gz")


@pytest.fixture
def build(
    sources: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Build:
    """Builds a wheel of the sdist, in an environment with these variables only."""

    def build(folder: Path = sources, **variables: str) -> Wheel:
        with monkeypatch.context() as patch:
            for name in VARIABLES:
                patch.delenv(name, raising=False)
            for name, value in variables.items():
                patch.setenv(name, value)
            patch.chdir(folder)
            capfd.readouterr()
            path = tmp_path / build_wheel(str(tmp_path))
        return Wheel(path, capfd.readouterr().err)

    return build


def refusal(build: Build, capfd: pytest.CaptureFixture[str], **variables: str) -> str:
    """Return the one line with which a build fails."""
    with pytest.raises(SystemExit, match="1"):
        build(**variables)
    (line,) = capfd.readouterr().err.splitlines()
    return line


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


def test_a_compiler_makes_a_wheel_with_the_extension(build: Build, tmp_path: Path) -> None:
    """It is for this Python and this platform, and the compiler has nothing to complain of."""
    need_compiler()
    wheel = build(CFLAGS=STRICT, UUIDD_EXTENSION="require")
    assert wheel.told == ""
    python, abi, platform = wheel.tag.split("-")
    assert python == f"cp{sys.version_info[0]}{sys.version_info[1]}"
    assert abi.startswith(python)
    assert platform == sysconfig.get_platform().replace("-", "_")
    says = wheel.says(tmp_path / "site", "import uuidd_client; print(uuidd_client.implementation)")
    assert says == "c\n"


def test_without_a_compiler_the_wheel_is_for_every_python(build: Build, tmp_path: Path) -> None:
    """It says so in a line, and has nothing of any platform; it makes ids all the same."""
    wheel = build(PATH="")
    assert (wheel.tag, wheel.told) == ("py3-none-any", notice("there is no C compiler"))
    script = "import uuidd_client; print(uuidd_client.implementation, uuidd_client.uuid7().version)"
    assert (
        wheel.says(tmp_path / "site", f"import warnings; warnings.simplefilter('ignore')\n{script}")
        == "python 7\n"
    )


def test_both_wheels_differ_in_nothing_else(build: Build) -> None:
    """No C source and no part of the build is in either."""
    need_compiler()
    with_extension, without = build(), build(UUIDD_EXTENSION="off")
    assert with_extension.names() - without.names() == {EXTENSION}
    assert without.names() < with_extension.names()
    assert not {
        name for name in with_extension.names() if "extension/" in name or name.endswith(".c")
    }


def test_off_leaves_the_extension_out(build: Build) -> None:
    """As if there were no compiler, but nothing is said."""
    wheel = build(UUIDD_EXTENSION="off")
    assert (wheel.tag, wheel.told) == ("py3-none-any", "")


def test_a_wheel_is_always_the_same(build: Build, sources: Path, tmp_path: Path) -> None:
    """Bit for bit, wherever it is built."""
    need_compiler()
    elsewhere = shutil.copytree(sources, tmp_path / "elsewhere")
    first = build().path.read_bytes()
    assert build(elsewhere).path.read_bytes() == first


def test_what_an_editable_installation_compiled_is_in_no_wheel(
    build: Build, sources: Path, tmp_path: Path
) -> None:
    """It may be older than the sources."""
    checkout = shutil.copytree(sources, tmp_path / "checkout")
    (checkout / "client" / EXTENSION).write_bytes(b"old")
    assert EXTENSION not in build(checkout, UUIDD_EXTENSION="off").names()


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
    build: Build, capfd: pytest.CaptureFixture[str], variables: dict[str, str], cause: str
) -> None:
    """One line says why, and what to do; without that wish it is the notice."""
    assert refusal(build, capfd, UUIDD_EXTENSION="require", **variables) == required(cause)
    wheel = build(**variables)
    assert (wheel.tag, wheel.told) == ("py3-none-any", notice(cause))


def test_what_the_compiler_says_first_is_the_cause(build: Build) -> None:
    """As where the headers of Python are missing."""
    need_compiler()
    wheel = build(CFLAGS="-nostdinc -I/nowhere")
    assert wheel.tag == "py3-none-any"
    assert wheel.told.count("\n") == 1
    assert ".h: No such file or directory" in wheel.told


def test_another_interpreter_gets_no_extension(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The extension uses what only CPython has."""
    monkeypatch.setattr(sys.implementation, "name", "pypy")
    wheel = build()
    cause = "it is for CPython, and this is pypy"
    assert (wheel.tag, wheel.told) == ("py3-none-any", notice(cause))


def test_an_unknown_wish_is_refused(build: Build, capfd: pytest.CaptureFixture[str]) -> None:
    """In the words in which the client refuses it."""
    line = refusal(build, capfd, UUIDD_EXTENSION="never")
    assert line == "UUIDD_EXTENSION is 'never'; it must be 'off', 'require', or not set"


def test_a_build_leaves_nothing_behind(
    build: Build, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither if it succeeds nor if it fails."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    build()
    refusal(build, capfd, UUIDD_EXTENSION="require", PATH="")
    assert list(temporary.iterdir()) == []


# --- editable installations


@pytest.fixture
def checkout(sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout that is the current folder."""
    folder = shutil.copytree(sources, tmp_path / "checkout")
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(folder)
    return folder


def test_an_editable_installation_replaces_an_older_extension(
    checkout: Path, tmp_path: Path
) -> None:
    """By another file, so that running programs keep theirs; those of other Pythons stay."""
    need_compiler()
    place = checkout / "client" / EXTENSION
    other = place.with_name("_core.cpython-39-x86_64-linux-gnu.so")
    place.write_bytes(b"old")
    other.write_bytes(b"another's")
    with place.open("rb") as used:
        build_editable(str(tmp_path))
        assert used.read() == b"old"
    assert place.read_bytes().startswith(b"\x7fELF")
    assert {path.name for path in place.parent.glob("*_core*")} == {place.name, other.name}


def test_an_editable_installation_without_an_extension_leaves_no_older_one(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would not be of these sources."""
    place = checkout / "client" / EXTENSION
    place.write_bytes(b"old")
    monkeypatch.setenv("UUIDD_EXTENSION", "off")
    build_editable(str(tmp_path))
    assert not place.exists()

"""The C extension, as the client finds it when it is imported: good, bad, or not at all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

import uuidd
from tests.forks import PATIENCE
from tests.tools import need_compiler, output, run

pytestmark = pytest.mark.process

PROJECT = Path(__file__).parents[2]
SOURCES = PROJECT / "client" / "extension"

SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
OTHER = "_core.cpython-39-x86_64-linux-gnu.so"

ANOTHER_VERSION = """
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "uuidd_client._core"};
PyMODINIT_FUNC PyInit__core(void)
{
    PyObject *made = PyModule_Create(&module);
    PyModule_AddStringConstant(made, "VERSION", "0.0.9");
    return made;
}
"""


SAYS = "import uuidd_client; print(uuidd_client.implementation)"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package without an extension, in a folder of its own."""
    package = tmp_path_factory.mktemp("site") / "uuidd_client"
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(PROJECT / "client" / "uuidd_client", package, ignore=ignored)
    return package


@pytest.fixture
def place(package: Path) -> Iterator[Path]:
    """Where the extension belongs in this package; there is none yet."""
    yield package / f"_core{SUFFIX}"
    for path in package.glob("_core*"):
        if path.suffix == ".so":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(tmp_path_factory.mktemp("compiled") / "good", *SOURCES.glob("*.c"))


def compile_c(into: Path, *sources: Path) -> Path:
    defined = [f'-DUUIDD_VERSION="{uuidd.__version__}"', '-DUUIDD_SOURCE="tested"']
    includes = [f"-I{path}" for path in (sysconfig.get_path("include"), SOURCES)]
    command = (need_compiler(), "-shared", "-fPIC", *includes, *defined, *sources, "-o", into)
    output(*command, timeout=10 * PATIENCE)
    return into


def imported(package: Path, wanted: str | None = None) -> subprocess.CompletedProcess[str]:
    """Let another process import the package, and say what makes its ids."""
    others = {name: value for name, value in os.environ.items() if name != "UUIDD_EXTENSION"}
    chosen = {} if wanted is None else {"UUIDD_EXTENSION": wanted}
    path = os.pathsep.join([str(package.parent), str(PROJECT)])
    return run(sys.executable, "-c", SAYS, env={**others, "PYTHONPATH": path, **chosen})


def refusal(package: Path, wanted: str = "require") -> str:
    """Return the one line with which the import fails."""
    done = imported(package, wanted)
    assert (done.returncode, done.stdout) == (1, "")
    *_, line = done.stderr.splitlines()
    assert line.startswith("ImportError: ")
    assert "During handling" not in done.stderr
    return line.removeprefix("ImportError: ")


def warning(package: Path) -> str:
    """Return the one warning with which the import goes on without an extension."""
    done = imported(package)
    assert (done.returncode, done.stdout) == (0, "python\n"), done.stderr
    line, *quoted = done.stderr.splitlines()
    assert line.startswith("<string>:1: RuntimeWarning: ")
    # Newer versions of Python quote the line that imports it.
    assert [words.strip() for words in quoted] in ([], [SAYS])
    return line.removeprefix("<string>:1: RuntimeWarning: ")


def problem(cause: object) -> str:
    """Return how the lines on an extension that cannot be used begin."""
    return f"the C extension of uuidd_client cannot be used ({cause})"


REINSTALL = (
    "; ids are made in Python, which takes longer: install uuidd again, or set UUIDD_EXTENSION=off"
)
REQUIRED = (
    ", but UUIDD_EXTENSION is 'require': install uuidd again where there is a C compiler, or unset"
    " UUIDD_EXTENSION"
)


@pytest.mark.parametrize("wanted", [None, "", "require"])
def test_an_extension_that_is_installed_makes_the_ids(
    package: Path, place: Path, compiled: Path, wanted: str | None
) -> None:
    shutil.copy(compiled, place)
    done = imported(package, wanted)
    assert (done.stdout, done.stderr) == ("c\n", "")


@pytest.mark.parametrize(
    ("file", "wanted", "cause"),
    [
        (None, None, "it is not installed"),
        # As where two versions of Python share a folder; the error names it.
        (OTHER, None, f"it is for another Python: {OTHER}"),
        # Whatever it is.
        (f"_core{SUFFIX}", "off", None),
    ],
)
def test_where_no_extension_is_to_be_used_nothing_is_said_unless_it_is_required(
    package: Path, place: Path, file: str | None, wanted: str | None, cause: str | None
) -> None:
    if file:
        place.with_name(file).write_bytes(b"not read")
    done = imported(package, wanted)
    assert (done.stdout, done.stderr) == ("python\n", "")
    if cause:
        assert refusal(package) == problem(cause) + REQUIRED


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        (None, "{place}: invalid ELF header"),
        ("", "dynamic module does not define module export function (PyInit__core)"),
        # What is said to it, and what it says, may have changed.
        (ANOTHER_VERSION, f"{{place}}: it is of version 0.0.9, not {uuidd.__version__}"),
    ],
    ids=["no library", "no extension", "another version"],
)
def test_a_file_that_is_no_extension_of_ours_is_not_used(
    package: Path, place: Path, tmp_path: Path, source: str | None, cause: str
) -> None:
    if source is None:
        place.write_bytes(bytes(4096))
    else:
        (tmp_path / "other.c").write_text(source)
        compile_c(place, tmp_path / "other.c")
    said = problem(cause.format(place=place))
    assert warning(package) == said + REINSTALL
    assert refusal(package) == said + REQUIRED


def test_an_unknown_wish_is_refused(package: Path) -> None:
    line = "UUIDD_EXTENSION is 'never'; it must be 'off', 'require', or not set"
    assert refusal(package, "never") == line


@pytest.fixture(scope="module")
def zipped(package: Path) -> Path:
    """A zip with this package and the daemon's, as zipapp makes one."""
    folder = package.parent / "zipped"
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(package, folder / package.name, ignore=ignored)
    shutil.copytree(PROJECT / "uuidd", folder / "uuidd", ignore=ignored)
    return Path(shutil.make_archive(str(folder), "zip", folder))


def from_zip(zipped: Path, wanted: str) -> subprocess.CompletedProcess[str]:
    """Let another process import the package from a zip, with warnings as errors, and make ids."""
    made = f"{SAYS}; print(uuidd_client.Client().make('v4', 1)[0].version, uuidd_client.__file__)"
    path = {"PYTHONPATH": str(zipped), "UUIDD_EXTENSION": wanted}
    return run(sys.executable, "-W", "error", "-c", made, env={**os.environ, **path})


def test_in_a_zip_python_makes_the_ids(zipped: Path) -> None:
    """No extension can be loaded from there: that is no damage, so nothing is said."""
    done = from_zip(zipped, "")
    file = zipped / "uuidd_client" / "__init__.py"
    assert (done.stdout, done.stderr) == (f"python\n4 {file}\n", "")


def test_an_extension_that_is_required_of_a_zip_is_refused(zipped: Path) -> None:
    [*_, line] = from_zip(zipped, "require").stderr.splitlines()
    assert line == f"ImportError: {problem('uuidd_client was imported from a zip')}{REQUIRED}"


def test_uuidctl_says_so_in_one_line(package: Path) -> None:
    script = PROJECT / "uuidd" / "scripts" / "uuidctl"
    path = os.pathsep.join([str(package.parent), str(PROJECT)])
    done = run(
        sys.executable,
        script,
        "new",
        env={**os.environ, "PYTHONPATH": path, "UUIDD_EXTENSION": "require"},
    )
    line = f"uuidctl: {problem('it is not installed')}{REQUIRED}\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", line)

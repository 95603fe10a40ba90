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
    """A good extension."""
    return compile_c(tmp_path_factory.mktemp("compiled") / "good", *SOURCES.glob("*.c"))


def compile_c(into: Path, *sources: Path) -> Path:
    """Compile an extension."""
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


def assert_unusable(package: Path, cause: str) -> None:
    """Check that an extension is left alone for that *cause*."""
    assert warning(package) == problem(cause) + REINSTALL
    assert refusal(package) == problem(cause) + REQUIRED


@pytest.mark.parametrize("wanted", [None, "", "require"])
def test_an_extension_that_is_installed_makes_the_ids(
    package: Path, place: Path, compiled: Path, wanted: str | None
) -> None:
    shutil.copy(compiled, place)
    done = imported(package, wanted)
    assert (done.stdout, done.stderr) == ("c\n", "")


def test_off_leaves_the_extension_alone(package: Path, place: Path) -> None:
    """Whatever it is, nothing is said of it."""
    place.write_bytes(b"not read")
    done = imported(package, "off")
    assert (done.stdout, done.stderr) == ("python\n", "")


def test_without_an_extension_python_makes_the_ids(package: Path) -> None:
    """That is no problem, so nothing is said, unless somebody requires one."""
    done = imported(package)
    assert (done.stdout, done.stderr) == ("python\n", "")
    assert refusal(package) == problem("it is not installed") + REQUIRED


def test_an_extension_for_another_python_is_not_this_ones(package: Path, place: Path) -> None:
    """As where two versions of Python share a folder; the error names it."""
    place.with_name(OTHER).write_bytes(b"not read")
    done = imported(package)
    assert (done.stdout, done.stderr) == ("python\n", "")
    assert refusal(package) == problem(f"it is for another Python: {OTHER}") + REQUIRED


def test_a_file_that_is_no_library_is_not_loaded(package: Path, place: Path) -> None:
    place.write_bytes(bytes(4096))
    assert_unusable(package, f"{place}: invalid ELF header")


def test_a_library_that_is_no_extension_is_not_used(
    package: Path, place: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty.c").write_text("")
    compile_c(place, tmp_path / "empty.c")
    cause = "dynamic module does not define module export function (PyInit__core)"
    assert_unusable(package, cause)


def test_an_extension_of_another_version_is_not_used(
    package: Path, place: Path, tmp_path: Path
) -> None:
    """What is said to it, and what it says, may have changed."""
    (tmp_path / "older.c").write_text(ANOTHER_VERSION)
    compile_c(place, tmp_path / "older.c")
    assert_unusable(package, f"{place}: it is of version 0.0.9, not {uuidd.__version__}")


def test_an_unknown_wish_is_refused(package: Path) -> None:
    """A word that is misspelt does not pass for none."""
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

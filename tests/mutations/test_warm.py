"""Tests under mutants that hang, eat memory or crash; and runs that are broken off."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.coverage.measuring import TOP
from tests.mutations.executed import Executed
from tests.mutations.folders import memory, remove_left
from tests.mutations.warm import Warm, warm
from tests.rig import PATIENCE

pytestmark = pytest.mark.process

PRODUCT = b"""
def f():
    return 1

X = 1
"""

TESTS = """
import uuidd
import pytest; pytestmark = pytest.mark.quick

def test_type():
    assert isinstance(uuidd.f(), int)

def test_value():
    assert uuidd.f() == 1

def test_other():
    pass

def test_red():
    assert uuidd.f() == 2
"""

BROKEN_OFF = """
import sys
from pathlib import Path
from tests.mutations.executed import Executed
from tests.mutations.run import end_by_signal, in_copies
from tests.mutations.warm import warm

tree, product, broken = Path(sys.argv[1]), *map(str.encode, sys.argv[2:])

def tried(test, copy):
    print(copy.parent, flush=True)
    return collected.killers("uuidd/__init__.py", product, broken, [test])

end_by_signal()
with warm(tree, Executed({}, {}, []), ["test_it.py"], 1) as collected:
    list(in_copies(tried, ["test_it.py::test_type"], tree, 1))
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small project with quick tests."""
    for package in ("uuidd", "client/uuidd_client", "tests", "systemd"):
        (tmp_path / "tree" / package).mkdir(parents=True)
        (tmp_path / "tree" / package / "__init__.py").touch()
    tree = tmp_path / "tree"
    (tree / "uuidd/__init__.py").write_bytes(PRODUCT)
    (tree / "tests/mutations").symlink_to(TOP / "tests" / "mutations")
    (tree / "pyproject.toml").write_text('[tool.pytest.ini_options]\nmarkers = ["quick"]\n')
    (tree / "test_it.py").write_text(TESTS)
    return tree


@contextmanager
def collected(tree: Path, seconds: float = PATIENCE) -> Iterator[Warm]:
    """Provide the tests of the small project, each of which may take so long, and 64 MiB."""
    executed = Executed({}, {}, [])
    with warm(tree, executed, ["test_it.py"], 1, seconds=seconds, memory=1 << 26) as found:
        yield found


def killers(warm: Warm, new: bytes, *tests: str, old: bytes = b"return 1") -> dict[str, str] | None:
    found = warm.killers(
        "uuidd/__init__.py",
        PRODUCT,
        PRODUCT.replace(old, new),
        [f"test_it.py::{test}" for test in tests],
        until_one_fails=False,
    )
    return found and {test.partition("::")[2]: how for test, how in found.items()}


BOTH = ("test_type", "test_value")


def test_each_test_says_how_it_sees_a_mutant(tree: Path) -> None:
    """By its failure, by the memory that it takes, or by a crash; the others pass."""
    every = (*BOTH, "test_other")
    with collected(tree) as warm:
        assert killers(warm, b"return 3", *every) == {"test_value": "fail"}
        assert killers(warm, b"return [0] * 10**12", *every) == dict.fromkeys(BOTH, "memory")
        eats = b"x = [0]\n    while True: x += x"
        assert killers(warm, eats, *every) == dict.fromkeys(BOTH, "memory")
        exits = b"import os; os._exit(0)"
        assert killers(warm, exits, *every) == dict.fromkeys(BOTH, "crash")
        assert killers(warm, b"return 1 + 0", *every) == {}


def test_a_test_that_hangs_is_ended(tree: Path) -> None:
    """And the next one runs."""
    with collected(tree, seconds=0.2) as warm:
        assert killers(warm, b"while True: pass", *BOTH) == dict.fromkeys(BOTH, "time")


def test_a_test_that_fails_with_the_whole_code_sees_nothing(tree: Path) -> None:
    """It would fail under any mutant."""
    with collected(tree) as warm:
        assert killers(warm, b"return 3", "test_red", "test_type") == {}


def test_a_mutant_that_needs_an_import_is_not_tried(tree: Path) -> None:
    """The caller has to run it in another way."""
    with collected(tree) as warm:
        assert killers(warm, b"X = 2", "test_type", old=b"X = 1") is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_broken_off_leaves_nothing(tree: Path, number: signal.Signals) -> None:
    """Neither a folder nor a process; what SIGKILL leaves is removed by the next run."""
    told = tree / "told"
    os.mkfifo(told)
    tells = f"import os; open({str(told)!r}, 'w').write(str(os.getpid()))"
    broken = PRODUCT.decode().replace("return 1", f"{tells}\n    while True: pass")
    command = [sys.executable, "-c", BROKEN_OFF, str(tree), PRODUCT.decode(), broken]
    with subprocess.Popen(command, cwd=TOP, stdout=subprocess.PIPE, text=True) as run:
        try:
            assert run.stdout is not None
            folder = Path(run.stdout.readline().strip())
            fork = os.pidfd_open(int(told.read_text()))
        finally:
            run.send_signal(number)
    try:
        assert select.select([fork], [], [], PATIENCE)[0]
    finally:
        os.close(fork)
    assert folder.parent == memory()
    if number == signal.SIGKILL:
        remove_left(memory())
    assert not folder.exists()

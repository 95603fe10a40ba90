"""How tests see mutants: a mutant that is wrongly called killed would not be noticed."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.coverage.measuring import TOP
from tests.mutations.auto import killers
from tests.mutations.executed import Map
from tests.mutations.trial import IMPORT, Copy, copy
from tests.rig import PATIENCE, until

pytestmark = pytest.mark.process

PRODUCT = b"""
def f():
    return 1

X = 1
"""

TESTS = """
import pytest
import uuidd

@pytest.mark.quick
def test_red():
    assert uuidd.f() == 2

def test_type():
    assert isinstance(uuidd.f(), int)

@pytest.mark.quick
@pytest.mark.parametrize("x", [1])
def test_value(x):
    assert uuidd.f() == uuidd.X

def test_other():
    pass

@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.quick), 0])
def test_tiers(x):
    assert x == 1 or uuidd.f() == 1
"""

TIERS = "test_it.py::test_tiers"

EVERY = [f"test_it.py::test_{name}" for name in ("red", "type", "value", "other")]


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A small project."""
    for package in ("uuidd", "client/uuidd_client", "tests", "systemd"):
        (tmp_path / package).mkdir(parents=True)
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "uuidd/__init__.py").write_bytes(PRODUCT)
    for name in ("forks.py", "mutations"):
        (tmp_path / "tests" / name).symlink_to(TOP / "tests" / name)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\nmarkers = ['quick']\n")
    return tmp_path


@pytest.fixture
def project(origin: Path) -> Iterator[Copy]:
    """A copy of it, with tests."""
    with copy(origin) as made:
        (made.tree / "test_it.py").write_text(TESTS)
        yield made


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("return 1", "return 1 + 0", {}),
        ("return 1", "return 3", {"value": "fail"}),
        ("X = 1", "X = 2", {"value": "fail"}),
        ("return 1", "return [0] * 10**12", {"type": "memory", "value": "memory"}),
        # More than a run may have, though a machine has it.
        (
            "return 1",
            "return len(bytes(3 << 30)) - (3 << 30) + 1",
            {"type": "memory", "value": "memory"},
        ),
        ("return 1", "import os; os._exit(0)", {"type": "crash", "value": "crash"}),
        ("return 1", "while True: pass", {"type": "time", "value": "time"}),
    ],
    ids=["alike", "function", "import", "memory", "bounded memory", "exit", "hangs"],
)
def test_each_test_says_how_it_sees_a_mutant(
    project: Copy, old: str, new: str, found: dict[str, str]
) -> None:
    broken = PRODUCT.replace(old.encode(), new.encode())
    failed = {f"test_it.py::test_{name}": how for name, how in found.items()}
    limits = {test: 0.5 if failed.get(test) == "time" else PATIENCE for test in EVERY}
    trial = project.run_broken(
        "uuidd/__init__.py", broken, EVERY[1:], limits=limits, until_one_fails=False
    )
    assert trial.failed == failed
    assert (project.tree / "uuidd/__init__.py").read_bytes() == PRODUCT


def test_a_mutant_is_not_taken_for_the_one_before(project: Copy) -> None:
    """Though its file is as long, and as old: what was compiled of the other would be good."""
    for _ in range(3):
        for new, found in ((b"return 3", {"test_it.py::test_value": "fail"}), (b"return+1", {})):
            broken = PRODUCT.replace(b"return 1", new)
            trial = project.run_broken(
                "uuidd/__init__.py", broken, EVERY[1:], until_one_fails=False
            )
            assert trial.failed == found


def test_a_test_that_fails_with_the_whole_code_sees_nothing(project: Copy) -> None:
    """It would fail under any mutant."""
    broken = PRODUCT.replace(b"return 1", b"return 3")
    seen = killers(project, "uuidd/__init__.py", broken, EVERY, Map({}, {}))
    assert seen == {"test_it.py::test_value": "fail"}


@pytest.mark.parametrize(("named", "seen"), [([], {}), ([TIERS], {TIERS: "fail"})])
def test_only_a_test_that_is_named_runs_in_all_tiers(
    project: Copy, named: list[str], seen: dict[str, str]
) -> None:
    """Of the others that see a mutant the map knows what is quick, and the rest may be slow."""
    broken = PRODUCT.replace(b"return 1", b"return 3")
    every = killers(project, "uuidd/__init__.py", broken, [TIERS], Map({}, {}), named=named)
    assert every == seen


def test_what_a_trial_compiles_is_kept(origin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise each mutant would compile all tests again."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    with copy(origin) as made:
        (made.tree / "test_it.py").write_text(TESTS)
        made.run(EVERY)
        assert [*(made.tree / "__pycache__").glob("test_it*.pyc")]


def test_code_that_cannot_be_imported_is_not_seen_by_a_test(project: Copy) -> None:
    trial = project.run_broken("uuidd/__init__.py", b"raise ValueError", EVERY)
    assert (IMPORT in trial.failed, trial.caught) == (True, False)


RUNS = """
import sys
from pathlib import Path
from tests.mutations.trial import copy
with copy(Path(sys.argv[1])) as made:
    (made.tree / "test_it.py").write_text(sys.argv[2])
    print(made.tree.parent, flush=True)
    made.run(["test_it.py"])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_broken_off_leaves_nothing(origin: Path, number: signal.Signals) -> None:
    """Neither a folder nor a process."""
    told = origin / "told"
    os.mkfifo(told)
    test = f"def test(): open({str(told)!r}, 'w').write(str(__import__('os').getpid()))\n"
    test += "def test_that_hangs():\n    while True: pass\n"
    command = [sys.executable, "-c", RUNS, str(origin), test]
    with subprocess.Popen(
        command, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as run:
        try:
            assert run.stdout is not None
            folder = Path(run.stdout.readline().decode().strip())
            fork = os.pidfd_open(int(told.read_text()))
        finally:
            run.send_signal(number)
    try:
        assert select.select([fork], [], [], PATIENCE)[0]
    finally:
        os.close(fork)
    until(lambda: not folder.exists())

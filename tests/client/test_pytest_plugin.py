"""The plugin of pytest: its fixtures in test runs of a user's own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import blocks
from tests.rig import PATIENCE
from tests.tools import run

pytestmark = pytest.mark.process

FIXED = """
import datetime, time_machine, freezegun, pytest
from uuidd_client import uuid7, ulid, snowflake
FUTURE = datetime.datetime(2031, 5, 6, tzinfo=datetime.UTC)

def tell(record_property, *made):
    record_property("ids", " ".join(map(str, made)))

@pytest.mark.parametrize("n", range(4))
def test_plain(ids, record_property, n):
    tell(record_property, uuid7(), ids.uuid7(), ulid(), snowflake())

@time_machine.travel(FUTURE, tick=False)
def test_time_machine(ids, record_property):
    tell(record_property, uuid7(), ulid())

@freezegun.freeze_time(FUTURE)
def test_freezegun(ids, record_property):
    tell(record_property, uuid7(), ulid())

@pytest.mark.uuidd_ids(seed=3, worker=9, at=FUTURE)
def test_marked(ids, record_property):
    tell(record_property, uuid7(), ulid(), snowflake())
"""

DAEMON = """
import os, pathlib, pytest
from uuidd_client import Client, uuid7, snowflake

def test_first(uuidd):
    assert uuid7().is_safe.name == "safe"
    assert Client().status()["pid"] == uuidd.pid
    assert snowflake() >> 12 & 1023 == 0
    pathlib.Path("told").write_text(f"{uuidd.pid} {os.environ['UUIDD_SOCKET']}")
    raise AssertionError("on purpose")

@pytest.mark.uuidd_daemon(worker=8)
def test_second(uuidd):
    assert snowflake() >> 12 & 1023 == 8
"""

MISUSED = """
import pytest

@pytest.mark.uuidd_ids(seed=1)
def test_marked_without_ids():
    pass

@pytest.mark.uuidd_daemon(worker=1)
def test_marked_without_daemon(ids):
    pass

@pytest.mark.uuidd_ids(sed=7)
def test_misspelt(ids):
    pass

@pytest.mark.uuidd_daemon(3, 4)
def test_too_many(uuidd):
    pass

def test_ids_first(ids, uuidd):
    pass

def test_daemon_first(uuidd, ids):
    pass

@pytest.mark.uuidd_ids(seed=1)
class TestAll:
    def test_without_ids(self):
        pass

    def test_with_ids(self, ids):
        pass

@pytest.mark.usefixtures("ids")
@pytest.mark.uuidd_ids(seed=1)
def test_that_uses_them():
    pass
"""

UNUSED = """
import sys

def test_nothing_is_imported():
    assert not [name for name in sys.modules if name.partition(".")[0] in ("uuidd", "uuidd_client")]
"""


def pytest_in(
    folder: Path, code: str, *options: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run pytest on *code* in a folder of its own, where all warnings are errors."""
    (folder / "test_users.py").write_text(code)
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    env = {**ours, "UUIDD_SOCKET": str(folder / "absent"), **environment}
    words = [sys.executable, "-m", "pytest", "-q", "--strict-markers", *options]
    # A whole run of pytest, sometimes with workers of its own, on a busy machine.
    return run(*words, cwd=folder, env=env, timeout=6 * PATIENCE)


XUNIT1 = ("-o", "junit_family=xunit1")
"""The other one has no place for what a test tells."""


def told(folder: Path, *options: str, **environment: str) -> list[str]:
    """Return what the tests of a run have told, sorted by their names."""
    done = pytest_in(folder, FIXED, "--junit-xml=told.xml", *XUNIT1, *options, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(
        r'<testcase .*? name="(.*?)".*?<property name="ids" value="(.*?)"',
        (folder / "told.xml").read_text(),
        flags=re.DOTALL,
    )
    assert len(found) == 7
    return sorted(map(" ".join, found))


def test_fixed_ids_are_the_same_in_each_run(tmp_path: Path) -> None:
    first = told(tmp_path, "-p", "no:xdist", TZ="NST3:30", PYTHONHASHSEED="1")
    again = told(tmp_path, "-n", "2", TZ="NPT-5:45", PYTHONHASHSEED="2")
    assert again == first
    assert len({line.split(" ", 1)[1] for line in first if "plain" in line}) == 1


def test_a_private_daemon_ends_with_a_test_that_fails(tmp_path: Path) -> None:
    done = pytest_in(tmp_path, DAEMON)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "on purpose" in done.stdout
    pid, socket = (tmp_path / "told").read_text().split()
    assert not Path("/proc", pid).exists()
    assert not Path(socket).parent.exists()


def test_what_would_have_no_effect_is_an_error_that_says_so(tmp_path: Path) -> None:
    done = pytest_in(tmp_path, MISUSED)
    assert "3 passed, 6 errors" in done.stdout, done.stdout + done.stderr
    assert "Traceback" not in done.stdout
    for line in (
        "test_marked_without_ids has the marker uuidd_ids, but not the fixture ids: add ids to",
        "test_marked_without_daemon has the marker uuidd_daemon, but not the fixture uuidd: add",
        "test_misspelt: the marker uuidd_ids has got an unexpected keyword argument 'sed'; pytest",
        "test_too_many: the marker uuidd_daemon has too many positional arguments; pytest",
        "test_ids_first uses the fixtures ids and uuidd, and each of them says where",
        "test_daemon_first uses the fixtures uuidd and ids, and each of them says where",
    ):
        assert line in done.stdout, done.stdout


def test_the_plugin_imports_nothing_until_a_fixture_is_used(tmp_path: Path) -> None:
    done = pytest_in(tmp_path, UNUSED)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_tests_in_the_readme_pass(tmp_path: Path) -> None:
    examples = [block for block in blocks("client/README.md", "python") if "\ndef test_" in block]
    done = pytest_in(tmp_path, "\n".join(examples))
    assert "2 passed" in done.stdout, done.stdout + done.stderr

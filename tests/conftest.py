"""What all tests share: their tiers, and how many random examples they draw.

A test is of the *quick* tier unless it, its file or its folder has another mark: it starts no
process, and it fails if it does.

Hypothesis profiles: ``dev`` draws other examples each time, ``ci`` the same, ``thorough`` and
``fuzzing`` many, which ``--hypothesis-seed`` selects.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import signal
import stat
import sys
import tempfile
from collections.abc import Generator, Iterator
from hashlib import sha256
from pathlib import Path

import ifaddr  # noqa: F401  (its first import starts a process, which no quick test may)
import pytest
from hypothesis import settings

from tests.rig import SEED
from tests.tools import need_root
from uuidd_client import extension

settings.register_profile("dev", deadline=None, max_examples=30)
settings.register_profile("ci", deadline=None, max_examples=30, derandomize=True)
# hypothesis would take no seed in these if CI is set.
for profile, examples in (("thorough", 400), ("fuzzing", 200)):
    settings.register_profile(profile, deadline=None, max_examples=examples, derandomize=False)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

# For clients that are told no other, here and in the processes that tests start: a daemon on a busy
# machine is slow, and not silent.
os.environ["UUIDD_TIMEOUT"] = "20"

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As in the background of a shell that is no terminal's. Processes that tests start would ignore
    # it too, and some are to be ended by it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

_SOURCES = Path(__file__).parents[1] / "client" / "extension"

_SYSTEM = Path(__file__).parent / "system"

_STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec"}
"""Audit events of the calls that start a process."""

_running_quick = False


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to test an extension that was compiled from other sources than these."""
    # pytest-xdist would begin with the files that have most tests, and not with slow ones.
    config.option.loadscopereorder = False
    _end_after_a_crash(config)
    if extension.core is not None:
        files = sorted(path for path in _SOURCES.iterdir() if path.suffix in (".c", ".h"))
        digest = sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()
        if digest != extension.core.SOURCE:
            raise pytest.UsageError(
                f"{extension.core.__file__} was compiled from other sources than client/extension:"
                " run .venv/bin/pip install -e '.[test,lint]' again, or set UUIDD_EXTENSION=off"
            )


def _end_after_a_crash(config: pytest.Config) -> None:
    """Let a run of pytest-xdist end when one of its processes crashes: it might wait for ever."""
    if getattr(config.option, "maxworkerrestart", "") is None:
        # With --dist loadfile, version 3.8 may wait for a process that took the place of another.
        config.option.maxworkerrestart = "0"
    if hasattr(config, "workerinput"):
        # The end of a process is seen at the end of this pipe, which its forks hold open too.
        pipes = _pipes_to_write_to()
        null = os.open(os.devnull, os.O_WRONLY)

        def let_go() -> None:
            while pipes:
                os.dup2(null, pipes.pop(), inheritable=False)

        os.register_at_fork(after_in_child=let_go)


def _pipes_to_write_to() -> list[int]:
    """Return the descriptors of this process that lead into a pipe, but for standard error's."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            told = os.fstat(int(name))
            writes = fcntl.fcntl(int(name), fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY
            if stat.S_ISFIFO(told.st_mode) and writes and not os.path.samestat(told, os.fstat(2)):
                found.append(int(name))
    return found


def pytest_report_header() -> str:
    """Tell how to repeat the random moments of this run."""
    return f"random moments: TEST_SEED={SEED}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell it below failures too, because with -q there is no header."""
    if terminalreporter.stats.keys() & {"failed", "error"}:
        terminalreporter.write_line(pytest_report_header())


@pytest.fixture
def place() -> Iterator[Path]:
    """An empty folder for all users, with a short path: a socket's has 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="uuidd-test-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def as_root() -> None:
    """Skip the test unless this is root; in CI (env CI) let it fail."""
    need_root()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of ``tests/system``, and as ``quick`` what has no mark of a slower tier.

    Files that have others, or worlds, come first: what runs last should be short, or it runs alone.
    """
    slow = set()
    for item in items:
        if _SYSTEM in item.path.parents:
            item.add_marker("system")
        if not any(item.get_closest_marker(name) for name in ("process", "system", "thorough")):
            item.add_marker("quick")
        if not item.get_closest_marker("quick") or item.get_closest_marker("worlds"):
            slow.add(item.path)
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what was imported: it looks at all else often enough."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Tell the audit hook whether a test of the quick tier, or a fixture of one, runs."""
    global _running_quick
    _running_quick = item.get_closest_marker("quick") is not None
    try:
        return (yield)
    finally:
        _running_quick = False


def _refuse_processes(event: str, _: tuple[object, ...]) -> None:
    if _running_quick and event in _STARTS:
        raise RuntimeError(f"a test of the quick tier calls {event}: mark it process")


sys.addaudithook(_refuse_processes)

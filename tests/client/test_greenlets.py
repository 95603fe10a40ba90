"""Programs of gevent and eventlet, which replace parts of the standard library in their process."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.fakes import full_backlog
from tests.rig import PATIENCE, Daemon
from tests.tools import output, run

pytestmark = [pytest.mark.usefixtures("implementation"), pytest.mark.process]

PATCH = {
    "gevent": "import gevent.monkey, gevent.pool\ngevent.monkey.patch_all()\n"
    "pool = gevent.pool.Pool(300)\n",
    "eventlet": "import eventlet\neventlet.monkey_patch()\npool = eventlet.GreenPool(300)\n",
}

DRAW = """
import json, sys, time
from uuidd_client import snowflake, stats, uuid1, uuid7

def draw(_):
    made = []
    for _ in range(4):
        made += [uuid7().hex, uuid1().hex]
        if "snowflakes" in sys.argv:
            made.append(str(snowflake()))
        # Another greenlet goes on here.
        time.sleep(0)
    return made

made = [each for some in pool.imap(draw, range(300)) for each in some]
print(json.dumps([len(made), len(set(made)), bool(stats().fallback_blocks)]))
"""


@pytest.fixture(params=["with a daemon", "without a daemon"])
def environment(
    request: pytest.FixtureRequest, daemon: Daemon, tmp_path: Path
) -> Iterator[dict[str, str]]:
    """The environment of a program that has a daemon, or has none."""
    if request.param == "without a daemon":
        yield {**os.environ, "UUIDD_SOCKET": str(tmp_path / "none"), "UUIDD_FALLBACK": "1"}
    else:
        known = {"UUIDD_SOCKET": str(daemon.socket), "UUIDD_FALLBACK": "0"}
        yield {**os.environ, **known, "UUIDD_TIMEOUT": str(PATIENCE)}


@pytest.mark.parametrize("library", PATCH)
@pytest.mark.parametrize("imported", ["before", "after"])
def test_300_greenlets_draw_at_once(
    environment: dict[str, str], library: str, imported: str
) -> None:
    """None fails, and no id comes twice, whether the client was imported before the patch."""
    has_daemon = environment["UUIDD_FALLBACK"] == "0"
    program = ("import uuidd_client\n" if imported == "before" else "") + PATCH[library] + DRAW
    words = ["-W", "ignore", "-c", program, *(["snowflakes"] if has_daemon else [])]
    told = output(sys.executable, *words, env=environment, timeout=3 * PATIENCE)
    count = 300 * 4 * (3 if has_daemon else 2)
    assert json.loads(told) == [count, count, not has_daemon]


TURNS = """
import time
from uuidd_client import connection, stats
wait = connection.Stream.wait_for_bytes

def wait_for_bytes(*args):
    # As a handler of a signal may let others run, or a finalizer.
    time.sleep(0)
    wait(*args)

connection.Stream.wait_for_bytes = wait_for_bytes
from uuidd_client import uuid7
print({each.is_safe.name for each in pool.imap(lambda _: uuid7(), range(9))}, stats().last_error)
"""


@pytest.mark.parametrize("library", PATCH)
@pytest.mark.parametrize("imported", ["before", "after"])
def test_a_greenlet_that_draws_while_another_asks_the_daemon_does_not_disturb_it(
    daemon: Daemon, library: str, imported: str
) -> None:
    """Both are in one thread, so none of the two can wait for the other."""
    drawn = "import uuidd_client\nuuidd_client.uuid1()\n" if imported == "before" else ""
    known = {"UUIDD_SOCKET": str(daemon.socket), "UUIDD_TIMEOUT": str(PATIENCE)}
    environment = {**os.environ, **known}
    told = output(sys.executable, "-c", drawn + PATCH[library] + TURNS, env=environment)
    assert told.strip() == "{'safe'}"


@pytest.mark.parametrize("library", PATCH)
def test_a_greenlet_waits_no_longer_for_a_full_backlog(library: str, path: Path) -> None:
    """A daemon that accepts nobody any more holds no program past its time-out."""
    program = PATCH[library] + "from uuidd_client import uuid7\nprint(uuid7().is_safe.name)"
    known = {"UUIDD_SOCKET": str(path), "UUIDD_TIMEOUT": "0.1"}
    with full_backlog(path):
        done = run(sys.executable, "-W", "ignore", "-c", program, env={**os.environ, **known})
    assert (done.returncode, done.stdout) == (0, "unknown\n"), done.stderr

"""What is dropped when the machine was cloned, a snapshot restored, or the daemon restarted."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import uuidd_client
from tests.client.fakes import Time
from tests.client.lanes import Lanes, World
from tests.rig import Daemon
from uuidd_client import Backfill, Client, DaemonUnavailable, compiled, supply
from uuidd_client.fixed import FixedSessions
from uuidd_client.watch import latest, page_of

if TYPE_CHECKING:
    from uuidd_client.client import Form, Kind

pytestmark = pytest.mark.usefixtures("implementation")

HOOKS = """
after = []
def register_after_restore(function, *args, **kwargs):
    after.append(function)
"""

PROGRAM = """
import sys, warnings
warnings.simplefilter("ignore")
import uuidd_client
first = [uuidd_client.uuid1().node for _ in range(3)]
import snapshot_restore_py
for function in getattr(snapshot_restore_py, "after", []):
    function()
print(len(set(first)), uuidd_client.uuid1().node in first)
"""


def nodes(folder: Path, hooks: str) -> list[str]:
    """Return how many nodes a program has used before a restore, and whether it keeps the last.

    It has no daemon, and *hooks* is what its library of hooks contains.
    """
    (folder / "snapshot_restore_py.py").write_text(hooks)
    paths = [str(folder), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": ":".join(paths), "UUIDD_SOCKET": str(folder / "s")},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.split()


@pytest.mark.process
def test_the_hook_of_aws_lambda_is_registered_by_the_import(tmp_path: Path) -> None:
    """After a restore, the fallback has another node."""
    assert nodes(tmp_path, HOOKS) == ["1", "False"]


@pytest.mark.process
def test_another_library_of_that_name_does_no_harm(tmp_path: Path) -> None:
    """Ids are made all the same."""
    assert nodes(tmp_path, "") == ["1", "True"]


def test_the_fallback_of_a_clone_has_another_node(lanes: Lanes) -> None:
    """A node of 47 random bits, which its copy has too."""
    page_of(lanes.fd)
    client = Client(socket="/nowhere/s")
    before = client.uuid1()
    assert client.uuid1().node == before.node
    lanes.renew()
    after = client.uuid1()
    assert after.node != before.node
    assert client.uuid1().node == after.node


@pytest.mark.parametrize("form", ["uuid", "bytes"])
def test_a_list_is_made_again_if_the_machine_is_cloned_meanwhile(
    form: Form, tmp_path: Path, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone may be making the same list. If that happens on and on, the daemon is broken."""
    world = World(tmp_path / "s", time)
    # Random bits are read for each attempt.
    renewals = iter([True, False])
    attempts = 0

    def random(count: int) -> bytes:
        nonlocal attempts
        attempts += 1
        if next(renewals, True):
            world.lanes.renew()
        return os.urandom(count)

    for module in (supply, compiled):
        monkeypatch.setattr(module, "random_bytes", random)
    with world.server(), Client(world.path, _clock=time) as client:
        assert len(client.make("v7", 3, form)) in (3, 48)
        assert attempts == 2
        with pytest.raises(DaemonUnavailable, match="its epoch changed 8 times in one call"):
            client.make("v7", 3, form)
        assert attempts == 2 + 8


def test_steady_ids_rise_over_a_renewal(time: Time) -> None:
    """Here they are ahead of UTC, which was set back, and there is no daemon."""
    client = Client(socket="/nowhere/s", _clock=time)
    ids = [client.uuid7()]
    time.utc -= 10_000_000
    ids.append(client.uuid7())
    client.renew()
    ids.append(client.uuid7())
    assert ids == sorted(ids)
    assert len(set(ids)) == 3


def test_a_backfill_is_not_used_after_a_renewal(lanes: Lanes) -> None:
    """A clone makes the same ids for the same times."""
    page_of(lanes.fd)
    for renew in (uuidd_client.renew, lanes.renew):
        backfill = Backfill("v1")
        backfill.take(0)
        renew()
        with pytest.raises(RuntimeError, match="before a clone of the machine"):
            backfill.take(1)


def test_ids_of_a_seed_go_on_after_a_renewal() -> None:
    """They are the same in each run on purpose, and would begin again."""
    session = FixedSessions(1, 1 << 58, 5)()
    uuidd_client.renew()
    assert session.alive[0]


def test_all_connections_to_one_daemon_share_its_page(lanes: Lanes) -> None:
    """A page costs a descriptor; that of the next daemon takes its place."""
    page = page_of(lanes.fd)
    assert page_of(lanes.fd) is page
    other = Lanes()
    assert page_of(other.fd) is not page
    assert page_of(lanes.fd) is page
    page_of(other.fd)
    watch = latest()
    found = []
    for each in (lanes, other):
        each.renew()
        found.append((watch.moved, latest().moved))
    assert found == [(False, False), (True, False)]
    other.close()


def test_threads_draw_while_another_renews(daemon: Daemon) -> None:
    """No id comes twice, none fails, and no connection is closed in the middle of a request."""
    client = Client(daemon.socket, fallback=False)
    ended = threading.Event()
    drawn: list[list[object]] = []

    def draw(kind: Kind) -> None:
        one = client.factory(kind)
        ids: list[object] = []
        drawn.append(ids)
        while not ended.is_set():
            ids += [one(), *client.make(kind, 3)]

    with ThreadPoolExecutor(4) as threads:
        drawing = [threads.submit(draw, kind) for kind in ("v1", "v4", "v7", "flake")]
        try:
            for _ in range(5):
                before = [len(ids) for ids in drawn]
                client.renew()
                # Until each has made some with what it got since then.
                while any(len(ids) <= count + 8 for ids, count in zip(drawn, before, strict=False)):
                    assert not any(each.done() for each in drawing)
                    ended.wait(0.0001)
        finally:
            ended.set()
        for each in drawing:
            each.result()
    assert sum(len(set(ids)) for ids in drawn) == sum(map(len, drawn))


def held() -> tuple[int, int, int]:
    """Return how many descriptors, mappings of files, and objects of the client there are."""
    gc.collect()
    files = sum("/" in line for line in Path("/proc/self/maps").read_text().splitlines())
    types = [type(it) for it in gc.get_objects()]
    objects = sum(it is memoryview or "uuidd_client" in str(it) for it in types)
    return len(os.listdir("/proc/self/fd")), files, objects


def kept_by(step: Callable[[], None], count: int) -> tuple[int, int, int]:
    """Return how many more of each there are after *count* steps than after a few."""
    for _ in range(5):
        step()
    before = held()
    for _ in range(count):
        step()
    descriptors, files, objects = (now - then for now, then in zip(held(), before, strict=True))
    return descriptors, files, objects


def test_restarts_of_the_daemon_leave_nothing_behind(tmp_path: Path, time: Time) -> None:
    """Neither the page of the last daemon, nor anything of the fallback's time between two."""
    client = Client(tmp_path / "s", _clock=time)
    draws = [client.factory(kind) for kind in ("v1", "v4", "v7")]

    def draw() -> None:
        for each in draws * 2:
            # Past what was made ahead, and until the daemon is asked for a lease again.
            time.move(1)
            each()

    def restart() -> None:
        world = World(tmp_path / "s", time)
        with world.server() as server:
            draw()
            assert server.asked == 2, "a lease for v1 and one for v7"
        world.lanes.revoke()
        world.lanes.close()
        draw()

    descriptors, files, objects = kept_by(restart, 60)
    assert (descriptors, files) == (0, 0)
    assert objects < 60


def test_renewals_leave_nothing_behind(tmp_path: Path, time: Time) -> None:
    """Neither connections, nor what made ids before."""
    world = World(tmp_path / "s", time)
    client = Client(world.path, fallback=False, _clock=time)
    draws = [client.factory(kind) for kind in ("v1", "v4", "v7")]

    def renew() -> None:
        client.renew()
        for each in draws:
            each()

    with world.server():
        descriptors, files, objects = kept_by(renew, 300)
        client.close()
    assert (descriptors, files) == (0, 0)
    assert objects < 300

"""What ends a life of a process, and that nothing which was made ahead in it is used afterwards."""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import pytest

import uuidd_client
from tests.client.breaking import profiled
from tests.client.fakes import Time
from tests.client.lanes import Lanes, World
from tests.client.raw import of_child, raw_fork
from tests.rig import Daemon
from tests.tools import output
from uuidd_client import Backfill, Client, life
from uuidd_client.lease import Page
from uuidd_client.life import Life, current, renew
from uuidd_client.testing import FixedChannel

if TYPE_CHECKING:
    from uuidd_client.client import Kind

EACH_IMPLEMENTATION = pytest.mark.usefixtures("implementation")


def in_child(fork: Callable[[], int], check: Callable[[], bool]) -> bool:
    """Return what *check* finds in a child that *fork* makes."""
    return bool(int(of_child(lambda: b"%d" % check(), fork)))


@pytest.fixture
def unwiped(monkeypatch: pytest.MonkeyPatch) -> Iterator[Life]:
    """The life of this process on a kernel that wipes nothing in a child."""
    monkeypatch.setattr(life, "MADV_WIPEONFORK", 9999)
    renew()
    yield current()
    monkeypatch.undo()
    renew()


def test_a_kernel_that_wipes_nothing_in_a_child_stops_no_life(unwiped: Life) -> None:
    assert not unwiped.over


@pytest.mark.process
@pytest.mark.parametrize("fork", [os.fork, raw_fork])
def test_a_life_is_over_in_a_forks_child(fork: Callable[[], int]) -> None:
    """No call of the client has to have been made before."""
    mine = Life()
    assert in_child(fork, lambda: mine.over)
    assert not mine.over


@pytest.mark.process
def test_python_ends_a_life_where_an_older_kernel_does_not(unwiped: Life) -> None:
    """Forks by C are not noticed there."""
    assert in_child(os.fork, lambda: unwiped.over and not current().over)
    assert not in_child(raw_fork, lambda: unwiped.over)


@pytest.mark.parametrize("renew", [renew, uuidd_client.renew, Client("/nowhere/s").renew])
def test_a_renewal_ends_the_life(renew: Callable[[], None]) -> None:
    before = current()
    renew()
    assert before.over
    assert current() is current() is not before


@pytest.mark.parametrize("renewals", [0, 1, 3])
def test_two_threads_at_once_find_the_same_life(renewals: int) -> None:
    """However often others renew meanwhile; otherwise a renewal would end the life of one alone."""
    other = []

    def overtake(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is Life.__init__.__code__:
            # As if another thread ran now.
            sys.setprofile(None)
            for _ in range(renewals):
                current()
                renew()
            other.append(current())

    renew()
    found = profiled(current, overtake)
    assert found is other[0] is current()


def test_nothing_is_kept_of_a_life_that_is_over() -> None:
    # A client keeps its channel, and the life of that, until its next call. No client has this one.
    renew()
    before = weakref.ref(current())
    renew()
    current()
    gc.collect()
    assert before() is None


HOOKS = """
after = []
def register_after_restore(function, *args, **kwargs):
    after.append(function)
"""

PROGRAM = """
import warnings
warnings.simplefilter("ignore")
import uuidd_client
first = [uuidd_client.uuid1().node for _ in range(3)]
import snapshot_restore_py
for function in getattr(snapshot_restore_py, "after", []):
    function()
print(len(set(first)), uuidd_client.uuid1().node in first)
"""


@pytest.mark.process
@pytest.mark.parametrize(("hooks", "told"), [(HOOKS, ["1", "False"]), ("", ["1", "True"])])
def test_the_hook_of_aws_lambda_is_registered_with_the_import(
    tmp_path: Path, hooks: str, told: list[str]
) -> None:
    """Ids after a restore are of another node. Another library of that name does no harm."""
    (tmp_path / "snapshot_restore_py.py").write_text(hooks)
    paths = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    known = {"PYTHONPATH": ":".join(paths), "UUIDD_SOCKET": str(tmp_path / "s")}
    assert output(sys.executable, "-c", PROGRAM, env={**os.environ, **known}).split() == told


def test_a_cutter_of_a_life_that_a_clone_has_ended_makes_no_id(lanes: Lanes) -> None:
    """It looks at one word of its life alone, and may have had a block since the clone."""
    mine = current()
    mine.passed(lanes.page)
    lanes.renew()
    current()
    assert mine.alive[0] == 0


def test_the_next_life_begins_with_the_page_of_the_last(lanes: Lanes) -> None:
    current().passed(lanes.page)
    renew()
    following = current()
    before = following.over
    lanes.renew()
    assert (before, following.over) == (False, True)


def test_a_clone_of_before_the_page_came_ends_no_life(lanes: Lanes) -> None:
    lanes.renew()
    mine = Life()
    mine.passed(lanes.page)
    assert not mine.over


def test_what_was_made_before_a_page_came_ends_with_it(lanes: Lanes) -> None:
    """It would notice no clone. That is so for each page that is another one."""
    mine = Life()
    for page in (lanes.page, Page(lanes.fd)):
        before = mine.watch
        mine.passed(page)
        assert before.horizon[0] == 0
        assert mine.watch.horizon[0] == life.FOREVER
        assert not mine.over


def test_a_page_that_is_known_ends_nothing(lanes: Lanes) -> None:
    mine = Life()
    mine.passed(lanes.page)
    before = mine.watch
    mine.passed(lanes.page)
    assert mine.watch is before
    assert before.horizon[0] == life.FOREVER


ENDS = pytest.mark.parametrize("end", [lambda _: renew(), Lanes.renew], ids=["renewal", "clone"])


@ENDS
@EACH_IMPLEMENTATION
@pytest.mark.parametrize("kind", ["v1", "v7", "flake", "snowflake"])
def test_no_block_is_used_in_the_next_life(
    end: Callable[[Lanes], None], kind: Kind, world: World, time: Time
) -> None:
    world.lanes.refusing = True
    with world.server() as server, Client(world.path, fallback=False, _clock=time) as client:
        draw = client.factory(kind)
        ids = [draw() for _ in range(3)]
        assert len(server.requests) == 1
        end(world.lanes)
        ids += [draw() for _ in range(3)]
        assert len(server.requests) == 2
    assert len(set(ids)) == 6


@ENDS
@EACH_IMPLEMENTATION
def test_the_fallback_of_the_next_life_has_another_node(
    end: Callable[[Lanes], None], lanes: Lanes
) -> None:
    current().passed(lanes.page)
    client = Client(socket="/nowhere/s")
    before = client.uuid1()
    assert client.uuid1().node == before.node
    end(lanes)
    after = client.uuid1()
    assert after.node != before.node
    assert client.uuid1().node == after.node


@ENDS
def test_a_backfill_is_not_used_in_the_next_life(
    end: Callable[[Lanes], None], lanes: Lanes
) -> None:
    """A clone makes the same ids for the same times."""
    current().passed(lanes.page)
    backfill = Backfill("v1")
    backfill.take(0)
    end(lanes)
    with pytest.raises(RuntimeError, match="before a clone of the machine"):
        backfill.take(1)


def test_ids_of_a_seed_go_on_after_a_renewal() -> None:
    """They are the same in each run on purpose, and would begin again."""
    fixed = FixedChannel(1, 1 << 58, 5)
    first = fixed.in_life(current(), None)
    renew()
    assert fixed.in_life(current(), first) is first is fixed


@EACH_IMPLEMENTATION
def test_threads_draw_while_another_renews(daemon: Daemon) -> None:
    client = Client(daemon.socket, fallback=False)
    ended = threading.Event()
    drawn: dict[Kind, list[object]] = {"v1": [], "v4": [], "v7": [], "flake": []}

    def draw(kind: Kind, ids: list[object]) -> None:
        one = client.factory(kind)
        while not ended.is_set():
            ids += [one(), *client.make(kind, 3)]

    with ThreadPoolExecutor(4) as threads:
        drawing = [threads.submit(draw, kind, ids) for kind, ids in drawn.items()]
        try:
            for _ in range(5):
                before = {kind: len(ids) for kind, ids in drawn.items()}
                client.renew()
                # Until each has made some with what it got since then.
                while any(len(ids) <= before[kind] + 8 for kind, ids in drawn.items()):
                    assert not any(each.done() for each in drawing)
                    ended.wait(0.0001)
        finally:
            ended.set()
        for each in drawing:
            each.result()
    assert [kind for kind, ids in drawn.items() if len(set(ids)) < len(ids)] == []


def held() -> tuple[int, int, int]:
    """Return how many descriptors, mappings of files, and objects of the client there are."""
    gc.collect()
    files = sum("/" in line for line in Path("/proc/self/maps").read_text().splitlines())
    types = Counter(map(type, gc.get_objects()))
    of_client = (each for each in types if each is memoryview or "uuidd_client" in str(each))
    return len(os.listdir("/proc/self/fd")), files, sum(types[each] for each in of_client)


def kept_by(step: Callable[[], None], count: int) -> tuple[int, int, int]:
    """Return how many more of each there are after *count* steps than after a few."""
    for _ in range(5):
        step()
    before = held()
    for _ in range(count):
        step()
    descriptors, files, objects = (now - then for now, then in zip(held(), before, strict=True))
    return descriptors, files, objects


@EACH_IMPLEMENTATION
def test_restarts_of_the_daemon_leave_nothing_behind(tmp_path: Path, time: Time) -> None:
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
            assert server.asked == 1
        world.lanes.revoke()
        world.lanes.close()
        draw()

    descriptors, files, objects = kept_by(restart, 30)
    assert (descriptors, files) == (0, 0)
    assert objects < 30


@EACH_IMPLEMENTATION
def test_renewals_leave_nothing_behind(world: World, time: Time) -> None:
    client = Client(world.path, fallback=False, _clock=time)
    draws = [client.factory(kind) for kind in ("v1", "v4", "v7")]

    def renewal() -> None:
        client.renew()
        for each in draws:
            each()

    with world.server():
        descriptors, files, objects = kept_by(renewal, 100)
        client.close()
    assert (descriptors, files) == (0, 0)
    assert objects < 100

"""What ends a life of a process, and that nothing which was made ahead in it is used afterwards."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import pytest

import uuidd_client
from tests.client.breaking import profiled
from tests.client.fakes import Time
from tests.client.lanes import Lanes, World
from tests.client.raw import raw_fork
from tests.rig import Daemon
from uuidd_client import Backfill, Client, DaemonUnavailable, life
from uuidd_client.fixed import FixedChannels
from uuidd_client.lease import Page
from uuidd_client.life import Life, current, renew

if TYPE_CHECKING:
    from uuidd_client.client import Form, Kind

YES, NO = 41, 42

EACH_IMPLEMENTATION = pytest.mark.usefixtures("implementation")


def in_fork(check: Callable[[], bool]) -> bool:
    """Return what *check* finds in a child of os.fork."""
    return _in_child(os.fork, check)


def in_raw_fork(check: Callable[[], bool]) -> bool:
    """Return what *check* finds in a child that a system call forked, of which no hook knows."""
    return _in_child(raw_fork, check)


def in_multiprocessing(check: Callable[[], bool]) -> bool:
    """Return what *check* finds in a child that multiprocessing forked."""
    child = multiprocessing.get_context("fork").Process(
        target=lambda: os._exit(YES if check() else NO)
    )
    child.start()
    child.join(20)
    assert child.exitcode in (YES, NO)
    return child.exitcode == YES


def _in_child(fork: Callable[[], int], check: Callable[[], bool]) -> bool:
    with warnings.catch_warnings():
        # That other threads may run, of which the child does nothing.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = fork()
    if not pid:
        try:
            os._exit(YES if check() else NO)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status in (YES, NO)
    return status == YES


FORKS = [in_fork, in_multiprocessing, in_raw_fork]


@pytest.fixture
def unwiped(monkeypatch: pytest.MonkeyPatch) -> Iterator[Life]:
    """The life of this process on a kernel that wipes nothing in a child."""
    monkeypatch.setattr(life, "MADV_WIPEONFORK", 9999)
    renew()
    yield current()
    monkeypatch.undo()
    renew()


# --- a fork


@pytest.mark.process
@pytest.mark.parametrize("fork", FORKS)
def test_a_life_is_over_in_a_forks_child(fork: Callable[[Callable[[], bool]], bool]) -> None:
    """Whoever forked; no call of the client has to have been made before."""
    mine = Life()
    assert fork(lambda: mine.over)


@pytest.mark.process
@pytest.mark.parametrize("fork", FORKS)
def test_a_fork_does_not_end_the_life_of_the_parent(
    fork: Callable[[Callable[[], bool]], bool],
) -> None:
    """What the parent made ahead is its own."""
    mine = current()
    fork(lambda: True)
    assert current() is mine


@pytest.mark.process
@pytest.mark.parametrize("fork", FORKS)
def test_a_child_has_a_life_of_its_own(fork: Callable[[Callable[[], bool]], bool]) -> None:
    """That of its parent is over there, and the child's goes on."""
    mine = current()
    assert fork(lambda: current() is not mine and current() is current() and not current().over)


@pytest.mark.process
@pytest.mark.parametrize("fork", [in_fork, in_multiprocessing])
def test_python_ends_a_life_where_an_older_kernel_does_not(
    unwiped: Life, fork: Callable[[Callable[[], bool]], bool]
) -> None:
    """Forks by C are not noticed there."""
    assert fork(lambda: unwiped.over and not current().over)
    assert not in_raw_fork(lambda: unwiped.over)


# --- a renewal


def test_a_renewal_ends_the_life() -> None:
    """The next one goes on."""
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
    """Thousands of renewals take no more memory than one."""
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
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": ":".join(paths), "UUIDD_SOCKET": str(tmp_path / "s")},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == told


# --- a clone of the machine


def test_a_clone_that_the_page_tells_of_ends_the_life(lanes: Lanes) -> None:
    """At once, without a call to the daemon."""
    mine = Life()
    mine.passed(lanes.page)
    before = mine.over
    lanes.renew()
    assert (before, mine.over) == (False, True)


def test_a_cutter_of_a_life_that_a_clone_has_ended_makes_no_id(lanes: Lanes) -> None:
    """It looks at one word of its life alone, and may have had a block since the clone."""
    mine = current()
    mine.passed(lanes.page)
    lanes.renew()
    current()
    assert mine.alive[0] == 0


def test_the_next_life_begins_with_the_page_of_the_last(lanes: Lanes) -> None:
    """So a clone ends that one too, before it has asked the daemon."""
    current().passed(lanes.page)
    renew()
    following = current()
    before = following.over
    lanes.renew()
    assert (before, following.over) == (False, True)


def test_a_clone_of_before_the_page_came_ends_no_life(lanes: Lanes) -> None:
    """The page counts all of them."""
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
    """Each connection to the daemon is passed it."""
    mine = Life()
    mine.passed(lanes.page)
    before = mine.watch
    mine.passed(lanes.page)
    assert mine.watch is before
    assert before.horizon[0] == life.FOREVER


# --- what is made in the next life


def renewed(_: Lanes) -> None:
    """Renew this process."""
    renew()


def cloned(lanes: Lanes) -> None:
    """Let the page of the daemon tell of a clone."""
    lanes.renew()


ENDS = pytest.mark.parametrize("end", [renewed, cloned])


@ENDS
@EACH_IMPLEMENTATION
@pytest.mark.parametrize("kind", ["v1", "v7", "flake", "snowflake"])
def test_no_block_is_used_in_the_next_life(
    end: Callable[[Lanes], None], kind: Kind, tmp_path: Path, time: Time
) -> None:
    """Not by a function that has drawn before, and not if the clock stands still."""
    world = World(tmp_path / "s", time)
    world.lanes.refusing = True
    with world.server() as server, Client(world.path, fallback=False, _clock=time) as client:
        draw = client.factory(kind)
        ids = [draw() for _ in range(3)]
        assert len(server.requests) == 1
        end(world.lanes)
        ids += [draw() for _ in range(3)]
        assert len(server.requests) == 2
    assert len(set(ids)) == 6
    world.lanes.close()


@ENDS
@EACH_IMPLEMENTATION
def test_no_lease_is_used_in_the_next_life(
    end: Callable[[Lanes], None], tmp_path: Path, time: Time
) -> None:
    """The next one is asked for as in a process that has just begun."""
    world = World(tmp_path / "s", time)
    with world.server() as server, Client(world.path, fallback=False, _clock=time) as client:
        draw = client.factory("v7")
        for lives in range(1, 4):
            while server.asked < lives:
                time.move(0.2)
                draw()
            for _ in range(10):
                time.move(0.2)
                draw()
            assert server.asked == lives
            end(world.lanes)
    world.lanes.close()


@ENDS
@EACH_IMPLEMENTATION
def test_the_fallback_of_the_next_life_has_another_node(
    end: Callable[[Lanes], None], lanes: Lanes
) -> None:
    """A node of 47 random bits, which a copy has too."""
    current().passed(lanes.page)
    client = Client(socket="/nowhere/s")
    before = client.uuid1()
    assert client.uuid1().node == before.node
    end(lanes)
    after = client.uuid1()
    assert after.node != before.node
    assert client.uuid1().node == after.node


class Cloning(Time):
    """A clock: so often as *clones* says, *lanes* tell of another clone when it is read."""

    lanes: Lanes
    clones = 0

    def utc_ns(self) -> int:
        """Return UTC in nanoseconds since 1970."""
        if self.clones:
            self.clones -= 1
            self.lanes.renew()
        return super().utc_ns()


@pytest.mark.parametrize("form", ["uuid", "bytes"])
@EACH_IMPLEMENTATION
def test_a_list_is_made_again_if_the_machine_is_cloned_meanwhile(
    form: Form, tmp_path: Path
) -> None:
    """A clone may be making the same list. If that happens on and on, the daemon is broken."""
    time = Cloning(10)
    world = World(tmp_path / "s", time)
    time.lanes = world.lanes
    time.lanes.refusing = True
    with world.server() as server, Client(world.path, _clock=time) as client:
        client.make("v7", 3, form)
        time.clones = 1
        before = len(server.requests)
        assert len(client.make("v7", 3, form)) in (3, 48)
        assert len(server.requests) == before + 2
        time.clones = 1 << 30
        with pytest.raises(DaemonUnavailable, match="told of 100 clones in one call"):
            client.make("v7", 3, form)
    world.lanes.close()


@EACH_IMPLEMENTATION
@pytest.mark.parametrize(
    ("kind", "back"),
    [("v6", 0), *((kind, back) for kind in ("v7", "ulid", "flake") for back in (0, 10_000_000))],
)
def test_ids_rise_over_a_renewal(time: Time, kind: Kind, back: int) -> None:
    """Those that do not follow UTC rise also where UTC was set back."""
    client = Client(socket="/nowhere/s", _clock=time)
    ids: list[Any] = [*client.make(kind, 100)]
    time.utc -= back
    ids += client.make(kind, 1)
    client.renew()
    time.move(0.000_001)
    ids += client.make(kind, 1)
    assert ids == sorted(set(ids))


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


@pytest.mark.process
@pytest.mark.parametrize("fork", FORKS)
def test_a_backfill_is_not_used_in_a_forks_child(
    fork: Callable[[Callable[[], bool]], bool],
) -> None:
    """The parent uses it on."""
    backfill = Backfill("v7")

    def refused() -> bool:
        with pytest.raises(RuntimeError, match="made before a fork"):
            backfill.take(0)
        return True

    assert fork(refused)
    assert backfill.take(0).version == 7


def test_ids_of_a_seed_go_on_after_a_renewal() -> None:
    """They are the same in each run on purpose, and would begin again."""
    new = FixedChannels(1, 1 << 58, 5)
    first = new(current(), None)
    renew()
    assert new(current(), first) is first


@EACH_IMPLEMENTATION
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


# --- what is left behind


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


@EACH_IMPLEMENTATION
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
            assert server.asked == 1
        world.lanes.revoke()
        world.lanes.close()
        draw()

    descriptors, files, objects = kept_by(restart, 60)
    assert (descriptors, files) == (0, 0)
    assert objects < 60


@EACH_IMPLEMENTATION
def test_renewals_leave_nothing_behind(tmp_path: Path, time: Time) -> None:
    """Neither connections, nor what made ids before."""
    world = World(tmp_path / "s", time)
    client = Client(world.path, fallback=False, _clock=time)
    draws = [client.factory(kind) for kind in ("v1", "v4", "v7")]

    def renewal() -> None:
        client.renew()
        for each in draws:
            each()

    with world.server():
        descriptors, files, objects = kept_by(renewal, 300)
        client.close()
    world.lanes.close()
    assert (descriptors, files) == (0, 0)
    assert objects < 300


def test_the_functions_of_the_module_renew_the_process() -> None:
    """A snapshot is one of all clients of the process."""
    for end in (uuidd_client.renew, Client("/nowhere/s").renew):
        before = current()
        end()
        assert before.over

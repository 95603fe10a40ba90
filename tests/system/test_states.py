"""A state file that is not what the daemon left: nothing comes twice, and the file is kept."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.core.draws import Draws
from tests.core.switching import take
from tests.judge import Span, assert_apart, of_block
from tests.rig import Daemon, until
from tests.system.callers import Callers
from tests.system.fake_time import FakeTime
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.generation import LANE_BITS
from uuidd.core.timeline.outcomes import NeedsSave, NoneFree
from uuidd.core.timeline.state import Node
from uuidd.core.timeline.steady import Steady
from uuidd.core.timeline.utc import Utc
from uuidd.statefile import FORMAT, machine_hash
from uuidd.store import FolderStore

NOW = 0x1EC9414C232AB00
BACK = NOW + TICKS_PER_SECOND
"""Where UTC steps back to."""

LEAD = 19 * TICKS_PER_SECOND
"""How far steady is ahead when its state is lost: a second less than what is named an exception."""

AFTER = 20 * TICKS_PER_SECOND + 2000

FIXED = Node(0x00163E000001, "given")


class Host:
    """A host's store and timelines, without the daemon around them, and all that they gave out."""

    def __init__(self, folder: Path, node: Node | None) -> None:
        self.folder = folder
        self._node = node
        # Random nodes never come again; generations do, which is the worst case.
        self._random = Draws(step=0)
        self.given: list[Span] = []
        """Of utc."""
        self.steady: list[int] = []
        """The ends of blocks of the steady timeline."""

    def start(self, *, now: int) -> tuple[FolderStore, Utc, Steady]:
        """Load the state, begin from it, and save the first horizon."""
        store = FolderStore(self.folder, machine="here")
        loaded = store.load()
        utc = Utc(loaded, machine="here", now=now, random=self._random, node=self._node)
        mark = None if loaded is None else loaded.steady
        steady = Steady(mark, now=now, elapsed=0, lost=store.lost)
        self.save(store, utc, steady, now=now)
        return store, utc, steady

    def save(self, store: FolderStore, utc: Utc, steady: Steady, *, now: int) -> None:
        """Save with a horizon 20 s ahead."""
        lead = 20 * TICKS_PER_SECOND
        mark = steady.begin_save(now=now, elapsed=0, reach=lead)
        state = utc.begin_save(now=now, reach=lead, steady=mark)
        store.save(state)
        utc.end_save(state, completed=True)
        steady.end_save(mark, completed=True)

    def draw(self, store: FolderStore, utc: Utc, steady: Steady, *, now: int) -> None:
        """Take a short block of utc, and a whole one and one of steady if there is any."""
        try:
            blocks = [take(utc, 1000, now=now)]
        except NeedsSave:
            self.save(store, utc, steady, now=now)
            blocks = [take(utc, 1000, now=now)]
        with contextlib.suppress(NoneFree):
            blocks.append(take(utc, 1000, now=now, whole=True))
        self.given += map(of_block, blocks)
        with contextlib.suppress(NoneFree):
            first, count = steady.take(1000, now=now, elapsed=0)
            assert not self.steady or first >= self.steady[-1], "steady went back"
            self.steady.append(first + count)


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory, because it is synced thousands of times."""
    folder = Path(tempfile.mkdtemp(prefix="uuidd-", dir="/dev/shm"))
    yield folder
    shutil.rmtree(folder)


def in_use(folder: Path, node: Node | None) -> tuple[Host, bytes]:
    """Return a host that has given out of two generations, and led UTC by 19 s; and its state."""
    host = Host(folder, node)
    store, utc, steady = host.start(now=NOW)
    with contextlib.closing(store):
        for now in (BACK + LEAD, BACK + LEAD + 1000, BACK, BACK + 500):
            host.save(store, utc, steady, now=now)
            host.draw(store, utc, steady, now=now)
    assert len({each.place[1] >> LANE_BITS for each in host.given}) == 2
    assert len(host.steady) > 1
    return host, (folder / "state").read_bytes()


def begin_from(host: Host, damaged: bytes, *, now: int) -> None:
    """Start *host* from a state of these bytes: they are kept, reported, and nothing repeats."""
    (host.folder / "state").write_bytes(damaged)
    store, utc, steady = host.start(now=now)
    with contextlib.closing(store):
        assert store.set_aside is not None
        kept = host.folder / "state.unusable-1"
        assert kept.read_bytes() == damaged
        kept.unlink()
        for later in (0, 500, LEAD):
            host.draw(store, utc, steady, now=now + later)
        # From here on steady is held back no more.
        before = len(host.steady)
        host.draw(store, utc, steady, now=now + AFTER)
        assert len(host.steady) == before + 1


def torn(state: bytes) -> list[bytes]:
    """Return the state, cut off at each of its bytes."""
    return [state[:at] for at in range(len(state))]


def flipped(state: bytes) -> list[bytes]:
    """Return the state with one bit changed, for each of its bits."""
    whole = int.from_bytes(state)
    return [(whole ^ 1 << bit).to_bytes(len(state)) for bit in range(8 * len(state))]


@pytest.mark.parametrize(("damaged", "back"), [(torn, 0.0), (torn, 0.5), (flipped, 0.0)])
def test_a_file_damaged_anywhere_repeats_nothing(
    memory: Path, damaged: Callable[[bytes], list[bytes]], back: float
) -> None:
    """With a random node not even where the clock is where it was before, or half a second back."""
    host, state = in_use(memory, None)
    before = list(host.steady)
    now = BACK + 500 - int(back * TICKS_PER_SECOND)
    for data in damaged(state):
        # Each is the first loss of all, so each has only the run before it to meet.
        host.steady = list(before)
        begin_from(host, data, now=now)
    assert_apart(host.given)


def test_a_file_torn_at_any_byte_repeats_nothing_under_a_fixed_node(memory: Path) -> None:
    """The floor holds where the clock is past what was given: what else is named an exception."""
    host, state = in_use(memory, FIXED)
    now = BACK + LEAD + 1000
    for data in torn(state):
        begin_from(host, data, now=now + 1)
        now += AFTER + 1
    assert_apart(host.given)
    assert {each.place[0] for each in host.given} == {FIXED.value}


def signed(body: bytes, version: int = FORMAT) -> bytes:
    """Return a state file of *body* whose checksum is right."""
    return f"uuidd-state {version} sha256:{hashlib.sha256(body).hexdigest()}\n".encode() + body


def of_another_host(state: bytes) -> bytes:
    """Return the same state as another host left it."""
    body = json.loads(state.partition(b"\n")[2])
    assert body["machine"] == machine_hash()
    return signed(json.dumps({**body, "machine": "0" * 64}).encode())


OTHER_FILES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda state: b"", "it is damaged"),
    "torn": (lambda state: state[: len(state) // 2], "it is damaged"),
    "of another host": (of_another_host, "it is of another host"),
    "newer": (lambda state: signed(state.partition(b"\n")[2], FORMAT + 1), "it has format "),
}


@pytest.mark.parametrize("name", OTHER_FILES)
def test_a_daemon_sets_aside_what_it_cannot_use(
    daemon: Daemon, fake_time: FakeTime, name: str
) -> None:
    """It says so, keeps the file, goes on under another node, and holds steady back for 20 s."""
    change, cause = OTHER_FILES[name]
    callers = Callers(daemon, ahead=lambda: 60)
    callers.draw()
    callers.hang_up()
    # One way or the other: both are ends.
    (daemon.kill if name in ("empty", "newer") else daemon.stop)()
    path = daemon.state / "state"
    changed = change(path.read_bytes())
    path.write_bytes(changed)
    daemon.start()
    assert (daemon.state / "state.unusable-1").read_bytes() == changed
    (line,) = [line for line in daemon.lines if "ERROR: the state could not be used" in line]
    assert cause in line
    assert "set aside as state.unusable-1" in line
    callers.draw()
    assert len(callers.nodes) == 2
    for caller in callers.of_steady:
        (refused,) = caller.refused
        assert refused.startswith("unavailable: the state was lost, so steady starts in ")
    fake_time.set(21)

    def are_served() -> bool:
        before = [len(caller.refused) for caller in callers.of_steady]
        callers.draw()
        return before == [len(caller.refused) for caller in callers.of_steady]

    # Our client repeats the refusal for a quarter of a second before it asks again.
    until(are_served)
    callers.hang_up()
    assert all(len({*caller.refused}) == 1 for caller in callers.of_steady)
    assert all(not caller.refused for caller in callers.of_utc)
    callers.assert_sound()


@pytest.mark.parametrize("kill", [False, True])
def test_an_older_state_of_the_same_host_repeats_nothing_while_utc_goes_on(
    daemon: Daemon, fake_time: FakeTime, kill: bool
) -> None:
    """A backup that is put back knows less, and what it does not know of lies before now."""
    callers = Callers(daemon, ahead=lambda: 60)
    end = daemon.kill if kill else daemon.stop
    backups: list[bytes] = []
    for seconds in range(1, 5):
        backups.append((daemon.state / "state").read_bytes())
        callers.take_wide()
        callers.draw(3)
        callers.hang_up()
        end()
        (daemon.state / "state").write_bytes(backups[len(backups) // 2])
        # Past what steady was ahead by.
        fake_time.set(seconds)
        daemon.start()
    callers.draw(3)
    callers.take_wide()
    callers.hang_up()
    callers.assert_sound()
    assert not callers.refused
    assert len(callers.nodes) == 1
    assert not [path for path in daemon.state.iterdir() if "unusable" in path.name]


def emptied(daemon: Daemon) -> None:
    """Kill a daemon, and empty the folder of its state."""
    daemon.kill()
    for file in daemon.state.iterdir():
        file.unlink()


@pytest.fixture
def numbered(fake_time: FakeTime) -> Iterator[Daemon]:
    """A daemon with a worker number whose saves reach 20 s ahead."""
    environment = {**fake_time.environment, "REACH": "20"}
    with Daemon("--worker=5", module="tests.system.far", environment=environment) as daemon:
        yield daemon


def test_an_emptied_state_folder_repeats_no_snowflake(
    numbered: Daemon, fake_time: FakeTime
) -> None:
    """They were made ahead of UTC, because the daemon had crashed; the next start waits for it."""
    numbered.kill()
    numbered.start()
    before = numbered.call("make", "snowflake", 1000)
    emptied(numbered)
    seen = len(numbered.lines)
    numbered.start()
    with numbered.connect() as connection:
        _, _, error, _ = connection.ask("make", "snowflake", 1)
    assert error.startswith("unavailable: the state was lost")
    (told,) = [line for line in numbered.lines[seen:] if "ERROR" in line]
    assert told.endswith(
        f"there is no state in {numbered.state}, so a new one is made:"
        f" {numbered.socket}.used shows that ids were made here before"
    )
    fake_time.set(21)
    assert min(numbered.call("make", "snowflake", 1000)) > max(before)


def test_a_host_that_was_booted_without_a_state_makes_snowflakes_at_once(numbered: Daemon) -> None:
    """As a new one does: the folder of its socket is empty, too."""
    emptied(numbered)
    Path(f"{numbered.socket}.used").unlink()
    numbered.start()
    assert len(numbered.call("make", "snowflake", 1000)) == 1000

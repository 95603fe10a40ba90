"""Without a daemon ids go on, unmarked; with one again they are the daemon's."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import sys
import warnings
from collections.abc import Callable, Iterator
from itertools import count, pairwise
from pathlib import Path
from uuid import SafeUUID

import pytest

from tests.client.breaking import come_between
from tests.client.fakes import START, Server, Time, grants, refused
from tests.client.lanes import World
from tests.client.raw import of_child
from tests.rig import Daemon
from tests.tools import output, run
from uuidd.core.ids.kinds import KINDS
from uuidd.core.ids.nodes import MULTICAST
from uuidd.core.ids.places import Origin
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.slew import TOLERANCE
from uuidd_client import Client, DaemonUnavailable, extension, notices
from uuidd_client.fallback import MAX_LEAD, STILL_SECONDS, Fallback

pytestmark = pytest.mark.usefixtures("implementation")


@pytest.fixture(autouse=True)
def _no_warning() -> Iterator[None]:
    """The warning comes once a process; what is tested of it is tested in processes of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


DRAWS: list[Callable[[Client], object]] = [
    lambda client: client.uuid1(),
    lambda client: client.uuid7(),
    lambda client: client.make("v6", 3),
    lambda client: client.make("ulid", 3, "bytes"),
    lambda client: next(client.iter("v1", "text")),
    lambda client: client.factory("ksuid")(),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_the_warning_names_the_line_that_drew(
    draw: Callable[[Client], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From whatever depth it comes, a line of the program; in Python 3.11 one of the client."""
    monkeypatch.setattr(notices, "_warned_in", 0)
    with pytest.warns(RuntimeWarning, match="/nowhere/s") as warned:
        draw(Client("/nowhere/s"))
    line = draw.__code__.co_firstlineno
    assert len(warned) == 1
    if sys.version_info >= (3, 12):
        assert (warned[0].filename, warned[0].lineno) == (__file__, line)


@pytest.mark.process
def test_one_warning_a_process_says_what_is_wrong(tmp_path: Path) -> None:
    program = (
        "from uuidd_client import Client, uuid1\n"
        "for _ in range(3): uuid1(); Client().uuid6(); Client(max_age=0).uuid1()"
    )
    path = str(tmp_path / "absent")
    done = run(sys.executable, "-c", program, env={**os.environ, "UUIDD_SOCKET": path})
    assert (done.returncode, done.stderr.count("RuntimeWarning")) == (0, 1)
    assert f"no answer from uuidd at {path}: No such file or directory" in done.stderr


HEAVY = {
    "asyncio",
    "copy",
    "dataclasses",
    "inspect",
    "logging",
    "socket",
    "subprocess",
    "threading",
    "trio",
    "typing",
    "uuidd.core.timeline.state",
    "uuidd_client.readings",
    "uuidd_client.times",
}


def imported_by(*parts: str) -> list[set[str]]:
    """Return the modules that each of these *parts* of a program imports."""
    program = "import sys, warnings\nwarnings.simplefilter('ignore')\n"
    for part in parts:
        program += f"before = set(sys.modules)\n{part}\nprint(*set(sys.modules) - before)\n"
    return [set(line.split()) for line in output(sys.executable, "-c", program).splitlines()]


@pytest.mark.process
def test_the_import_brings_nothing_heavy() -> None:
    (imported,) = imported_by("import uuidd_client")
    assert not imported & HEAVY
    # What makes ids in Python only where no extension does.
    assert ("uuidd.core.ids.layouts" in imported) == (extension.core is None)


@pytest.mark.process
@pytest.mark.parametrize("kind", KINDS)
def test_no_id_imports_anything(kind: str, tmp_path: Path) -> None:
    """A signal handler or a fork in the middle of a draw comes into no import."""
    make = f"Client({str(tmp_path / 'absent')!r}).make({kind!r}, 3)"
    if kind == "snowflake":
        make = f"with suppress(DaemonUnavailable): {make}"
    before = "from contextlib import suppress\nfrom uuidd_client import Client, DaemonUnavailable"
    assert imported_by(before, make)[1] == set()


@pytest.mark.parametrize("reused", [True, False])
def test_a_process_that_closed_all_descriptors_draws_on(path: Path, reused: bool) -> None:
    """Their number may then be that of a file of the daemon, which stays open."""
    with Server(path, grants()) as server, contextlib.ExitStack() as stack:
        client = stack.enter_context(Client(path, fallback=False, max_age=0))
        client.uuid1()
        descriptor = _descriptor_of_the_connection(path)
        os.close(descriptor)
        file = stack.enter_context(open(os.devnull)) if reused else None
        assert file is None or file.fileno() == descriptor
        client.uuid1()
        assert (server.connections, len(server.requests)) == (2, 2)
        # A new connection could have the number of a file that was closed.
        assert file is None or os.path.samestat(os.fstat(file.fileno()), os.stat(os.devnull))


def _descriptor_of_the_connection(path: Path) -> int:
    """Return the number of this process's connection to the socket at *path*."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            # Python would leave the copy of what is no socket open.
            if stat.S_ISSOCK(os.stat(int(name)).st_mode):
                with socket.socket(fileno=os.dup(int(name))) as found:
                    if found.getpeername() == str(path):
                        return int(name)
    raise AssertionError("there is no connection")


@pytest.mark.parametrize("seconds", [1e30, 1e305, 10**400])
def test_times_beyond_all_clocks_are_without_an_end(daemon: Daemon, seconds: float) -> None:
    """The system's own structures hold less than a float does, and a float less than an int."""
    with Client(daemon.socket, fallback=False, timeout=seconds, max_age=seconds) as client:
        assert client.uuid1().is_safe is SafeUUID.safe


def test_for_no_ids_nobody_is_asked() -> None:
    with Client("/nowhere", fallback=False) as client:
        assert client.make("v1", 0) == []
        assert client.make("snowflake", 0, "bytes") == b""


STRIDE = 11
"""Of how many points at which a handler can come one is tried."""


@pytest.fixture
def away(path: Path, time: Time) -> Iterator[Client]:
    """A client that has made five v1 and two ULIDs without a daemon, which it can ask again now."""
    with Client(path, max_age=0, _clock=time) as client:
        client.make("v1", 5)
        client.make("ulid", 2)
        time.move(1)
        yield client


def test_the_daemon_is_told_once_how_many_ids_were_made_without_it(
    path: Path, away: Client
) -> None:
    with Server(path, grants()) as server:
        away.make("v7", 1)
        assert server.fallback_ids == [7]
        away.make("v1", 3)
        away.make("ulid", 3)
        assert server.fallback_ids == [7]


def test_ids_of_a_lease_are_none_of_the_fallback(path: Path, time: Time) -> None:
    """Nor is the rest of the fallback's last block, which nobody uses."""
    with Client(path, _clock=time) as client:
        client.make("ulid", 2)
        time.move(1)
        with World(path, time).server() as server:
            while not client.stats().leased:
                client.make("ulid", 3)
            time.move(1)
            client.make("ulid", 3)
            client.make("flake", 1)
            assert server.fallback_ids == [2]


def test_places_that_were_used_before_are_no_ids_of_the_fallback(path: Path, time: Time) -> None:
    """Its block begins before the end of the daemon's last one, where little time has passed."""
    with Client(path, _clock=time) as client:
        with World(path, time).server():
            client.make("v1", 64)
        time.move(0.000_001)
        client.make("v1", 3)
        time.move(1)
        with World(path, time).server() as server:
            client.make("v1", 1)
            assert server.fallback_ids == [3]


def test_a_client_that_has_not_fallen_back_tells_nothing(path: Path, time: Time) -> None:
    """Random ids need no daemon."""
    with Client(path, _clock=time) as client:
        client.make("v4", 10)
        with pytest.raises(DaemonUnavailable):
            client.snowflake()
        with Server(path, grants()) as server:
            client.make("v1", 10)
            assert server.fallback_ids == []


def test_a_daemon_that_refuses_is_told_too(path: Path, time: Time, away: Client) -> None:
    with Server(path, lambda request: refused(request, "unavailable: no disk")) as server:
        for _ in range(3):
            away.make("v1", 2)
            time.move(1)
        assert server.fallback_ids == [7, 2, 2]


@pytest.mark.process
def test_the_child_of_a_fork_leaves_its_parents_ids_to_the_parent(path: Path, away: Client) -> None:
    with Server(path, grants()) as server:
        of_child(lambda: away.make("v1", 1, "bytes"))
        assert server.requests
        assert server.fallback_ids == []
        away.make("v1", 1)
        assert server.fallback_ids == [7]


def test_what_a_handler_makes_without_the_daemon_is_told_too(
    path: Path, time: Time, away: Client
) -> None:
    """It makes ids in the midst of a call, whose channel it cannot use."""
    total = 7
    made: list[str] = []
    for at in count(1, STRIDE):
        before = len(made)
        come_between(lambda: away.make("v1", 5), at, lambda: made.append(away.ulid()))
        total += 5 + len(made) - before
        time.move(1)
        if len(made) == before:
            break
    with Server(path, grants()) as server:
        away.make("v1", 1)
        assert server.fallback_ids == [total]


SECOND = TICKS_PER_SECOND
YEAR = 365 * 86400 * SECOND


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def here(time: Time) -> Fallback:
    return Fallback(time)


def utc(here: Fallback, count: int = 1) -> tuple[range, Origin]:
    """Return the ticks of UTC that it gives, counted from START, and their origin."""
    first, taken, origin = here.utc(count)
    return range(first - START, first - START + taken), origin


def steady(here: Fallback, count: int = 1, past: int = -START) -> range:
    """Return the steady ticks that it gives, counted from START; so does *past*."""
    first, taken, _ = here.steady(count, START + past)
    return range(first - START, first - START + taken)


def test_a_block_is_of_the_latest_ticks(here: Fallback) -> None:
    assert utc(here, 10)[0] == steady(here, 10) == range(-9, 1)


def test_no_tick_comes_twice(here: Fallback, time: Time) -> None:
    takes: list[Callable[[], range]] = [lambda: utc(here, 4)[0], lambda: steady(here, 4)]
    for take in takes:
        blocks = []
        for pause in (0, 0, 2, 100, 0):
            time.utc += pause
            blocks.append(take())
        assert all(one[-1] < other[0] for one, other in pairwise(blocks))


def test_nodes_are_random_and_marked_so(time: Time) -> None:
    """No card's address has the multicast bit. Each timeline draws its own node."""
    origins = [
        origin
        for here in (Fallback(time), Fallback(time))
        for origin in (here.utc(1)[2], here.steady(1, 0)[2])
    ]
    assert all(origin.node & MULTICAST for origin in origins)
    assert len({origin.node for origin in origins}) == len({tuple(each) for each in origins}) == 4
    assert len({origin.clock_seq for origin in origins}) > 1


def test_ids_without_a_daemon_have_no_lane_and_no_worker_number(here: Fallback) -> None:
    for origin in (here.utc(1)[2], here.steady(1, 0)[2]):
        assert (origin.lane, origin.worker) == (None, None)


@pytest.mark.parametrize("back", [1, TOLERANCE - 1])
def test_a_small_step_back_of_utc_is_waited_out(here: Fallback, time: Time, back: int) -> None:
    _, before = utc(here)
    time.utc -= back
    assert utc(here) == (range(1, 2), before)


def test_after_a_large_step_back_of_utc_the_node_is_another(here: Fallback, time: Time) -> None:
    _, before = utc(here)
    time.utc -= TOLERANCE
    ticks, after = utc(here)
    assert ticks == range(-TOLERANCE, 1 - TOLERANCE)
    assert after.node != before.node


class Still(Time):
    """A clock whose UTC stands still, while the time elapsed goes on: a millisecond at least."""

    waited = 0.0

    def pause(self, seconds: float) -> None:
        """Let so much time elapse."""
        self.waited += max(seconds, 0.001)
        assert self.waited < 1, "nobody waits for long"
        self.ticks += round(max(seconds, 0.001) * SECOND)


def test_a_clock_that_stands_still_is_waited_for_once_until_it_goes_on() -> None:
    """Another node costs the order of its ids: after 20 ms in vain each block has one, at once."""
    here = Fallback(time := Still())
    for stands in (1, 2):
        blocks = [utc(here) for _ in range(50)]
        now = time.utc - START
        assert {ticks for ticks, _ in blocks} == {range(now, now + 1)}
        assert len({origin.node for _, origin in blocks}) == 50
        assert time.waited == pytest.approx(stands * STILL_SECONDS, abs=0.002)
        time.utc += 5


def test_a_clock_that_moves_on_slowly_needs_no_other_node() -> None:
    class Slow(Still):
        def pause(self, seconds: float) -> None:
            super().pause(2 * STILL_SECONDS)
            self.utc += 1

    here = Fallback(Slow())
    _, before = utc(here)
    assert utc(here) == (range(1, 2), before)


def test_steady_ticks_go_on_at_half_speed_when_utc_steps_back(here: Fallback, time: Time) -> None:
    before = steady(here, 10)
    time.move(1)
    time.utc = START - 3500 * SECOND
    after = steady(here, 10)
    assert after == range(SECOND // 2 - 9, SECOND // 2 + 1)
    assert before[-1] < after[0]


def test_steady_ticks_lie_past_what_the_daemon_gave(here: Fallback) -> None:
    for ahead in (15 * SECOND, MAX_LEAD):
        assert steady(here, 5, ahead)[0] == ahead


def test_steady_ticks_rise_however_the_clock_steps(here: Fallback, time: Time) -> None:
    clocks = [(0, 0), (5, 5), (5, 10), (-900, 20), (30, 30), (31, 1000), (600, 1001)]
    blocks = []
    for now, elapsed in clocks:
        time.utc, time.ticks = START + now * SECOND, elapsed * SECOND
        blocks.append(steady(here, 4))
    assert all(one[-1] < other[0] for one, other in pairwise(blocks))


def test_more_than_an_hour_ahead_order_begins_anew(here: Fallback, time: Time) -> None:
    """One id of a clock that a test has set to 2040 does not leave all later ones there."""
    time.utc += 14 * YEAR
    first, _, before = here.steady(10, 0)
    assert first == time.utc - 9
    time.utc = START
    time.ticks += SECOND
    first, count, after = here.steady(10, START + 14 * YEAR)
    assert (first, count) == (START - 9, 10)
    assert after.node != before.node


def test_steady_ticks_of_a_clock_that_stands_still_lead_it_by_an_hour_at_most() -> None:
    here = Fallback(time := Still())
    ticks = []
    for _ in range(6):
        ticks.append(steady(here, 3)[-1])
        time.ticks += 3600 * SECOND
    assert [tick / SECOND / 3600 for tick in ticks] == [0, 0.5, 1, 0, 0.5, 1]

"""Faults of processes: killed, stopped, started twice, forked by the hundred (P1, P3)."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import threading
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests import forks
from tests.judge import Span, assert_apart, assert_no_id_twice, assert_rising, of_id
from tests.rig import PATIENCE, SOON, Connection, Daemon, dice, until
from tests.system.callers import Callers
from tests.system.fake_time import HOUR, FakeTime
from tests.system.takers import EACH, Taker, given_in
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.generation import LANE_BITS
from uuidd.core.timeline.state import State
from uuidd.statefile import decode
from uuidd_client import Client

STOP = 1.2
"""Seconds for which a daemon is stopped: a young one has saved no more than 0.1 s ahead, or half of
how long it has run."""

MAX_AGE = 0.1
"""Seconds that an id of a client may be old by, unless another is chosen."""


def stop(pid: int) -> None:
    """Stop a process, and wait until it stands still."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: _letter(pid) == "T")


def _letter(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def stop_between_saves(daemon: Daemon) -> State:
    """Stop the daemon while it does not save; return its state as it is saved then."""
    stop(daemon.pid)
    while (daemon.state / "state.new").exists():
        os.kill(daemon.pid, signal.SIGCONT)
        stop(daemon.pid)
    return decode((daemon.state / "state").read_bytes())


def mark(state: State, given: Span) -> int:
    """Return the tick before which all of *given* has to lie, as the state says."""
    if is_steady(given):
        return state.steady
    node, clock_seq = given.place
    assert node == state.node.value
    return state.marks[clock_seq >> LANE_BITS]


def lead(daemon: Daemon) -> float:
    """Return by how many seconds the steady timeline leads UTC."""
    found: float = daemon.call("status")["steady"]["lead"]
    return found


def is_steady(each: Span) -> bool:
    """Whether this is of the steady timeline: its place is a lane alone."""
    return len(each.place) == 1


def taken(connection: Connection, timeline: str, count: int = 1000) -> Span | None:
    """Take over a connection; None when it is refused."""
    _, _, error, block = connection.ask("take", timeline, count)
    if error is not None:
        assert error.startswith("unavailable: ")
        return None
    return given_in(block)


class Taking:
    """Takes of both timelines over a connection of its own, all the time, while the context lasts.

    *given* is what it was given, *refused* how often it was not. It ends with its connection,
    when the daemon is killed.
    """

    def __init__(self, daemon: Daemon) -> None:
        self._line = daemon.connect()
        self._thread = threading.Thread(target=self._take)
        self._done = threading.Event()
        self.given: list[Span] = []
        self.refused = 0

    def __enter__(self) -> Taking:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(PATIENCE)
        self._line.sock.close()
        assert not self._thread.is_alive()

    def await_one(self, like: Callable[[Span], bool], *, since: int = 0) -> None:
        """Wait until something *like* that was given, of all but the first *since*."""
        until(lambda: any(map(like, self.given[since:])))

    def _take(self) -> None:
        with contextlib.suppress(EOFError, ConnectionError):
            while not self._done.wait(0.0005):
                for timeline in ("utc", "steady"):
                    given = taken(self._line, timeline)
                    if given is None:
                        self.refused += 1
                    else:
                        self.given.append(given)


@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.thorough)])
def test_kills_at_random_moments_repeat_nothing(kills: int, tmp_path: Path) -> None:
    """Killed 1 to 100 ms after each start: no tick comes twice, and v7 rises at each client.

    The steady timeline never leads UTC by 5 s or more, though each start saves 0.1 s ahead.
    """
    moments = dice()
    leads = []
    with Daemon() as daemon, contextlib.ExitStack() as running:
        takers = [
            running.enter_context(Taker(way, daemon.socket, tmp_path / f"{way}-{number}"))
            for way in ("v1", "v7", "libuuid")
            for number in range(2)
        ]
        for taker in takers:
            taker.begun()
        for kill in range(kills):
            if kill % 10 == 0:
                leads.append(lead(daemon))
            # How long a daemon lives is what is tested.
            time.sleep(moments.uniform(0.001, 0.1))
            daemon.kill()
            daemon.start()
        leads.append(lead(daemon))
        running.close()
        node = decode((daemon.state / "state").read_bytes()).node.value
    given = [list(taker.given()) for taker in takers]
    assert_apart(each for some in given for each in some)
    for some in given:
        if is_steady(some[0]):
            assert_rising(each.first for each in some)
        else:
            assert {each.place[0] for each in some} == {node}
    # Each kill costs a clock sequence, so they took from more than one daemon.
    assert len({each.place for some in given for each in some if not is_steady(each)}) > 1
    assert max(leads) < 5
    assert not [line for line in daemon.lines if "Traceback" in line or "ERROR" in line]


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.thorough)])
def test_a_crash_loop_through_a_step_back_runs_steady_no_further_ahead(
    kills: int, daemon: Daemon, fake_time: FakeTime
) -> None:
    """UTC goes back an hour between kills: steady ticks rise, and none comes twice.

    The kills come half a second after each start, as a service manager's in a crash loop do.
    """
    daemon.kill()
    daemon.arguments = ["--max-lead=7200"]
    daemon.start()
    callers = Callers(daemon)

    def crash_loop() -> None:
        for _ in range(kills):
            begun = time.monotonic()
            callers.more(1)
            # How long a daemon lives is what is tested: its lead grows with its uptime.
            time.sleep(max(0.0, begun + 0.5 - time.monotonic()))
            with callers.down():
                daemon.kill()
                daemon.start()
        callers.more(1)

    with callers.drawing():
        crash_loop()
        before = lead(daemon)
        fake_time.set(-HOUR)
        crash_loop()
    after = lead(daemon)
    callers.hang_up()
    callers.assert_sound()
    # On a slow disk a save may take longer than a caller waits.
    assert all("could not be saved" in refused for refused in callers.refused)
    # The kills after the step have brought it no further ahead than it was.
    assert before < 5
    assert HOUR - 60 < after < HOUR + before + 1
    assert [line for line in daemon.lines if "steady kinds are" in line]


def test_a_stop_past_the_horizon_and_a_kill_repeat_nothing() -> None:
    """Stopped for longer than it has saved ahead, then killed, three times: nothing comes again.

    All that was given by then lies before the marks that were saved by then.
    """
    given: list[Span] = []
    moments = dice()
    with Daemon() as daemon:
        for _ in range(3):
            with Taking(daemon) as taking:
                taking.await_one(is_steady, since=5)
                time.sleep(moments.uniform(0, 0.1))
                state = stop_between_saves(daemon)
                # The horizon is what is to pass.
                time.sleep(0.2)
                daemon.kill()
            assert all(each.end <= mark(state, each) for each in taking.given)
            given += taking.given
            daemon.start()
        assert_apart(given)
        assert lead(daemon) < 5


def test_a_stop_past_the_horizon_gives_nothing_past_what_is_saved() -> None:
    """Continued, and not able to save, it gives nothing of the stored node past the saved marks.

    v1 goes on under a volatile node within 5 s, v7 is refused; once it can save again both are
    given of the stored state, and nothing has come twice.
    """
    with Daemon() as daemon, Taking(daemon) as taking:

        def is_stored(each: Span) -> bool:
            return not is_steady(each) and each.place[0] == state.node.value

        def is_volatile(each: Span) -> bool:
            return not is_steady(each) and each.place[0] != state.node.value

        taking.await_one(is_steady)
        state = stop_between_saves(daemon)
        in_the_way = daemon.state / "state.new"
        in_the_way.mkdir()
        time.sleep(STOP)
        os.kill(daemon.pid, signal.SIGCONT)
        continued = time.monotonic()
        taking.await_one(is_volatile)
        assert time.monotonic() - continued < 5
        until(lambda: taking.refused)
        seen = len(taking.given)
        in_the_way.rmdir()
        assert all(
            each.end <= mark(state, each) for each in taking.given[:seen] if not is_volatile(each)
        )
        taking.await_one(is_steady, since=seen)
        taking.await_one(is_stored, since=seen)
        in_between = list(taking.given)
        assert_apart(in_between)


@pytest.mark.filterwarnings("ignore:no answer from uuidd:RuntimeWarning")
def test_callers_with_a_fallback_go_on_while_the_daemon_is_stopped() -> None:
    """Each call ends soon, unmarked; after the stop they are safe again, and v7 has risen."""
    drawn: list[tuple[uuid.UUID, uuid.UUID]] = []
    waits = []
    client: Client
    with Daemon() as daemon, Client(daemon.socket, timeout=0.2) as client:

        def draw() -> bool:
            begun = time.monotonic()
            drawn.append((client.uuid1(), client.uuid7()))
            waits.append(time.monotonic() - begun)
            return {each.is_safe for each in drawn[-1]} == {uuid.SafeUUID.safe}

        assert draw()
        stop(daemon.pid)
        safe = True
        begun = time.monotonic()
        while time.monotonic() < begun + STOP:
            safe = draw()
            time.sleep(0.001)
        assert not safe
        os.kill(daemon.pid, signal.SIGCONT)
        until(draw)
    assert max(waits) < SOON
    ones, sevens = zip(*drawn, strict=True)
    assert_rising(sevens)
    assert_no_id_twice([ones])


@pytest.mark.parametrize("races", [6, pytest.param(25, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("sockets", [("a", "a"), ("a", "b")])
def test_of_two_that_start_at_once_one_serves(
    races: int, sockets: tuple[str, str], place: Path
) -> None:
    """On one state folder exactly one serves; the other names its pid, and ends with status 1.

    The socket may be the same or another. Nothing is given twice from one race to the next.
    """
    given: list[Span] = []
    (place / "state").mkdir()
    words = [
        ["-F", "--no-pid", f"--socket={place / name}", f"--state={place / 'state'}"]
        for name in sockets
    ]
    for race in range(races):
        log = place / "log"
        with log.open("wb") as file, open(os.devnull, "r+b") as null:
            both = forks.start("uuidd.cli", *words, streams=(null, null, file))
        try:
            lines = until(partial(settled, log))
            (told,) = filter(is_start, lines)
            (first,) = [process for process in both if f" pid={process.pid} " in told]
            (second,) = [process for process in both if process is not first]
            (refusal,) = filter(is_refusal, lines)
            assert re.search(rf"\bpid {first.pid}\b", refusal), refusal
            assert second.wait() == 1
            with Connection(place / sockets[both.index(first)]) as connection:
                given += [
                    # A disk may take longer than a request may wait.
                    until(partial(taken, connection, timeline))
                    for timeline in ("utc", "steady") * 10
                ]
            end, status = ((signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL))[race % 2]
            first.send_signal(end)
            assert first.wait() == status
        finally:
            for process in both:
                process.kill()
    assert_apart(given)


def settled(log: Path) -> list[str]:
    """Return the lines of a log, once one daemon serves and another has refused; else none."""
    lines = log.read_text().splitlines()
    return lines if any(map(is_start, lines)) and any(map(is_refusal, lines)) else []


def is_start(line: str) -> bool:
    """Whether this is the line of a daemon that answers from now on."""
    return "INFO: started:" in line


def is_refusal(line: str) -> bool:
    """Whether this is the one line with which a start ends that cannot be."""
    return line.startswith("uuidd: ") and not re.match(r"uuidd: [A-Z]+: ", line)


@pytest.mark.parametrize("children", [80, pytest.param(500, marks=pytest.mark.thorough)])
def test_many_forks_repeat_nothing(children: int, tmp_path: Path) -> None:
    """Each child draws by its parent's client, and ends: no id comes twice, no connection stays."""
    with Daemon() as daemon, daemon.connect() as connection:
        before = connection.call("status")["connections"]
        taker = Taker("forks", daemon.socket, tmp_path / "forks", children)
        with taker:
            taker.begun()
        until(lambda: connection.call("status")["connections"] == before)
        assert connection.call("status")["connections_highest"] > before + 1
    ids = [id for id, _ in taker.records()]
    assert len(ids) == (children + 2) * EACH
    assert_apart(map(of_id, ids))


@pytest.mark.parametrize("way", ["timely", "unleased"])
def test_a_client_stopped_with_ids_in_hand_throws_them_away(way: str, tmp_path: Path) -> None:
    """Continued after 0.3 s, three times, it gives no id older than max_age, and none twice.

    Others draw on meanwhile.
    """
    slack = TICKS_PER_SECOND // 100
    with Daemon() as daemon, contextlib.ExitStack() as running:
        takers = [
            running.enter_context(Taker(way, daemon.socket, tmp_path / str(number)))
            for number in range(3)
        ]
        for taker in takers:
            taker.begun()
        pid = takers[0].process.pid
        for _ in range(3):
            stop(pid)
            # Longer than a block lasts.
            time.sleep(3 * MAX_AGE)
            os.kill(pid, signal.SIGCONT)
            takers[0].resume()
    drawn = [taker.records() for taker in takers]
    ticks = [(of_id(id).first, wanted) for some in drawn for id, wanted in some]
    # Each was drawn after the clock had been read, so by that reading it is no older than max_age.
    assert all(tick > wanted - MAX_AGE * TICKS_PER_SECOND - slack for tick, wanted in ticks)
    readings = [wanted for _, wanted in drawn[0]]
    gaps = [later - sooner for sooner, later in itertools.pairwise(readings)]
    assert len([gap for gap in gaps if gap > 2 * MAX_AGE * TICKS_PER_SECOND]) >= 3
    assert_apart(of_id(id) for some in drawn for id, _ in some)

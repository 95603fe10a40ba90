"""Faults of processes: killed, stopped, started twice, forked by the hundred (P1, P3)."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import time
import uuid
from functools import partial
from pathlib import Path

import pytest

from tests import forks
from tests.judge import Span, assert_apart, assert_no_id_twice, assert_rising
from tests.rig import SOON, Connection, Daemon, dice, until
from tests.system.callers import Callers, given_in
from tests.system.fake_time import HOUR, FakeTime
from tests.system.holders import Holder, assert_sound, holders
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


def assert_before_marks(callers: Callers, state: State) -> None:
    """Fail if a tick of the stored node or of steady lies at or past what the state allows."""
    for place, spans in callers.judge.spans.items():
        if len(place) == 1:
            assert spans[-1].end <= state.steady
        elif place[0] == state.node.value:
            assert spans[-1].end <= state.marks[place[1] >> LANE_BITS]


def lead(daemon: Daemon) -> float:
    """Return by how many seconds the steady timeline leads UTC."""
    found: float = daemon.call("status")["steady"]["lead"]
    return found


def taken(connection: Connection, timeline: str, count: int = 1000) -> Span | None:
    """Take over a connection; None when it is refused."""
    _, _, error, block = connection.ask("take", timeline, count)
    if error is not None:
        assert error.startswith("unavailable: ")
        return None
    return given_in(block)


@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.thorough)])
def test_kills_at_random_moments_repeat_nothing(kills: int, tmp_path: Path) -> None:
    """Killed 1 to 100 ms after each start: no tick comes twice, and v7 rises at each client.

    The steady timeline never leads UTC by 5 s or more, though each start saves 0.1 s ahead.
    """
    moments = dice()
    leads = []
    with Daemon() as daemon:
        callers = Callers(daemon)
        with holders(daemon, tmp_path, 2, fallback=False) as drawing, callers.drawing():
            for kill in range(kills):
                if kill % 10 == 0:
                    leads.append(lead(daemon))
                # How long a daemon lives is what is tested.
                time.sleep(moments.uniform(0.001, 0.1))
                with callers.down():
                    daemon.kill()
                    daemon.start()
            leads.append(lead(daemon))
            callers.more()
        callers.hang_up()
        node = decode((daemon.state / "state").read_bytes()).node.value
    drawn = [holder.drawn() for holder in drawing]
    # Steady leads UTC, as after a step back.
    assert_sound(drawn, utc_set_back=True)
    for each in itertools.chain(*drawn):
        callers.judge.note(each.span)
    callers.assert_sound()
    assert callers.nodes == {node}
    # Each kill costs a clock sequence, so they took from more than one daemon.
    assert len(callers.spaces) > 1
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
    moments = dice()
    with Daemon() as daemon:
        callers = Callers(daemon)
        with callers.drawing():
            for _ in range(3):
                callers.more(5)
                time.sleep(moments.uniform(0, 0.1))
                state = stop_between_saves(daemon)
                # The horizon is what is to pass.
                time.sleep(0.2)
                with callers.down():
                    daemon.kill()
                    assert_before_marks(callers, state)
                    daemon.start()
            callers.more()
        assert lead(daemon) < 5
        callers.hang_up()
    callers.assert_sound()


def test_a_stop_past_the_horizon_gives_nothing_past_what_is_saved() -> None:
    """Continued, and not able to save, it gives nothing of the stored node past the saved marks.

    v1 goes on under a volatile node, v7 is refused; once it can save again both are given of the
    stored state, and nothing has come twice.
    """
    with Daemon() as daemon:
        callers = Callers(daemon)
        with callers.drawing():
            callers.more(5)
            state = stop_between_saves(daemon)
            in_the_way = daemon.state / "state.new"
            in_the_way.mkdir()
            time.sleep(STOP)
            os.kill(daemon.pid, signal.SIGCONT)
            until(lambda: len(callers.nodes) == 2)
            until(lambda: callers.refused)
        assert_before_marks(callers, state)
        in_the_way.rmdir()
        until(lambda: not daemon.call("status")["saves"]["failing"])
        until(lambda: not daemon.call("status")["volatile"])
        refused = len(callers.refused)
        callers.draw(3)
        assert len(callers.refused) == refused
        given = given_in(daemon.call("take", "utc", 1))
        assert given.place[0] == state.node.value
        callers.hang_up()
    callers.assert_sound()


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


@pytest.mark.parametrize("way", ["leases", "blocks"])
def test_a_client_stopped_with_ids_in_hand_throws_them_away(way: str, tmp_path: Path) -> None:
    """Continued after 0.3 s, three times, it gives no id older than max_age, and none twice.

    Others draw on meanwhile.
    """
    slack = TICKS_PER_SECOND // 100
    with Daemon() as daemon, contextlib.ExitStack() as running:
        drawing = [
            running.enter_context(
                Holder(daemon.socket, tmp_path / str(number), way=way, fallback=False)
            )
            for number in range(3)
        ]
        for holder in drawing:
            holder.more(20)
        stopped = drawing[0]
        for _ in range(3):
            stop(stopped.process.pid)
            # Longer than a block lasts.
            time.sleep(3 * MAX_AGE)
            os.kill(stopped.process.pid, signal.SIGCONT)
            stopped.more(20)
    drawn = [holder.drawn() for holder in drawing]
    assert_sound(drawn)
    # Each was drawn after the clock had been read, so by that reading it is no older than max_age.
    oldest = max(each.asked - each.tick for some in drawn for each in some)
    assert oldest < MAX_AGE * TICKS_PER_SECOND + slack
    had = [each.had for each in drawn[0]]
    gaps = [later - sooner for sooner, later in itertools.pairwise(had)]
    assert len([gap for gap in gaps if gap > 2 * MAX_AGE * TICKS_PER_SECOND]) >= 3

"""Faults of processes: killed, stopped, started twice (P1, P3, P4 and P9)."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import pytest

from tests import forks, kinds
from tests.judge import Span, assert_apart
from tests.rig import Connection, Daemon, dice, until
from tests.system.callers import Callers, given_in, under_load
from tests.system.far import far_reaching
from tests.system.holders import (
    Drawn,
    Holder,
    all_safe,
    assert_sound,
    await_leases,
    holders,
    leases,
    requests,
)
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.generation import LANE_BITS
from uuidd.core.timeline.state import State
from uuidd.statefile import decode
from uuidd_client.system import SYSTEM_CLOCK

MAX_AGE = 0.1
"""Seconds that an id of a client may be old by, unless another is chosen."""

REACHES = (2.0, 6.0, 15.0)
"""Seconds that a save reaches ahead, tried in turn until restarts and a look take less than that.

The first is enough, unless the machine is very busy.
"""


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    stat = Path(f"/proc/{pid}/stat")
    until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")


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


def assert_leased_before_marks(used: Iterable[Drawn], state: State) -> None:
    """Fail if a tick of a lease lies at or past what the state allows."""
    for each in used:
        if each.is_v1:
            fields = kinds.gregorian(each.id)
            assert fields.node == state.node.value
            assert fields.tick < state.marks[fields.clock_seq >> LANE_BITS]
        assert each.tick < state.leases


def lead(daemon: Daemon) -> float:
    found: float = daemon.call("status")["steady"]["lead"]
    return found


@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.thorough)])
def test_kills_at_random_moments_repeat_nothing(kills: int, tmp_path: Path) -> None:
    """Killed 1 to 100 ms after each start: no tick comes twice, and v7 rises at each client.

    The steady timeline never leads UTC by 5 s or more, though each start saves 0.1 s ahead.
    """
    moments = dice()
    leads = []
    with Daemon() as daemon:
        # Steady leads UTC, as after a step back.
        load = under_load(daemon, tmp_path, 2, utc_set_back=True, fallback=False)
        with load as (callers, drawing):
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
        assert callers.nodes == {decode((daemon.state / "state").read_bytes()).node.value}
    for each in itertools.chain(*(holder.drawn() for holder in drawing)):
        callers.judge.note(each.span)
    # Each kill costs a clock sequence, so they took from more than one daemon.
    assert len(callers.judge.spans) > 2
    assert max(leads) < 5
    assert not [line for line in daemon.lines if "Traceback" in line or "ERROR" in line]


def test_a_stop_past_the_horizon_gives_nothing_past_what_is_saved(tmp_path: Path) -> None:
    """Neither clients with leases meanwhile, nor the daemon when it goes on, unable to save.

    The clients make ids themselves, not marked safe. The daemon gives v1 under a volatile node and
    refuses v7, until it can save again.
    """
    with Daemon() as daemon, under_load(daemon, tmp_path, 3, timeout=0.2) as (callers, drawing):
        callers.more(5)
        state = stop_between_saves(daemon)
        for holder in drawing:
            holder.until_unsafe()
        used = [each for holder in drawing for each in holder.drawn() if each.safe]
        assert_leased_before_marks(used, state)
        in_the_way = daemon.state / "state.new"
        in_the_way.mkdir()
        until(lambda: SYSTEM_CLOCK.utc_tick() > max(state.steady, *state.marks.values()))
        os.kill(daemon.pid, signal.SIGCONT)
        until(lambda: len(callers.nodes) == 2)
        until(lambda: callers.refused)
        assert_before_marks(callers, state)
        in_the_way.rmdir()
        until(lambda: not daemon.call("status")["saves"]["failing"])
        until(lambda: not daemon.call("status")["volatile"])
        callers.assert_nothing_is_refused()
        assert given_in(daemon.call("take", "utc", 1)).place[0] == state.node.value
        for holder in drawing:
            holder.until_safe()


def taken(connection: Connection, timeline: str) -> Span | None:
    _, _, error, block = connection.ask("take", timeline, 1000)
    if error is not None:
        assert error.startswith("unavailable: ")
        return None
    return given_in(block)


@pytest.mark.parametrize("races", [6, pytest.param(25, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("sockets", [("a", "a"), ("a", "b")])
def test_of_two_that_start_at_once_one_serves(
    races: int, sockets: tuple[str, str], place: Path
) -> None:
    """On one state folder exactly one serves; the other names its pid, and ends with status 1.

    Nothing is given twice from one race to the next.
    """
    given: list[Span] = []
    (place / "state").mkdir()
    log = place / "log"
    words = [
        ["-F", "--no-pid", f"--socket={place / name}", f"--state={place / 'state'}"]
        for name in sockets
    ]

    def settled() -> list[str]:
        """Return the line of the daemon that serves, and of the other, once both have one."""
        lines = log.read_text().splitlines()
        starts = [line for line in lines if "INFO: started:" in line]
        refusals = [line for line in lines if re.match(r"uuidd: (?![A-Z]+: )", line)]
        return starts + refusals if starts and refusals else []

    for end, status in [(signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)] * (races // 2):
        with log.open("wb") as file, open(os.devnull, "r+b") as null:
            both = forks.start("uuidd.cli", *words, streams=(null, null, file))
        try:
            told, refusal = until(settled)
            (first,) = [process for process in both if f" pid={process.pid} " in told]
            (second,) = [process for process in both if process is not first]
            assert re.search(rf"\bpid {first.pid}\b", refusal), refusal
            assert second.wait() == 1
            with Connection(place / sockets[both.index(first)]) as connection:
                given += [
                    # A disk may take longer than a request may wait.
                    until(partial(taken, connection, timeline))
                    for timeline in ("utc", "steady") * 10
                ]
            first.send_signal(end)
            assert first.wait() == status
        finally:
            for process in both:
                process.kill()
    assert_apart(given)


@pytest.mark.parametrize("way", ["leases", "blocks"])
def test_a_client_stopped_with_ids_in_hand_throws_them_away(way: str, tmp_path: Path) -> None:
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
            # A burst of up to 100 may have been drawn, and not written, before the stop.
            stopped.more(200)
    drawn = [holder.drawn() for holder in drawing]
    assert_sound(drawn)
    # Each was drawn after the clock had been read, so by that reading it is no older than max_age.
    oldest = max(each.asked - each.tick for some in drawn for each in some)
    assert oldest < MAX_AGE * TICKS_PER_SECOND + slack
    gaps = [later.had - sooner.had for sooner, later in itertools.pairwise(drawn[0])]
    assert len([gap for gap in gaps if gap > 2 * MAX_AGE * TICKS_PER_SECOND]) >= 3


def test_a_client_that_is_stopped_past_its_horizon_goes_on(tmp_path: Path) -> None:
    """Also when its daemon was killed meanwhile, and the next has leased its lane to another."""
    with Daemon() as daemon, holders(daemon, tmp_path, 2) as (stopped, other):
        stop(stopped.process.pid)
        daemon.kill()
        other.more()
        daemon.start()
        # Those of the other, once UTC has passed the horizon of the last daemon.
        await_leases(daemon, 1)
        with Holder(daemon.socket, tmp_path / "third") as third:
            await_leases(daemon, 2)
            os.kill(stopped.process.pid, signal.SIGCONT)
            await_leases(daemon, 3)
            for holder in (stopped, other, third):
                holder.more()
    assert_sound(holder.drawn() for holder in (stopped, other, third))


def restart(
    daemon: Daemon, reach: float, ending: signal.Signals, drawing: list[Holder]
) -> tuple[int, int] | None:
    """End the daemon and start another, while clients draw; return what they asked it for.

    None if that took longer than the horizon lasted.
    """
    # Right after a save.
    until(lambda: leases(daemon)["horizon_in"] > 0.9 * reach)
    horizon = SYSTEM_CLOCK.utc_tick() + int(leases(daemon)["horizon_in"] * TICKS_PER_SECOND)
    if ending == signal.SIGKILL:
        daemon.kill()
    else:
        assert daemon.stop() == 0
    for holder in drawing:
        holder.more(100)
    daemon.start()
    for holder in drawing:
        holder.more(100)
    asked = requests(daemon)
    in_time = SYSTEM_CLOCK.utc_tick() < horizon
    await_leases(daemon, len(drawing))
    return asked if in_time else None


@pytest.mark.parametrize(
    "endings",
    [
        pytest.param([signal.SIGKILL], id="kill"),
        pytest.param([signal.SIGTERM], id="stop"),
        pytest.param(
            [signal.SIGKILL, signal.SIGTERM] * 6, id="12 times", marks=pytest.mark.thorough
        ),
    ],
)
def test_no_client_with_a_lease_notices_a_restart(
    endings: list[signal.Signals], tmp_path: Path
) -> None:
    for reach in REACHES:
        with far_reaching(reach) as daemon, holders(daemon, tmp_path, 8) as drawing:
            asked = [restart(daemon, reach, ending, drawing) for ending in endings]
            for holder in drawing:
                holder.more()
        drawn = [holder.drawn() for holder in drawing]
        assert_sound(drawn)
        if None not in asked:
            assert asked == [(0, 0)] * len(endings)
            assert all(map(all_safe, drawn))
            return
    pytest.fail(f"each restart took longer than {REACHES[-1]:g} s")

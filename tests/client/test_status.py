"""``uuidctl status``: the screen, watched, and the metrics."""

from __future__ import annotations

import contextlib
import copy
import fcntl
import json
import os
import pty
import re
import select
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.client.conftest import Uuidctl
from tests.rig import PATIENCE, Daemon, until
from uuidd import version
from uuidd_client.client import Client
from uuidd_client.command import metrics, panel
from uuidd_client.command.panel import GREEN, PLAIN, RED, YELLOW

WATCH = [
    sys.executable,
    "-c",
    "import sys; from uuidd_client.command import main, status; status.WATCH_SECONDS = 0.1;"
    "sys.exit(main())",
]
"""``uuidctl`` in a process of its own, which draws the status ten times a second."""

FLEET = "0123456789abcdef"

STATUS: dict[str, Any] = {
    "clones": {
        "noticed": 0,
        "renewed": 0,
        "last_by": "",
        "last_age": None,
        "after_clone": "refuse",
    },
    "version": "1.2.3",
    "pid": 4711,
    "uptime": 93_784.5,
    "node": "0x448899365732",
    "node_source": "mac eth0",
    "volatile": False,
    "unreachable": "",
    "connections": 12,
    "connections_highest": 345,
    "connections_rejected": 6,
    "requests": {
        "rpc": {"requests": 1_234_567, "ids": 9_876_543_210, "refused": {}},
        "libuuid": {"requests": 7, "ids": 8, "refused": {}},
    },
    "clock": {
        "synchronised": True,
        "max_error": 0.0125,
        "leap": None,
        "unknown": "",
        "required_error": 0.5,
        "withheld": "",
    },
    "utc": {
        "generation": 47,
        "clock_seq": 12_032,
        "node": "0x448899365732",
        "lanes_in_use": 1,
        "next": 140_145_395_406_952_924,
        "lag": 0.0003211,
        "openings": 1,
        "steps_back": 0,
        "steps_forward": 2,
        "horizon": 140_145_395_407_936_121,
        "horizon_in": 15.0,
    },
    "steady": {
        "next": 140_145_395_406_954_828,
        "lead": 0.0,
        "max_lead": 3600.0,
        "rollback": "slew",
        "held_for": 0.0,
        "horizon": 140_145_395_407_936_121,
        "horizon_in": 14.5,
        "worker": 5,
        "epoch": 1_288_834_974_657,
    },
    "worker": {
        "number": 5,
        "source": "etcd h1:2379",
        "namespace": FLEET,
        "state": "held",
        "begin": 140_145_395_400_000_001,
        "until": 140_145_401_400_000_002,
        "until_in": 480.5,
        "window": 600.0,
        "hold": 900.0,
        "renewed_age": 119.5,
        "renewals": 51,
        "failed": 52,
        "fenced": 53,
        "claims": 54,
        "round_trip_seconds": 0.0043,
        "why": "",
    },
    "leases": {
        "page": True,
        "out": 17,
        "granted": 2345,
        "revoked": 14,
        "refused": {},
        "unpassed": 0,
        "horizon_in": 13.5,
        "held_for": 0.0,
    },
    "saves": {
        "done": 81,
        "failed": 0,
        "failing": False,
        "trouble": "",
        "last_age": 5.25,
        "last_seconds": 0.0021,
        "reach_seconds": 20.0,
        "under_way_seconds": 0.0,
    },
    "limits": {
        "request_bytes": 4096,
        "pipelined": 1024,
        "connections": 16384,
        "connections_per_uid": 8192,
        "waiting_per_uid": 64,
        "unread_per_uid": 256,
        "request_seconds": 5.0,
        "reply_seconds": 4.5,
    },
    "full_on": {
        "v1": "5236-03-31",
        "v6": "5236-03-31",
        "v7": "+10889-08-02",
        "snowflake": "2080-07-10",
        "flake": "+584556019-04-03",
    },
}
"""What a daemon said, with numbers that are all different."""

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def changed(**changes: Any) -> dict[str, Any]:
    """Return STATUS with changes: ``utc__generation=5`` is one within ``utc``."""
    status = copy.deepcopy(STATUS)
    for name, value in changes.items():
        *way, last = name.split("__")
        inner = status
        for step in way:
            inner = inner[step]
        assert last in inner
        inner[last] = value
    return status


def drawn(rate: float | None = 1000.0, width: int = 80, **changes: Any) -> str:
    """Return the screen without colours."""
    return panel.draw(changed(**changes), rate, width=width, coloured=False)


class State(NamedTuple):
    """What *changes* in STATUS, the *faults* and *warnings* that are told of it, and other words.

    *told* is on the screen, where each space may be a line's end.
    """

    changes: Mapping[str, Any] = {}
    faults: Sequence[str] = ()
    warnings: Sequence[str] = ()
    told: Sequence[str] = ()


AWAY: dict[str, Any] = {
    "worker__state": "away",
    "worker__until_in": 200.0,
    "worker__why": "etcd h1:2379 does not answer (refused)",
}
FAILING: dict[str, Any] = {
    "saves__failing": True,
    "saves__failed": 1,
    "saves__trouble": "Transport endpoint is not connected",
}
OVER: dict[str, Any] = {**AWAY, "worker__until_in": -3.0}

STATES = {
    "calm": State(),
    "idle": State(
        {"utc__horizon_in": -100.0, "utc__lanes_in_use": 0},
        told=[
            "horizon ░░░░░░░░░░░░░░░░░░░░░░ idle; the next request waits for a save",
            "0 lanes in use",
        ],
    ),
    "busy": State(
        {
            "utc__lanes_in_use": 16,
            "connections": 16_384,
            "connections_highest": 16_384,
            "connections_rejected": 1_234_567,
            "requests": {
                "rpc": {
                    "requests": 10**9,
                    "ids": 10**13,
                    "refused": {"busy": 10**8, "bad_params": 12_345, "malformed": 9, "slow": 10**6},
                },
                "libuuid": {"requests": 10**9, "ids": 10**13, "refused": {"busy": 1}},
            },
        },
        told=[
            "16 lanes in use",
            # By dialect and reason, folded below one another.
            "rpc 1,000,000,000 10,000,000,000,000 100,000,000 busy, 12,345 bad_params, 9 malformed,"
            " 1,000,000 slow libuuid 1,000,000,000 10,000,000,000,000 1 busy",
            "16,384 open, highest 16,384, 1,234,567 rejected",
        ],
    ),
    "volatile": State(
        {
            "volatile": True,
            "utc__node": "0xe59cae2cee76",
            "utc__horizon_in": -3.0,
            "saves__failing": True,
            "saves__failed": 17,
            "saves__trouble": "No space left on device",
            "saves__under_way_seconds": 12.3,
        },
        [
            "saves of the state fail (No space left on device)",
            "v1 and v6 come from a volatile node",
        ],
        told=[
            "node 44:88:99:36:57:32 (mac eth0), in use e5:9c:ae:2c:ee:76 (volatile)",
            "passed; requests wait for a save",
            "17 failed",
        ],
    ),
    "failing": State(
        FAILING,
        ["saves of the state fail (Transport endpoint is not connected)"],
        told=["1 failed", "15.0 s until the next save is needed"],
    ),
    "slow save": State(
        {"saves__under_way_seconds": 2.0}, ["a save of the state has taken 2.0 s so far"]
    ),
    "on the brink": State({"saves__under_way_seconds": 0.7, "steady__lead": 0.009}),
    "gone": State(
        {"unreachable": "no program can connect: and so on"}, ["no program can connect: and so on"]
    ),
    "ahead": State(
        {"steady__lead": 1234.5678},
        told=["steady 1,234.568 s ahead of UTC (rollback slew, max lead 3600 s)"],
    ),
    "too far ahead": State(
        {"steady__lead": 3601.0}, ["the steady kinds are refused: they are 3601.0 s ahead of UTC"]
    ),
    "refusing": State(
        {"steady__lead": 1234.5678, "steady__rollback": "refuse"},
        ["the steady kinds are refused until UTC, which was set back, catches up (1234.6 s)"],
    ),
    "waiting": State(
        {"steady__lead": 2.5, "steady__rollback": "wait"},
        ["the steady kinds wait until UTC, which was set back, catches up (2.5 s)"],
    ),
    "held": State(
        {
            "steady__held_for": 19.5,
            "steady__worker": None,
            "worker__number": None,
            "worker__until_in": None,
            "worker__window": None,
            "worker__state": "none",
        },
        ["the state was lost, so the steady kinds are held for 19.5 s"],
    ),
    "no page": State(
        {"leases__page": False, "leases__out": 0, "leases__horizon_in": None},
        told=["leases none, because there is no page; clients use blocks"],
    ),
    "no lease": State(
        {
            "leases__held_for": 12.25,
            "leases__refused": {"floor": 10**6, "user": 120, "steady": 1, "volatile": 10**6},
        },
        told=["refused 1,000,000 floor, 120 user, 1 steady, 1,000,000 volatile, held for 12.2 s"],
    ),
    "unpassed": State({"leases__unpassed": 1234}, told=["page not passed 1,234 times"]),
    "closed": State(
        {
            "utc__generation": None,
            "utc__clock_seq": None,
            "utc__next": None,
            "utc__lag": None,
        },
        told=["utc no generation can be opened"],
    ),
    "withheld": State(
        {
            "clock__synchronised": False,
            "clock__max_error": 16.0,
            "clock__withheld": "the clock is not synchronised, and so on",
        },
        ["the steady kinds are refused: the clock is not synchronised, and so on"],
        told=["clock not synchronised; set back"],
    ),
    "leap": State(
        {"clock__leap": "insert"},
        told=["to 0.013 s, a leap second comes at the end of the day; set back"],
    ),
    "unknown": State(
        {
            "clock__synchronised": None,
            "clock__max_error": None,
            "clock__unknown": "adjtimex: Operation not permitted",
            "clock__required_error": None,
        },
        told=["clock quality not known (adjtimex: Operation not permitted); set back"],
    ),
    "away": State(
        AWAY,
        warnings=[
            "Snowflakes can be made for 200.0 s more: etcd h1:2379 does not answer (refused)"
        ],
        told=["worker 5, Snowflakes count from 2010-11-04, away, 3 min 20 s left"],
    ),
    "over": State(
        OVER,
        ["Snowflakes are refused: etcd h1:2379 does not answer (refused)"],
        told=["2010-11-04, away, 0.0 s left"],
    ),
    "fenced": State(
        {**AWAY, "worker__state": "fenced", "worker__why": "db7 has the number now"},
        warnings=["Snowflakes can be made for 200.0 s more: db7 has the number now"],
    ),
    "cloned": State(
        {"clones__noticed": 3, "clones__last_age": 7.0, "clones__last_by": "vmgenid"},
        told=["clones 3 noticed (last 7.0 s ago, by vmgenid)"],
    ),
}

ALL: dict[str, Any] = {"version": "10.11.12.dev345+g0123456"}
for each in ("busy", "volatile", "refusing", "no lease"):
    ALL |= STATES[each].changes

EVERY_SCREEN = [*(state.changes for state in STATES.values()), ALL]


# --- the screen


def test_the_screen_of_a_daemon_that_serves() -> None:
    assert (
        drawn(1_234_567.0)
        == """\
uuidd        1.2.3, serving, pid 4711, up 26 h 3 min
node         44:88:99:36:57:32 (mac eth0)
worker       5, Snowflakes count from 2010-11-04, held, 8 min 0 s left
ids          ███░░░░░░░░░░░░░░░░░░░  1,234,567 a second, 12.3% of 10 million
horizon      ████████████████░░░░░░  15.0 s until the next save is needed

utc          clock_seq 12032, generation 47, 1 lane in use, 1 opening
steady       level with UTC (rollback slew, max lead 3600 s)
clock        synchronised to 0.013 s; set back 0 times, forward 2 times
leases       17 out, 2,345 granted, 14 revoked
saves        81 done (last 5.2 s ago, took 2.1 ms), 0 failed

                  requests                ids   refused
rpc              1,234,567      9,876,543,210   -
libuuid                  7                  8   -
connections  12 open, highest 345, 6 rejected
limits       request bytes 4096, pipelined 1024, connections 16384,
             connections per uid 8192, waiting per uid 64, unread per uid 256,
             request seconds 5, reply seconds 4.5
works until  2080-07-10 snowflake, 5236-03-31 v1 v6, +10889-08-02 v7,
             +584556019-04-03 flake"""
    )


@pytest.mark.parametrize("changes", EVERY_SCREEN)
@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_no_line_is_longer_than_the_terminal(changes: Mapping[str, Any], width: int) -> None:
    """Also with the largest numbers."""
    for rate in (None, 0.0, 123_456_789.0):
        lines = drawn(rate, width, **changes).split("\n")
        assert [line for line in lines if len(line) > width] == []


@pytest.mark.parametrize("changes", EVERY_SCREEN)
def test_lines_lose_no_word_where_they_are_broken(changes: Mapping[str, Any]) -> None:
    """Whatever the width: only the bars are shorter in a narrower terminal."""
    said = {
        " ".join(drawn(width=width, **changes).translate({0x2588: " ", 0x2591: " "}).split())
        for width in range(70, 101)
    }
    assert len(said) == 1


@pytest.mark.parametrize("changes", EVERY_SCREEN)
def test_a_screen_fits_a_terminal_of_24_rows_unless_all_is_wrong(
    changes: Mapping[str, Any],
) -> None:
    """With a row left for the cursor."""
    assert len(drawn(**changes).split("\n")) <= (29 if changes is ALL else 23)


@pytest.mark.parametrize("changes", EVERY_SCREEN)
@pytest.mark.parametrize("width", [40, 80])
def test_each_line_ends_the_colours_that_it_begins(changes: Mapping[str, Any], width: int) -> None:
    """Also where it is cut off. Without colours the text is the same, and has no escape."""
    coloured = panel.draw(changed(**changes), 1000.0, width=width, coloured=True)
    for line in coloured.split("\n"):
        assert line.count("\x1b[") == 2 * line.count(PLAIN)
        assert ESCAPE.findall(line)[1::2] == [PLAIN] * line.count(PLAIN)
    assert ESCAPE.sub("", coloured) == drawn(width=width, **changes)
    assert "\x1b" not in drawn(width=width, **changes)


@pytest.mark.parametrize(
    ("rate", "told"),
    [
        # The row is there, so that nothing moves when the rate is known.
        (None, "ids          ░░░░░░░░░░░░░░░░░░░░░░  -\n"),
        (0.0, "ids          ░░░░░░░░░░░░░░░░░░░░░░  0 a second, 0.0% of 10 million\n"),
        # Random ids cost no ticks, so there may be more than the bar shows.
        (2e7, "ids          ██████████████████████  20,000,000 a second, 200.0% of 10 million\n"),
    ],
)
def test_the_bar_of_ids_shows_a_rate(rate: float | None, told: str) -> None:
    assert told in drawn(rate)


@pytest.mark.parametrize("name", STATES)
def test_the_screen_tells_of_every_state(name: str) -> None:
    changes, faults, warnings, told = STATES[name]
    said = " ".join(drawn(**changes).split())
    serving = "serving, but not all kinds normally" if faults else "serving"
    head = [f"uuidd 1.2.3, {serving}, pid 4711, up 26 h 3 min"]
    head += [f"fault {fault}" for fault in faults] + [f"warning {each}" for each in warnings]
    assert said.startswith(" ".join([*head, "node 44:88:99:36:57:32 (mac eth0)"]))
    assert [text for text in told if text not in said] == []
    assert (" worker 5, " in said) == ("steady__worker" not in changes)
    assert (" clones " in said) == (name == "cloned")
    assert "None" not in said


@pytest.mark.parametrize("name", STATES)
def test_what_keeps_callers_from_their_ids_is_a_fault(name: str) -> None:
    """And what soon will is a warning, in the same words as on the screen."""
    status = changed(**STATES[name].changes)
    assert list(panel.faults(status)) == list(STATES[name].faults)
    assert list(panel.warnings(status)) == list(STATES[name].warnings)


def test_what_a_daemon_says_moves_no_cursor() -> None:
    said = drawn(node_source="mac \x1b[2Jé", saves__failing=True, saves__trouble="a\nb")
    assert "(mac ?[2Jé)" in said
    assert "fail (a b)" in said


@pytest.mark.parametrize(
    ("colour", "changes", "text"),
    [
        (GREEN, {}, "1.2.3, serving, pid"),
        (GREEN, AWAY, "1.2.3, serving, pid"),
        (RED, FAILING, "1.2.3, serving, but not all kinds normally, pid"),
        (YELLOW, AWAY, "Snowflakes can be made for 200.0 s more"),
        (RED, {"rate": 1e7}, "█" * 22),
        (YELLOW, {"utc__horizon_in": 1.0}, "█"),
        (GREEN, {"utc__horizon_in": 1.0, "saves__reach_seconds": 1.0}, "█" * 22),
    ],
)
def test_trouble_has_a_colour(colour: str, changes: Mapping[str, Any], text: str) -> None:
    """A fault is red, a warning yellow; a bar is red if it is full of ids."""
    others = {name: value for name, value in changes.items() if name != "rate"}
    screen = panel.draw(changed(**others), changes.get("rate", 0.0), width=80, coloured=True)
    of_colour = " ".join(re.findall(re.escape(colour) + r"([^\x1b]*)", screen))
    assert text in of_colour


# --- the rate


@pytest.mark.parametrize(
    ("ids", "seconds", "expected"), [(1000, 0.5, 2000.0), (0, 1.0, 0.0), (5, 0.0, 5000.0)]
)
def test_the_rate_is_of_all_dialects(ids: int, seconds: float, expected: float) -> None:
    """Ids of both count; between two looks at once there is a millisecond."""
    later = changed(requests__rpc__ids=STATUS["requests"]["rpc"]["ids"] + ids)
    assert panel.rate(STATUS, later, seconds) == pytest.approx(expected)


def test_over_a_restart_there_is_no_rate() -> None:
    """Neither where the count went back, nor where another process counts."""
    assert panel.rate(STATUS, changed(requests__rpc__ids=0), 1.0) is None
    assert panel.rate(STATUS, changed(pid=1), 1.0) is None


@given(st.floats(0, 1e10), st.integers(20, 200), st.floats(-1e6, 1e6))
def test_any_numbers_are_drawn(rate: float, width: int, left: float) -> None:
    """A bar is never longer than its place, whatever the share."""
    screen = drawn(rate, width, utc__horizon_in=left, saves__reach_seconds=0.1)
    assert max(len(line) for line in screen.split("\n")) <= width


# --- metrics


def numbers(status: Mapping[str, Any], way: tuple[str, ...] = ()) -> Iterator[tuple[str, float]]:
    """Return all numbers in a status, by the way to them."""
    for name, value in status.items():
        if isinstance(value, dict):
            yield from numbers(value, (*way, name))
        elif isinstance(value, (bool, int, float)):
            yield ".".join((*way, name)), float(value)


def parsed(text: str) -> list[Metric]:
    """Return what the metrics say, as the library's own parser reads them."""
    return list(text_string_to_metric_families(text))


def samples(text: str) -> dict[str, float]:
    """Return the numbers of the metrics, by name and labels."""
    return {
        sample.name
        + "".join(f",{name}={value}" for name, value in sorted(sample.labels.items())): (
            sample.value
        )
        for family in parsed(text)
        for sample in family.samples
    }


WHERE = {
    "uptime": "uuidd_uptime_seconds",
    "volatile": "uuidd_volatile",
    "connections": "uuidd_connections",
    "connections_highest": "uuidd_connections_highest",
    "connections_rejected": "uuidd_connections_rejected_total",
    "requests.rpc.requests": "uuidd_requests_total,dialect=rpc",
    "requests.rpc.ids": "uuidd_ids_total,dialect=rpc",
    "requests.rpc.refused.busy": "uuidd_refused_total,dialect=rpc,reason=busy",
    "requests.rpc.refused.bad_params": "uuidd_refused_total,dialect=rpc,reason=bad_params",
    "requests.libuuid.requests": "uuidd_requests_total,dialect=libuuid",
    "requests.libuuid.ids": "uuidd_ids_total,dialect=libuuid",
    "requests.libuuid.refused.too_late": "uuidd_refused_total,dialect=libuuid,reason=too_late",
    "utc.generation": "uuidd_generation",
    "utc.clock_seq": "uuidd_clock_seq",
    "utc.lanes_in_use": "uuidd_lanes_in_use",
    "utc.lag": "uuidd_lag_seconds",
    "utc.openings": "uuidd_openings_total",
    "utc.steps_back": "uuidd_clock_steps_total,direction=back",
    "utc.steps_forward": "uuidd_clock_steps_total,direction=forward",
    "utc.horizon_in": "uuidd_horizon_seconds",
    "steady.lead": "uuidd_steady_lead_seconds",
    "steady.max_lead": "uuidd_steady_max_lead_seconds",
    "steady.held_for": "uuidd_steady_held_seconds",
    "steady.horizon_in": "uuidd_steady_horizon_seconds",
    "steady.worker": f"uuidd_worker,namespace={FLEET}",
    "clock.synchronised": "uuidd_clock_synchronised",
    "clock.max_error": "uuidd_clock_max_error_seconds",
    "clock.required_error": "uuidd_clock_required_error_seconds",
    "worker.until_in": "uuidd_worker_horizon_seconds",
    "worker.window": "uuidd_worker_window_seconds",
    "worker.hold": "uuidd_worker_hold_seconds",
    "worker.renewed_age": "uuidd_worker_renewed_age_seconds",
    "worker.renewals": "uuidd_worker_renewals_total",
    "worker.failed": "uuidd_worker_failures_total",
    "worker.fenced": "uuidd_worker_fenced_total",
    "worker.claims": "uuidd_worker_claims_total",
    "worker.round_trip_seconds": "uuidd_worker_round_trip_seconds",
    "clones.noticed": "uuidd_clones_noticed_total",
    "clones.renewed": "uuidd_clones_renewed_total",
    "clones.last_age": "uuidd_clone_age_seconds",
    "leases.page": "uuidd_leases_page",
    "leases.out": "uuidd_leases",
    "leases.granted": "uuidd_leases_granted_total",
    "leases.revoked": "uuidd_leases_revoked_total",
    "leases.refused.floor": "uuidd_leases_refused_total,reason=floor",
    "leases.unpassed": "uuidd_leases_unpassed_total",
    "leases.horizon_in": "uuidd_leases_horizon_seconds",
    "leases.held_for": "uuidd_leases_held_seconds",
    "saves.done": "uuidd_saves_total",
    "saves.failed": "uuidd_saves_failed_total",
    "saves.failing": "uuidd_saves_failing",
    "saves.last_age": "uuidd_last_save_age_seconds",
    "saves.last_seconds": "uuidd_last_save_seconds",
    "saves.under_way_seconds": "uuidd_save_under_way_seconds",
    **{f"limits.{name}": f"uuidd_limit_{name}" for name in STATUS["limits"]},
}
"""Where each number of the status is among the metrics."""

IN_TICKS = {
    *("utc.next", "utc.horizon", "steady.next", "steady.horizon"),
    *("worker.begin", "worker.until"),
}
"""Ticks are more than a float holds; the lag and the horizons tell the same in seconds."""

NO_MEASURE = {"pid", "steady.epoch", "saves.reach_seconds", "worker.number"}


def refusing() -> dict[str, Any]:
    """STATUS with some refusals."""
    return changed(
        requests__rpc__refused={"busy": 12, "bad_params": 3},
        requests__libuuid__refused={"too_late": 4},
        leases__refused={"floor": 5},
        clones__noticed=61,
        clones__renewed=62,
        clones__last_age=63.5,
        utc__steps_back=9,
        saves__failed=11,
    )


def test_every_number_of_the_status_is_among_the_metrics() -> None:
    """And is the same there; what is not, is named above, with the reason."""
    told = samples(metrics.text(refusing()))
    found = dict(numbers(refusing()))
    assert set(found) - IN_TICKS - NO_MEASURE == set(WHERE)
    assert {way: told[WHERE[way]] for way in WHERE} == {way: found[way] for way in WHERE}


def test_the_metrics_know_the_daemon() -> None:
    about = "node=0x448899365732,node_source=mac eth0,version=1.2.3"
    assert samples(metrics.text(STATUS))[f"uuidd_info,{about}"] == 1


def test_a_label_has_any_text() -> None:
    """Quotes, backslashes and line breaks are escaped, as the format demands."""
    source = 'file "C:\\n"\nof a host'
    told = parsed(metrics.text(changed(node_source=source)))
    assert told[0].samples[0].labels["node_source"] == source


def test_a_metric_with_labels_is_there_before_its_first_sample() -> None:
    """So a dashboard knows its name."""
    families = {family.name: family for family in parsed(metrics.text(STATUS))}
    assert families["uuidd_refused"].samples == families["uuidd_leases_refused"].samples == []


def test_a_host_that_never_had_a_number_of_its_fleet_misses_one() -> None:
    waiting = changed(worker__number=None, worker__until_in=None)
    assert samples(metrics.text(waiting))["uuidd_worker_missing"] == 1


def test_a_number_set_by_hand_is_of_no_fleet() -> None:
    """Prometheus takes an empty label for none."""
    by_hand = changed(worker__namespace=None, worker__until_in=None, worker__state="static")
    assert samples(metrics.text(by_hand))["uuidd_worker,namespace="] == 5


def test_every_metric_has_a_type_and_a_help() -> None:
    """No family is there twice, and all types are those of Prometheus' own text.

    node_exporter's textfile collector reads that, and refuses a whole file for another type.
    """
    families = parsed(metrics.text(refusing()))
    assert len({family.name for family in families}) == len(families)
    assert {family.type for family in families} == {"counter", "gauge"}
    assert [family.name for family in families if not family.documentation] == []


def test_every_help_is_a_sentence_that_stands_alone() -> None:
    """Each says what it counts or measures in a full sentence, and no two say the same."""
    told = [family.documentation for family in parsed(metrics.text(refusing()))]
    assert len(set(told)) == len(told)
    for text in told:
        assert re.fullmatch(r"(The|How|Whether|This|Always) .{8,}[.]", text), text
        assert len(text.split()) >= 6, text


@pytest.mark.parametrize("state", STATES)
def test_metrics_of_every_state_can_be_parsed(state: str) -> None:
    """What has no number then is left out, not made up."""
    told = samples(metrics.text(changed(**STATES[state].changes)))
    assert ("uuidd_generation" in told) == (state != "closed")
    numbered = any(name.startswith("uuidd_worker,namespace=") for name in told)
    assert numbered == (state not in ("held", "over", "fenced"))
    assert ("uuidd_clock_synchronised" in told) == (state != "unknown")
    assert told.get("uuidd_worker_missing", 0) == (state == "over")
    assert told["uuidd_steady_withheld"] == (state == "withheld")
    assert told.get("uuidd_clock_leap_second", 0) == (state == "leap")


# --- the command


def test_a_real_daemons_status_is_a_screen_without_colours(
    daemon: Daemon, uuidctl: Uuidctl
) -> None:
    """Every row of it is there, and no escape, because the output is not a terminal."""
    status, out, err = uuidctl("status", socket=daemon.socket)
    assert (status, err) == (0, "")
    assert "\x1b" not in out
    lines = out.splitlines()
    assert f"serving, pid {daemon.process.pid}, up " in lines[0]
    assert [line for line in lines if len(line) > 80] == []
    assert [line.split()[0] for line in lines if line[:1].strip()] == [
        *("uuidd", "node", "worker", "ids", "horizon", "utc", "steady", "clock"),
        "leases",
        "saves",
        *("rpc", "libuuid", "connections", "limits", "works"),
    ]


def test_a_real_daemons_metrics_are_those_of_its_status(daemon: Daemon, uuidctl: Uuidctl) -> None:
    """All that this file knows of; their text ends with a line break, as its readers demand."""
    _, plain, _ = uuidctl("status", "--json", socket=daemon.socket)
    assert json.loads(plain)["pid"] == daemon.pid
    status, out, err = uuidctl("status", "--prometheus", socket=daemon.socket)
    assert (status, err) == (0, "")
    assert out.endswith("\n")
    # Reasons of refusals are whatever other tests have asked for.
    real = {way for way, _ in numbers(json.loads(plain)) if ".refused." not in way}
    found = real - IN_TICKS - NO_MEASURE
    assert found <= set(WHERE)
    # Its number was set by hand, so it is of no namespace.
    assert {WHERE[way].replace(FLEET, "") for way in found} <= set(samples(out))


@pytest.mark.parametrize("form", [[], ["--json"], ["--prometheus"], ["--check"]])
def test_without_a_daemon_a_line_says_so(uuidctl: Uuidctl, form: list[str]) -> None:
    message = "uuidctl: no answer from uuidd at /nowhere/s: No such file or directory\n"
    assert uuidctl("status", *form) == (2 if form == ["--check"] else 1, "", message)


# --- the check


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({}, 0, "all is well"),
        (
            {**AWAY, "worker__until_in": 6.0},
            1,
            "Snowflakes can be made for 6.0 s more: etcd h1:2379 does not answer (refused)",
        ),
        (OVER, 2, "Snowflakes are refused: etcd h1:2379 does not answer (refused)"),
        (
            {**AWAY, **FAILING},
            2,
            "saves of the state fail (Transport endpoint is not connected); Snowflakes can be made"
            " for 200.0 s more: etcd h1:2379 does not answer (refused)",
        ),
    ],
)
def test_a_check_warns_of_what_will_keep_callers_from_their_ids(
    uuidctl: Uuidctl,
    monkeypatch: pytest.MonkeyPatch,
    changes: Mapping[str, Any],
    status: int,
    said: str,
) -> None:
    """Its exit status is what programs that watch hosts expect: 0 for well, 1 and 2."""
    monkeypatch.setattr(Client, "status", lambda _: changed(**changes))
    assert uuidctl("status", "--check") == (status, f"uuidd 1.2.3, pid 4711: {said}\n", "")


def test_a_daemon_that_serves_all_is_well(daemon: Daemon, uuidctl: Uuidctl) -> None:
    line = f"uuidd {version()}, pid {daemon.process.pid}: all is well\n"
    assert uuidctl("status", "--check", socket=daemon.socket) == (0, line, "")


@pytest.mark.process
def test_a_daemon_whose_saves_fail_is_not_well(uuidctl: Uuidctl) -> None:
    """One line that says so, and status 2; and it is well again once they succeed."""
    with Daemon() as daemon, daemon.connect() as connection:
        # A folder in the temporary file's place: every save fails, as on a full disk.
        (daemon.state / "state.new").mkdir()
        until(lambda: connection.call("take", "utc", 1) and connection.call("status")["volatile"])
        line = (
            f"uuidd {version()}, pid {daemon.process.pid}: saves of the state fail (Is a"
            " directory); v1 and v6 come from a volatile node\n"
        )
        assert uuidctl("status", "--check", socket=daemon.socket) == (2, line, "")
        (daemon.state / "state.new").rmdir()
        until(lambda: not connection.call("status")["saves"]["failing"])
        assert uuidctl("status", "--check", socket=daemon.socket)[0] == 0


def test_a_silent_daemon_is_not_well(
    tmp_path: Path, uuidctl: Uuidctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon that accepts nothing fails the check within the time-out."""
    monkeypatch.setenv("UUIDD_TIMEOUT", "0.05")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s"))
        silent.listen()
        status, out, err = uuidctl("status", "--check", socket=tmp_path / "s")
    assert (status, out) == (2, "")
    assert err.startswith(f"uuidctl: no answer from uuidd at {tmp_path}/s: silent for ")


# --- in a terminal


class Terminal:
    """A terminal of 80 columns, with ``uuidctl`` in it."""

    def __init__(
        self, *arguments: str, socket: Path, rows: int, environment: Mapping[str, str]
    ) -> None:
        self.shown = ""
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (rows, 80))
        kept = {name: value for name, value in os.environ.items() if name not in SIZED}
        self.process = subprocess.Popen(
            [*WATCH, *arguments],
            env={**kept, "UUIDD_SOCKET": str(socket), **environment},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            # So that Ctrl-C reaches it as from a keyboard.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        self._fd = ours

    def until(self, done: Callable[[str], object]) -> str:
        """Read on until what was shown is *done*, and return all of it."""
        end = time.monotonic() + PATIENCE
        while not done(self.shown):
            assert select.select([self._fd], [], [], end - time.monotonic())[0], self.shown
            self.shown += os.read(self._fd, 65536).decode()
        return self.shown

    def end(self, keys: bytes = b"") -> int:
        """Press *keys*, read to the end, and return the exit status."""
        os.write(self._fd, keys)
        with contextlib.suppress(OSError):
            while data := os.read(self._fd, 65536):
                self.shown += data.decode()
        os.close(self._fd)
        return self.process.wait(PATIENCE)


SIZED = ("COLUMNS", "LINES", "NO_COLOR")


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    """Return what makes terminals, whose programs end with the test."""
    made: list[Terminal] = []

    def make(*arguments: str, socket: Path, rows: int = 24, **environment: str) -> Terminal:
        made.append(Terminal(*arguments, socket=socket, rows=rows, environment=environment))
        return made[-1]

    yield make
    for terminal in made:
        terminal.process.kill()
        terminal.process.wait()


SCREEN = "\x1b[H"
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
CTRL_C = b"\x03"

MakeTerminal = Callable[..., Terminal]


@pytest.mark.parametrize(
    ("environment", "coloured"), [({}, True), ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False)]
)
def test_a_terminal_has_colours_unless_no_color_is_set(
    daemon: Daemon, terminal: MakeTerminal, environment: dict[str, str], coloured: bool
) -> None:
    """As no-color.org has it: set, and not empty. No line is longer than the terminal."""
    shown = terminal("status", socket=daemon.socket, **environment)
    assert shown.end() == 0
    assert (GREEN in shown.shown) == coloured
    assert ("\x1b" in shown.shown) == coloured
    lines = ESCAPE.sub("", shown.shown).splitlines()
    assert [line for line in lines if len(line) > 80] == []


def test_watch_draws_anew_until_ctrl_c(daemon: Daemon, terminal: MakeTerminal) -> None:
    """It hides the cursor while it draws, shows it again at the end, and ends with status 0."""
    watch = terminal("status", "--watch", socket=daemon.socket)
    shown = watch.until(lambda shown: shown.count(f"{SCREEN}\x1b[2muuidd") >= 2)
    assert shown.startswith(HIDE)
    assert SHOW not in shown
    assert watch.end(CTRL_C) == 0
    assert watch.shown.endswith(SHOW)
    assert "Traceback" not in watch.shown


def test_watch_never_scrolls(daemon: Daemon, terminal: MakeTerminal) -> None:
    """In a terminal of few rows the end is left out, so that the top stays at the top."""
    watch = terminal("status", "--watch", socket=daemon.socket, rows=10)
    shown = watch.until(lambda shown: shown.count(SCREEN) >= 3)
    screens = shown.split(SCREEN)[1:-1]
    assert [screen.count("\n") for screen in screens if screen.count("\n") > 9] == []
    assert "\nutc" in ESCAPE.sub("", screens[-1])
    assert watch.end(CTRL_C) == 0


def test_watch_tells_the_rate_from_the_second_screen_on(
    daemon: Daemon, terminal: MakeTerminal
) -> None:
    """What was given out between two screens counts in the second."""
    watch = terminal("status", "--watch", socket=daemon.socket)
    watch.until(lambda shown: "works until" in shown)
    assert " a second," not in watch.shown.split("works until")[0]
    with daemon.connect() as connection:
        for _ in range(10):
            connection.call("take", "utc", 1000)
    watch.until(lambda shown: re.search(r"[1-9][0-9,]* a second,", shown))
    assert watch.end(CTRL_C) == 0


@pytest.mark.process
def test_watch_waits_for_a_daemon_and_outlives_it(terminal: MakeTerminal) -> None:
    daemon = Daemon()
    with daemon:
        assert daemon.stop() == 0
        watch = terminal("status", "--watch", socket=daemon.socket)
        shown = watch.until(lambda shown: shown.count("no answer from uuidd at") >= 2)
        assert shown.split(SCREEN)[-1].startswith("no answer from uuidd at ")
        daemon.start()
        watch.until(lambda shown: f"pid {daemon.process.pid}," in shown)
        assert daemon.stop() == 0
        before = watch.shown.count("no answer from")
        watch.until(lambda shown: shown.count("no answer from") > before)
        assert watch.end(CTRL_C) == 0
        assert "Traceback" not in watch.shown


def test_watch_in_a_pipe_has_no_escapes(daemon: Daemon) -> None:
    """Screen after screen, as text; and it ends in order when nobody reads on."""
    with subprocess.Popen(
        [*WATCH, "status", "--watch"],
        env={**os.environ, "UUIDD_SOCKET": str(daemon.socket)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as watch:
        assert watch.stdout is not None
        assert watch.stderr is not None
        lines = [watch.stdout.readline() for _ in range(30)]
        watch.stdout.close()
        assert watch.wait(PATIENCE) == 1
        assert watch.stderr.read() == ""
    assert "\x1b" not in "".join(lines)
    assert sum(line.startswith("uuidd ") for line in lines) == 2


def test_a_terminal_without_the_signs_gets_others(daemon: Daemon) -> None:
    done = subprocess.run(
        [*WATCH, "status"],
        env={**os.environ, "UUIDD_SOCKET": str(daemon.socket), "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"ids" in done.stdout
    assert b"...." in done.stdout

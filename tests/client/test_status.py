"""``uuidctl status``: the screen, watched, and the metrics."""

from __future__ import annotations

import contextlib
import copy
import fcntl
import io
import itertools
import json
import os
import pty
import re
import select
import subprocess
import termios
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.client.conftest import Uuidctl
from tests.client.fakes import UUIDCTL
from tests.rig import PATIENCE, Daemon
from uuidd import version
from uuidd_client import DaemonUnavailable
from uuidd_client.client import Client
from uuidd_client.command import main, metrics, panel
from uuidd_client.command.panel import GREEN, PLAIN, RED, YELLOW

STATUS: dict[str, Any] = json.loads("""{
  "version": "1.2.3", "pid": 4711, "uptime": 93784.5, "node": "0x448899365732",
  "node_source": "mac eth0", "volatile": false, "unreachable": "",
  "connections": 12, "connections_highest": 345, "connections_rejected": 6,
  "clones": {"noticed": 0, "renewed": 0, "last_by": "", "last_age": null, "after_clone": "refuse"},
  "fallback": {"ids": {}, "last_age": null},
  "requests": {
    "rpc": {"requests": 1234567, "ids": 9876543210, "refused": {}},
    "libuuid": {"requests": 7, "ids": 8, "refused": {}}},
  "clock": {
    "synchronised": true, "max_error": 0.0125, "leap": null, "unknown": "",
    "required_error": 0.5, "withheld": ""},
  "utc": {
    "generation": 47, "clock_seq": 12032, "node": "0x448899365732", "lanes_in_use": 1,
    "next": 140145395406952924, "lag": 0.0003211, "openings": 1, "steps_back": 0,
    "steps_forward": 2, "horizon": 140145395407936121, "horizon_in": 15.0},
  "steady": {
    "next": 140145395406954828, "lead": 0.0, "max_lead": 3600.0, "rollback": "slew",
    "held_for": 0.0, "horizon": 140145395407936121, "horizon_in": 14.5, "worker": 5,
    "epoch": 1288834974657},
  "worker": {
    "number": 5, "source": "etcd h1:2379", "namespace": "0123456789abcdef", "state": "held",
    "begin": 140145395400000001, "until": 140145401400000002, "until_in": 480.5, "window": 600.0,
    "hold": 900.0, "renewed_age": 119.5, "renewals": 51, "failed": 52, "fenced": 53, "claims": 54,
    "round_trip_seconds": 0.0043, "why": ""},
  "leases": {
    "page": true, "out": 17, "granted": 2345, "revoked": 14, "refused": {}, "unpassed": 0,
    "horizon_in": 13.5, "held_for": 0.0},
  "saves": {
    "done": 81, "failed": 0, "failing": false, "trouble": "", "last_age": 5.25,
    "last_seconds": 0.0021, "reach_seconds": 20.0, "under_way_seconds": 0.0},
  "limits": {
    "request_bytes": 4096, "pipelined": 1024, "connections": 16384, "connections_per_uid": 8192,
    "waiting_per_uid": 64, "unread_per_uid": 256, "request_seconds": 5.0, "reply_seconds": 4.5},
  "full_on": {
    "v1": "5236-03-31", "v6": "5236-03-31", "v7": "+10889-08-02", "snowflake": "2080-07-10",
    "flake": "+584556019-04-03"}
}""")
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
    "never saved": State(
        {**FAILING, "saves__done": 0, "saves__last_age": None},
        ["saves of the state fail (Transport endpoint is not connected)"],
        told=["saves 0 done, 1 failed"],
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
    "large settings": State(
        {"steady__max_lead": 31_536_000.0, "limits__connections": 1 << 20},
        told=["max lead 31536000 s", "connections 1048576"],
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
            "utc__node": None,
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
    "fallback": State(
        {"fallback": {"ids": {"33": 1, "1000": 2500, "others": 6}, "last_age": 65.0}},
        told=[
            "fallback 2,507 ids made without the daemon, most by uid 1000 (told of 1 min 5 s ago)"
        ],
    ),
}

ALL: dict[str, Any] = {"version": "10.11.12.dev345+g0123456"}
for each in ("busy", "volatile", "refusing", "no lease"):
    ALL |= STATES[each].changes

each_screen = pytest.mark.parametrize(
    "changes", [*(state.changes for state in STATES.values()), ALL], ids=[*STATES, "all"]
)


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


@pytest.mark.parametrize("width", [40, 80])
def test_a_word_that_is_longer_than_a_line_is_shown_whole(width: int) -> None:
    """It may be the path that somebody has to repair."""
    path = f"/srv/{'state-of-' * 12}uuidd"
    screen = drawn(
        width=width, **{**FAILING, "saves__trouble": f"no folder at {path}; move it back"}
    )
    assert f"{path}; move".replace(" ", "") in "".join(screen.split())


@each_screen
@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_no_line_is_longer_than_the_terminal(changes: Mapping[str, Any], width: int) -> None:
    for rate in (None, 0.0, 123_456_789.0):
        lines = drawn(rate, width, **changes).split("\n")
        assert [line for line in lines if len(line) > width] == []


@each_screen
def test_lines_lose_no_word_where_they_are_broken(changes: Mapping[str, Any]) -> None:
    said = {
        " ".join(drawn(width=width, **changes).translate({0x2588: " ", 0x2591: " "}).split())
        for width in range(70, 101)
    }
    assert len(said) == 1


@each_screen
def test_a_screen_fits_a_terminal_of_24_rows_unless_all_is_wrong(
    changes: Mapping[str, Any],
) -> None:
    assert len(drawn(**changes).split("\n")) <= (29 if changes is ALL else 23)


@each_screen
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
    others = {name: value for name, value in changes.items() if name != "rate"}
    screen = panel.draw(changed(**others), changes.get("rate", 0.0), width=80, coloured=True)
    of_colour = " ".join(re.findall(re.escape(colour) + r"([^\x1b]*)", screen))
    assert text in of_colour


@pytest.mark.parametrize(
    ("changes", "seconds", "expected"),
    [
        ({"rpc__ids": 9_876_543_210 + 1000}, 0.5, 2000.0),
        ({"rpc__ids": 9_876_543_210 + 5, "libuuid__ids": 8 + 2}, 1.0, 7.0),
        ({}, 1.0, 0.0),
        # Between two looks at once there is a millisecond.
        ({"libuuid__ids": 8 + 5}, 0.0, 5000.0),
        # Over a restart there is none: the count went back, or another process counts.
        ({"rpc__ids": 0}, 1.0, None),
        ({"pid": 1}, 1.0, None),
    ],
)
def test_the_rate_is_of_all_dialects(
    changes: Mapping[str, Any], seconds: float, expected: float | None
) -> None:
    later = {f"requests__{way}" if "__" in way else way: to for way, to in changes.items()}
    found = panel.rate(STATUS, changed(**later), seconds)
    assert found == (None if expected is None else pytest.approx(expected))


def numbers(status: Mapping[str, Any], way: tuple[str, ...] = ()) -> Iterator[tuple[str, float]]:
    """Return all numbers in a status, by the way to them."""
    for name, value in status.items():
        if isinstance(value, dict):
            yield from numbers(value, (*way, name))
        elif isinstance(value, (bool, int, float)):
            yield ".".join((*way, name)), float(value)


def parsed(text: str) -> list[Metric]:
    return list(text_string_to_metric_families(text))


def samples(text: str) -> dict[str, float]:
    return {
        sample.name
        + "".join(f",{name}={value}" for name, value in sorted(sample.labels.items())): (
            sample.value
        )
        for family in parsed(text)
        for sample in family.samples
    }


IN_TICKS = {
    *("utc.next", "utc.horizon", "steady.next", "steady.horizon"),
    *("worker.begin", "worker.until"),
}
"""Ticks are more than a float holds; the lag and the horizons tell the same in seconds."""

NO_MEASURE = {"pid", "steady.epoch", "saves.reach_seconds", "worker.number", "steady.worker"}


# Dashboards and alerts know these names.
NAMES = """\
clock.max_error uuidd_clock_max_error_seconds
clock.required_error uuidd_clock_required_error_seconds
clock.synchronised uuidd_clock_synchronised
clock.withheld uuidd_steady_withheld
clones.last_age uuidd_clone_age_seconds
clones.noticed uuidd_clones_noticed_total
clones.renewed uuidd_clones_renewed_total
connections uuidd_connections
connections_highest uuidd_connections_highest
connections_rejected uuidd_connections_rejected_total
fallback.ids.{uid} uuidd_fallback_ids_total
fallback.last_age uuidd_fallback_age_seconds
leases.granted uuidd_leases_granted_total
leases.held_for uuidd_leases_held_seconds
leases.horizon_in uuidd_leases_horizon_seconds
leases.out uuidd_leases
leases.page uuidd_leases_page
leases.refused.{reason} uuidd_leases_refused_total
leases.revoked uuidd_leases_revoked_total
leases.unpassed uuidd_leases_unpassed_total
requests.{dialect}.ids uuidd_ids_total
requests.{dialect}.refused.{reason} uuidd_refused_total
requests.{dialect}.requests uuidd_requests_total
saves.done uuidd_saves_total
saves.failed uuidd_saves_failed_total
saves.failing uuidd_saves_failing
saves.last_age uuidd_last_save_age_seconds
saves.last_seconds uuidd_last_save_seconds
saves.under_way_seconds uuidd_save_under_way_seconds
steady.held_for uuidd_steady_held_seconds
steady.horizon_in uuidd_steady_horizon_seconds
steady.lead uuidd_steady_lead_seconds
steady.max_lead uuidd_steady_max_lead_seconds
unreachable uuidd_unreachable
uptime uuidd_uptime_seconds
utc.clock_seq uuidd_clock_seq
utc.generation uuidd_generation
utc.horizon_in uuidd_horizon_seconds
utc.lag uuidd_lag_seconds
utc.lanes_in_use uuidd_lanes_in_use
utc.openings uuidd_openings_total
utc.steps_{direction} uuidd_clock_steps_total
volatile uuidd_volatile
worker.claims uuidd_worker_claims_total
worker.failed uuidd_worker_failures_total
worker.fenced uuidd_worker_fenced_total
worker.hold uuidd_worker_hold_seconds
worker.renewals uuidd_worker_renewals_total
worker.renewed_age uuidd_worker_renewed_age_seconds
worker.round_trip_seconds uuidd_worker_round_trip_seconds
worker.until_in uuidd_worker_horizon_seconds
worker.window uuidd_worker_window_seconds
"""


def where(way: str) -> str | None:
    """Return the name and the labels of the metric that the number at *way* is; None for none."""
    if way.startswith("limits."):
        return f"uuidd_limit_{way.removeprefix('limits.')}"
    for entry in NAMES.splitlines():
        known, name = entry.split()
        if found := re.fullmatch(re.sub(r"{(\w+)}", r"(?P<\1>\\w+)", known), way):
            return name + "".join(f",{label}={of}" for label, of in found.groupdict().items())
    return None


def refusing() -> dict[str, Any]:
    return changed(
        requests__rpc__refused={"busy": 12, "bad_params": 3},
        requests__libuuid__refused={"too_late": 4},
        leases__refused={"floor": 5},
        clones__noticed=61,
        clones__renewed=62,
        clones__last_age=63.5,
        fallback={"ids": {"1000": 71, "others": 72}, "last_age": 73.5},
        utc__steps_back=9,
        saves__failed=11,
    )


def test_every_number_of_the_status_is_among_the_metrics() -> None:
    """And is the same there; what is not, is named above, with the reason."""
    told = samples(metrics.text(refusing()))
    found = {way: number for way, number in numbers(refusing()) if way not in IN_TICKS | NO_MEASURE}
    assert {way: told.get(where(way) or "") for way in found} == found


def test_a_label_has_any_text() -> None:
    source = 'file "C:\\n"\nof a host'
    told = {family.name: family for family in parsed(metrics.text(changed(node_source=source)))}
    assert told["uuidd_info"].samples[0].labels["node_source"] == source


def test_a_metric_with_labels_is_there_before_its_first_sample() -> None:
    families = {family.name: family for family in parsed(metrics.text(STATUS))}
    assert families["uuidd_refused"].samples == families["uuidd_leases_refused"].samples == []


@pytest.mark.parametrize(
    ("changes", "sample", "number"),
    [
        ({}, "uuidd_worker,namespace=0123456789abcdef", 5),
        ({}, "uuidd_info,node=0x448899365732,node_source=mac eth0,version=1.2.3", 1),
        # A host that never had a number of its fleet.
        ({"worker__number": None, "worker__until_in": None}, "uuidd_worker_missing", 1),
        # A number that was set by hand is of no fleet: Prometheus takes an empty label for none.
        ({"worker__namespace": None, "worker__until_in": None}, "uuidd_worker,namespace=", 5),
    ],
)
def test_a_metric_is_computed_of_several_fields(
    changes: Mapping[str, Any], sample: str, number: float
) -> None:
    assert samples(metrics.text(changed(**changes)))[sample] == number


def test_every_metric_has_a_type_and_a_help() -> None:
    """No family is there twice, and all types are those of Prometheus' own text.

    node_exporter's textfile collector reads that, and refuses a whole file for another type.
    """
    families = parsed(metrics.text(refusing()))
    assert len({family.name for family in families}) == len(families)
    assert {family.type for family in families} == {"counter", "gauge"}
    assert [family.name for family in families if not family.documentation] == []


def test_every_help_is_a_sentence_that_stands_alone() -> None:
    told = [family.documentation for family in parsed(metrics.text(refusing()))]
    assert len(set(told)) == len(told)
    for text in told:
        assert re.fullmatch(r"(The|How|Whether|This|Always) .{8,}[.]", text), text
        assert len(text.split()) >= 6, text


@pytest.mark.parametrize("state", STATES)
def test_metrics_of_every_state_can_be_parsed(state: str) -> None:
    told = samples(metrics.text(changed(**STATES[state].changes)))
    assert ("uuidd_generation" in told) == (state != "closed")
    numbered = any(name.startswith("uuidd_worker,namespace=") for name in told)
    assert numbered == (state not in ("held", "over", "fenced"))
    assert ("uuidd_clock_synchronised" in told) == (state != "unknown")
    assert told.get("uuidd_worker_missing", 0) == (state == "over")
    assert told["uuidd_steady_withheld"] == (state == "withheld")
    assert told.get("uuidd_clock_leap_second", 0) == (state == "leap")


def test_a_real_daemons_status_is_a_screen_without_colours(
    daemon: Daemon, uuidctl: Uuidctl
) -> None:
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
    """The text ends with a line break, as its readers demand."""
    _, plain, _ = uuidctl("status", "--json", socket=daemon.socket)
    assert json.loads(plain)["pid"] == daemon.pid
    status, out, err = uuidctl("metrics", socket=daemon.socket)
    assert (status, err, out[-1]) == (0, "", "\n")
    # Reasons of refusals are whatever other tests have asked for.
    real = {way for way, _ in numbers(json.loads(plain)) if ".refused." not in way}
    assert {where(way) for way in real - IN_TICKS - NO_MEASURE} <= set(samples(out))


@pytest.mark.parametrize("form", [[], ["--json"], ["--check"]])
def test_without_a_daemon_a_line_says_so(uuidctl: Uuidctl, form: list[str]) -> None:
    message = "uuidctl: no answer from uuidd at /nowhere/s: No such file or directory\n"
    assert uuidctl("status", *form) == (2 if form == ["--check"] else 1, "", message)


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
    monkeypatch.setattr(Client, "status", lambda _: changed(**changes))
    assert uuidctl("status", "--check") == (status, f"uuidd 1.2.3, pid 4711: {said}\n", "")


def test_a_daemon_that_serves_all_is_well(daemon: Daemon, uuidctl: Uuidctl) -> None:
    line = f"uuidd {version()}, pid {daemon.process.pid}: all is well\n"
    assert uuidctl("status", "--check", socket=daemon.socket) == (0, line, "")


HIDE, HOME, CLEAR, SHOW = "\x1b[?25l", "\x1b[H", "\x1b[J", "\x1b[?25h"


class Screen(io.StringIO):
    """A standard output that may be a terminal."""

    encoding = "utf-8"
    terminal = True

    def isatty(self) -> bool:
        """Whether it is one."""
        return self.terminal


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Return a standard output, which is a terminal of 80 columns and 10 rows."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "10")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Screen()


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch, screen: Screen) -> Callable[..., list[str]]:
    """Return what watches a daemon that says these, two seconds apart, and then presses Ctrl-C."""

    def watch(*statuses: dict[str, Any] | Exception) -> list[str]:
        said, now = iter(statuses), itertools.count()

        def say(_: object) -> dict[str, Any]:
            status = next(said, KeyboardInterrupt())
            if isinstance(status, BaseException):
                raise status
            return status

        clock = SimpleNamespace(monotonic=lambda: next(now), sleep=lambda _: None)
        monkeypatch.setattr(Client, "status", say)
        monkeypatch.setattr("uuidd_client.command.status.time", clock)
        with contextlib.redirect_stdout(screen):
            assert main(["status", "--watch"]) == 0
        return screen.getvalue().split(HOME)

    return watch


@pytest.mark.parametrize(
    ("terminal", "no_color", "coloured"),
    # As no-color.org has it: set, and not empty.
    [(True, None, True), (True, "", True), (True, "1", False), (False, None, False)],
)
def test_a_terminal_has_colours_unless_no_color_is_set(
    screen: Screen,
    monkeypatch: pytest.MonkeyPatch,
    terminal: bool,
    no_color: str | None,
    coloured: bool,
) -> None:
    screen.terminal = terminal
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setattr(Client, "status", lambda _: STATUS)
    with contextlib.redirect_stdout(screen):
        assert main(["status"]) == 0
    assert (GREEN in screen.getvalue()) == coloured
    assert ESCAPE.sub("", screen.getvalue()) == f"{drawn(0.0)}\n"


def test_watch_hides_the_cursor_and_draws_anew_until_ctrl_c(
    watched: Callable[..., list[str]],
) -> None:
    begin, *screens, last = watched(STATUS, STATUS, STATUS)
    assert begin == HIDE
    assert screens[0] == CLEAR
    assert len(screens) == 3
    assert last.endswith(f"{CLEAR}{SHOW}")


def test_watch_never_scrolls(watched: Callable[..., list[str]]) -> None:
    """In a terminal of few rows the end is left out, so that the top stays at the top."""
    *_, last = watched(STATUS)
    assert last.count("\x1b[K\n") == last.count("\n") == 9
    shown = ESCAPE.sub("", last)
    assert shown.splitlines() == drawn(None).splitlines()[:9]


def test_watch_tells_the_rate_from_the_second_screen_on(
    watched: Callable[..., list[str]],
) -> None:
    """What was given out between two screens counts in the second; over an outage there is none."""
    later, latest = (changed(requests__libuuid__ids=8 + ids) for ids in (1000, 3000))
    away = DaemonUnavailable("/nowhere/s", "refused")
    shown = [ESCAPE.sub("", each) for each in watched(STATUS, later, away, latest)[2:]]
    rates = [re.findall("([0-9,]+) a second,", each) for each in shown]
    assert rates == [[], ["500"], [], []]
    assert shown[2] == "no answer from uuidd at /nowhere/s: refused\n"


def test_watch_in_a_pipe_has_no_escapes(screen: Screen, watched: Callable[..., list[str]]) -> None:
    screen.terminal = False
    assert watched(STATUS, STATUS) == [f"{drawn(None)}\n{drawn(0.0)}\n"]


def test_a_terminal_without_the_signs_gets_others(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(Client, "status", lambda _: changed(node_source="mac \u20ac"))
    with contextlib.redirect_stdout(io.TextIOWrapper(written, "latin-1")):
        assert main(["status"]) == 0
        shown = written.getvalue()
    assert b"(mac ?)" in shown
    assert b"horizon      ################......  15.0 s" in shown


@pytest.mark.process
def test_watch_ends_in_order_at_ctrl_c_in_a_real_terminal(daemon: Daemon) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*UUIDCTL, "status", "--watch"],
        env={**os.environ, "UUIDD_SOCKET": str(daemon.socket)},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        # So that Ctrl-C reaches it as from a keyboard.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    ) as watch:
        os.close(theirs)
        try:
            shown = b""
            while b"uuidd" not in shown:
                assert select.select([ours], [], [], PATIENCE)[0], shown
                shown += os.read(ours, 65536)
            os.write(ours, b"\x03")
            with contextlib.suppress(OSError):
                while data := os.read(ours, 65536):
                    shown += data
        finally:
            # It ends with its terminal.
            os.close(ours)
        assert watch.wait(PATIENCE) == 0
    assert shown.endswith(SHOW.encode())
    assert b"Traceback" not in shown

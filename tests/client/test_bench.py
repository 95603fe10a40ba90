"""``uuidctl bench``, by itself and against a daemon."""

from __future__ import annotations

import argparse
import io
import json
import os
import pty
import select
import signal
import subprocess
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.client.fakes import UUIDCTL
from tests.rig import PATIENCE, Daemon
from uuidd.core.ids.kinds import KINDS
from uuidd_client import Client, DaemonUnavailable, extension
from uuidd_client.command import bench as command
from uuidd_client.command.bench import Results, percentiles, rate, timed
from uuidd_client.command.progress import Progress

BRIEF = ["--seconds", "0.001"]

ABOUT = {"version": "1.2", "pid": 7, "implementation": "c"}


def bench(*arguments: str, socket: Path | None = None) -> int:
    """Run the command, alone in a parser."""
    parser = argparse.ArgumentParser(prog="uuidctl")
    parser.add_argument("-s", "--socket")
    command.add_to(parser.add_subparsers(required=True))
    given = parser.parse_args(["-s", str(socket or "/nowhere/s"), "bench", *arguments])
    status: int = given.do(given)
    return status


def table(about: dict[str, Any], results: Results, *left_out: str) -> list[str]:
    """Return the lines that are printed."""
    return list(command.lines(about, results, left_out))


# --- against a daemon


def test_all_kinds_are_measured(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> None:
    """Both timelines' round trips, and each kind's ids a second, one at a time and at once."""
    assert bench(*BRIEF, "--json", socket=daemon.socket) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err == ""
    assert found["pid"] == daemon.process.pid
    assert found["implementation"] == extension.implementation
    assert found["seconds"] == 0.001
    assert found["left_out"] == {}
    assert list(found["round_trip_microseconds"]) == ["v1", "v7"]
    assert list(found["ids_per_second"]) == list(KINDS)
    for kind, rates in found["ids_per_second"].items():
        assert rates["form"] == KINDS[kind].forms[0]
        assert rates["source"] == ("process" if kind == "v4" else "daemon")
        assert rates["one_by_one"] > 0
        assert rates["at_once"] > 0
    for trips in found["round_trip_microseconds"].values():
        ranks = [trips[name] for name in ("p50", "p90", "p99", "p99.9", "max")]
        assert ranks == sorted(ranks)
        assert ranks[0] > 0
        assert trips["count"] >= 25


@pytest.mark.parametrize(
    ("kinds", "trips"),
    [
        (["-k", "v6"], ["v1"]),
        (["-k", "ulid", "snowflake"], ["v7"]),
        (["-k", "ksuid", "-k", "v1", "-k", "ksuid"], ["v1", "v7"]),
        (["-k", "v4"], []),
    ],
)
def test_the_kinds_that_are_named_are_measured(
    daemon: Daemon, kinds: list[str], trips: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each once, and round trips for the timelines that they are on."""
    assert bench(*kinds, *BRIEF, "--json", socket=daemon.socket) == 0
    found = json.loads(capsys.readouterr().out)
    named = [kind for kind in kinds if kind != "-k"]
    assert list(found["ids_per_second"]) == list(dict.fromkeys(named))
    assert list(found["round_trip_microseconds"]) == trips


def test_each_timed_id_is_a_round_trip(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> None:
    """The daemon was asked once for each, and for one tick."""
    with Client(daemon.socket, fallback=False) as client:
        before = client.status()["requests"]["rpc"]["requests"]
        assert bench("-k", "v4", "v1", *BRIEF, "--json", socket=daemon.socket) == 0
        after = client.status()["requests"]["rpc"]["requests"]
    trips = json.loads(capsys.readouterr().out)["round_trip_microseconds"]["v1"]["count"]
    assert trips < after - before


@pytest.mark.process
def test_snowflakes_are_left_out_without_a_worker_number(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A line says so, and how to have them; named, they are an error."""
    with Daemon() as daemon:
        assert bench(*BRIEF, socket=daemon.socket) == 0
        out = capsys.readouterr().out
        assert bench(*BRIEF, "--json", socket=daemon.socket) == 0
        found = json.loads(capsys.readouterr().out)
        with pytest.raises(DaemonUnavailable, match="this uuidd has no worker number"):
            bench("-k", "snowflake", *BRIEF, socket=daemon.socket)
    assert "Left out: snowflake, because the daemon has no worker number (--worker N)." in out
    assert "snowflake (int)" not in out
    assert found["left_out"] == {"snowflake": "no worker number"}
    assert list(found["ids_per_second"]) == [kind for kind in KINDS if kind != "snowflake"]


@pytest.mark.parametrize("kind", ["v1", "v4"])
def test_without_a_daemon_nothing_is_measured(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The fallback does not take its place, whatever the environment says."""
    monkeypatch.setenv("UUIDD_FALLBACK", "1")
    with pytest.raises(DaemonUnavailable, match="no answer from uuidd at /nowhere/s"):
        bench("-k", kind)
    assert capsys.readouterr() == ("", "")


@pytest.mark.process
@pytest.mark.parametrize("part", ["round trips of v7", "flake, one at a time"])
def test_a_daemon_that_goes_away_ends_it(
    part: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No number of a part is shown: all are of the daemon, or there are none."""
    with Daemon() as daemon:

        def begin(_: Progress, name: str) -> None:
            if name == part:
                daemon.kill()

        monkeypatch.setattr(Progress, "begin", begin)
        with pytest.raises(DaemonUnavailable):
            bench("-k", "flake", *BRIEF, socket=daemon.socket)
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_ctrl_c_ends_it_with_the_bar_cleared(daemon: Daemon) -> None:
    """Status 130, no results and no traceback."""
    primary, secondary = pty.openpty()
    with subprocess.Popen(
        [*UUIDCTL, "-s", daemon.socket, "bench", "--seconds", "60"],
        stdout=subprocess.PIPE,
        stderr=secondary,
    ) as process:
        shown = b""
        while b"round trips of v1" not in shown:
            assert select.select([primary], [], [], PATIENCE)[0]
            shown += os.read(primary, 4096)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)
    os.write(secondary, b"end")
    while not shown.endswith(b"end"):
        shown += os.read(primary, 4096)
    os.close(primary)
    os.close(secondary)
    *_, last, blank, end = shown.split(b"\r")
    assert (process.returncode, out) == (130, b"")
    assert last.endswith(b"round trips of v1")
    assert (blank, end) == (b" " * len(last), b"end")


# --- measuring, by a clock of its own


class Clock:
    """Nanoseconds that pass only while something is called that takes them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0
        monkeypatch.setattr(command, "perf_counter_ns", lambda: self.now)

    def taking(self, *nanoseconds: int) -> Callable[[], None]:
        """Return what takes these nanoseconds, in turn, and the last of them ever after."""
        left = list(nanoseconds)

        def call() -> None:
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return call


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return a clock that stands still by itself."""
    return Clock(monkeypatch)


def test_each_call_is_timed_but_the_first(clock: Clock) -> None:
    """The first connects and imports."""
    call = clock.taking(9_000_000, *range(1, 50), 50)
    assert list(timed(call, 1e-6, lambda _: None)) == [*range(1, 51)]


def test_calls_are_timed_for_as_long_as_was_asked_for(clock: Clock) -> None:
    """To the end of the 25 in which that comes."""
    shares: list[float] = []
    taken = timed(clock.taking(10_000), 0.001, shares.append)
    assert len(taken) == 100
    assert shares == [0.25, 0.5, 0.75, 1.0]


def test_a_rate_is_that_of_all_batches_but_the_first(clock: Clock) -> None:
    """The first lets the client learn how much is wanted."""
    shares: list[float] = []
    call = clock.taking(9_000_000_000, 100_000, 300_000)
    assert rate(call, 1000, 0.0004, shares.append) == 2000 / 0.0004
    assert shares == [0.25, 1.0]


def test_a_slow_batch_is_measured_to_its_end(clock: Clock) -> None:
    """However short the time, one is."""
    assert rate(clock.taking(2_000_000_000), 1000, 0.001, lambda _: None) == 500


def test_percentiles_are_times_that_were_measured() -> None:
    """The least that 50, 90, 99 and 99.9 percent do not exceed, and the highest of all."""
    found = percentiles([*range(10_000, 0, -1)])
    assert found == {
        "count": 10_000,
        "p50": 5.0,
        "p90": 9.0,
        "p99": 9.9,
        "p99.9": 9.99,
        "max": 10.0,
    }


def test_percentiles_of_few_are_their_highest() -> None:
    """A hundred times say nothing of one in a thousand but that."""
    found = percentiles([*range(1000, 101_000, 1000)])
    assert [found[name] for name in ("p50", "p99", "p99.9", "max")] == [50, 99, 100, 100]


# --- what is shown

TRIPS = dict.fromkeys(("p50", "p90", "p99", "p99.9", "max"), 31.25)
RATES = {"one_by_one": 4_512_345.6, "at_once": 7_000_000.0}


def test_numbers_stand_under_each_other() -> None:
    """Names at the left, and what was measured at the right of its column."""
    slow = {**TRIPS, "max": 1_234_567.8}
    results = Results({"v1": TRIPS, "v7": slow}, {"v1": RATES, "v4": RATES})
    assert table(ABOUT, results) == [
        "uuidd 1.2, pid 7; ids are made in C",
        "",
        "round trip, microseconds   p50   p90   p99  p99.9        max",
        "v1                        31.2  31.2  31.2   31.2       31.2",
        "v7                        31.2  31.2  31.2   31.2  1,234,568",
        "",
        "ids a second  one at a time  1000 at once",
        "v1 (uuid)         4,512,346     7,000,000",
        "v4 (uuid)         4,512,346     7,000,000",
        "",
        "All ids but v4 came from the daemon; the fallback made none.",
        "A process with a lease has room for 10,000,000 ids of each kind a second.",
        "All processes share room for 10,000,000 Flakes, or 4,096,000 Snowflakes.",
        "A measurement may exceed this, because it also uses time that was still free.",
        "v4 is random, and is made in this process without the daemon.",
    ]


def test_ids_that_have_no_time_are_not_said_to_be_the_daemons() -> None:
    """v4 asks nobody."""
    assert table(ABOUT, Results({}, {"v4": RATES})) == [
        "uuidd 1.2, pid 7; ids are made in C",
        "",
        "ids a second  one at a time  1000 at once",
        "v4 (uuid)         4,512,346     7,000,000",
        "",
        "v4 is random, and is made in this process without the daemon.",
    ]


def test_the_slowest_answers_still_fit() -> None:
    """Round trips of a second each, and rates of a billion."""
    trips = dict.fromkeys(TRIPS, 1_000_000.0)
    rates = dict.fromkeys(RATES, 1e9)
    results = Results({"v1": trips, "v7": trips}, dict.fromkeys(KINDS, rates))
    about = {"version": "1.2.3", "pid": 4_194_304, "implementation": "python"}
    assert max(map(len, table(about, results))) < 80


# --- the progress bar


class Terminal(io.StringIO):
    """What is written to a terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def test_a_bar_shows_the_share_that_is_done() -> None:
    """Of all parts, and which of them is under way."""
    stream = Terminal()
    with Progress(4, stream) as progress:
        progress.begin("a")
        progress.begin("b")
        progress.move(0.5)
        assert stream.getvalue().split("\r")[-1] == f"[{'#' * 11}{'.' * 19}]  37%  b"
        progress.move(7)
        assert stream.getvalue().split("\r")[-1] == f"[{'#' * 15}{'.' * 15}]  50%  b"


def test_a_bar_is_cleared_at_the_end_and_after_an_error() -> None:
    """By spaces over all that the line last held, and the cursor stands at its begin."""
    stream = Terminal()
    with pytest.raises(KeyboardInterrupt), Progress(2, stream) as progress:  # noqa: PT012  (the bar's end is what is tested)
        progress.begin("something with a long name")
        progress.begin("short")
        raise KeyboardInterrupt
    *_, last, blank, after = stream.getvalue().split("\r")
    assert last.rstrip().endswith("short")
    assert blank == " " * len(last)
    assert after == ""


def test_a_bar_is_cleared_when_ctrl_c_comes_while_it_is_drawn() -> None:
    """Most of what is not measuring is drawing."""

    class Interrupted(Terminal):
        def flush(self) -> None:
            if "%" in self.getvalue().split("\r")[-1]:
                raise KeyboardInterrupt

    stream = Interrupted()
    with pytest.raises(KeyboardInterrupt), Progress(2, stream) as progress:
        progress.begin("a")
    *_, last, blank, after = stream.getvalue().split("\r")
    assert (blank, after) == (" " * len(last), "")


def test_a_shorter_line_leaves_nothing_of_a_longer_one() -> None:
    """Its end is written over."""
    stream = Terminal()
    with Progress(2, stream) as progress:
        progress.begin("something with a long name")
        progress.begin("short")
        *_, longer, shorter = stream.getvalue().split("\r")
    assert len(shorter) == len(longer)


def test_a_bar_is_drawn_again_only_when_it_changes() -> None:
    """What is measured is not disturbed thousands of times."""
    stream = Terminal()
    with Progress(10, stream) as progress:
        progress.begin("a")
        for share in range(1000):
            progress.move(share / 1000)
        assert stream.getvalue().count("\r") == 10


def test_a_bar_fits_a_narrow_terminal() -> None:
    """In a line that folded, the cursor would not come back to its begin."""
    primary, secondary = pty.openpty()
    termios.tcsetwinsize(secondary, (24, 20))
    with open(secondary, "w") as stream, Progress(1, stream) as progress:
        progress.begin("round trips")
        assert os.read(primary, 100) == b"\r[" + b"." * 18
    os.close(primary)


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_no_bar_is_drawn_on_what_is_no_terminal(stream: io.StringIO | None) -> None:
    """A file, a pipe and a closed standard error get nothing."""
    with Progress(1, stream) as progress:
        progress.begin("a")
        progress.move(0.5)
    assert stream is None or stream.getvalue() == ""

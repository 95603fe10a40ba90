"""What the benchmarks compare and find out, and the figures that READMEs quote."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from dataclasses import replace
from itertools import chain

import pytest

from tests.benchmarks import makers, making, promises, quote, record
from tests.benchmarks.record import Record
from tests.benchmarks.rows import Row, compared, joined
from tests.documents import ROOT
from tests.rig import Daemon
from tests.tools import output, run

COUNT = "from itertools import count; draw = count().__next__"
SYSTEM = "from uuid import uuid4 as draw"
GENERATOR = "from random import Random; r = Random(); draw = lambda: f'{r.getrandbits(128):032x}'"


def tried(trial: str, setup: str) -> str:
    """Return what a trial finds."""
    return output(sys.executable, promises.TRIALS, trial, input=json.dumps([setup, "draw()"]))


@pytest.mark.process
@pytest.mark.parametrize(
    ("trial", "setup", "found"),
    [
        ("order", COUNT, "yes"),
        ("order", SYSTEM, "no"),
        ("fork", GENERATOR, "the same ids"),
        ("fork", SYSTEM, "differ"),
        ("bits", COUNT, "none"),
        ("bits", SYSTEM, ""),
    ],
)
def test_a_trial_finds_what_is_known(trial: str, setup: str, found: str) -> None:
    assert tried(trial, setup) == found


RUN = "import json, sys\nfor code in json.load(sys.stdin): exec(code, {})"

GROUPS = (
    makers.WITHOUT_DAEMON,
    makers.BESIDE_UTIL_LINUX,
    makers.FEW,
    makers.ONE,
    makers.BULK,
    makers.KINDS,
)


@pytest.mark.process
@pytest.mark.usefixtures("implementation")
def test_each_maker_of_ours_can_be_run() -> None:
    """The benchmarks have their code as text, in which no type checker finds a wrong name."""
    ours = [comparison.mine for comparison in chain(*GROUPS)]
    ours += [maker for maker in makers.PROMISING if "uuidd_client" in maker.setup]
    codes = {f"{maker.setup}\n{maker.statement}" for maker in ours}
    with Daemon(f"--worker={makers.WORKER}") as daemon:
        known = {**os.environ, "UUIDD_SOCKET": str(daemon.socket), "UUIDD_FALLBACK": "0"}
        done = run(sys.executable, "-c", RUN, input=json.dumps(sorted(codes)), env=known)
    assert (done.returncode, done.stderr) == (0, "")


NAME, BESIDE = ROW = "libuuid op 2, 8 clients", "C uuidd op 2"
OURS, THEIRS = quote.SHORT[ROW]


def test_the_files_that_show_figures_show_the_recorded_ones() -> None:
    for path, text in quote.pages(record.load(record.FILE.read_text())).items():
        assert path.read_text() == text, f"run: python -m tests.benchmarks.quote ({path} differs)"


def test_the_first_ratios_name_what_is_slower_and_what_is_faster() -> None:
    """Of uuid_utils the type that is ours, and its own, which takes less time to make."""
    short = quote.shortest(record.load(record.FILE.read_text()))
    compat, own = (line for line in short.splitlines() if "`uuid7()`" in line)
    assert "uuid_utils.compat" in compat
    assert "of its own type" in own


def test_the_extra_for_benchmarks_has_what_they_need() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bench = {re.split(">=", each)[0] for each in project["optional-dependencies"]["bench"]}
    assert bench == {*making.DISTRIBUTIONS.values()}


def test_the_short_table_has_the_lowest_ratio_of_all_runs() -> None:
    """A reader's machine may be the slow one."""
    rows = [Row(ours, "", [3.0], theirs, [2.0], [1.6, 0.76, 1.7]) for ours, theirs in quote.SHORT]
    figures = quote.shortest(Record("2 cores", "Linux", {}, rows))
    assert f"| {OURS} | {THEIRS} | 0.76 |" in figures


def test_a_ratio_says_how_many_times_as_fast_ours_is() -> None:
    assert compared("x", "y", "req/s", [6.0], [2.0]).ratios == [3.0]
    assert compared("x", "y", "ns an id", [2.0], [6.0]).ratios == [3.0]


def test_runs_are_joined_row_by_row() -> None:
    one = compared("x", "y", "us", [2.0], [6.0])
    two = compared("x", "y", "us", [2.0], [4.0])
    other = compared("x", "z", "us", [1.0], [1.0])
    [row, alone] = joined([[one, other], [two]])
    assert (row.ours, row.theirs, row.ratios) == ([2.0, 2.0], [6.0, 4.0], [3.0, 2.0])
    assert alone == other


def test_a_goal_is_met_by_the_median_of_the_runs() -> None:
    """One disturbed run fails no goal."""
    row = Row("x", "us", [1.0, 1.0, 1.0], "y", [1.0] * 3, [0.5, 1.0, 1.1], at_least=0.97)
    assert row.met
    assert not replace(row, ratios=[0.5, 0.9, 1.1]).met

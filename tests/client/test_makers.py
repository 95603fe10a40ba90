"""The makers of ids that the benchmarks compare, and what they find out about them."""

from __future__ import annotations

import json
import os
import sys
from itertools import chain

import pytest

from tests.benchmarks import makers, promises
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

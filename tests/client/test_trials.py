"""What the benchmarks find out about makers of ids, with makers of which it is known."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.benchmarks import promises
from tests.rig import PATIENCE

COUNT = "from itertools import count; draw = count().__next__"
SYSTEM = "from uuid import uuid4 as draw"
GENERATOR = "from random import Random; r = Random(); draw = lambda: f'{r.getrandbits(128):032x}'"


def tried(trial: str, setup: str) -> str:
    """Return what a trial finds."""
    done = subprocess.run(
        [sys.executable, promises.TRIALS, trial],
        input=json.dumps([setup, "draw()"]),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    return done.stdout


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
    """Of a count, a generator that a fork copies, and the system's random bits."""
    assert tried(trial, setup) == found

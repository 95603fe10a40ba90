"""Daemons that fight for three numbers of a real engine, a minute each: no Snowflake twice."""

from __future__ import annotations

import random

import pytest

from tests.fleet import chaos
from tests.fleet.servers import KINDS

pytestmark = pytest.mark.thorough

SECONDS = 60


@pytest.mark.parametrize("name", KINDS)
def test_no_tick_of_a_number_is_two_hosts(name: str) -> None:
    """Though hosts are stopped, killed and robbed, and writes are lost, or done late."""
    seed = random.randrange(1 << 32)
    seen = chaos.run(name, SECONDS, seed, say=print)
    assert seen.overlaps == [], f"seed {seed}"
    assert seen.counts["blocks"] > 0
    assert seen.counts["log:claimed"] > chaos.NUMBERS

"""Many hosts with a real engine, and daemons that fight for its numbers: no Snowflake twice."""

from __future__ import annotations

import random

import pytest

from tests.fleet import chaos, crowd
from tests.fleet.servers import KINDS, running

pytestmark = [pytest.mark.thorough, pytest.mark.parametrize("name", KINDS)]

HOSTS = 300
SECONDS = 60


def test_no_tick_of_a_number_is_two_hosts(name: str) -> None:
    """Though hosts are stopped, killed and robbed, and writes are lost, or done late."""
    seed = random.randrange(1 << 32)
    seen = chaos.run(name, SECONDS, seed, say=print)
    assert seen.overlaps == [], f"seed {seed}"
    assert seen.counts["blocks"] > 0
    assert seen.counts["log:claimed"] > chaos.HIGH - chaos.LOW + 1


# A thread that was left alone closes its connection after the test.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_all_hosts_of_a_crowd_have_different_numbers(name: str) -> None:
    """Within the patience of ``crowd``, which as a command prints how long it takes."""
    with running(KINDS[name]) as engine:
        assert len(set(crowd.run(engine, HOSTS).numbers)) == HOSTS

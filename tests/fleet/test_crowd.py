"""Three hundred hosts that start at once: each gets a number of its own."""

from __future__ import annotations

import pytest

from tests.fleet import crowd
from tests.fleet.servers import KINDS, running

pytestmark = [
    pytest.mark.thorough,
    # A thread that was left alone closes its connection after the test.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

HOSTS = 300


@pytest.mark.parametrize("name", KINDS)
def test_all_hosts_of_a_crowd_have_different_numbers(name: str) -> None:
    """Within the patience of ``crowd``, which as a command prints how long it takes."""
    with running(KINDS[name]) as engine:
        seen = crowd.run(engine, HOSTS, window=600, seconds=0)
    assert len(set(seen.numbers)) == HOSTS

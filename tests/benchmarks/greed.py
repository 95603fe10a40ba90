"""How long one ``take`` takes beside a user who wants all that there is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

from tests.benchmarks.compiling import compiled
from tests.benchmarks.daemons import ours
from tests.benchmarks.place import Missing, Place
from tests.benchmarks.rounds import median
from tests.benchmarks.table import Row
from tests.benchmarks.waiting import Times, ask
from tests.system.attacker import GREED, Actor

GREEDY_UID = 12345
ACTORS, LINES = 2, 100
PERCENTILES = (50.0, 99.0)


def rows(place: Place, rounds: int) -> Iterator[Row]:
    """Give the round trip's percentiles for each way to be greedy. Raises Missing without root."""
    if os.geteuid() != 0:
        raise Missing("it needs root, for only root can be two users")
    asking = compiled(place, "roundtrip")
    # The other user's way to the socket.
    place.folder.chmod(0o711)
    for way, greed in enumerate(GREED):
        times: Times = {percentile: [] for percentile in PERCENTILES}
        with ours(place) as daemon, ExitStack() as actors:
            for _ in range(ACTORS):
                actors.enter_context(Actor(daemon.socket, GREEDY_UID, "greedy", LINES, way))
            for _ in range(rounds):
                ask(asking, daemon.socket, times)
        for percentile in PERCENTILES:
            yield Row(
                f"take beside {ACTORS * LINES} connections of a greedy user ({greed}),"
                f" p{percentile:g}",
                median(times[percentile]) / 1e3,
                "ms",
            )

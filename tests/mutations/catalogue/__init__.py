"""All the ways in which the code is broken."""

from __future__ import annotations

from tests.mutations.catalogue import (
    clients,
    clocks,
    folders,
    forks,
    generations,
    horizons,
    lanes,
    limits,
    saves,
    starts,
    timeouts,
    wires,
)

MUTATIONS = [
    *starts.MUTATIONS,
    *horizons.MUTATIONS,
    *saves.MUTATIONS,
    *folders.MUTATIONS,
    *lanes.MUTATIONS,
    *clocks.MUTATIONS,
    *generations.MUTATIONS,
    *wires.MUTATIONS,
    *limits.MUTATIONS,
    *timeouts.MUTATIONS,
    *clients.MUTATIONS,
    *forks.MUTATIONS,
]

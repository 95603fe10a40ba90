"""Where a daemon's lanes stand, to tell what moved them."""

from __future__ import annotations

from tests.daemon.fakes import Inside
from tests.fuzzing.given_out import STEADY, GivenOut, Key
from tests.fuzzing.target import require
from uuidd.core.timeline import Generation


class Lanes:
    """The ``next`` of each lane of a daemon, as it was when this was made."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        self._before = _next(inside)
        self._epoch = inside.timelines.utc.leases.epoch
        self._steps_back = inside.clock.steps_back

    def check(self, given_out: GivenOut, *, unread: bool) -> None:
        """Raise Broken when a lane moved without a block that ends where it is now.

        *unread*: somebody may have been given what nobody read. A renewal, or a step of UTC back,
        may move the steady one.
        """
        if unread:
            return
        lifted = (
            self._inside.timelines.utc.leases.epoch != self._epoch
            or self._inside.clock.steps_back != self._steps_back
        )
        for key, (begin, reached) in _next(self._inside).items():
            before = self._before.get(key, (begin, begin))[1]
            if reached == before or (key == STEADY and (given_out.unsure or lifted)):
                continue
            require(given_out.ends.get(key) == reached, "a refused request moves no lane")


def _next(inside: Inside) -> dict[Key, tuple[int, int]]:
    """Return where each lane began, and where it is."""
    steady = inside.timelines.steady.next
    found: dict[Key, tuple[int, int]] = {STEADY: (steady, steady)}
    utc = inside.timelines.utc
    for generation in (utc.generation, utc.volatile):
        if generation is not None:
            found |= _lanes(generation)
    return found


def _lanes(generation: Generation) -> dict[Key, tuple[int, int]]:
    return {
        (generation.node, generation.clock_seq + place): (generation.begin, lane.next)
        for place, lane in enumerate(generation.lanes)
    }

"""Whatever becomes of keepers, states and the engine: no number is used by two for one tick."""

from __future__ import annotations

import trio
from hypothesis import event, example, given
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.fleet.keepers_world import HOLD, OFFSETS, STEPS, WINDOW, World
from tests.fleet.spans import Seen

Steps = list[tuple[str, int, float]]

OFTEN = ("take", "sleep", "take", "start", "stop", "take", "mend")

STEP = st.tuples(
    st.one_of(st.sampled_from(OFTEN), st.sampled_from(STEPS)),
    st.integers(0, len(OFFSETS) - 1),
    st.sampled_from([0.1, 0.5, 1.0, 5.0, WINDOW / 2, WINDOW, WINDOW + HOLD]),
)


FREED: Steps = [("sleep", 0, 10.0), ("take", 0, 0.0)]
for change in [("stop", 0, 0.0), ("stop", 1, 0.0), ("start", 0, 0.0)]:
    FREED += [change, ("sleep", 0, 10.0), ("take", 0, 0.0)]
"""One host after the other stops, and frees its number."""

SOON: Steps = [("sleep", 0, 10.0), ("take", 0, 0.0)]
for index in (0, 2, 1, 0, 2):
    SOON += [("stop", index, 0.0), ("sleep", 0, 2.1), ("take", 0, 0.0), ("start", index, 0.0)]
"""The next host makes Snowflakes while its clock may be behind that of the host before."""


def run(steps: Steps) -> Seen:
    """Return what is seen of these steps."""
    return trio.run(World().run, steps, clock=MockClock(autojump_threshold=0))


@example(steps=FREED)
@example(steps=SOON)
@given(steps=st.lists(STEP, min_size=10, max_size=60))
def test_no_number_is_used_twice_for_one_tick(steps: Steps) -> None:
    """And the other steady kinds are never refused, which a step of the world checks."""
    seen = run(steps)
    event(f"numbers used: {len(seen.judge.spans)}")
    assert seen.overlaps == []


def test_the_world_gives_out_snowflakes_of_both_numbers() -> None:
    """So the search is not about nothing: the numbers that hosts free are used again."""
    seen = run(FREED)
    users = {span.taker for spans in seen.judge.spans.values() for span in spans}
    assert len(seen.judge.spans) == 2
    assert {who.split(",")[0] for who in users} == {"host 0", "host 1", "host 2"}, seen.judge.spans

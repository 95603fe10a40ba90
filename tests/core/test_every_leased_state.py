"""P1 in every state that small hosts with leases can come to, each small in another way."""

from __future__ import annotations

import pytest

from tests.core import leased_world
from tests.core.leased_world import Bounds
from tests.judge import Repeated
from uuidd.core.timeline.leases import Leases
from uuidd.core.timeline.page import Lease
from uuidd.core.timeline.timelines import Timelines

pytestmark = pytest.mark.worlds

SMALL = {
    "a crash": (Bounds(ticks=2, holders=1), 5_400),
    "two holders": (Bounds(ticks=1), 450),
    "two generations": (Bounds(ticks=1, ring=2), 1_300),
    "two lanes": (Bounds(ticks=1, lanes=2, restarts=0), 1_200),
    "a failed save": (Bounds(ticks=1, holders=1, failures=1), 970),
    "a folder that is moved away": (Bounds(ticks=1, moved=True), 750),
    "a volatile node": (Bounds(ticks=1, volatile=True), 750),
    "a lost state": (Bounds(ticks=1, lost=1), 570),
    "an ordered world": (Bounds(ticks=2, holders=1, restarts=0, ordered=True), 10_900),
}
"""Each kind of event in a world that is as small as it can be."""

LARGE = {
    "a crash and two holders": (Bounds(ticks=2), 15_000),
    "a crash, in two generations": (Bounds(ticks=2, ring=2, holders=1), 44_000),
    "two crashes": (Bounds(ticks=2, holders=1, restarts=2), 9_100),
    "two lanes and two holders": (Bounds(ticks=2, lanes=2, restarts=0), 66_200),
    "three ticks": (Bounds(ticks=3, holders=1, restarts=0), 11_700),
    "a failed save, later": (Bounds(ticks=2, holders=1, restarts=0, failures=1), 4_700),
    "a folder that is moved away, later": (
        Bounds(ticks=2, holders=1, restarts=0, moved=True),
        3_100,
    ),
    "a volatile node, later": (Bounds(ticks=2, holders=1, restarts=0, volatile=True), 3_500),
    "a lost state, later": (Bounds(ticks=2, holders=1, lost=1), 7_900),
    "an ordered world with a restart": (Bounds(ticks=2, holders=1, ordered=True), 44_000),
}
"""Several at once."""


@pytest.mark.parametrize(
    ("bounds", "least"),
    [
        *(pytest.param(*world, id=name) for name, world in SMALL.items()),
        *(
            pytest.param(*world, id=name, marks=pytest.mark.thorough)
            for name, world in LARGE.items()
        ),
    ],
)
def test_no_tick_of_a_lease_is_used_twice_in_any_state(bounds: Bounds, least: int) -> None:
    """Whatever happens to a small host and to holders that pause anywhere, no tick comes twice."""
    seen = leased_world.explore(bounds)
    assert seen.states >= least, seen


def test_a_holder_that_goes_on_after_its_lane_was_leased_again_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A lane that does not rest is caught, with the way there."""
    release = Leases.release

    def release_without_rest(leases: Leases, lease: Lease) -> None:
        release(leases, lease)
        leases.rests.clear()

    monkeypatch.setattr(Leases, "release", release_without_rest)
    with pytest.raises(Repeated, match="came twice") as caught:
        leased_world.explore(Bounds(ticks=2, restarts=0))
    assert any("hang up" in note for note in caught.value.__notes__)


@pytest.mark.parametrize(
    "rule",
    [
        "Timelines.step_back",
        pytest.param("Timelines.notice_step_since", marks=pytest.mark.thorough),
    ],
)
def test_steady_ids_that_are_below_those_of_leases_are_found(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steady that does not go on past them is caught, after a step or after a restart."""

    def end_leases_alone(timelines: Timelines, *_: object, **__: object) -> int:
        return timelines.utc.leases.revoke()

    monkeypatch.setattr(f"{Timelines.__module__}.{rule}", end_leases_alone)
    with pytest.raises(Repeated, match="is below 3, which was used before") as caught:
        leased_world.explore(Bounds(ticks=2, holders=1, ordered=True))
    ways = " ".join(caught.value.__notes__)
    assert "set UTC" in ways
    assert ("restart" in ways) == (rule == "Timelines.notice_step_since")


def test_the_command_tells_how_many_states_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    """The command visits the world that it is told to, and says how large it was."""
    assert leased_world.main(["--ticks", "1", "--restarts", "0"]) == 0
    assert "states=" in capsys.readouterr().out

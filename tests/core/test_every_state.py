"""P1 in every state that small hosts can come to, each world small in another way."""

from __future__ import annotations

import pytest

from tests.core import small_world
from tests.core.small_world import Bounds
from tests.judge import Repeated
from uuidd.core.timeline import Generation
from uuidd.core.timeline.state import Horizon

pytestmark = pytest.mark.worlds

SMALL = {
    "a crash and a failed save": (Bounds(ticks=2, ring=1, restarts=1), 1_700),
    "two generations": (Bounds(ticks=2, ring=2, restarts=0), 1_700),
    "two whole lanes": (Bounds(ticks=3, ring=1, restarts=0, failures=0, lanes=2), 540),
    "a tolerance": (
        Bounds(ticks=3, ring=1, restarts=0, failures=0, tolerance=1, order=True),
        1_300,
    ),
    "a volatile node": (Bounds(ticks=2, ring=1, restarts=0, failures=0, volatile=True), 500),
    "a fixed node": (Bounds(ticks=2, ring=1, restarts=1, failures=0, nodes=("given",)), 900),
    "libuuid beside it": (
        Bounds(ticks=2, ring=2, restarts=0, failures=0, nodes=("given",), avoid=True),
        900,
    ),
    "a folder that is moved away": (
        Bounds(ticks=2, ring=1, restarts=0, failures=0, moved=True),
        320,
    ),
    "a folder that is moved away, and steady": (
        Bounds(ticks=1, utc=False, steady=True, restarts=0, moved=True),
        650,
    ),
    "steady and a failed save": (Bounds(ticks=2, utc=False, steady=True, restarts=0), 1_400),
    "a clone, and a crash": (
        Bounds(ticks=2, ring=1, restarts=1, failures=0, renewals=1),
        1_900,
    ),
    "a clone, and steady": (
        Bounds(ticks=2, utc=False, steady=True, restarts=0, failures=0, renewals=1),
        200,
    ),
    "steady that waits": (
        Bounds(ticks=2, utc=False, steady=True, restarts=0, rollback="wait"),
        350,
    ),
}
"""Each kind of event in a world that is as small as it can be."""

LARGE = {
    "a crash and a failed save, in two generations": (
        Bounds(ticks=2, ring=2, restarts=1),
        11_500,
    ),
    "two crashes": (Bounds(ticks=2, ring=2, restarts=2, failures=0), 12_600),
    "two crashes and a failed save": (Bounds(ticks=2, ring=1, restarts=2), 4_500),
    "three ticks": (Bounds(ticks=3, ring=2, restarts=0), 8_300),
    "a ring of four": (Bounds(ticks=2, ring=4, restarts=0, failures=0), 3_600),
    "a tolerance, in two generations": (
        Bounds(ticks=3, ring=2, restarts=0, failures=0, tolerance=1, order=True),
        3_900,
    ),
    "a fixed node, in two generations": (
        Bounds(ticks=2, ring=2, restarts=1, failures=0, nodes=("given",)),
        7_600,
    ),
    "a fixed node, not always": (
        Bounds(ticks=2, ring=1, restarts=2, failures=0, nodes=("random", "given")),
        14_500,
    ),
    "libuuid and a failed save": (
        Bounds(ticks=2, ring=2, restarts=0, nodes=("given",), avoid=True),
        3_200,
    ),
    "a folder that is moved away, and a crash": (
        Bounds(ticks=1, ring=1, steady=True, restarts=1, failures=0, moved=True),
        10_000,
    ),
    "steady and a crash": (Bounds(ticks=2, utc=False, steady=True, restarts=1), 6_900),
    "steady that waits, and a crash": (
        Bounds(ticks=2, utc=False, steady=True, restarts=1, rollback="wait"),
        1_700,
    ),
    "steady that may hardly lead": (
        Bounds(ticks=2, utc=False, steady=True, restarts=1, max_lead=1),
        7_000,
    ),
    "a clone, and a failed save": (
        Bounds(ticks=2, ring=2, restarts=0, failures=1, renewals=1),
        10_800,
    ),
    "a clone with a fixed node": (
        Bounds(ticks=2, ring=2, restarts=0, failures=0, nodes=("given",), renewals=1),
        1_000,
    ),
    "a clone, and steady, and a crash": (
        Bounds(ticks=2, utc=False, steady=True, restarts=1, failures=0, renewals=1),
        6_100,
    ),
    "both, saved as one": (Bounds(ticks=1, ring=2, steady=True, restarts=0), 9_600),
    "both, and a crash": (Bounds(ticks=1, ring=1, steady=True, restarts=1, failures=0), 5_300),
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
def test_no_tick_is_given_out_twice_in_any_state(bounds: Bounds, least: int) -> None:
    """Whatever happens to a small host, in whatever order, no tick comes twice or too early."""
    seen = small_world.explore(bounds)
    assert seen.states >= least, seen


def test_a_horizon_one_tick_too_far_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timeline that gives out the tick at its horizon is caught, with the way there."""
    end_save = Horizon.end_save

    def end_save_one_more(horizon: Horizon, mark: int, *, completed: bool) -> None:
        end_save(horizon, mark + 1, completed=completed)

    monkeypatch.setattr(Horizon, "end_save", end_save_one_more)
    with pytest.raises(Repeated, match="at or past what the disk may hold") as caught:
        small_world.explore(Bounds(ticks=2, ring=1, restarts=0))
    assert any("begin save" in note for note in caught.value.__notes__)


def test_a_mark_that_is_not_kept_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A generation that begins below what it gave out, since it forgot, is caught."""

    def from_zero(number: int, *, node: int, begin: int) -> Generation:
        return Generation(number, node=node, begin=0)

    monkeypatch.setattr("uuidd.core.timeline.ring.Generation", from_zero)
    with pytest.raises(Repeated, match="were given"):
        small_world.explore(Bounds(ticks=2, ring=1, restarts=0))


def test_the_command_tells_how_many_states_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    """The command visits the world that it is told to, and says how large it was."""
    assert small_world.main(["--ticks", "1", "--ring", "1", "--restarts", "0"]) == 0
    assert "states=" in capsys.readouterr().out

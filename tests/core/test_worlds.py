"""P1 in every state that small hosts can come to, each world small in another way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.core import leased_world, small_world
from tests.core.exploring import World
from tests.judge import Repeated
from uuidd.core.timeline.state import Horizon
from uuidd.core.timeline.timelines import Timelines

pytestmark = pytest.mark.worlds

UTC = small_world.Bounds(ticks=2, ring=1, restarts=0, failures=0)
STEADY = replace(UTC, utc=False, steady=True)
GIVEN = replace(UTC, ring=2, nodes=("given",))

# Each kind of event in a world that is as small as it can be.
SMALL = {
    "a crash and a failed save": (replace(UTC, restarts=1, failures=1), 1_700),
    "two generations": (replace(UTC, ring=2, failures=1), 1_700),
    "two whole lanes": (replace(UTC, ticks=3, lanes=2), 540),
    "a tolerance": (replace(UTC, ticks=3, tolerance=1, order=True), 1_300),
    "a volatile node": (replace(UTC, volatile=True), 470),
    "a fixed node": (replace(GIVEN, ring=1, restarts=1), 900),
    "libuuid beside it": (replace(GIVEN, avoid=True), 900),
    "a folder that is moved away": (replace(UTC, moved=True), 300),
    "a folder that is moved away, and steady": (
        replace(STEADY, ticks=1, failures=1, moved=True),
        650,
    ),
    "steady and a failed save": (replace(STEADY, failures=1), 1_400),
    "steady that waits": (replace(STEADY, failures=1, rollback="wait"), 350),
    "a clone, and a crash": (replace(UTC, restarts=1, renewals=1), 1_900),
    "a clone, and steady": (replace(STEADY, renewals=1), 200),
}
# Several at once; tests.thorough visits larger ones.
LARGE = {
    "a crash and a failed save, in two generations": (
        replace(UTC, ring=2, restarts=1, failures=1),
        11_400,
    ),
    "two crashes and a failed save": (replace(UTC, restarts=2, failures=1), 4_500),
    "three ticks": (replace(UTC, ticks=3, ring=2, failures=1), 8_000),
    "a ring of four": (replace(UTC, ring=4), 3_600),
    "a tolerance, in two generations": (
        replace(UTC, ticks=3, ring=2, tolerance=1, order=True),
        3_900,
    ),
    "a fixed node, in two generations": (replace(GIVEN, restarts=1), 7_600),
    "a fixed node, not always": (replace(UTC, restarts=2, nodes=("random", "given")), 14_500),
    "libuuid and a failed save": (replace(GIVEN, failures=1, avoid=True), 3_200),
    "a folder that is moved away, and a crash": (
        replace(UTC, ticks=1, steady=True, restarts=1, moved=True),
        10_000,
    ),
    "steady and a crash": (replace(STEADY, restarts=1, failures=1), 6_900),
    "steady that waits, and a crash": (
        replace(STEADY, restarts=1, failures=1, rollback="wait"),
        1_700,
    ),
    "steady that may hardly lead": (replace(STEADY, restarts=1, failures=1, max_lead=1), 7_000),
    "a clone, and a failed save": (replace(UTC, ring=2, failures=1, renewals=1), 9_700),
    "a clone with a fixed node": (replace(GIVEN, renewals=1), 1_000),
    "a clone, and steady, and a crash": (replace(STEADY, restarts=1, renewals=1), 6_100),
    "both, saved as one": (replace(UTC, ticks=1, ring=2, steady=True, failures=1), 9_400),
    "both, and a crash": (replace(UTC, ticks=1, steady=True, restarts=1), 5_300),
}

TWO = leased_world.Bounds(ticks=1, restarts=1)
"""Two holders and one tick."""
ONE = replace(TWO, ticks=2, holders=1, restarts=0)

SMALL_LEASED = {
    "a crash": (replace(ONE, restarts=1), 5_400),
    "two holders": (TWO, 450),
    "two generations": (replace(TWO, ring=2), 1_300),
    "two lanes": (replace(TWO, lanes=2, restarts=0), 1_200),
    "a failed save": (replace(TWO, holders=1, failures=1), 970),
    "a folder that is moved away": (replace(TWO, moved=True), 750),
    "a volatile node": (replace(TWO, volatile=True), 750),
    "a lost state": (replace(TWO, lost=1), 550),
    "an ordered world": (replace(ONE, ordered=True), 10_900),
}
LARGE_LEASED = {
    "a failed save, later": (replace(ONE, failures=1), 4_700),
    "a folder that is moved away, later": (replace(ONE, moved=True), 2_900),
    "a volatile node, later": (replace(ONE, volatile=True), 3_500),
    "a lost state, later": (replace(ONE, restarts=1, lost=1), 7_800),
    "an ordered world with a restart": (replace(ONE, restarts=1, ordered=True), 44_000),
}


def each(
    small: Mapping[str, tuple[Any, int]], large: Mapping[str, tuple[Any, int]]
) -> pytest.MarkDecorator:
    """Run a test with each world, with the large ones only in the thorough tier."""
    slow = pytest.mark.thorough
    return pytest.mark.parametrize(
        ("bounds", "least"),
        [
            *(pytest.param(*world, id=name) for name, world in small.items()),
            *(pytest.param(*world, id=name, marks=slow) for name, world in large.items()),
        ],
    )


@each(SMALL, LARGE)
def test_no_tick_is_given_out_twice_in_any_state(bounds: small_world.Bounds, least: int) -> None:
    """Whatever happens to a small host, in whatever order, no tick comes twice or too early."""
    seen = small_world.WORLD.explore(bounds)
    assert seen.states >= least, seen


@each(SMALL_LEASED, LARGE_LEASED)
def test_no_tick_of_a_lease_is_used_twice_in_any_state(
    bounds: leased_world.Bounds, least: int
) -> None:
    """Whatever happens to a small host and to holders that pause anywhere."""
    seen = leased_world.WORLD.explore(bounds)
    assert seen.states >= least, seen


# A rule that is weakened is found, with the way there. The catalogue of mutations weakens others.


def test_a_horizon_one_tick_too_far_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    end_save = Horizon.end_save

    def end_save_one_more(horizon: Horizon, mark: int, *, completed: bool) -> None:
        end_save(horizon, mark + 1, completed=completed)

    monkeypatch.setattr(Horizon, "end_save", end_save_one_more)
    with pytest.raises(Repeated, match="at or past what the disk may hold") as caught:
        small_world.WORLD.explore(replace(UTC, failures=1))
    assert any("begin save" in note for note in caught.value.__notes__)


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
    def end_leases_alone(timelines: Timelines, *_: object, **__: object) -> int:
        return timelines.utc.leases.revoke()

    monkeypatch.setattr(f"{Timelines.__module__}.{rule}", end_leases_alone)
    with pytest.raises(Repeated, match="is below 3, which was used before") as caught:
        leased_world.WORLD.explore(replace(ONE, restarts=1, ordered=True))
    ways = " ".join(caught.value.__notes__)
    assert "set UTC" in ways
    assert ("restart" in ways) == (rule == "Timelines.notice_step_since")


@pytest.mark.parametrize("world", [small_world.WORLD, leased_world.WORLD])
def test_the_command_tells_how_many_states_there_are(
    world: World[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert world.main(["--ticks", "1", "--ring", "1", "--restarts", "0"]) == 0
    assert "states=" in capsys.readouterr().out

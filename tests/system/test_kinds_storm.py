"""No id of any kind twice, and the steady kinds in order, through kills and a clock set back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.system.fake_time import FakeTime
from tests.system.kinds_storm import DRAWERS, EACH, TURNS, rage
from tests.system.storm import PARTS
from uuidd.core.ids import flake, ksuid, push_id, ulid, uuids
from uuidd.core.ids.kinds import KINDS

STEADY = [kind for kind, found in KINDS.items() if found.timeline == "steady"]
READ: dict[str, Callable[[str], int]] = {
    "snowflake": int,
    "ulid": lambda text: ulid.from_text(text) if len(text) == ulid.WIDTH else uuids.from_text(text),
    "flake": lambda text: int(text) if len(text) > 30 else flake.from_text(text),
    "ksuid": ksuid.from_text,
    "push_id": push_id.from_text,
}


class Storm(NamedTuple):
    """What was drawn, of each kind by each drawer in order, and what the storm noted."""

    ids: dict[str, list[list[int]]]
    record: dict[str, Any]
    kills: int


@pytest.fixture(scope="module", params=[3, pytest.param(10, marks=pytest.mark.thorough)])
def storm(
    request: pytest.FixtureRequest, session_time: FakeTime, tmp_path_factory: pytest.TempPathFactory
) -> Storm:
    """Run the storm once."""
    folder = tmp_path_factory.mktemp("storm")
    kills: int = request.param
    session_time.set(0)
    record = rage(folder, session_time, kills)

    def drawn(kind: str) -> list[list[int]]:
        read = READ.get(kind, uuids.from_text)
        paths = [folder / str(number) / kind for number in range(DRAWERS)]
        return [[read(line) for line in path.read_text().split()] for path in paths]

    return Storm({kind: drawn(kind) for kind in KINDS}, record, kills)


def test_every_kind_was_drawn_to_the_end(storm: Storm) -> None:
    """No drawer failed; only Snowflakes, which have no fallback, may be fewer."""
    assert storm.record["statuses"] == [0] * DRAWERS
    every = (storm.kills + 1) * PARTS * TURNS * EACH
    for kind, drawers in storm.ids.items():
        counts = [len(ids) for ids in drawers]
        if kind == "snowflake":
            assert all(0 < count <= every for count in counts)
        else:
            assert counts == [every] * DRAWERS


def test_the_clock_was_set_back_and_the_daemon_killed(storm: Storm) -> None:
    """The storm is one: steady is ahead of UTC at its end, and each kill is followed by a start."""
    assert storm.record["status"]["steady"]["lead"] > 3000
    starts = [line for line in storm.record["log"] if "INFO: started:" in line]
    assert len(starts) == storm.kills + 1


@pytest.mark.parametrize("kind", KINDS)
def test_no_id_came_twice(storm: Storm, kind: str) -> None:
    """Not from the daemon, not from the fallback, not from both."""
    ids = [id for drawn in storm.ids[kind] for id in drawn]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("kind", STEADY)
def test_in_each_process_a_steady_kind_rises(storm: Storm, kind: str) -> None:
    """Without exception: over kills, restarts, fallback and steps back."""
    for ids in storm.ids[kind]:
        assert ids == sorted(ids)


def test_the_daemon_logged_no_traceback(storm: Storm) -> None:
    """Neither kills nor steps lead to an error in the daemon."""
    assert not [line for line in storm.record["log"] if "Traceback" in line or "ERROR" in line]

"""No id twice, and the steady kinds in order, from many processes, through kill -9 of the daemon.

In one storm UTC goes on (P1), in the other it is set back meanwhile (P4).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from tests import kinds
from tests.judge import assert_no_id_twice, assert_rising
from tests.kinds import number
from tests.system.storm import (
    CLIENTS,
    EACH,
    MANY_STDLIB,
    MANY_V1,
    PARTS,
    STDLIB,
    STEPS,
)
from tests.tools import in_private_mounts, need
from uuidd.core.ids import versions
from uuidd.core.ids.kinds import KINDS
from uuidd.core.ids.ticks import TICKS_PER_SECOND

STEADY = [kind for kind, found in KINDS.items() if found.timeline == "steady"]


class Storm(NamedTuple):
    """What was drawn, and what the storm noted.

    *ids* are those of each kind of each client in order, *safe* the marks of the v1 among them, and
    *stdlib* the v1 of each process that draws by the standard library.
    """

    ids: dict[str, list[list[int]]]
    safe: list[list[bool]]
    stdlib: list[list[int]]
    record: dict[str, Any]
    kills: int
    fewer: int
    back: bool

    @property
    def v1(self) -> list[int]:
        """All v1."""
        return [id for ids in self.ids["v1"] + self.stdlib for id in ids]

    def is_daemons(self, id: int) -> bool:
        """Tell whether a v1 has the node of the daemon."""
        return id % (1 << 48) == int(self.record["status"]["node"], 16)


FORWARD = [
    pytest.param((3, 4, False), id="3 kills"),
    pytest.param((20, 1, False), id="20 kills", marks=pytest.mark.thorough),
]
"""Storms in which UTC goes on."""

BACK = [
    pytest.param((3, 4, True), id="3 kills and steps back"),
    pytest.param((10, 1, True), id="10 kills and steps back", marks=pytest.mark.thorough),
]

forward = pytest.mark.parametrize("storm", FORWARD, indirect=True, scope="module")


def _lines(folder: Path, way: str, kind: str) -> list[list[list[str]]]:
    """Return the words of each line of *kind*, for each process that drew in a *way*."""
    paths = sorted(folder.glob(f"{way}-*/{kind}"))
    return [[line.split() for line in path.read_text().splitlines()] for path in paths]


def _value(kind: str, word: str) -> int:
    """Return the number of an id that is written as its text, as a UUID or as an int."""
    if len(word) == 36:
        return UUID(word).int
    # An int of 128 bits has more digits than any text.
    return int(word) if len(word) > 27 else number(kind, word)


@pytest.fixture(scope="module", params=FORWARD + BACK)
def storm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Storm:
    """Run the storm once, in a mount namespace of its own."""
    need("faketime")
    folder = tmp_path_factory.mktemp("storm")
    kills, fewer, back = request.param
    words = [str(folder), str(kills), str(fewer), *["back"] * back]
    command = in_private_mounts(sys.executable, "-m", "tests.system.storm", *words)
    subprocess.run(command, check=True, timeout=240)

    def drawn(kind: str, way: str = "client") -> list[list[int]]:
        return [[_value(kind, line[0]) for line in lines] for lines in _lines(folder, way, kind)]

    return Storm(
        {kind: drawn(kind) for kind in KINDS},
        [[line[1] == "1" for line in lines] for lines in _lines(folder, "client", "v1")],
        drawn("v1", "stdlib"),
        json.loads((folder / "record.json").read_text()),
        *request.param,
    )


def test_all_were_drawn_while_the_daemon_was_killed_again_and_again(storm: Storm) -> None:
    """Each kill came while there was more to draw, and no drawer failed.

    Only Snowflakes may be fewer, because they have no fallback.
    """
    record = storm.record
    assert record["failed"] == 0
    assert len(record["kills"]) == storm.kills
    assert max(record["kills"]) < record["parts"]
    assert sum("INFO: started:" in line for line in record["log"]) == storm.kills + 1
    parts = (storm.kills + 1) * PARTS
    for kind, drawers in storm.ids.items():
        every = parts * (MANY_V1 // storm.fewer if kind == "v1" else EACH)
        counts = [len(ids) for ids in drawers]
        if kind == "snowflake":
            assert len(counts) == CLIENTS
            assert all(0 < count <= every for count in counts)
        else:
            assert counts == [every] * CLIENTS
    stdlib = [len(ids) for ids in storm.stdlib]
    assert stdlib == [parts * (MANY_STDLIB // storm.fewer)] * (0 if storm.back else STDLIB)


def test_steady_is_as_far_ahead_as_utc_was_set_back(storm: Storm) -> None:
    """The storms are what they are meant to be: only in the second UTC was set back."""
    assert (storm.record["status"]["steady"]["lead"] > 3000) == storm.back


@pytest.mark.parametrize("kind", KINDS)
def test_no_id_came_twice(storm: Storm, kind: str) -> None:
    """Ids of the daemon, of the fallback and of libuuid's own differ, all of them."""
    assert_no_id_twice(storm.ids[kind] + (storm.stdlib if kind == "v1" else []))


@pytest.mark.parametrize("kind", STEADY)
def test_in_each_process_a_steady_kind_rises(storm: Storm, kind: str) -> None:
    """Without exception: over kills, restarts, fallback and steps back."""
    for ids in storm.ids[kind]:
        assert_rising(ids)


def test_every_timestamp_is_of_the_run(storm: Storm) -> None:
    """No v1 is older than the run, or from after it."""
    ticks = [versions.gregorian_fields(id).tick for id in storm.v1]
    back = int(min(STEPS) * TICKS_PER_SECOND) if storm.back else 0
    assert storm.record["begin"] + back <= min(ticks)
    assert max(ticks) <= storm.record["end"]


def test_what_came_from_the_daemon_is_marked_safe_and_nothing_else_is(storm: Storm) -> None:
    """The daemon's v1, known by its node, are the ones that our client marks."""
    for ids, safe in zip(storm.ids["v1"], storm.safe, strict=True):
        assert [storm.is_daemons(id) for id in ids] == safe


def test_both_the_daemon_and_the_fallback_gave_ids(storm: Storm) -> None:
    """Ids went on while the daemon was down, and came from it again.

    The node of a Flake tells which it was. A v1 may come from a lease even while it is down.
    """
    nodes = {kinds.fields("flake", id)["node"] for ids in storm.ids["flake"] for id in ids}
    assert len(nodes) > 1
    assert int(storm.record["status"]["node"], 16) in nodes
    assert any(mark for safe in storm.safe for mark in safe)


@forward
def test_libuuid_has_ids_of_the_last_daemon(storm: Storm) -> None:
    """It asks again after each kill."""
    last = [id for ids in storm.stdlib for id in ids[-1000:]]
    assert any(map(storm.is_daemons, last))


@forward
def test_clients_with_a_lease_seldom_needed_the_fallback(storm: Storm) -> None:
    """Most of their v1 are safe, though the daemon was killed again and again."""
    marks = [mark for safe in storm.safe[0::2] for mark in safe]
    assert sum(marks) > len(marks) / 2


def test_the_daemon_logged_no_traceback(storm: Storm) -> None:
    """Neither kills nor steps lead to an error in the daemon."""
    assert not [line for line in storm.record["log"] if "Traceback" in line or "ERROR" in line]

"""No id twice, and the steady kinds in order, from many processes, through kill -9 of the daemon.

In one storm UTC goes on (P1), in the other it is set back meanwhile (P4).
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, NamedTuple

import pytest

from tests import kinds
from tests.judge import assert_no_id_twice, assert_rising
from tests.kinds import STEADY
from tests.system.holders import KINDS, Drawn, read
from tests.system.storm import CLIENTS, STDLIB, STEPS
from tests.tools import in_private_mounts, need
from uuidd.core.ids.ticks import TICKS_PER_SECOND


class Storm(NamedTuple):
    """What each process drew by our client, and by the standard library; and what was noted."""

    leases: list[list[Drawn]]
    blocks: list[list[Drawn]]
    stdlib: list[list[Drawn]]
    record: dict[str, Any]
    kills: int
    back: bool

    def ids(self, kind: str) -> list[list[int]]:
        """Return the ids of *kind* that each process drew by our client, in order."""
        return [
            [each.id for each in some if each.kind == kind] for some in self.leases + self.blocks
        ]

    def is_daemons(self, each: Drawn) -> bool:
        """Tell whether a v1 has the node of the daemon."""
        return each.id % (1 << 48) == int(self.record["status"]["node"], 16)


FORWARD = [
    pytest.param((3, False), id="3 kills"),
    pytest.param((20, False), id="20 kills", marks=pytest.mark.thorough),
]
"""Storms in which UTC goes on."""

BACK = [
    pytest.param((3, True), id="3 kills and steps back"),
    pytest.param((10, True), id="10 kills and steps back", marks=pytest.mark.thorough),
]

forward = pytest.mark.parametrize("storm", FORWARD, indirect=True, scope="module")


@pytest.fixture(scope="module", params=FORWARD + BACK)
def storm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Storm:
    """Run the storm once, in a mount namespace of its own."""
    need("faketime")
    folder = tmp_path_factory.mktemp("storm")
    kills, back = request.param
    words = [str(folder), str(kills), *["back"] * back]
    command = in_private_mounts(sys.executable, "-m", "tests.system.storm", *words)
    subprocess.run(command, check=True, timeout=240)

    def drawn(way: str) -> list[list[Drawn]]:
        return [read(path) for path in sorted(folder.glob(f"{way}-*"))]

    record = json.loads((folder / "record.json").read_text())
    return Storm(drawn("leases"), drawn("blocks"), drawn("stdlib"), record, kills, back)


def v1(drawn: list[list[Drawn]]) -> list[Drawn]:
    """Return all v1."""
    return [each for some in drawn for each in some if each.is_v1]


def test_all_drew_each_kind_while_the_daemon_was_killed_again_and_again(storm: Storm) -> None:
    """The storms are what they are meant to be: only in the second UTC was set back."""
    assert sum("INFO: started:" in line for line in storm.record["log"]) == storm.kills + 1
    for kind in KINDS:
        drew = [len(ids) for ids in storm.ids(kind)]
        assert len(drew) == CLIENTS
        assert min(drew) > 0
    assert len(storm.stdlib) == (0 if storm.back else STDLIB)
    assert (storm.record["status"]["steady"]["lead"] > 3000) == storm.back


@pytest.mark.parametrize("kind", KINDS)
def test_no_id_came_twice(storm: Storm, kind: str) -> None:
    """Ids of the daemon, of the fallback and of libuuid's own differ, all of them."""
    stdlib = [[each.id for each in some] for some in storm.stdlib]
    assert_no_id_twice(storm.ids(kind) + (stdlib if kind == "v1" else []))


@pytest.mark.parametrize("kind", STEADY)
def test_in_each_process_a_steady_kind_rises(storm: Storm, kind: str) -> None:
    """Without exception: over kills, restarts, fallback and steps back."""
    for ids in storm.ids(kind):
        assert_rising(ids)


def test_every_timestamp_is_of_the_run(storm: Storm) -> None:
    """No v1 is older than the run, or from after it."""
    ticks = [each.tick for each in v1(storm.leases + storm.blocks + storm.stdlib)]
    back = int(min(STEPS) * TICKS_PER_SECOND) if storm.back else 0
    assert storm.record["begin"] + back <= min(ticks)
    assert max(ticks) <= storm.record["end"]


def test_what_came_from_the_daemon_is_marked_safe_and_nothing_else_is(storm: Storm) -> None:
    """The daemon's v1, known by its node, are the ones that our client marks."""
    for each in v1(storm.leases + storm.blocks):
        assert storm.is_daemons(each) == each.safe


def test_both_the_daemon_and_the_fallback_gave_ids(storm: Storm) -> None:
    """Ids went on while the daemon was down, and came from it again.

    The node of a Flake tells which it was. A v1 may come from a lease even while it is down.
    """
    nodes = {kinds.fields("flake", id)["node"] for ids in storm.ids("flake") for id in ids}
    assert len(nodes) > 1
    assert int(storm.record["status"]["node"], 16) in nodes
    assert any(each.safe for each in v1(storm.leases + storm.blocks))


@forward
def test_libuuid_has_ids_of_the_last_daemon(storm: Storm) -> None:
    """It asks again after each kill."""
    assert any(map(storm.is_daemons, (each for some in storm.stdlib for each in some[-1000:])))


@forward
def test_clients_with_a_lease_seldom_needed_the_fallback(storm: Storm) -> None:
    """Most of their v1 are safe, though the daemon was killed again and again."""
    marks = [each.safe for each in v1(storm.leases)]
    assert sum(marks) > len(marks) / 2


def test_the_daemon_logged_no_traceback(storm: Storm) -> None:
    """Neither kills nor steps lead to an error in the daemon."""
    assert not [line for line in storm.record["log"] if "Traceback" in line or "ERROR" in line]

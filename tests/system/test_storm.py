"""No id twice, and the steady kinds in order, from many processes, through kill -9 of the daemon.

In one storm UTC goes on (P1 and P7), in the other it is set back meanwhile (P4).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import kinds
from tests.judge import assert_no_id_twice, assert_rising
from tests.kinds import STEADY
from tests.system.holders import KINDS, Drawn, read
from tests.system.storm import CLIENTS, STDLIB
from tests.tools import in_private_mounts, need


class Storm:
    """What each process drew by our client, and by the standard library; what the daemon told."""

    def __init__(self, folder: Path, kills: int, back: bool) -> None:
        self.kills, self.back = kills, back
        told = json.loads((folder / "told.json").read_text())
        self.node = int(told["node"], 16)
        self.lead: float = told["lead"]
        self.log: list[str] = told["log"]
        self.clients = [
            read(path) for way in ("leases", "blocks") for path in sorted(folder.glob(f"{way}-*"))
        ]
        self.stdlib = [read(path) for path in sorted(folder.glob("stdlib-*"))]

    def ids(self, kind: str) -> list[list[int]]:
        """Return the ids of *kind* that each process drew by our client, in order."""
        return [[each.id for each in some if each.kind == kind] for some in self.clients]

    def is_daemons(self, v1: Drawn) -> bool:
        """Tell whether a v1 has the node of the daemon."""
        return v1.id % (1 << 48) == self.node


FORWARD = [
    pytest.param((3, False), id="3 kills"),
    pytest.param((20, False), id="20 kills", marks=pytest.mark.thorough),
]
"""Storms in which UTC goes on."""

BACK = [
    pytest.param((3, True), id="3 kills and steps back"),
    pytest.param((10, True), id="10 kills and steps back", marks=pytest.mark.thorough),
]


@pytest.fixture(scope="module", params=FORWARD + BACK)
def storm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Storm:
    need("faketime")
    folder = tmp_path_factory.mktemp("storm")
    kills, back = request.param
    words = [str(folder), str(kills), *["back"] * back]
    command = in_private_mounts(sys.executable, "-m", "tests.system.storm", *words)
    subprocess.run(command, check=True, timeout=240)
    return Storm(folder, kills, back)


def test_all_drew_each_kind_while_the_daemon_was_killed_again_and_again(storm: Storm) -> None:
    """The storms are what they are meant to be: only in the second UTC was set back."""
    assert sum("INFO: started:" in line for line in storm.log) == storm.kills + 1
    for kind in KINDS:
        assert len([ids for ids in storm.ids(kind) if ids]) == CLIENTS
    assert len(storm.stdlib) == (0 if storm.back else STDLIB)
    assert (storm.lead > 3000) == storm.back


@pytest.mark.parametrize("kind", KINDS)
def test_no_id_came_twice(storm: Storm, kind: str) -> None:
    stdlib = [[each.id for each in some] for some in storm.stdlib]
    assert_no_id_twice(storm.ids(kind) + (stdlib if kind == "v1" else []))


@pytest.mark.parametrize("kind", STEADY)
def test_in_each_process_a_steady_kind_rises(storm: Storm, kind: str) -> None:
    for ids in storm.ids(kind):
        assert_rising(ids)


def test_what_came_from_the_daemon_is_marked_safe_and_nothing_else_is(storm: Storm) -> None:
    """The daemon's v1, known by its node, are the ones that our client marks."""
    v1 = [each for some in storm.clients for each in some if each.is_v1]
    assert any(each.safe for each in v1)
    assert [each for each in v1 if storm.is_daemons(each) != each.safe] == []


def test_both_the_daemon_and_the_fallback_gave_ids(storm: Storm) -> None:
    """Ids went on while the daemon was down, and came from it again.

    The node of a Flake tells which it was. A v1 may come from a lease even while it is down.
    """
    nodes = {kinds.fields("flake", id)["node"] for ids in storm.ids("flake") for id in ids}
    assert len(nodes) > 1
    assert storm.node in nodes


@pytest.mark.parametrize("storm", FORWARD, indirect=True, scope="module")
def test_libuuid_has_ids_of_the_last_daemon(storm: Storm) -> None:
    assert any(storm.is_daemons(each) for some in storm.stdlib for each in some[-1000:])


def test_the_daemon_logged_no_traceback(storm: Storm) -> None:
    assert not [line for line in storm.log if "Traceback" in line or "ERROR" in line]

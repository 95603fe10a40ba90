"""No id twice, from many processes, through kill -9 of the daemon (P1)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.system.storm import CLIENT, PARTS, STDLIB
from tests.tools import in_private_mounts, need
from uuidd.core.ids import versions


class Storm(NamedTuple):
    """What was drawn: the ids and the safe marks of each drawer, and what the storm noted."""

    client: list[tuple[list[bytes], bytes]]
    stdlib: list[tuple[list[bytes], bytes]]
    record: dict[str, Any]
    kills: int
    fewer: int

    def ids(self) -> Iterator[bytes]:
        """Yield all ids."""
        for ids, _ in self.client + self.stdlib:
            yield from ids


@pytest.fixture(scope="module", params=[(3, 4), pytest.param((20, 1), marks=pytest.mark.thorough)])
def storm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Storm:
    """Run the storm once, in a mount namespace of its own."""
    need("unshare")
    folder = tmp_path_factory.mktemp("storm")
    kills, fewer = request.param
    subprocess.run(
        in_private_mounts(
            sys.executable, "-m", "tests.system.storm", str(folder), str(kills), str(fewer)
        ),
        check=True,
        timeout=240,
    )

    def drawn(kind: str) -> list[tuple[list[bytes], bytes]]:
        return [_split(path) for path in sorted(folder.glob(f"{kind}-*"))]

    record = json.loads((folder / "record.json").read_text())
    return Storm(drawn("client"), drawn("stdlib"), record, kills, fewer)


def _split(path: Path) -> tuple[list[bytes], bytes]:
    data = path.read_bytes()
    return [data[at : at + 16] for at in range(0, len(data), 17)], data[16::17]


def _node(uuid: bytes) -> str:
    return f"0x{uuid[10:].hex()}"


def test_all_were_drawn_while_the_daemon_was_killed_again_and_again(storm: Storm) -> None:
    """Each kill came while there was more to draw, and no drawer failed."""
    record = storm.record
    assert record["failed"] == 0
    assert len(record["kills"]) == storm.kills
    assert max(record["kills"]) < record["parts"]
    parts = (storm.kills + 1) * PARTS
    assert [len(ids) for ids, _ in storm.client] == [parts * (CLIENT // storm.fewer)] * 8
    assert [len(ids) for ids, _ in storm.stdlib] == [parts * (STDLIB // storm.fewer)] * 4


def test_no_id_came_twice(storm: Storm) -> None:
    """Ids of the daemon, of the fallback and of libuuid's own differ, all of them."""
    ids = list(storm.ids())
    assert len(set(ids)) == len(ids)


def test_every_timestamp_is_of_the_run(storm: Storm) -> None:
    """No id is older than the run, or from after it."""
    ticks = [versions.gregorian_fields(int.from_bytes(uuid, "big")).tick for uuid in storm.ids()]
    assert storm.record["begin"] <= min(ticks)
    assert max(ticks) <= storm.record["end"]


def test_what_came_from_the_daemon_is_marked_safe_and_nothing_else_is(storm: Storm) -> None:
    """The daemon's ids, known by its node, are the ones that our client marks."""
    for ids, marks in storm.client:
        assert all(
            (_node(uuid) == storm.record["node"]) == bool(mark)
            for uuid, mark in zip(ids, marks, strict=True)
        )


def test_both_the_daemon_and_the_fallback_gave_ids(storm: Storm) -> None:
    """The storm is one: ids went on while the daemon was down, and came from it again."""
    marks = b"".join(marks for _, marks in storm.client)
    assert 0 < sum(marks) < len(marks)
    nodes = {_node(uuid) for ids, _ in storm.stdlib for uuid in ids[-1000:]}
    assert storm.record["node"] in nodes


def test_the_daemon_logged_no_traceback(storm: Storm) -> None:
    """Neither the storm nor the kills lead to an error in the daemon."""
    assert not [line for line in storm.record["log"] if "Traceback" in line or "ERROR" in line]

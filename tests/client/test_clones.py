"""After a machine was cloned, two copies of a client never draw the same id, once that is known."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from uuidd.core.ids.kinds import KINDS

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("implementation")]


def in_both(signal: str, folder: Path) -> dict[str, int]:
    """Return how many ids came in both clones, by their kind and the way in which they were drawn.

    *signal* is how both clones learn of it.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.client.cloning", signal, str(folder)],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return {name: common for name, (_, common) in json.loads(done.stdout).items()}


@pytest.mark.parametrize(("alone", "without"), [("", set()), ("alone,", {"snowflake"})])
def test_without_a_signal_ids_of_each_kind_come_in_both_clones(
    alone: str, without: set[str], tmp_path: Path
) -> None:
    """So the clones of these tests share what the signal has to end."""
    found = in_both(f"{alone}none", tmp_path)
    repeated = {name.partition(",")[0] for name, common in found.items() if common}
    assert repeated == set(KINDS) - without


@pytest.mark.parametrize("signal", ["page", "renew", "alone,renew", "real,page"])
def test_after_the_signal_no_id_comes_in_both_clones(signal: str, tmp_path: Path) -> None:
    """Leases, blocks, runs, random bits and the nodes of the fallback all end."""
    found = in_both(signal, tmp_path)
    assert len(found) > 65
    assert {name: common for name, common in found.items() if common} == {}

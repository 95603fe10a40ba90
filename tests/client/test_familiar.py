"""The options of ``uuidctl`` that are those of uuidgen."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tests.client.conftest import Uuidctl
from tests.tools import need, run


@pytest.mark.parametrize(("flag", "version"), [("-t", 1), ("-r", 4), ("-6", 6), ("-7", 7)])
def test_the_short_options_of_uuidgen_choose_the_kind(
    uuidctl: Uuidctl, flag: str, version: int
) -> None:
    """And -C says how many."""
    code, out, _ = uuidctl("new", flag, "-C", "3")
    assert code == 0
    found: list[Any] = [UUID(line).version for line in out.splitlines()]
    assert found == [version] * 3


@pytest.mark.process
@pytest.mark.parametrize("flag", ["-t", "-r"])
def test_uuidgen_makes_the_same_version(uuidctl: Uuidctl, flag: str) -> None:
    """So a script may use either."""
    theirs = UUID(run(need("uuidgen"), flag).stdout.strip())
    assert UUID(uuidctl("new", flag)[1].strip()).version == theirs.version

"""Engines: a folder, and in the thorough tier the real servers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fleet.servers import KINDS, Server, real, running


@pytest.fixture(scope="session", params=["folder", *real()])
def engine(request: pytest.FixtureRequest) -> Iterator[Server]:
    """An engine that runs."""
    with running(KINDS.get(request.param, Server)) as engine:
        yield engine

"""Fixtures: a daemon whose UTC can be set, and a booted system with our service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rig import Daemon
from tests.system.booted import Booted
from tests.system.fake_time import FakeTime
from tests.tools import need


@pytest.fixture(scope="session")
def session_time(tmp_path_factory: pytest.TempPathFactory) -> FakeTime:
    """One clock for all tests, so that they have one server of forks."""
    need("faketime")
    return FakeTime(tmp_path_factory.mktemp("faketime"))


@pytest.fixture
def fake_time(session_time: FakeTime) -> FakeTime:
    """A clock to be set, which is right at first."""
    session_time.set(0)
    return session_time


@pytest.fixture
def daemon(fake_time: FakeTime) -> Iterator[Daemon]:
    with Daemon(environment=fake_time.environment) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def booted() -> Iterator[Booted]:
    """A system that was booted once for all tests of a file; util-linux's uuidd has the socket."""
    with Booted() as booted:
        yield booted


@pytest.fixture
def service(booted: Booted) -> Iterator[Booted]:
    """The same, with our service running as it was installed, whatever a test did to it."""
    with booted.serving():
        yield booted

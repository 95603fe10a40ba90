"""Fixtures for the tests of programs that use uuidd_client: ``ids`` and ``uuidd``.

pytest loads this module in each run, so it imports uuidd_client only when a fixture is used.
``uuidd_client.testing`` says what the fixtures give.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from uuidd_client import Client
    from uuidd_client.testing import PrivateDaemon

MARKERS = (
    "uuidd_ids(seed=0, at=..., worker=0): arguments of uuidd_client.testing.fixed_ids, for the"
    " fixture ids",
    "uuidd_daemon(worker=0): arguments of uuidd_client.testing.private_daemon, for the fixture"
    " uuidd",
)


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)


@pytest.fixture
def ids(request: pytest.FixtureRequest) -> Iterator[Client]:
    """A Client that makes the same ids in each run; so do the functions of uuidd_client.

    No daemon is needed. The clock is that of time-machine or freezegun, if one is set. The marker
    ``uuidd_ids`` passes another seed, time or worker number.
    """
    from uuidd_client.testing import fixed_ids

    marker = request.node.get_closest_marker("uuidd_ids")
    with fixed_ids(*(marker.args if marker else ()), **(marker.kwargs if marker else {})) as client:
        yield client


@pytest.fixture
def uuidd(request: pytest.FixtureRequest) -> Iterator[PrivateDaemon]:
    """A daemon for this test alone, with ``socket`` and ``pid``; $UUIDD_SOCKET has its socket.

    The functions of uuidd_client use it. It has worker number 0; the marker ``uuidd_daemon`` passes
    another.
    """
    from uuidd_client.testing import private_daemon

    marker = request.node.get_closest_marker("uuidd_daemon")
    with private_daemon(
        *(marker.args if marker else ()), **(marker.kwargs if marker else {})
    ) as daemon:
        yield daemon

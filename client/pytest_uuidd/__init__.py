"""Fixtures for the tests of programs that use uuidd_client: ``ids`` and ``uuidd``.

pytest loads this module in each run, so it imports uuidd_client only when a fixture is used.
``uuidd_client.testing`` says what the fixtures give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from uuidd_client import Client
    from uuidd_client.testing import PrivateDaemon

MARKERS = (
    "uuidd_ids(seed=0, at=..., worker=0): arguments of uuidd_client.testing.fixed_ids, for the"
    " fixture ids",
    "uuidd_daemon(worker=0): arguments of uuidd_client.testing.private_daemon, for the fixture"
    " uuidd",
)


FIXTURES = {"uuidd_ids": "ids", "uuidd_daemon": "uuidd"}
"""The fixture whose arguments each marker passes."""

_USED = pytest.StashKey[str]()
"""The fixture of this plugin that a test uses."""


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test whose own marker would have no effect. Markers of a class or a module may."""
    used = getattr(item, "fixturenames", ())
    for marker in item.own_markers:
        fixture = FIXTURES.get(marker.name)
        if fixture is not None and fixture not in used:
            pytest.fail(
                f"{item.name} has the marker {marker.name}, but not the fixture {fixture}: add"
                f' {fixture} to its arguments, or @pytest.mark.usefixtures("{fixture}")',
                pytrace=False,
            )


def _given(
    request: pytest.FixtureRequest, marker: str, taker: Callable[..., object]
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return the arguments that a marker passes to *taker*.

    Fails a test whose marker passes others than *taker* takes, and one that uses both fixtures: the
    order of its arguments would decide.
    """
    name = FIXTURES[marker]
    other = request.node.stash.setdefault(_USED, name)
    if other != name:
        pytest.fail(
            f"{request.node.name} uses the fixtures {other} and {name}, and each of them says where"
            " the functions of uuidd_client get ids: use one, and for the other pass a Client of"
            " your own to fixed_ids or private_daemon of uuidd_client.testing",
            pytrace=False,
        )
    found = request.node.get_closest_marker(marker)
    if found is None:
        return (), {}
    try:
        signature(taker).bind(*found.args, **found.kwargs)
    except TypeError as error:
        pytest.fail(
            f"{request.node.name}: the marker {marker} has {error}; pytest --markers shows which"
            " arguments it takes",
            pytrace=False,
        )
    return found.args, found.kwargs


@pytest.fixture
def ids(request: pytest.FixtureRequest) -> Iterator[Client]:
    """A Client that makes the same ids in each run; so do the functions of uuidd_client.

    No daemon is needed. The clock is that of time-machine or freezegun, if one is set. The marker
    ``uuidd_ids`` passes another seed, time or worker number.
    """
    from uuidd_client.testing import fixed_ids

    args, kwargs = _given(request, "uuidd_ids", fixed_ids)
    with fixed_ids(*args, **kwargs) as client:
        yield client


@pytest.fixture
def uuidd(request: pytest.FixtureRequest) -> Iterator[PrivateDaemon]:
    """A daemon for this test alone, with ``socket`` and ``pid``; $UUIDD_SOCKET has its socket.

    The functions of uuidd_client use it. It has worker number 0; the marker ``uuidd_daemon`` passes
    another.
    """
    from uuidd_client.testing import private_daemon

    args, kwargs = _given(request, "uuidd_daemon", private_daemon)
    with private_daemon(*args, **kwargs) as daemon:
        yield daemon

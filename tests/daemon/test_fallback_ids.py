"""What programs tell of the ids that they made without the daemon."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgpack
import pytest
import trio

from tests.daemon.fakes import UID, Inside, Peer, notification
from uuidd.server.events import FallbackTally

pytestmark = pytest.mark.usefixtures("autojump_clock")


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    """A client, at a daemon that serves."""
    async with Inside().talking() as peer:
        yield peer


async def told(peer: Peer) -> Any:
    return (await peer.call("status")).result["fallback"]


async def test_ids_are_counted_for_the_user_that_tells_of_them(peer: Peer) -> None:
    for name in ("fallback_ids", b"fallback_ids"):
        await peer.send(notification(name, 5))
    await peer.send(notification("fallback_ids", 2**32 - 1))
    assert (await told(peer))["ids"] == {str(UID): 2**32 + 9}


async def test_the_age_is_that_of_the_last_time(peer: Peer) -> None:
    for _ in range(2):
        await peer.send(notification("fallback_ids", 5))
        await trio.sleep(60)
    assert (await told(peer))["last_age"] == pytest.approx(60, abs=0.01)


WRONG: list[list[Any]] = [
    [],
    [0],
    [-1],
    [2**32],
    [2**64 - 1],
    [True],
    [1.0],
    [None],
    ["5"],
    [b"5"],
    [[5]],
    [{5: 5}],
    [5, 5],
]


@pytest.mark.parametrize("params", [*WRONG, 5, None, "x", {"count": 5}], ids=repr)
async def test_a_count_that_is_wrong_is_ignored(peer: Peer, params: Any) -> None:
    await peer.send(msgpack.packb([2, "fallback_ids", params]))
    assert await told(peer) == {"ids": {}, "last_age": None}


async def test_the_count_of_a_user_has_an_end() -> None:
    """Every reader of the status can hold it."""
    tally = FallbackTally()
    for _ in range(3):
        tally.add(UID, 2**52)
    assert tally.status()["ids"] == {str(UID): 2**53 - 1}


async def test_users_beyond_the_first_are_counted_together() -> None:
    """A user with many uids cannot fill the daemon's memory, nor the metrics."""
    tally = FallbackTally()
    for uid in (*range(1000), 5):
        tally.add(uid, 2)
    each = {str(uid): 2 for uid in range(64)}
    assert tally.status()["ids"] == {**each, "5": 4, "others": 2 * (1000 - 64)}

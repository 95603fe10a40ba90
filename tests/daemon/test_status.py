"""Each number of the status, and each metric, changes when what it tells of does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.daemon.fakes import GOOD, HOUR, Inside, awaited, meanwhile, notification
from tests.daemon.fleet import WINDOW, Engine, Host
from tests.daemon.test_acceptor import Listener, Serving
from uuidd.core.timeline.outcomes import MAX_BLOCK
from uuidd.core.wire import libuuid
from uuidd.server.listeners import open_listener
from uuidd.server.page import Page
from uuidd.server.settings import Limits
from uuidd.server.trust import Quality
from uuidd_client.command import metrics

pytestmark = pytest.mark.usefixtures("autojump_clock")

SETTINGS = {
    "pid",
    # Whether the kernel has a page for leases.
    "leases.page",
    "clock.required_error",
    "steady.epoch",
    "steady.max_lead",
    "worker.hold",
    "worker.window",
    *(f"limits.{name}" for name in Limits.__dataclass_fields__),
}
"""Numbers of the status that stay as they are while a daemon runs."""

SETTINGS_AS_METRICS = {
    "uuidd_leases_page",
    "uuidd_clock_required_error_seconds",
    "uuidd_steady_max_lead_seconds",
    "uuidd_worker_hold_seconds",
    "uuidd_worker_window_seconds",
    *(f"uuidd_limit_{name}" for name in Limits.__dataclass_fields__),
}

Looks = list[dict[str, Any]]
"""Each status that was looked at."""

Values = Callable[[dict[str, Any]], Iterator[tuple[str, Any]]]


def numbers(found: dict[str, Any], under: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value of a status that is no text now, with the path of its names."""
    for name, value in found.items():
        if isinstance(value, dict):
            yield from numbers(value, f"{under}{name}.")
        elif not isinstance(value, str):
            yield under + name, value


def samples(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each metric of a status, with its labels, and its value."""
    yield from re.findall(r"^(uuidd_\S+) (\S+)$", metrics.text(found), re.MULTILINE)


def names(looks: Looks, values: Values) -> set[str]:
    return {name for look in looks for name, _ in values(look)}


def constant(looks: Looks, values: Values) -> set[str]:
    """Return the names of the values that were the same in all looks; what came has changed."""
    seen = [dict(values(look)) for look in looks]
    return {name for name in names(looks, values) if len({it.get(name, "") for it in seen}) < 2}


@pytest.fixture
async def looks(place: Path) -> Looks:
    """What was seen of a daemon to which everything happens that the status tells of."""
    engine = Engine(slow=0.01)
    reached = open_listener(place / "s")
    host = Host(
        engine,
        limits=Limits(connections_per_uid=3),
        own_uid=-1,
        page=(page := Page()),
        lost=True,
        require_sync=0.1,
        quality=Quality(synchronised=False, max_error=16.0, leap="insert"),
        unreachable=reached.unreachable,
    )
    inside = host.inside
    looks: Looks = []

    def look() -> None:
        looks.append(inside.report.status())

    async with AsyncExitStack() as stack:
        listener = stack.enter_context(Listener())
        served = Serving(inside, listener)
        parts = (served, inside.saver, inside.trust, inside.clones)
        await stack.enter_async_context(meanwhile(*(part.run for part in parts)))
        look()
        inside.quality = GOOD
        await stack.enter_async_context(host.running())
        await live(inside, engine, host, served, look)
        (place / "s").unlink()
        look()
    reached.close()
    page.close()
    return looks


async def live(
    inside: Inside, engine: Engine, host: Host, served: Serving, look: Callable[[], None]
) -> None:
    # The last of them is one too many.
    one, libuuids, wrong, rejected = (served.connect(limited=True) for _ in range(4))
    async with one, libuuids, wrong, rejected:
        # Steady is held for 20 s from when the clock is good, because the state was lost.
        await trio.sleep(2)
        look()
        await trio.sleep(20)
        for timeline in ("utc", "steady", "snowflake"):
            await one.call("take", timeline, 1000)
        await one.call("take", "utc", 0)
        await one.send(notification("fallback_ids", 5))
        await one.lease()
        await libuuids.send(libuuid.pack_request(libuuid.Op.TIME_UUID))
        await libuuids.receive(20)
        await wrong.send(libuuid.pack_request(libuuid.Op.BULK_TIME_UUID, MAX_BLOCK + 1))
        await wrong.rest()
        look()
        await trio.sleep(0.5)
        await one.call("take", "utc", 1)
        look()
        # The disk hangs, and then it fails.
        inside.disk.gate = trio.Event()
        await trio.sleep(HOUR)
        await one.call("take", "utc", 1)
        look()
        inside.disk.gate.set()
        inside.disk.gate = None
        await trio.sleep(HOUR)
        inside.disk.broken = True
        await one.call("take", "utc", 1)
        await trio.sleep(30)
        look()
        inside.disk.broken = False
        await trio.sleep(30)
        # The clock is set.
        inside.wall.step(HOUR)
        await one.call("take", "utc", 1)
        await one.call("lease")
        look()
        inside.wall.step(-HOUR / 2)
        await one.call("take", "utc", 1)
        await one.call("lease")
        look()
        # The fleet's engine is away, and then another host has the number.
        engine.away = "no answer"
        await trio.sleep(WINDOW)
        look()
        engine.away = ""
        await trio.sleep(WINDOW)
        assert host.number is not None
        engine.steal(host.number)
        await trio.sleep(WINDOW)
        look()
        # The kernel does not pass the page.
        page, inside.leasing.page = inside.leasing.page, -1
        async with served.connect(limited=True) as another:
            await another.call("lease")
        inside.leasing.page = page
        look()
        # The machine is cloned.
        await awaited(inside.clones.renew())
        await trio.sleep(60)
        look()


async def test_each_number_of_the_status_changes(looks: Looks) -> None:
    """All but the settings, so that a number which is always 0 is found."""
    assert constant(looks, numbers) == SETTINGS
    assert {
        "requests.rpc.refused.bad_params",
        "requests.libuuid.refused.malformed",
        "leases.refused.steady",
    } <= names(looks, numbers)


async def test_each_metric_changes(looks: Looks) -> None:
    assert constant(looks, samples) == SETTINGS_AS_METRICS | {"uuidd_up"}

"""How the daemon is doing: a map of plain values for ``status``, and a line for systemd."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import trio

from uuidd import version
from uuidd.core.ids import times
from uuidd.core.ids.kinds import time_fields
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.generation import Generation
from uuidd.fleet.fences import static_status
from uuidd.server.events import counted
from uuidd.systemd import Notifier

if TYPE_CHECKING:
    from uuidd.server.assembly import Assembly

LINE_SECONDS = 30.0
"""Seconds between two status lines, if no watchdog needs a sign of life more often."""


class Report:
    """Tells how the *parts* of a daemon are doing. It may be made before all of them are.

    *unreachable* says why no client can connect, "" while they can.
    """

    def __init__(self, parts: Assembly, unreachable: Callable[[], str]) -> None:
        self._parts = parts
        self._unreachable = unreachable
        self._started = self._line_at = trio.current_time()
        self._line_ids = 0
        # Now, because an upgrade may replace the files of a daemon that runs.
        self._version = version()

    def status(self) -> dict[str, Any]:
        """Return the answer to ``status``. Ticks are ints, spans are seconds, nodes are hex."""
        parts, service = self._parts, self._parts.service
        utc, epoch = parts.timelines.utc, parts.timelines.epoch
        return {
            "version": self._version,
            "pid": os.getpid(),
            "uptime": round(trio.current_time() - self._started, 3),
            "node": f"0x{utc.node.value:012x}",
            "node_source": utc.node.source,
            "volatile": utc.volatile is not None,
            "unreachable": self._unreachable(),
            "connections": len(parts.admission.open),
            "connections_highest": parts.admission.highest,
            "connections_rejected": parts.service.rpc.refused["connections"],
            "requests": {"rpc": service.rpc.status(), "libuuid": service.libuuid.status()},
            "fallback": service.fallback.status(),
            "clock": parts.trust.status(),
            "utc": self._utc(),
            "steady": self._steady(),
            "worker": static_status(parts.timelines.fence)
            if parts.keeper is None
            else parts.keeper.status(),
            "leases": parts.leasing.status(),
            "saves": parts.saver.status(),
            "clones": parts.clones.status(),
            "limits": asdict(parts.limits),
            "full_on": {kind: times.day(field.end) for kind, field in time_fields(epoch).items()},
        }

    def _utc(self) -> dict[str, Any]:
        timeline, clock = self._parts.timelines.utc, self._parts.clock
        now = clock.now()
        return {
            **_serving(timeline.volatile or timeline.open, now),
            "openings": timeline.openings,
            "steps_back": clock.steps_back,
            "steps_forward": clock.steps_forward,
            "horizon": timeline.horizon.limit,
            "horizon_in": _seconds(timeline.horizon.limit - now),
        }

    def _steady(self) -> dict[str, Any]:
        timelines, at = self._parts.timelines, self._parts.clock.read()
        steady = timelines.steady
        left = steady.horizon.limit - steady.read(now=at.now, elapsed=at.elapsed)
        return {
            "next": steady.next,
            "lead": _seconds(steady.lead(now=at.now, elapsed=at.elapsed), 7),
            "max_lead": steady.max_lead / TICKS_PER_SECOND,
            "rollback": steady.rollback,
            "held_for": max(0.0, _seconds(steady.held_until - at.now)),
            "horizon": steady.horizon.limit,
            "horizon_in": _seconds(left),
            "worker": timelines.fence.number,
            "epoch": timelines.epoch,
        }

    def line(self) -> str:
        """Return what the daemon does, and what is wrong with it, for ``systemctl status``.

        The rate is that since the last line.
        """
        parts, now = self._parts, trio.current_time()
        utc, steady = parts.timelines.utc, parts.timelines.steady
        ids = parts.service.rpc.ids + parts.service.libuuid.ids
        rate = (ids - self._line_ids) / max(now - self._line_at, 0.001)
        self._line_ids, self._line_at = ids, now
        line = f"Serving {counted(len(parts.admission.open), 'connection')}, {rate:,.0f} ids/s"
        if out := utc.leases.out:
            line += f", {counted(out, 'lease')}"
        if trouble := self._unreachable():
            line += f"; {trouble}"
        if parts.saver.failed_since_last:
            line += f"; saves fail ({parts.saver.trouble})"
        if utc.volatile is not None:
            line += ", v1 and v6 come from a volatile node"
        if parts.keeper is not None and (trouble := parts.keeper.standing.line):
            line += f"; {trouble}"
        if steady.withheld:
            line += f"; the steady kinds wait: {steady.withheld}"
        at = parts.clock.read()
        lead = steady.lead(now=at.now, elapsed=at.elapsed)
        if lead > TICKS_PER_SECOND:
            line += f"; the steady kinds are {lead / TICKS_PER_SECOND:,.0f} s ahead of UTC"
        return line


def _serving(serving: Generation | None, now: int) -> dict[str, Any]:
    if serving is None:
        names = ("generation", "clock_seq", "node", "next", "lag")
        return {**dict.fromkeys(names), "lanes_in_use": 0}
    used = serving.top > serving.begin
    return {
        "generation": serving.number,
        "clock_seq": serving.clock_seq,
        "node": f"0x{serving.node:012x}",
        "lanes_in_use": serving.lanes_since(now - TICKS_PER_SECOND),
        "next": serving.top if used else None,
        "lag": _seconds(now - serving.top, 7) if used else None,
    }


def _seconds(ticks: int, digits: int = 3) -> float:
    return round(ticks / TICKS_PER_SECOND, digits)


async def supervise(notifier: Notifier, line: Callable[[], str]) -> None:
    """Tell systemd that the daemon serves, then again and again that it lives, with a *line*.

    This runs in the loop that serves. So if that loop hangs, systemd hears nothing, and ends the
    daemon.
    """
    if not notifier.connected:
        return
    pause = LINE_SECONDS if notifier.watchdog is None else notifier.watchdog / 3
    shown = line()
    notifier.notify(ready=1, status=shown)
    while True:
        await trio.sleep(pause)
        before, shown = shown, line()
        if shown != before:
            notifier.notify(watchdog=1, status=shown)
        else:
            notifier.notify(watchdog=1)

"""How the daemon is doing: a map of plain values for ``status``, and a line for systemd."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import trio

from uuidd import version
from uuidd.clock import Clock
from uuidd.core.ids import times
from uuidd.core.ids.kinds import time_fields
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.generation import Generation
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.server.admission import Admission
from uuidd.server.alarms import Alarms
from uuidd.server.clones import Clones
from uuidd.server.events import Tally, counted
from uuidd.server.leasing import Leasing
from uuidd.server.saver import Saver
from uuidd.server.service import Service
from uuidd.server.settings import Limits
from uuidd.server.trust import Trust
from uuidd.systemd import Notifier

if TYPE_CHECKING:
    from uuidd.fleet.keeper import Keeper

LINE_SECONDS = 30.0
"""Seconds between two status lines, if no watchdog needs a sign of life more often."""


class Report:
    """What ``status`` returns, collected from the parts of the daemon."""

    def __init__(
        self,
        timelines: Timelines,
        saver: Saver,
        clock: Clock,
        admission: Admission,
        limits: Limits,
        trust: Trust,
        clones: Clones,
        alarms: Alarms,
        keeper: Keeper | None,
        unreachable: Callable[[], str],
    ) -> None:
        self._unreachable = unreachable
        self._trust = trust
        self._clones = clones
        self._alarms = alarms
        self._keeper = keeper
        self._timelines = timelines
        self._saver = saver
        self._clock = clock
        self._admission = admission
        self._limits = limits
        self._started = trio.current_time()
        # Now, because an upgrade may replace the files of a daemon that runs.
        self._version = version()

    def status(self, service: Service) -> dict[str, Any]:
        """Return the status. Ticks are ints, spans are seconds, nodes are hex."""
        utc = self._timelines.utc
        return {
            "version": self._version,
            "pid": os.getpid(),
            "uptime": round(trio.current_time() - self._started, 3),
            "node": f"0x{utc.node.value:012x}",
            "node_source": utc.node.source,
            "volatile": utc.volatile is not None,
            "unreachable": self._unreachable(),
            "connections": self._admission.open,
            "connections_highest": self._admission.highest,
            "connections_rejected": self._admission.rejected,
            "requests": {"rpc": _tally(service.rpc), "libuuid": _tally(service.libuuid)},
            "clock": self._trust.status(),
            "utc": self._utc(),
            "steady": self._steady(),
            "worker": self._worker(),
            "leases": self._leases(service.leasing),
            "saves": self._saves(),
            "clones": {**self._clones.status(), "signals": self._alarms.status()},
            "limits": asdict(self._limits),
            "full_on": {
                kind: times.day(field.end)
                for kind, field in time_fields(self._timelines.epoch).items()
            },
        }

    def _utc(self) -> dict[str, Any]:
        timeline, now = self._timelines.utc, self._clock.now()
        serving = timeline.volatile or timeline.generation
        found: dict[str, Any] = {
            "generation": None,
            "clock_seq": None,
            "node": None,
            "lanes_in_use": 0,
            "next": None,
            "lag": None,
        }
        if serving is not None:
            found = _serving(serving, now)
        found["openings"] = timeline.openings
        found["steps_back"] = self._clock.steps_back
        found["steps_forward"] = self._clock.steps_forward
        found["horizon"] = timeline.horizon.limit
        found["horizon_in"] = round((timeline.horizon.limit - now) / TICKS_PER_SECOND, 3)
        return found

    def _steady(self) -> dict[str, Any]:
        timelines, at = self._timelines, self._clock.read()
        steady = timelines.steady
        lead = steady.lead(now=at.now, elapsed=at.elapsed)
        left = steady.horizon.limit - steady.read(now=at.now, elapsed=at.elapsed)
        return {
            "next": steady.next,
            "lead": round(lead / TICKS_PER_SECOND, 7),
            "max_lead": steady.max_lead / TICKS_PER_SECOND,
            "rollback": steady.rollback,
            "held_for": max(0.0, round((steady.held_until - at.now) / TICKS_PER_SECOND, 3)),
            "horizon": steady.horizon.limit,
            "horizon_in": round(left / TICKS_PER_SECOND, 3),
            "worker": timelines.fence.number,
            "epoch": timelines.epoch,
        }

    def _worker(self) -> dict[str, Any]:
        if self._keeper is None:
            from uuidd.fleet.standing import static_status

            return static_status(self._timelines.fence)
        return self._keeper.status()

    def _leases(self, leasing: Leasing) -> dict[str, Any]:
        leases, now = self._timelines.utc.leases, self._clock.now()
        # Nobody reads the horizon while no lease is out.
        left = round((leases.horizon - now) / TICKS_PER_SECOND, 3) if leases.out else None
        return {
            "page": leasing.page is not None,
            "out": leases.out,
            "granted": leases.granted,
            "revoked": leases.revoked,
            "refused": dict(leasing.refused),
            "unpassed": leasing.unpassed,
            "horizon_in": left,
            "held_for": max(0.0, round((leases.floor - now) / TICKS_PER_SECOND, 3)),
        }

    def _saves(self) -> dict[str, Any]:
        saver = self._saver
        saver.check(self._clock.read().elapsed)
        return {
            "done": saver.saves,
            "failed": saver.failed_saves,
            "failing": bool(saver.trouble),
            "trouble": saver.trouble,
            "last_age": round(trio.current_time() - saver.last_at, 3),
            "last_seconds": round(saver.last_seconds, 6),
            "reach_seconds": round(saver.reach, 3),
            "under_way_seconds": round(saver.under_way_seconds, 3),
        }


def _serving(serving: Generation, now: int) -> dict[str, Any]:
    used = serving.top > serving.begin
    return {
        "generation": serving.number,
        "clock_seq": serving.clock_seq,
        "node": f"0x{serving.node:012x}",
        "lanes_in_use": serving.lanes_since(now - TICKS_PER_SECOND),
        "next": serving.top if used else None,
        "lag": round((now - serving.top) / TICKS_PER_SECOND, 7) if used else None,
    }


def _tally(tally: Tally) -> dict[str, Any]:
    return {"requests": tally.requests, "ids": tally.ids, "refused": dict(tally.refused)}


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


class StatusLine:
    """A line for ``systemctl status``: what the daemon does, and what is wrong with it."""

    def __init__(
        self,
        service: Service,
        admission: Admission,
        timelines: Timelines,
        saver: Saver,
        read: Callable[[], Reading],
        keeper: Keeper | None,
        unreachable: Callable[[], str],
    ) -> None:
        self._unreachable = unreachable
        self._keeper = keeper
        self._service = service
        self._admission = admission
        self._timelines = timelines
        self._saver = saver
        self._read = read
        self._ids = 0
        self._at = trio.current_time()

    def __call__(self) -> str:
        """Return the line; the rate is that since the last one."""
        ids, now = self._service.rpc.ids + self._service.libuuid.ids, trio.current_time()
        rate = (ids - self._ids) / max(now - self._at, 0.001)
        self._ids, self._at = ids, now
        line = f"Serving {counted(self._admission.open, 'connection')}, {rate:,.0f} ids/s"
        if out := self._timelines.utc.leases.out:
            line += f", {counted(out, 'lease')}"
        if trouble := self._unreachable():
            line += f"; {trouble}"
        if self._saver.failed_since_last:
            line += f"; saves fail ({self._saver.trouble})"
        if self._timelines.utc.volatile is not None:
            line += ", v1 and v6 come from a volatile node"
        at = self._read()
        lead = self._timelines.steady.lead(now=at.now, elapsed=at.elapsed)
        if self._keeper is not None and (trouble := self._keeper.standing.line):
            line += f"; {trouble}"
        if self._timelines.steady.withheld:
            line += "; the steady kinds wait until the clock is synchronised"
        if lead > TICKS_PER_SECOND:
            line += f"; the steady kinds are {lead / TICKS_PER_SECOND:,.0f} s ahead of UTC"
        return line

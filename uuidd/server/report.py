"""What ``status`` tells: a map of plain values, the same for people, programs and metrics."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import trio

from uuidd import __version__
from uuidd.clock import Clock
from uuidd.core.ids.timebased import TICK_BITS, TICKS_PER_SECOND
from uuidd.core.timeline.generation import Generation
from uuidd.core.timeline.utc import Utc
from uuidd.server.admission import Admission
from uuidd.server.limits import Limits, as_settings
from uuidd.server.saver import Saver
from uuidd.server.service import Service, Tally


class Report:
    """Puts together what ``status`` tells."""

    def __init__(
        self, timeline: Utc, saver: Saver, clock: Clock, admission: Admission, limits: Limits
    ) -> None:
        self._timeline = timeline
        self._saver = saver
        self._clock = clock
        self._admission = admission
        self._limits = as_settings(limits)
        self._started = trio.current_time()

    def status(self, service: Service) -> dict[str, Any]:
        """Give the status. Ticks are ints, spans are seconds, nodes are hex."""
        timeline = self._timeline
        return {
            "version": __version__,
            "pid": os.getpid(),
            "uptime": round(trio.current_time() - self._started, 3),
            "node": f"0x{timeline.node.value:012x}",
            "node_source": timeline.node.source,
            "volatile": timeline.volatile is not None,
            "connections": self._admission.open,
            "connections_highest": self._admission.highest,
            "connections_turned_away": self._admission.turned_away,
            "requests": {"rpc": _tally(service.rpc), "libuuid": _tally(service.libuuid)},
            "utc": self._utc(),
            "saves": self._saves(),
            "limits": self._limits,
            "full_on": dict.fromkeys(("v1", "v6"), _full_on(TICK_BITS)),
        }

    def _utc(self) -> dict[str, Any]:
        timeline, now = self._timeline, self._clock.now()
        serving = timeline.volatile or timeline.generation
        told: dict[str, Any] = {
            "generation": None,
            "clock_seq": None,
            "node": None,
            "lanes_in_use": 0,
            "next": None,
            "lag": None,
        }
        if serving is not None:
            told = _serving(serving, now)
        told["openings"] = timeline.openings
        told["regressions"] = self._clock.steps_back
        told["steps_forward"] = self._clock.steps_forward
        told["horizon"] = timeline.horizon
        told["horizon_in"] = round((timeline.horizon - now) / TICKS_PER_SECOND, 3)
        return told

    def _saves(self) -> dict[str, Any]:
        saver = self._saver
        return {
            "done": saver.saves,
            "failed": saver.failed_saves,
            "failing": bool(saver.failed_since_last),
            "trouble": saver.trouble,
            "last_age": round(trio.current_time() - saver.last_at, 3),
            "last_seconds": round(saver.last_seconds, 6),
            "under_way_seconds": round(saver.slow_seconds, 3),
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


def _full_on(bits: int) -> str:
    """Give the first day on which a count of ticks no longer fits into so many bits."""
    epoch = datetime(1582, 10, 15, tzinfo=UTC)
    return (epoch + timedelta(microseconds=(1 << bits) // 10)).date().isoformat()

"""The status as OpenMetrics, by the prometheus-client library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
)
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector


def text(status: dict[str, Any]) -> str:
    """Give the OpenMetrics text of a status, with its end mark."""
    registry = CollectorRegistry()
    registry.register(_Status(status))
    written: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]  # theirs has none
    return written.decode()


class _Status(Collector):
    def __init__(self, status: dict[str, Any]) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        status = self._status
        # A gauge, for node_exporter's textfile collector refuses a file with the type info.
        about = ["version", "node", "node_source"]
        info = GaugeMetricFamily("uuidd_info", "The daemon.", labels=about)
        info.add_metric([status[name] for name in about], 1)
        yield info
        yield from self._gauges()
        yield from self._counters()
        refused = CounterMetricFamily(
            "uuidd_refused", "Requests refused.", labels=["dialect", "reason"]
        )
        for dialect, tally in status["requests"].items():
            for reason, count in tally["refused"].items():
                refused.add_metric([dialect, reason], count)
        yield refused

    def _gauges(self) -> Iterator[Metric]:
        status = self._status
        utc, steady, saves = status["utc"], status["steady"], status["saves"]
        yield GaugeMetricFamily("uuidd_uptime_seconds", "Since the start.", status["uptime"])
        yield GaugeMetricFamily("uuidd_connections", "Open now.", status["connections"])
        yield GaugeMetricFamily(
            "uuidd_connections_highest", "Open at once so far.", status["connections_highest"]
        )
        for name, limit in status["limits"].items():
            yield GaugeMetricFamily(f"uuidd_limit_{name}", "A limit in force.", limit)
        yield GaugeMetricFamily(
            "uuidd_volatile",
            "1 while v1 and v6 come from a volatile node.",
            int(status["volatile"]),
        )
        yield GaugeMetricFamily(
            "uuidd_saves_failing", "1 while saves of the state fail.", int(saves["failing"])
        )
        yield GaugeMetricFamily(
            "uuidd_horizon_seconds",
            "Until the state must be saved; negative: idle.",
            utc["horizon_in"],
        )
        yield GaugeMetricFamily(
            "uuidd_steady_horizon_seconds", "The same of steady.", steady["horizon_in"]
        )
        yield GaugeMetricFamily("uuidd_last_save_age_seconds", "Since it.", saves["last_age"])
        yield GaugeMetricFamily("uuidd_last_save_seconds", "What it took.", saves["last_seconds"])
        yield GaugeMetricFamily(
            "uuidd_save_under_way_seconds",
            "Since the save under way began, 0 for none.",
            saves["under_way_seconds"],
        )
        yield GaugeMetricFamily("uuidd_lanes_in_use", "In the last second.", utc["lanes_in_use"])
        for name, told, about in (
            ("clock_seq", utc["clock_seq"], "Of the lane that short grants come from."),
            ("generation", utc["generation"], "Of clock sequences, that which is open."),
            ("lag_seconds", utc["lag"], "From the last tick given out under it to now."),
            ("worker", steady["worker"], "Of Snowflakes."),
        ):
            # What is not there has no number.
            if told is not None:
                yield GaugeMetricFamily(f"uuidd_{name}", about, told)
        yield GaugeMetricFamily(
            "uuidd_steady_lead_seconds", "By how much steady leads UTC.", steady["lead"]
        )
        yield GaugeMetricFamily(
            "uuidd_steady_max_lead_seconds", "By how much it may.", steady["max_lead"]
        )
        yield GaugeMetricFamily(
            "uuidd_steady_held_seconds",
            "Until it gives ids after a lost state.",
            steady["held_for"],
        )

    def _counters(self) -> Iterator[Metric]:
        status = self._status
        utc, saves = status["utc"], status["saves"]
        requests = CounterMetricFamily("uuidd_requests", "Answered.", labels=["dialect"])
        ids = CounterMetricFamily("uuidd_ids", "Ids or ticks given out.", labels=["dialect"])
        for dialect, tally in status["requests"].items():
            requests.add_metric([dialect], tally["requests"])
            ids.add_metric([dialect], tally["ids"])
        yield requests
        yield ids
        steps = CounterMetricFamily("uuidd_clock_steps", "Steps of UTC.", labels=["direction"])
        steps.add_metric(["back"], utc["regressions"])
        steps.add_metric(["forward"], utc["steps_forward"])
        yield steps
        yield CounterMetricFamily("uuidd_openings", "Clock sequences opened.", utc["openings"])
        yield CounterMetricFamily("uuidd_saves", "Of the state.", saves["done"])
        yield CounterMetricFamily("uuidd_saves_failed", "Of the state.", saves["failed"])
        yield CounterMetricFamily(
            "uuidd_connections_turned_away", "Over a limit.", status["connections_turned_away"]
        )

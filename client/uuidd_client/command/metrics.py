"""The status as OpenMetrics, by the prometheus-client library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector

from uuidd_client.command.counters import counters
from uuidd_client.command.gauges import gauges


def text(status: dict[str, Any]) -> str:
    """Return the OpenMetrics text of a status, with its end mark."""
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
        info = GaugeMetricFamily(
            "uuidd_info", "Always 1. The labels name the daemon's version and node.", labels=about
        )
        info.add_metric([status[name] for name in about], 1)
        yield info
        for name, help_text, value in gauges(status):
            # What is not there has no number.
            if value is not None:
                yield GaugeMetricFamily(f"uuidd_{name}", help_text, value)
        for counter in counters(status):
            family = CounterMetricFamily(
                f"uuidd_{counter.name}", counter.help, labels=counter.labels
            )
            for values, count in counter.samples:
                family.add_metric(values, count)
            yield family

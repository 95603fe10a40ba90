"""The status as metrics of Prometheus, by the prometheus-client library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from uuidd_client.command.counters import counters
from uuidd_client.command.gauges import gauges


def text(status: dict[str, Any]) -> str:
    """Return a status in the text format of Prometheus, which node_exporter reads."""
    registry = CollectorRegistry()
    registry.register(_Status(status))
    return generate_latest(registry).decode()


class _Status(Collector):
    def __init__(self, status: dict[str, Any]) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        status = self._status
        # A gauge, for this format has no type info.
        about = ["version", "node", "node_source"]
        info = GaugeMetricFamily(
            "uuidd_info", "Always 1. The labels name the daemon's version and node.", labels=about
        )
        info.add_metric([status[name] for name in about], 1)
        yield info
        yield _worker(status["worker"])
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


def _worker(worker: dict[str, Any]) -> Metric:
    """Return the number, or no sample where another host may have it: no alert is to count it."""
    family = GaugeMetricFamily(
        "uuidd_worker",
        "This host's worker number in Snowflakes. The label is the id of the fleet, empty if the"
        " number was set by hand. Missing when its time is over or another host has claimed it.",
        labels=["namespace"],
    )
    over = worker["until_in"] is not None and worker["until_in"] < 0
    if worker["number"] is not None and not over and worker["state"] != "fenced":
        family.add_metric([worker["namespace"] or ""], worker["number"])
    return family

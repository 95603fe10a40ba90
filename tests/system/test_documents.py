"""What the documents show is run: examples, names of the status, alert rules."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.documents import ROOT, blocks, text
from tests.rig import PATIENCE, Daemon
from tests.tools import need, output, run
from uuidd_client import Client
from uuidd_client.command import metrics, panel

ALERTS = ROOT / "systemd" / "alerts.yaml"

OF_NODE_EXPORTER = {"node_textfile_mtime_seconds"}


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon("--worker", "5") as daemon:
        yield daemon


@pytest.fixture(scope="module")
def status(daemon: Daemon) -> dict[str, Any]:
    with Client(daemon.socket, fallback=False) as client:
        client.uuid1()
        client.uuid7()
        return client.status()


@pytest.mark.parametrize("name", ["README.md", "client/README.md"])
def test_the_examples_in_python_run(daemon: Daemon, name: str) -> None:
    """One after the other, as a reader would copy them, without a warning."""
    examples = "\n".join(blocks(name, "python"))
    assert examples
    environment = {**os.environ, "UUIDD_SOCKET": str(daemon.socket), "UUIDD_FALLBACK": "0"}
    done = run(sys.executable, "-W", "error", "-c", examples, env=environment)
    assert (done.stderr, done.returncode) == ("", 0)


def test_the_warning_is_quoted_as_it_is(tmp_path: Path) -> None:
    environment = {**os.environ, "UUIDD_SOCKET": f"{tmp_path}/s", "UUIDD_FALLBACK": ""}
    draw = "import uuidd_client; uuidd_client.uuid1()"
    done = run(sys.executable, "-c", draw, env=environment)
    [warning] = re.findall("RuntimeWarning: .*", done.stderr)
    quoted = warning.replace(f"{tmp_path}/s", "/run/uuidd/request")
    assert f"\n{quoted}\n" in text("client/README.md")


def test_each_name_in_the_status_is_explained(status: dict[str, Any]) -> None:
    told = text("uuidd/status.md")
    # These two hold a name for each limit and kind.
    names = [*_names({**status, "limits": 0, "full_on": 0})]
    # The counters of both dialects, and their reasons for refusals, are told of together.
    names = [name.rpartition(".")[2] if name.startswith("requests.") else name for name in names]
    assert [name for name in names if f"`{name}`" not in told] == []


def test_each_line_of_the_screen_is_explained(status: dict[str, Any]) -> None:
    rows = re.findall(r"^\| ([a-z ,]+) \|", text("uuidd/status.md"), flags=re.MULTILINE)
    told = {label for row in rows for label in row.split(", ")}
    assert _lines_of_the_screen(status) - told == set()


def test_each_line_of_the_screen_is_in_the_man_page(status: dict[str, Any]) -> None:
    page = text("tests/packaging/uuidctl.1.inc").partition("[STATUS SCREEN]")[2]
    rows = re.findall(r"^\.TP\n\.BR? (.+)", page, flags=re.MULTILINE)
    told = {label for row in rows for label in row.split(' ", " ')}
    # The first line is about the daemon itself.
    assert _lines_of_the_screen(status) - told == {"uuidd"}


def _lines_of_the_screen(status: dict[str, Any]) -> set[str]:
    drawn = panel.draw(status, 0.0, width=80, coloured=False)
    return {label for line in drawn.splitlines() if (label := line[:12].strip())}


def test_each_alert_names_its_section_of_the_runbooks() -> None:
    sections = re.findall(r"^## (\w+)$", text("systemd/runbooks.md"), flags=re.MULTILINE)
    rules = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
    named = {rule["alert"]: rule["annotations"]["runbook_url"] for rule in rules}
    at = "file:///usr/share/doc/uuidd-python/systemd/runbooks.md"
    assert named == {name: f"{at}#{name.lower()}" for name in sections}


def test_the_alerts_fire_when_they_should(tmp_path: Path) -> None:
    """And neither for a host that looks ill, nor for a daemon that is well."""
    rules = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
    cases = yaml.safe_load((Path(__file__).with_name("alerts.yaml")).read_text())
    assert {case["alertname"] for case in cases["fire"]} == {rule["alert"] for rule in rules}
    file = tmp_path / "tests.yaml"
    told = {
        "rule_files": [str(ALERTS)],
        "evaluation_interval": "1m",
        "tests": [_unit(case, fires=True) for case in cases["fire"]]
        + [_unit(case, fires=False) for case in cases["quiet"]]
        + [_unit({**cases["well"], "alertname": rule["alert"]}, fires=False) for rule in rules],
    }
    file.write_text(yaml.safe_dump(told))
    output(need("promtool"), "test", "rules", file, timeout=6 * PATIENCE)


def test_each_metric_in_the_alerts_is_one_of_ours(status: dict[str, Any]) -> None:
    families = _families(status)
    ours = {sample.name for family in families for sample in family.samples}
    # There is a sample of it for each reason, and none before the first refusal.
    ours.add("uuidd_refused_total")
    rules = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
    expressions = " ".join(rule["expr"] for rule in rules)
    named = set(re.findall(r"\b(?:uuidd|node)_\w+", expressions))
    assert named - ours == OF_NODE_EXPORTER


def test_promtool_reads_the_metrics_and_has_no_complaint(status: dict[str, Any]) -> None:
    told = metrics.text(status)
    output(need("promtool"), "check", "metrics", input=told)


def test_each_metric_in_the_dashboard_is_one_of_ours(status: dict[str, Any]) -> None:
    # Families of labels and counters may have no sample yet.
    ours = {family.name for family in _families(status)}
    dashboard = json.loads((ROOT / "systemd" / "grafana.json").read_text())
    targets = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    named = {name.removesuffix("_total") for name in re.findall(r"\buuidd_\w+", " ".join(targets))}
    assert named - ours == set()


def _families(status: dict[str, Any]) -> list[Metric]:
    """Return the metrics of a host that is in a fleet, and whose programs have fallen back."""
    numbers = ("until_in", "window", "hold", "renewed_age", "round_trip_seconds")
    worker = {**status["worker"], **dict.fromkeys(numbers, 1.0)}
    fallback = {"ids": {"1000": 5}, "last_age": 1.0}
    told = metrics.text({**status, "worker": worker, "fallback": fallback})
    return list(text_string_to_metric_families(told))


def _unit(case: dict[str, Any], *, fires: bool) -> dict[str, Any]:
    """Return a test as promtool reads it: whether an alert fires an hour after the series began."""
    series = [{"series": name, "values": values} for name, values in case["series"].items()]
    alert = f'ALERTS{{alertname="{case["alertname"]}",alertstate="firing"}}'
    expected = [{"labels": "{}", "value": case.get("alerts", 1)}] if fires else []
    return {
        "interval": "1m",
        "input_series": series,
        "promql_expr_test": [
            {"expr": f"count({alert})", "eval_time": "1h", "exp_samples": expected}
        ],
    }


def _names(told: dict[str, Any], before: str = "") -> Iterator[str]:
    for name, value in told.items():
        if isinstance(value, dict) and value:
            yield from _names(value, f"{before}{name}.")
        else:
            yield f"{before}{name}"

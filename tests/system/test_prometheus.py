"""A real Prometheus: it scrapes ``uuidctl metrics --listen``, and the alert of a daemon fires."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.client.test_scrape import fetched, scraped
from tests.documents import ROOT
from tests.rig import PATIENCE, Daemon, until
from tests.tools import kept_port, need, output

pytestmark = pytest.mark.thorough

SILENT = "UuiddSilent"


class Prometheus:
    """A Prometheus with the alert rules, all of them without a delay, that scrapes *address*."""

    def __init__(self, folder: Path, address: str) -> None:
        self._folder, self._address = folder, address

    def __enter__(self) -> Prometheus:
        rules = (ROOT / "systemd" / "alerts.yaml").read_text()
        rules = re.sub(r"(?m)^ +for: .*\n", "", rules)
        (self._folder / "alerts.yaml").write_text(rules)
        scrape = {"job_name": "uuidd", "static_configs": [{"targets": [self._address]}]}
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["alerts.yaml"],
            "scrape_configs": [scrape],
        }
        file = self._folder / "prometheus.yml"
        file.write_text(yaml.safe_dump(config))
        output(need("promtool"), "check", "config", file)
        self._port = kept_port()
        listen = f"127.0.0.1:{self._port.getsockname()[1]}"
        self._url = f"http://{listen}/api/v1"
        words = [need("prometheus"), f"--config.file={file}", f"--web.listen-address={listen}"]
        words.append(f"--storage.tsdb.path={self._folder / 'data'}")
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log)
        return self

    def __exit__(self, *_: object) -> None:
        self._port.close()
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()

    def up(self) -> list[str]:
        """Return the last ``uuidd_up`` of each target that it has scraped."""
        found = self._asked("query?query=uuidd_up")
        return [each["value"][1] for each in found.get("result", ())]

    def firing(self) -> set[str]:
        """Return the alerts that fire."""
        found = self._asked("alerts").get("alerts", ())
        return {each["labels"]["alertname"] for each in found if each["state"] == "firing"}

    def _asked(self, what: str) -> dict[str, Any]:
        # Until it listens.
        with contextlib.suppress(OSError):
            answer: dict[str, Any] = json.loads(fetched(f"{self._url}/{what}"))["data"]
            return answer
        return {}


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with Daemon() as daemon:
        yield daemon


def test_the_alert_of_a_silent_daemon_fires_until_it_is_back(
    daemon: Daemon, tmp_path: Path
) -> None:
    with scraped(daemon.socket) as served:
        address = served.url.removeprefix("http://").removesuffix("/metrics")
        with Prometheus(tmp_path, address) as prometheus:
            until(lambda: prometheus.up() == ["1"])
            assert SILENT not in prometheus.firing()
            daemon.kill()
            until(lambda: SILENT in prometheus.firing())
            assert prometheus.up() == ["0"]
            daemon.start()
            until(lambda: SILENT not in prometheus.firing())

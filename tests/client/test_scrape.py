"""``uuidctl metrics``: what it prints, and what it serves."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.client.fakes import UUIDCTL, Server
from tests.rig import PATIENCE, Daemon, sleeps, stays
from uuidd_client.command import main

pytestmark = pytest.mark.process


class Serving(NamedTuple):
    """A server of metrics that runs."""

    url: str
    pid: int


@contextmanager
def scraped(path: Path, address: str = "127.0.0.1:0") -> Iterator[Serving]:
    """Run the server for the daemon at *path*."""
    server = subprocess.Popen(
        [*UUIDCTL, "--socket", str(path), "metrics", "--listen", address],
        env={**os.environ, "UUIDD_TIMEOUT": str(PATIENCE)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        yield Serving(server.stdout.readline().removeprefix("serving ").strip(), server.pid)
    finally:
        # So that it ends in order, and tells what it has executed.
        server.send_signal(signal.SIGINT)
        server.wait(PATIENCE)
        assert server.stdout is not None
        server.stdout.close()


def samples(text: str) -> dict[str, float]:
    """Return the samples without labels, by name."""
    families = text_string_to_metric_families(text)
    return {each.name: each.value for family in families for each in family.samples}


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:  # noqa: S310 - of this test
        told: str = answer.read().decode()
    return told


def test_each_scrape_asks_the_daemon(capsys: pytest.CaptureFixture[str]) -> None:
    with Daemon() as daemon, scraped(daemon.socket) as served:
        assert main(["--socket", str(daemon.socket), "metrics"]) == 0
        printed = samples(capsys.readouterr().out)
        once, again = samples(fetched(served.url)), samples(fetched(served.url))
    assert printed.keys() == once.keys()
    assert once["uuidd_uptime_seconds"] < again["uuidd_uptime_seconds"]
    assert once["uuidd_up"] == 1


@pytest.mark.parametrize("address", ["127.0.0.1:0", "[::1]:0"])
def test_a_scrape_without_a_daemon_tells_just_that(tmp_path: Path, address: str) -> None:
    with scraped(tmp_path / "none", address) as served:
        assert samples(fetched(served.url)) == {"uuidd_up": 0}


def test_an_address_that_is_in_use_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with scraped(tmp_path / "none") as served:
        address = served.url.removeprefix("http://").removesuffix("/metrics")
        assert main(["metrics", "--listen", address]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"uuidctl: cannot listen at {address.replace(':', ' port ')}: Address already in use;"
        " --listen another address"
    ]


@pytest.mark.parametrize("sent", [b"", b"GET /metr", b"GET /metrics HTTP/1.0\r\n\r\n", b"\xff\n"])
def test_a_scraper_that_breaks_off_leaves_no_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], sent: bytes
) -> None:
    with scraped(tmp_path / "none") as served:
        at = urlsplit(served.url)
        with socket.create_connection((at.hostname, at.port)) as scraper:
            # So that the connection is reset, and does not end in order.
            scraper.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            scraper.sendall(sent)
        assert samples(fetched(served.url)) == {"uuidd_up": 0}
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "word", ["9755", ":9755", "127.0.0.1:", "127.0.0.1:65536", "h:1x", "h:٣", "ü..b:9755"]
)
def test_what_is_no_address_is_refused(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["metrics", "--listen", word])
    assert f"{word!r} is not an address and a port" in capsys.readouterr().err


def test_a_daemon_of_another_version_counts_as_away(tmp_path: Path) -> None:
    """So that the alert UuiddSilent fires: all other metrics are missing."""
    with Server(tmp_path / "s", {"version": "99"}), scraped(tmp_path / "s") as served:
        assert samples(fetched(served.url)) == {"uuidd_up": 0}


def test_without_a_scrape_the_server_does_not_wake_up(tmp_path: Path) -> None:
    with scraped(tmp_path / "none") as served:
        fetched(served.url)
        assert stays(lambda: sleeps(served.pid))


def test_the_server_takes_less_than_40_mb() -> None:
    with Daemon() as daemon, scraped(daemon.socket) as served:
        for _ in range(20):
            fetched(served.url)
        told = Path(f"/proc/{served.pid}/status").read_text()
    assert int(told.split("VmHWM:")[1].split()[0]) * 1024 < 40_000_000

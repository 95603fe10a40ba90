"""Serves the metrics over HTTP, with prometheus_client."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.parser import text_string_to_metric_families

from uuidd_client.client import Client
from uuidd_client.command import metrics
from uuidd_client.command.common import CommandError, complain, of_our_version
from uuidd_client.errors import DaemonUnavailable

SILENCE = 10.0
"""Seconds after which a scraper that sends or reads nothing is disconnected."""


class _Handler(WSGIRequestHandler):
    timeout = SILENCE

    def log_message(self, format: str, *args: Any) -> None:
        """Log no request."""


def serve(client: Client, host: str, port: int) -> None:
    """Serve the metrics of *client*'s daemon at an address, until Ctrl-C. Raises CommandError."""

    class Server(ThreadingWSGIServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    # Or it would ask the daemon now.
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(client))
    try:
        server = make_server(host, port, make_wsgi_app(registry), Server, _Handler)
    except OSError as error:
        raise CommandError(
            f"cannot listen at {host} port {port}: {error.strerror}; --listen another address"
        ) from error
    with server:
        shown = f"[{host}]" if ":" in host else host
        print(f"serving http://{shown}:{server.server_port}/metrics", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            # Not start_http_server, which wakes up twice a second: None sleeps until somebody asks.
            server.serve_forever(poll_interval=None)  # type: ignore[arg-type]


class _Collector:
    """What prometheus_client asks for the metrics, at each scrape."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def collect(self) -> Iterable[Any]:
        try:
            status = self._client.status()
            with of_our_version():
                told = metrics.text(status)
        except DaemonUnavailable:
            told = metrics.text_away()
        except CommandError as error:
            # As if it was away, or no alert would fire after an upgrade of the daemon alone.
            complain(error)
            told = metrics.text_away()
        return text_string_to_metric_families(told)

"""``uuidctl metrics``: prints the metrics for Prometheus, or serves them."""

from __future__ import annotations

import argparse
import contextlib
import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from uuidd import installing
from uuidd_client.client import Client
from uuidd_client.command import metrics
from uuidd_client.command.common import CommandError, complain, of_our_version, timeout
from uuidd_client.errors import DaemonUnavailable

if TYPE_CHECKING:
    from wsgiref.simple_server import WSGIServer

SILENCE = 10.0
"""Seconds after which a scraper that sends or reads nothing is disconnected."""


def add_to(commands: Any) -> None:
    """Add the command to an argparse parser's commands."""
    command = commands.add_parser(
        "metrics",
        help="print the metrics of the daemon for Prometheus, or serve them",
        description="Print the metrics of the daemon in the text format of Prometheus, for"
        " node_exporter's textfile collector. With --listen, serve them over HTTP until Ctrl-C.",
    )
    command.add_argument(
        "--listen",
        type=_address,
        metavar="ADDR:PORT",
        help="serve the metrics at http://ADDR:PORT/metrics, such as 127.0.0.1:9755; [::]:9755 is"
        " every address of this host",
    )
    command.set_defaults(do=_do)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isascii() and port.isdecimal() and int(port) < 1 << 16):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an address and a port, such as 127.0.0.1:9755 or [::1]:9755"
        )
    return host.removeprefix("[").removesuffix("]"), int(port)


def _do(given: argparse.Namespace) -> int:
    client = Client(given.socket, fallback=False, timeout=timeout())
    if given.listen is None:
        with of_our_version():
            print(metrics.text(client.status()), end="")
        return 0
    with _server(client, *given.listen) as server:
        host, port = server.server_address[:2]
        print(f"serving http://{host!s}:{port}/metrics", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            # None: it sleeps until somebody asks.
            server.serve_forever(poll_interval=None)  # type: ignore[arg-type]
    return 0


def _server(client: Client, host: str, port: int) -> WSGIServer:
    """Return a server of the metrics at an address. Raises CommandError."""
    # Not at the start, because all commands of uuidctl import this module.
    from wsgiref.simple_server import WSGIRequestHandler, make_server

    try:
        from prometheus_client import CollectorRegistry, make_wsgi_app
        from prometheus_client.exposition import ThreadingWSGIServer
    except ImportError as error:
        raise CommandError(
            f"--listen needs the package prometheus_client; run {installing('metrics')}"
        ) from error

    class Server(ThreadingWSGIServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    class Handler(WSGIRequestHandler):
        timeout = SILENCE

        def log_message(self, format: str, *args: Any) -> None:
            """Log no request."""

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(client))
    try:
        return make_server(host, port, make_wsgi_app(registry), Server, Handler)
    except OSError as error:
        raise CommandError(
            f"cannot listen at {host} port {port}: {error.strerror}; --listen another address"
        ) from error


class _Collector:
    """What prometheus_client asks for the metrics, at each scrape."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def describe(self) -> Iterable[Any]:
        # Or the registry would ask the daemon now.
        return ()

    def collect(self) -> Iterable[Any]:
        from prometheus_client.parser import text_string_to_metric_families

        try:
            status = self._client.status()
        except DaemonUnavailable:
            return text_string_to_metric_families(metrics.text_away())
        try:
            with of_our_version():
                return text_string_to_metric_families(metrics.text(status))
        except CommandError as error:
            complain(error)
            return ()

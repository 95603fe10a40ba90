"""``uuidctl metrics``: prints the status as metrics, in the text format of Prometheus."""

from __future__ import annotations

import argparse
import contextlib
import re
import socket
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from uuidd_client.client import Client
from uuidd_client.command.common import CommandError, client, complain, of_our_version
from uuidd_client.errors import DaemonUnavailable

SILENCE = 10.0
"""Seconds after which a scraper that sends or reads nothing is disconnected."""

UP = """\
# HELP uuidd_up Whether the daemon answers with a status that has metrics: 1 if so, 0 if not. With\
 0 all other metrics are missing.
# TYPE uuidd_up gauge
uuidd_up"""
"""The metric that is there without a daemon; its number follows."""

METRICS = """\
uuidd_info computed.info.{node}.{node_source}.{version}
    Always 1. The labels name the daemon's version and node.
uuidd_worker computed.worker.{namespace}
    This host's worker number in Snowflakes. The label is the id of the fleet, empty if the number
    was set by hand. Missing when its time is over or another host has claimed it.
uuidd_uptime_seconds uptime
    How many seconds the daemon has run.
uuidd_connections connections
    The connections that are open now.
uuidd_connections_highest connections_highest
    The most connections that were open at one time since the start.
uuidd_unreachable unreachable
    Whether the socket is no longer where programs look for it: 1 if so, 0 if not.
uuidd_saves_failing saves.failing
    Whether saves of the state fail: 1 if they do, 0 if not.
uuidd_last_save_age_seconds saves.last_age
    How many seconds ago the state was last saved. This grows while the daemon is idle. Missing
    while no save has succeeded since the start.
uuidd_last_save_seconds saves.last_seconds
    How many seconds the last save of the state took.
uuidd_save_under_way_seconds saves.under_way_seconds
    How many seconds the running save of the state has taken so far, 0 if none is running.
uuidd_volatile volatile
    Whether v1 and v6 contain a volatile (temporary, random) node, because the state cannot be saved
    or no clock sequence is free: 1 if they do, 0 if not.
uuidd_horizon_seconds utc.horizon_in
    How many seconds v1 and v6 can be given out before the state must be saved again. Negative while
    the daemon is idle: the next request then waits for a save.
uuidd_lanes_in_use utc.lanes_in_use
    How many of the 16 lanes for blocks (clock sequences of the open generation) gave out v1 or v6
    in the last second.
uuidd_clock_seq utc.clock_seq
    The clock sequence of lane 0, which most v1 and v6 contain.
uuidd_generation utc.generation
    The number of the open generation (a group of 256 clock sequences), 0 to 63.
uuidd_lag_seconds utc.lag
    How many seconds the last tick given out for v1 and v6 lies in the past.
uuidd_steady_horizon_seconds steady.horizon_in
    How many seconds the steady kinds (v7, Snowflake, ULID, ...) can be given out before the state
    must be saved again. Negative while the daemon is idle: the next request then waits for a save.
uuidd_steady_lead_seconds steady.lead
    How many seconds the steady kinds (v7, Snowflake, ULID, ...) are ahead of UTC.
uuidd_steady_max_lead_seconds steady.max_lead
    How many seconds the steady kinds may be ahead of UTC before they are refused, set by
    --max-lead.
uuidd_steady_held_seconds steady.held_for
    How many more seconds the steady kinds are held because the state was lost, 0 if they are not.
uuidd_clock_synchronised clock.synchronised
    Whether the kernel holds the clock (UTC) for synchronised: 1 if it does, 0 if not. Missing if
    the daemon may not ask the kernel.
uuidd_clock_max_error_seconds clock.max_error
    How many seconds the clock (UTC) may be wrong by, as far as the kernel knows. Missing if the
    daemon may not ask the kernel.
uuidd_clock_leap_second computed.leap_second
    Whether the kernel is to insert (1) or delete (-1) a leap second at the end of the day, 0 if
    neither. Missing if the daemon may not ask the kernel.
uuidd_clock_required_error_seconds clock.required_error
    The largest error of the clock with which the steady kinds begin after a start, set by
    --require-sync.
uuidd_steady_withheld clock.withheld
    Whether the steady kinds (v7, Snowflake, ULID, ...) are refused since the start because the
    clock is not synchronised well enough: 1 if they are, 0 if not.
uuidd_worker_missing computed.worker_missing
    Whether Snowflakes are refused because the host has no worker number of its fleet, or its time
    with it is over: 1 if so, 0 if not. Missing without a fleet.
uuidd_worker_horizon_seconds worker.until_in
    How many seconds Snowflakes can be made before the fleet's engine must confirm the worker number
    again. Missing without a fleet.
uuidd_worker_window_seconds worker.window
    How many seconds ahead the worker number is reserved by each renewal, set by --worker-window.
uuidd_worker_hold_seconds worker.hold
    How many seconds after that time a silent host keeps its worker number, set by --worker-hold.
uuidd_worker_renewed_age_seconds worker.renewed_age
    How many seconds ago the fleet's engine confirmed the worker number.
uuidd_worker_round_trip_seconds worker.round_trip_seconds
    How many seconds the last answer of the fleet's engine took.
uuidd_leases_page leases.page
    Whether the daemon can lease lanes: 1 if it can, 0 if the kernel has no page for that.
uuidd_leases leases.out
    The leases that are held now.
uuidd_leases_horizon_seconds leases.horizon_in
    How many seconds the holders of leases can make ids before the state must be saved again.
    Negative while they make none.
uuidd_leases_held_seconds leases.held_for
    How many more seconds no lease is granted, because earlier leases may have used this time, 0 if
    leases are granted.
uuidd_clone_age_seconds clones.last_age
    How many seconds ago the daemon last learned that its machine was cloned. Missing if it never
    did since the start.
uuidd_fallback_age_seconds fallback.last_age
    How many seconds ago a program last told of ids that it had made without the daemon. Missing if
    none did since the start.
uuidd_fallback_ids_total fallback.ids.{uid}
    The ids that programs have made without the daemon, as they told it when it answered again.
uuidd_requests_total requests.{dialect}.requests
    The requests that were answered or refused.
uuidd_ids_total requests.{dialect}.ids
    The ids that were given out. A tick of a block counts as an id. Ids of leases are made without
    the daemon and do not count.
uuidd_refused_total requests.{dialect}.refused.{reason}
    The requests that were refused, by reason.
uuidd_leases_refused_total leases.refused.{reason}
    The leases that were refused, by reason.
uuidd_clock_steps_total computed.steps.{direction}
    How many times UTC was set back or forward.
uuidd_openings_total utc.openings
    The changes to another generation of clock sequences, or to a volatile node and back.
uuidd_leases_granted_total leases.granted
    The leases that were granted since the start.
uuidd_leases_revoked_total leases.revoked
    The leases that the daemon ended, mostly because UTC was set back.
uuidd_leases_unpassed_total leases.unpassed
    How often the kernel did not pass the page of the leases to a client.
uuidd_clones_noticed_total clones.noticed
    The times that the daemon was told that its machine was cloned.
uuidd_clones_renewed_total clones.renewed
    The changes to another node, or to other clock sequences, after the machine was cloned. At most
    one in ten seconds is made.
uuidd_worker_claims_total worker.claims
    The worker numbers that the host has claimed in its fleet since the start.
uuidd_worker_renewals_total worker.renewals
    The renewals of the worker number that the fleet's engine has confirmed.
uuidd_worker_failures_total worker.failed
    The questions that the fleet's engine has not answered.
uuidd_worker_fenced_total worker.fenced
    The times that another host of the fleet has taken this host's worker number.
uuidd_saves_total saves.done
    The saves of the state that succeeded.
uuidd_saves_failed_total saves.failed
    The saves of the state that failed.
uuidd_connections_rejected_total connections_rejected
    The connections that were rejected because of a limit.
"""
"""The name of each other metric, and the way to its number in the status; below, the HELP text.

A name in braces is that of a label, and stands for all names there. A counter's name ends in
``_total``; all others are gauges.
"""


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
    found = re.fullmatch(r"\[?([\w.:%-]+?)\]?:([0-9]{1,5})", text, re.ASCII)
    if not found or int(found[2]) >= 1 << 16:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an address and a port, such as 127.0.0.1:9755 or [::1]:9755"
        )
    return found[1], int(found[2])


def _do(given: argparse.Namespace) -> int:
    asked = client(given.socket)
    if given.listen is not None:
        _serve(asked, *given.listen)
        return 0
    with of_our_version():
        print(text(asked.status()), end="")
    return 0


def _serve(asked: Client, host: str, port: int) -> None:
    """Serve the metrics over HTTP, until Ctrl-C."""
    # Not at the start: the other commands need no server.
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        timeout = SILENCE

        def handle(self) -> None:
            """Serve a scraper, which may break off at any time."""
            with contextlib.suppress(ConnectionError):
                super().handle()

        def do_GET(self) -> None:
            """Answer with the metrics, whatever the path is."""
            told = _scraped(asked).encode()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, format: str, *args: Any) -> None:
            """Log no request."""

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    try:
        server = Server((host, port), Handler)
    except OSError as error:
        raise CommandError(
            f"cannot listen at {host} port {port}: {error.strerror}; --listen another address"
        ) from error
    with server, contextlib.suppress(KeyboardInterrupt):
        shown = f"[{host}]" if ":" in host else host
        print(f"serving http://{shown}:{server.server_port}/metrics", flush=True)
        # By default this wakes up twice a second. With None it sleeps until a scraper asks.
        server.serve_forever(poll_interval=None)  # type: ignore[arg-type]


def _scraped(asked: Client) -> str:
    """Return the metrics now; while no daemon answers, or one of another version does, just that.

    Of another version too, or no alert would fire after an upgrade of the daemon alone.
    """
    try:
        with of_our_version():
            return text(asked.status())
    except CommandError as error:
        complain(error)
    except DaemonUnavailable:
        pass
    return f"{UP} 0\n"


def text(status: dict[str, Any]) -> str:
    """Return a status as node_exporter's textfile collector reads it.

    What has no number now is left out.
    """
    told = {**status, "computed": _computed(status)}
    entries = METRICS.replace("\n    ", " ").splitlines()
    for name in status["limits"]:
        option = f"--max-{name.replace('_', '-')}"
        entries.append(f"uuidd_limit_{name} limits.{name} The limit in force, set by {option}.")
    lines = [f"{UP} 1"]
    for entry in entries:
        name, way, about = entry.split(" ", 2)
        samples = [*_samples(told, way.split("."), [])]
        # A metric with labels is there before its first sample.
        if samples or "{" in way:
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{sample}" for sample in samples]
    return "\n".join(lines) + "\n"


def _computed(status: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers that the status does not have as such, None for those that are missing."""
    clock, worker, utc = status["clock"], status["worker"], status["utc"]
    left = worker["until_in"]
    over = left is not None and left < 0
    # No alert is to count a number that another host may have.
    own = worker["number"] is not None and not over and worker["state"] != "fenced"
    return {
        "info": {status["node"]: {status["node_source"]: {status["version"]: 1}}},
        "worker": {worker["namespace"] or "": worker["number"]} if own else {},
        "worker_missing": None if worker["window"] is None else over or left is None,
        "leap_second": None if clock["unknown"] else {None: 0, "delete": -1}.get(clock["leap"], 1),
        "steps": {"back": utc["steps_back"], "forward": utc["steps_forward"]},
    }


def _samples(found: Any, way: list[str], labels: list[str]) -> Iterator[str]:
    """Yield the labels and the number of each sample at the end of *way*."""
    if way and way[0].startswith("{"):
        for name, inner in found.items():
            value = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            yield from _samples(inner, way[1:], [*labels, f'{way[0][1:-1]}="{value}"'])
    elif way:
        yield from _samples(found[way[0]], way[1:], labels)
    elif found is not None:
        # A text says what is wrong, and is empty if nothing is.
        number = float(bool(found) if isinstance(found, str) else found)
        yield f"{{{','.join(labels)}}} {number}" if labels else f" {number}"

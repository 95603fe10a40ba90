"""What the daemon is like now, as gauges: those of a status, with their HELP texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Gauge = tuple[str, str, Any]
"""A name without its prefix, the HELP text, and the value; None for none."""


def gauges(status: dict[str, Any]) -> Iterator[Gauge]:
    """Yield the gauges of *status* that have no labels."""
    yield from _daemon(status)
    yield from _utc(status)
    yield from _steady(status)
    yield from _clock(status["clock"])
    yield from _worker(status["worker"])
    yield from _leases(status)
    yield (
        "clone_age_seconds",
        "How many seconds ago the daemon last learned that its machine was cloned. Missing if it"
        " never did since the start.",
        status["clones"]["last_age"],
    )
    for name, limit in status["limits"].items():
        option = f"--max-{name.replace('_', '-')}"
        yield f"limit_{name}", f"The limit in force, set by {option}.", limit


def _daemon(status: dict[str, Any]) -> Iterator[Gauge]:
    saves = status["saves"]
    yield "uptime_seconds", "How many seconds the daemon has run.", status["uptime"]
    yield "connections", "The connections that are open now.", status["connections"]
    yield (
        "connections_highest",
        "The most connections that were open at one time since the start.",
        status["connections_highest"],
    )
    yield (
        "unreachable",
        "Whether the socket is no longer where programs look for it: 1 if so, 0 if not.",
        int(bool(status["unreachable"])),
    )
    yield (
        "saves_failing",
        "Whether saves of the state fail: 1 if they do, 0 if not.",
        int(saves["failing"]),
    )
    yield (
        "last_save_age_seconds",
        "How many seconds ago the state was last saved. This grows while the daemon is idle.",
        saves["last_age"],
    )
    yield (
        "last_save_seconds",
        "How many seconds the last save of the state took.",
        saves["last_seconds"],
    )
    yield (
        "save_under_way_seconds",
        "How many seconds the running save of the state has taken so far, 0 if none is running.",
        saves["under_way_seconds"],
    )


def _utc(status: dict[str, Any]) -> Iterator[Gauge]:
    utc = status["utc"]
    yield (
        "volatile",
        "Whether v1 and v6 contain a volatile (temporary, random) node, because the state cannot be"
        " saved or no clock sequence is free: 1 if they do, 0 if not.",
        int(status["volatile"]),
    )
    yield (
        "horizon_seconds",
        "How many seconds v1 and v6 can be given out before the state must be saved again. Negative"
        " while the daemon is idle: the next request then waits for a save.",
        utc["horizon_in"],
    )
    yield (
        "lanes_in_use",
        "How many of the 16 lanes for blocks (clock sequences of the open generation) gave out"
        " v1 or v6 in the last second.",
        utc["lanes_in_use"],
    )
    yield (
        "clock_seq",
        "The clock sequence of lane 0, which most v1 and v6 contain.",
        utc["clock_seq"],
    )
    yield (
        "generation",
        "The number of the open generation (a group of 256 clock sequences), 0 to 63.",
        utc["generation"],
    )
    yield (
        "lag_seconds",
        "How many seconds the last tick given out for v1 and v6 lies in the past.",
        utc["lag"],
    )


def _steady(status: dict[str, Any]) -> Iterator[Gauge]:
    steady = status["steady"]
    yield (
        "steady_horizon_seconds",
        "How many seconds the steady kinds (v7, Snowflake, ULID, ...) can be given out before the"
        " state must be saved again. Negative while the daemon is idle: the next request then waits"
        " for a save.",
        steady["horizon_in"],
    )
    yield (
        "steady_lead_seconds",
        "How many seconds the steady kinds (v7, Snowflake, ULID, ...) are ahead of UTC.",
        steady["lead"],
    )
    yield (
        "steady_max_lead_seconds",
        "How many seconds the steady kinds may be ahead of UTC before they are refused, set by"
        " --max-lead.",
        steady["max_lead"],
    )
    yield (
        "steady_held_seconds",
        "How many more seconds the steady kinds are held because the state was lost, 0 if they are"
        " not.",
        steady["held_for"],
    )


def _clock(clock: dict[str, Any]) -> Iterator[Gauge]:
    known = not clock["unknown"]
    yield (
        "clock_synchronised",
        "Whether the kernel holds the clock (UTC) for synchronised: 1 if it does, 0 if not. Missing"
        " if the daemon may not ask the kernel.",
        int(clock["synchronised"]) if known else None,
    )
    yield (
        "clock_max_error_seconds",
        "How many seconds the clock (UTC) may be wrong by, as far as the kernel knows. Missing if"
        " the daemon may not ask the kernel.",
        clock["max_error"],
    )
    yield (
        "clock_leap_second",
        "Whether the kernel is to insert (1) or delete (-1) a leap second at the end of the day, 0"
        " if neither. Missing if the daemon may not ask the kernel.",
        {None: 0, "delete": -1}.get(clock["leap"], 1) if known else None,
    )
    yield (
        "clock_required_error_seconds",
        "The largest error of the clock with which the steady kinds begin after a start, set by"
        " --require-sync.",
        clock["required_error"],
    )
    yield (
        "steady_withheld",
        "Whether the steady kinds (v7, Snowflake, ULID, ...) are refused since the start because"
        " the clock is not synchronised well enough: 1 if they are, 0 if not.",
        int(bool(clock["withheld"])),
    )


def _worker(worker: dict[str, Any]) -> Iterator[Gauge]:
    leased = worker["window"] is not None
    yield (
        "worker_missing",
        "Whether Snowflakes are refused because the host has no worker number of its fleet, or its"
        " time with it is over: 1 if so, 0 if not. Missing without a fleet.",
        int(worker["until_in"] is None or worker["until_in"] < 0) if leased else None,
    )
    yield (
        "worker_horizon_seconds",
        "How many seconds Snowflakes can be made before the fleet's engine must confirm the worker"
        " number again. Missing without a fleet.",
        worker["until_in"],
    )
    yield (
        "worker_window_seconds",
        "How many seconds ahead the worker number is reserved by each renewal, set by"
        " --worker-window.",
        worker["window"],
    )
    yield (
        "worker_hold_seconds",
        "How many seconds after that time a silent host keeps its worker number, set by"
        " --worker-hold.",
        worker["hold"],
    )
    yield (
        "worker_renewed_age_seconds",
        "How many seconds ago the fleet's engine confirmed the worker number.",
        worker["renewed_age"],
    )
    yield (
        "worker_round_trip_seconds",
        "How many seconds the last answer of the fleet's engine took.",
        worker["round_trip_seconds"],
    )


def _leases(status: dict[str, Any]) -> Iterator[Gauge]:
    leases = status["leases"]
    yield (
        "leases_page",
        "Whether the daemon can lease lanes: 1 if it can, 0 if the kernel has no page for that.",
        int(leases["page"]),
    )
    yield "leases", "The leases that are held now.", leases["out"]
    yield (
        "leases_horizon_seconds",
        "How many seconds the holders of leases can make ids before the state must be saved again."
        " Negative while they make none.",
        leases["horizon_in"],
    )
    yield (
        "leases_held_seconds",
        "How many more seconds no lease is granted, because earlier leases may have used this time,"
        " 0 if leases are granted.",
        leases["held_for"],
    )

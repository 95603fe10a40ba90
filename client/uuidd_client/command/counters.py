"""What has happened since the daemon's start, as counters: those of a status, with HELP texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple


class Counter(NamedTuple):
    """A counter without its prefix: each of *samples* has a value for each label, and a number."""

    name: str
    help: str
    labels: list[str]
    samples: list[tuple[list[str], int]]


def counters(status: dict[str, Any]) -> Iterator[Counter]:
    """Yield the counters of *status*."""
    yield from _requests(status["requests"])
    leases, utc = status["leases"], status["utc"]
    yield Counter(
        "leases_refused",
        "The leases that were refused, by reason.",
        ["reason"],
        [([reason], count) for reason, count in leases["refused"].items()],
    )
    yield Counter(
        "clock_steps",
        "How many times UTC was set back or forward.",
        ["direction"],
        [(["back"], utc["steps_back"]), (["forward"], utc["steps_forward"])],
    )
    for name, help_text, count in _totals(status):
        yield Counter(name, help_text, [], [([], count)])


def _requests(requests: dict[str, Any]) -> Iterator[Counter]:
    yield Counter(
        "requests",
        "The requests that were answered or refused.",
        ["dialect"],
        [([dialect], tally["requests"]) for dialect, tally in requests.items()],
    )
    yield Counter(
        "ids",
        "The ids that were given out. A tick of a block counts as an id. Ids of leases are made"
        " without the daemon and do not count.",
        ["dialect"],
        [([dialect], tally["ids"]) for dialect, tally in requests.items()],
    )
    yield Counter(
        "refused",
        "The requests that were refused, by reason.",
        ["dialect", "reason"],
        [
            ([dialect, reason], count)
            for dialect, tally in requests.items()
            for reason, count in tally["refused"].items()
        ],
    )


def _totals(status: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Yield the name, the HELP text and the value of each counter without labels."""
    utc, saves, worker = status["utc"], status["saves"], status["worker"]
    leases, clones = status["leases"], status["clones"]
    yield (
        "openings",
        "The changes to another generation of clock sequences, or to a volatile node and back.",
        utc["openings"],
    )
    yield (
        "leases_granted",
        "The leases that were granted since the start.",
        leases["granted"],
    )
    yield (
        "leases_revoked",
        "The leases that the daemon ended, mostly because UTC was set back.",
        leases["revoked"],
    )
    yield (
        "leases_unpassed",
        "How often the kernel did not pass the page of the leases to a client.",
        leases["unpassed"],
    )
    yield (
        "clones_noticed",
        "The times that the daemon was told that its machine was cloned.",
        clones["noticed"],
    )
    yield (
        "clones_renewed",
        "The changes to another node, or to other clock sequences, after the machine was"
        " cloned. At most one in ten seconds is made.",
        clones["renewed"],
    )
    yield (
        "worker_claims",
        "The worker numbers that the host has claimed in its fleet since the start.",
        worker["claims"],
    )
    yield (
        "worker_renewals",
        "The renewals of the worker number that the fleet's engine has confirmed.",
        worker["renewals"],
    )
    yield (
        "worker_failures",
        "The questions that the fleet's engine has not answered.",
        worker["failed"],
    )
    yield (
        "worker_fenced",
        "The times that another host of the fleet has taken this host's worker number.",
        worker["fenced"],
    )
    yield "saves", "The saves of the state that succeeded.", saves["done"]
    yield "saves_failed", "The saves of the state that failed.", saves["failed"]
    yield (
        "connections_rejected",
        "The connections that were rejected because of a limit.",
        status["connections_rejected"],
    )

"""The status as people read it: one screen, aligned."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from uuidd.core.wire.methods import SAVE_SECONDS
from uuidd_client.command.lines import (
    BOLD,
    DIM,
    GREEN,
    LABEL,
    RED,
    YELLOW,
    Line,
    Span,
    barred,
    folded,
    label,
    painted,
    plain,
    row,
)

WIDTH = 100
"""Columns beyond which nothing gets clearer."""

LEAD_SECONDS = 0.01
"""UTC may step back by so much without any effect on the steady kinds."""

TICKS_A_SECOND = 10_000_000
"""Ticks of UTC in a second: the most that short blocks can hold in all."""


def rate(before: dict[str, Any], after: dict[str, Any], seconds: float) -> float | None:
    """Return the ids a second between two statuses; None if the daemon was started in between."""
    given = _ids(after) - _ids(before)
    return None if given < 0 or before["pid"] != after["pid"] else given / max(seconds, 1e-3)


def faults(status: dict[str, Any]) -> Iterator[str]:
    """Return what keeps some callers from getting the ids that they ask for, most urgent first."""
    saves, steady, clock = status["saves"], status["steady"], status["clock"]
    if status["unreachable"]:
        yield status["unreachable"]
    if saves["failing"]:
        yield f"saves of the state fail ({saves['trouble']})"
    elif saves["under_way_seconds"] > SAVE_SECONDS:
        # Too late for the requests that wait for it.
        yield f"a save of the state has taken {saves['under_way_seconds']:.1f} s so far"
    if status["volatile"]:
        yield "v1 and v6 come from a volatile node"
    lead = steady["lead"]
    worker = status["worker"]
    if worker["why"] and not _left(worker):
        yield f"Snowflakes are refused: {worker['why']}"
    if clock["withheld"]:
        yield f"the steady kinds are refused: {clock['withheld']}"
    elif steady["held_for"]:
        yield f"the state was lost, so the steady kinds are held for {steady['held_for']:.1f} s"
    elif lead > steady["max_lead"]:
        yield f"the steady kinds are refused: they are {lead:.1f} s ahead of UTC"
    elif lead > LEAD_SECONDS and steady["rollback"] in ("refuse", "wait"):
        done = "are refused" if steady["rollback"] == "refuse" else "wait"
        yield f"the steady kinds {done} until UTC, which was set back, catches up ({lead:.1f} s)"


def warnings(status: dict[str, Any]) -> Iterator[str]:
    """Return what keeps nobody from any ids yet, and will if nobody does anything about it."""
    worker = status["worker"]
    if worker["why"] and (left := _left(worker)):
        yield f"Snowflakes can be made for {left:.1f} s more: {worker['why']}"


def draw(status: dict[str, Any], rate: float | None, *, width: int, coloured: bool) -> str:
    """Return the screen, in lines of *width* columns at most.

    *rate* is the ids a second; None: not known yet.
    """
    blank: list[Line] = [[]]
    lines = [
        *_head(status, width),
        *blank,
        *_bars(status, rate, width),
        *blank,
        *_timelines(status, width),
        *_clock(status, width),
        *_leases(status, width),
        *_saves(status, width),
        *_clones(status["clones"], width),
        *blank,
        *_callers(status, width),
        *_rest(status, width),
    ]
    return painted(lines, width=width, coloured=coloured)


def _head(status: dict[str, Any], width: int) -> Iterator[Line]:
    utc, saves = status["utc"], status["saves"]
    if status["unreachable"]:
        state = Span("serving, but no program can connect", RED)
    elif status["volatile"]:
        state = Span("serving, v1 and v6 from a volatile node", RED)
    elif saves["failing"]:
        state = Span("serving, but saves fail", YELLOW)
    elif any(faults(status)):
        state = Span("serving, but not all kinds normally", YELLOW)
    else:
        state = Span("serving", GREEN)
    about = Span(f", pid {status['pid']}, up {_span(status['uptime'])}")
    yield from row(Span(f"uuidd {status['version']}", BOLD), [state, about], width)
    node = [Span(f"{_mac(status['node'])} ({plain(status['node_source'])})")]
    if status["volatile"]:
        node += [Span(", "), Span(f"in use {_mac(utc['node'])} (volatile)", RED)]
    yield from row("node", node, width)
    steady, worker = status["steady"], status["worker"]
    epoch = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=steady["epoch"])
    if worker["number"] is not None:
        said = [Span(f"{worker['number']}, Snowflakes count from {epoch.date()}")]
    elif worker["why"]:
        said = [Span("none", RED)]
    else:
        return
    if worker["until_in"] is not None:
        left = worker["until_in"]
        colour = RED if left < 0 else YELLOW if left < 0.4 * worker["window"] else ""
        time_left = f"{_span(left)} left" if left > 0 else "no time left"
        said += [Span(", "), Span(f"{worker['state']}, {time_left}", colour)]
    if worker["why"]:
        said += [Span(": "), Span(plain(worker["why"]), YELLOW)]
    yield from row("worker", said, width)


def _bars(status: dict[str, Any], rate: float | None, width: int) -> Iterator[Line]:
    size = max(5, min(30, width - LABEL - 45))
    share = 0.0 if rate is None else rate / TICKS_A_SECOND
    known = "-" if rate is None else f"{rate:,.0f} a second, {share:.1%} of 10 million"
    yield barred("ids", share, size, RED if share > 0.9 else GREEN, known)
    left = status["utc"]["horizon_in"]
    if left > 0:
        said = f"{left:.1f} s until the next save is needed"
        share = left / max(left, status["saves"]["reach_seconds"])
        yield barred("horizon", share, size, GREEN if share > 0.1 else YELLOW, said)
    elif status["volatile"] or status["saves"]["failing"]:
        yield barred("horizon", 0, size, "", "passed; requests wait for a save")
    else:
        yield barred("horizon", 0, size, "", "idle; the next request waits for a save")


def _timelines(status: dict[str, Any], width: int) -> Iterator[Line]:
    utc, steady = status["utc"], status["steady"]
    if utc["generation"] is None:
        said = Span("no generation can be opened", RED)
    else:
        lanes = _count(utc["lanes_in_use"], "lane") + " in use"
        said = Span(f"clock_seq {utc['clock_seq']}, generation {utc['generation']}, {lanes}")
    openings = Span(f", {_count(utc['openings'], 'opening')}")
    yield from row("utc", [said, openings], width)
    if status["clock"]["withheld"]:
        required = status["clock"]["required_error"]
        said = Span(f"refused until the clock is synchronised to {required:g} s", RED)
    elif steady["held_for"]:
        said = Span(f"held for {steady['held_for']:.1f} s more: the state was lost", RED)
    elif steady["lead"] > 0.001:
        said = Span(f"{steady['lead']:,.3f} s ahead of UTC", YELLOW)
    else:
        said = Span("level with UTC")
    rule = Span(f" (rollback {steady['rollback']}, max lead {steady['max_lead']:g} s)")
    yield from row("steady", [said, rule], width)


def _clock(status: dict[str, Any], width: int) -> Iterator[Line]:
    clock, utc = status["clock"], status["utc"]
    if clock["unknown"]:
        said = [Span(f"quality not known ({plain(clock['unknown'])})")]
    elif clock["synchronised"]:
        said = [Span(f"synchronised to {clock['max_error']:.3f} s")]
    else:
        said = [Span("not synchronised", YELLOW)]
    if clock["leap"]:
        said += [Span(", "), Span(_LEAPS.get(clock["leap"], "leap second"), YELLOW)]
    back, forward = (_count(utc[name], "time") for name in ("steps_back", "steps_forward"))
    said += [Span(f"; set back {back}, forward {forward}")]
    yield from row("clock", said, width)


_LEAPS = {
    "insert": "a leap second comes at the end of the day",
    "delete": "a second is left out at the end of the day",
    "now": "a leap second is inserted now",
}
"""What the kernel is about to do, in words."""


def _leases(status: dict[str, Any], width: int) -> Iterator[Line]:
    leases = status["leases"]
    numbers = f"{leases['out']} out, {leases['granted']:,} granted, {leases['revoked']:,} revoked"
    said = [Span(numbers)]
    if leases["refused"]:
        said += [Span(f", refused {_refused(leases['refused'])}")]
    if not leases["page"]:
        said = [Span("none, because there is no page; clients use blocks", YELLOW)]
    elif leases["held_for"]:
        said += [Span(", "), Span(f"held for {leases['held_for']:.1f} s more", YELLOW)]
    elif leases["unpassed"]:
        said += [Span(", "), Span(f"page not passed {leases['unpassed']:,} times", YELLOW)]
    yield from row("leases", said, width)


def _saves(status: dict[str, Any], width: int) -> Iterator[Line]:
    saves = status["saves"]
    last = f"{_span(saves['last_age'])} ago, took {saves['last_seconds'] * 1000:.1f} ms"
    said = [Span(f"{saves['done']:,} done (last {last}), {saves['failed']:,} failed")]
    if saves["failing"]:
        said += [Span(", "), Span(f"still failing: {plain(saves['trouble'])}", RED)]
    if saves["under_way_seconds"] > 1:
        said += [
            Span(", "),
            Span(f"one has taken {saves['under_way_seconds']:.1f} s so far", YELLOW),
        ]
    yield from row("saves", said, width)


def _clones(clones: dict[str, Any], width: int) -> Iterator[Line]:
    if clones["noticed"]:
        last = f"{_span(clones['last_age'])} ago, by {plain(clones['last_by'])}"
        said = f"{clones['noticed']:,} noticed (last {last})"
        yield from row("clones", [Span(said, YELLOW)], width)


def _callers(status: dict[str, Any], width: int) -> Iterator[Line]:
    numbers = f"{'requests':>13} {'ids':>18}   "
    yield [Span(" " * LABEL), Span(f"{numbers}refused", DIM)]
    for dialect, tally in status["requests"].items():
        numbers = f"{tally['requests']:>13,} {tally['ids']:>18,}   "
        refused = _refused(tally["refused"])
        parts = folded([Span(refused or "-")], width - LABEL - len(numbers))
        for number, line in enumerate(parts):
            begin = [label("" if number else dialect), Span(numbers)]
            yield [*(begin if not number else [Span(" " * (LABEL + len(numbers)))]), *line]
    limits = status["limits"]
    said = (
        f"{status['connections']:,} open (limit {limits['connections']:,}),"
        f" highest {status['connections_highest']:,},"
        f" {status['connections_rejected']:,} rejected"
    )
    yield from row("connections", [Span(said)], width)


def _refused(by_reason: dict[str, int]) -> str:
    return ", ".join(f"{count:,}~{plain(reason)}" for reason, count in by_reason.items())


def _rest(status: dict[str, Any], width: int) -> Iterator[Line]:
    limits = dict(status["limits"])
    del limits["connections"]
    # Spaces that do not fold: what belongs together stays on a line.
    common, own = [], []
    for name, value in limits.items():
        if name.endswith("_per_uid"):
            own.append(f"{name.removesuffix('_per_uid')}~{value:g}")
        elif name.endswith("_seconds"):
            common.append(f"{name.removesuffix('_seconds')}~{value:g}~s")
        else:
            common.append(f"{name.replace('_', '~')}~{value:g}")
    said = f"{', '.join(common)}; per~uid {', '.join(own)}"
    yield from row("limits", [Span(said)], width)
    kinds: dict[str, list[str]] = {}
    for kind, day in status["full_on"].items():
        kinds.setdefault(day, []).append(kind)
    days = sorted(kinds, key=lambda day: (len(day), day))
    said = ", ".join(f"{day}~{'~'.join(kinds[day])}" for day in days)
    yield from row("works until", [Span(said)], width)


def _left(worker: dict[str, Any]) -> float:
    """Return for how many seconds Snowflakes can be made with a number of a fleet."""
    return max(worker["until_in"] or 0.0, 0.0)


def _ids(status: dict[str, Any]) -> int:
    return sum(tally["ids"] for tally in status["requests"].values())


def _mac(node: str) -> str:
    digits = node.removeprefix("0x")
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2))


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}" if number == 1 else f"{number:,} {name}s"


def _span(seconds: float) -> str:
    """Return a span of time in its two largest units."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"

"""The status as people read it: one screen, aligned."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from uuidd.core.ids import nodes
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.wire.methods import SAVE_SECONDS

WIDTH = 100
"""Columns beyond which nothing gets clearer."""

LEAD_SECONDS = 0.01
"""UTC may step back by so much without any effect on the steady kinds."""

LABEL = 13
"""Columns of the labels at the left."""

DIM, RED, YELLOW, GREEN = "\x1b[2m", "\x1b[31m", "\x1b[33m", "\x1b[32m"
PLAIN = "\x1b[0m"

_BOUND = "\xa0"
"""A space at which no line is broken."""

_LEAPS = {
    "insert": "a leap second comes at the end of the day",
    "delete": "a second is left out at the end of the day",
    "now": "a leap second is inserted now",
}
"""What the kernel is about to do, in words."""


class Row(NamedTuple):
    """A row of the screen: its *label*, and a *text* of some *colour* beside it.

    Where the text needs several lines, each begins *indent* columns behind the label.
    """

    label: str
    text: str
    colour: str = ""
    indent: int = 0


def rate(before: dict[str, Any], after: dict[str, Any], seconds: float) -> float | None:
    """Return the ids a second between two statuses; None if the daemon was started in between."""
    given = sum(
        tally["ids"] - before["requests"][dialect]["ids"]
        for dialect, tally in after["requests"].items()
    )
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


def plain(text: str) -> str:
    """Return a daemon's text without characters that would move a terminal's cursor."""
    return "".join(each if each.isprintable() else "?" for each in text)


def draw(status: dict[str, Any], rate: float | None, *, width: int, coloured: bool) -> str:
    """Return the screen, in lines of *width* columns at most.

    *rate* is the ids a second; None: not known yet.
    """
    shown = []
    for label, text, colour, indent in _rows(status, rate, max(5, min(30, width - LABEL - 45))):
        lines = textwrap.wrap(
            text,
            max(width, LABEL + indent + 1),
            initial_indent=f"{label:<{LABEL}}",
            subsequent_indent=" " * (LABEL + indent),
            break_on_hyphens=False,
        )
        for line in lines or [label]:
            cut = plain(line.replace(_BOUND, " "))[:width]
            for hue, part in ((DIM, cut[:LABEL]), (colour, cut[LABEL:])):
                hidden = not (coloured and hue and part.strip())
                shown.append(part if hidden else f"{hue}{part}{PLAIN}")
            shown.append("\n")
    return "".join(shown[:-1])


def _rows(status: dict[str, Any], rate: float | None, size: int) -> Iterator[Row]:
    """Yield the rows of the screen, with bars of *size* columns."""
    wrong = list(faults(status))
    said = "serving, but not all kinds normally" if wrong else "serving"
    about = f"{status['version']}, {said}, pid {status['pid']}, up {_span(status['uptime'])}"
    yield Row("uuidd", about, RED if wrong else GREEN)
    yield from (Row("fault", fault, RED) for fault in wrong)
    yield from (Row("warning", warning, YELLOW) for warning in warnings(status))
    in_use = f", in use {_mac(status['utc']['node'])} (volatile)" if status["volatile"] else ""
    yield Row("node", f"{_mac(status['node'])} ({status['node_source']}){in_use}")
    worker = status["worker"]
    if worker["number"] is not None:
        begin = datetime.fromtimestamp(status["steady"]["epoch"] // 1000, UTC)
        fleet = worker["until_in"] is not None
        left = f", {worker['state']}, {_span(_left(worker))} left" if fleet else ""
        yield Row("worker", f"{worker['number']}, Snowflakes count from {begin.date()}{left}")
    for label, share, colour, said in (_ids(rate), _horizon(status)):
        full = round(size * min(max(share, 0.0), 1.0))
        yield Row(label, f"{'█' * full:░<{size}}  {said}", colour, indent=size + 2)
    yield Row("", "")
    yield from _sources(status)
    yield Row("", "")
    yield Row("", f"{'requests':>13} {'ids':>18}   refused", DIM)
    for dialect, tally in status["requests"].items():
        numbers = f"{tally['requests']:>13,} {tally['ids']:>18,}   "
        yield Row(dialect, numbers + (_refused(tally["refused"]) or "-"), indent=len(numbers))
    highest, rejected = status["connections_highest"], status["connections_rejected"]
    connections = f"{status['connections']:,} open, highest {highest:,}, {rejected:,} rejected"
    yield Row("connections", connections)
    limits = status["limits"].items()
    # As the options take them: with all digits, and no zero after the point.
    shown = (f"{name.replace('_', ' ')} {most:.15g}" for name, most in limits)
    yield Row("limits", _listed(shown))
    days: dict[str, list[str]] = {}
    for kind, day in status["full_on"].items():
        days.setdefault(day, [day]).append(kind)
    # A year after 9999 has a sign, and more digits.
    in_order = sorted(days, key=lambda day: (len(day), day))
    yield Row("works until", _listed(" ".join(days[day]) for day in in_order))


def _ids(rate: float | None) -> tuple[str, float, str, str]:
    """Return the label, the share, the colour and the text of the bar of ids."""
    if rate is None:
        return "ids", 0.0, GREEN, "-"
    # Short blocks can hold no more in all.
    share = rate / TICKS_PER_SECOND
    said = f"{rate:,.0f} a second, {share:.1%} of 10 million"
    return "ids", share, RED if share > 0.9 else GREEN, said


def _horizon(status: dict[str, Any]) -> tuple[str, float, str, str]:
    """Return the label, the share, the colour and the text of the bar of the horizon."""
    left, saves = status["utc"]["horizon_in"], status["saves"]
    if left > 0:
        share = left / max(left, saves["reach_seconds"])
        said = f"{left:.1f} s until the next save is needed"
        return "horizon", share, GREEN if share > 0.1 else YELLOW, said
    passed = status["volatile"] or saves["failing"]
    said = "passed; requests wait" if passed else "idle; the next request waits"
    return "horizon", 0.0, YELLOW, f"{said} for a save"


def _sources(status: dict[str, Any]) -> Iterator[Row]:
    """Yield the rows of what ids are made of, and of what happened to it."""
    utc, steady, clock, leases = (status[name] for name in ("utc", "steady", "clock", "leases"))
    said = "no generation can be opened"
    if utc["generation"] is not None:
        lanes = _count(utc["lanes_in_use"], "lane")
        said = f"clock_seq {utc['clock_seq']}, generation {utc['generation']}, {lanes} in use"
    yield Row("utc", f"{said}, {_count(utc['openings'], 'opening')}")
    lead = steady["lead"]
    said = f"{lead:,.3f} s ahead of UTC" if lead > 0.001 else "level with UTC"
    options = f"rollback {steady['rollback']}, max lead {steady['max_lead']:.15g} s"
    yield Row("steady", f"{said} ({options})")
    said = "not synchronised"
    if clock["unknown"]:
        said = f"quality not known ({clock['unknown']})"
    elif clock["synchronised"]:
        said = f"synchronised to {clock['max_error']:.3f} s"
    if clock["leap"]:
        said += f", {_LEAPS.get(clock['leap'], 'leap second')}"
    back, forward = (_count(utc[name], "time") for name in ("steps_back", "steps_forward"))
    yield Row("clock", f"{said}; set back {back}, forward {forward}")
    said = "none, because there is no page; clients use blocks"
    if leases["page"]:
        said = f"{leases['out']} out, {leases['granted']:,} granted, {leases['revoked']:,} revoked"
        if leases["refused"]:
            said += f", refused {_refused(leases['refused'])}"
        if leases["held_for"]:
            said += f", held for {leases['held_for']:.1f} s more"
        if leases["unpassed"]:
            said += f", page not passed {leases['unpassed']:,} times"
    yield Row("leases", said)
    saves, clones, fallback = status["saves"], status["clones"], status["fallback"]
    last = ""
    if saves["done"]:
        took = saves["last_seconds"] * 1000
        last = f" (last {_span(saves['last_age'])} ago, took {took:.1f} ms)"
    yield Row("saves", f"{saves['done']:,} done{last}, {saves['failed']:,} failed")
    if clones["noticed"]:
        last = f"{_span(clones['last_age'])} ago, by {clones['last_by']}"
        yield Row("clones", f"{clones['noticed']:,} noticed (last {last})")
    if by_uid := fallback["ids"]:
        told = f"{sum(by_uid.values()):,} ids made without the daemon"
        last = f"told of {_span(fallback['last_age'])} ago"
        yield Row("fallback", f"{told}, most by uid {max(by_uid, key=by_uid.__getitem__)} ({last})")


def _refused(by_reason: dict[str, int]) -> str:
    return _listed(f"{count:,} {reason}" for reason, count in by_reason.items())


def _listed(words: Iterable[str]) -> str:
    """Return a list, which is broken only between its members."""
    return ", ".join(words).replace(" ", _BOUND).replace(f",{_BOUND}", ", ")


def _left(worker: dict[str, Any]) -> float:
    """Return for how many seconds Snowflakes can be made with a number of a fleet."""
    return max(worker["until_in"] or 0.0, 0.0)


def _mac(node: str) -> str:
    return nodes.to_text(int(node, 16))


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}" if number == 1 else f"{number:,} {name}s"


def _span(seconds: float) -> str:
    """Return a span of time in its two largest units."""
    minutes, hours = int(seconds) // 60, int(seconds) // 3600
    if seconds < 60:
        return f"{seconds:.1f} s"
    if minutes < 60:
        return f"{minutes} min {int(seconds) % 60} s"
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"

"""The status as people read it: one screen, aligned."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from uuidd.core.ids import nodes
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.wire.methods import SAVE_SECONDS

WIDTH = 100
"""Columns beyond which nothing gets clearer."""

LEAD_SECONDS = 0.01
"""UTC may step back by so much without any effect on the steady kinds."""

LABEL = 13
"""Columns of the labels at the left."""

BOLD, DIM, RED, YELLOW, GREEN = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m", "\x1b[32m"
PLAIN = "\x1b[0m"

_COLOUR = re.compile(r"(\x1b\[\d+m)")

_BOUND = "\xa0"
"""A space at which no line is broken."""

_LEAPS = {
    "insert": "a leap second comes at the end of the day",
    "delete": "a second is left out at the end of the day",
    "now": "a leap second is inserted now",
}
"""What the kernel is about to do, in words."""

Row = tuple[str, str]
"""What stands at the left, and a text, which may need several lines beside it."""


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
    lines = []
    for begin, text in _rows(status, rate, size=max(5, min(30, width - LABEL - 45))):
        for line in _folded(text, width - _columns(begin)):
            lines.append(_cut(begin + line, width))
            begin = " " * _columns(begin)
    screen = "\n".join(lines).replace(_BOUND, " ")
    return screen if coloured else _COLOUR.sub("", screen)


def _rows(status: dict[str, Any], rate: float | None, *, size: int) -> Iterator[Row]:
    """Yield the rows of the screen, with bars of *size* columns."""
    yield from _head(status)
    yield "", ""
    yield from _bars(status, rate, size)
    yield "", ""
    yield _label("utc"), _utc(status["utc"])
    yield _label("steady"), _steady(status["steady"], status["clock"])
    yield _label("clock"), _clock(status["clock"], status["utc"])
    yield _label("leases"), _leases(status["leases"])
    yield _label("saves"), _saves(status["saves"])
    clones = status["clones"]
    if clones["noticed"]:
        last = f"{_span(clones['last_age'])} ago, by {plain(clones['last_by'])}"
        yield _label("clones"), _in(YELLOW, f"{clones['noticed']:,} noticed (last {last})")
    yield "", ""
    yield from _callers(status)
    yield _label("limits"), _limits(status["limits"])
    yield _label("works until"), _days(status["full_on"])


def _head(status: dict[str, Any]) -> Iterator[Row]:
    if status["unreachable"]:
        state = _in(RED, "serving, but no program can connect")
    elif status["volatile"]:
        state = _in(RED, "serving, v1 and v6 from a volatile node")
    elif status["saves"]["failing"]:
        state = _in(YELLOW, "serving, but saves fail")
    elif any(faults(status)):
        state = _in(YELLOW, "serving, but not all kinds normally")
    else:
        state = _in(GREEN, "serving")
    name = f"uuidd {status['version']}"
    about = f"{state}, pid {status['pid']}, up {_span(status['uptime'])}"
    yield _in(BOLD, f"{name:<{LABEL - 1}} "), about
    node = f"{_mac(status['node'])} ({plain(status['node_source'])})"
    if status["volatile"]:
        node += ", " + _in(RED, f"in use {_mac(status['utc']['node'])} (volatile)")
    yield _label("node"), node
    worker = status["worker"]
    if worker["number"] is not None or worker["why"]:
        yield _label("worker"), _worker(worker, status["steady"]["epoch"])


def _worker(worker: dict[str, Any], epoch: int) -> str:
    said = _in(RED, "none")
    if worker["number"] is not None:
        begin = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=epoch)
        said = f"{worker['number']}, Snowflakes count from {begin.date()}"
        left = worker["until_in"]
        if left is not None:
            colour = RED if left < 0 else YELLOW if left < 0.4 * worker["window"] else ""
            time_left = f"{_span(left)} left" if left > 0 else "no time left"
            said += ", " + _in(colour, f"{worker['state']}, {time_left}")
    if worker["why"]:
        said += ": " + _in(YELLOW, plain(worker["why"]))
    return said


def _bars(status: dict[str, Any], rate: float | None, size: int) -> Iterator[Row]:
    share, said = 0.0, "-"
    if rate is not None:
        # Short blocks can hold no more in all.
        share = rate / TICKS_PER_SECOND
        said = f"{rate:,.0f} a second, {share:.1%} of 10 million"
    yield _barred("ids", share, size, RED if share > 0.9 else GREEN, said)
    left = status["utc"]["horizon_in"]
    share, said = 0.0, "idle; the next request waits for a save"
    if left > 0:
        share = left / max(left, status["saves"]["reach_seconds"])
        said = f"{left:.1f} s until the next save is needed"
    elif status["volatile"] or status["saves"]["failing"]:
        said = "passed; requests wait for a save"
    yield _barred("horizon", share, size, GREEN if share > 0.1 else YELLOW, said)


def _barred(name: str, share: float, size: int, colour: str, said: str) -> Row:
    """Return a row with a bar of *size* columns that is full to *share*, and text beside it."""
    full = round(size * min(max(share, 0.0), 1.0))
    bar = _in(colour, "█" * full) + _in(DIM, "░" * (size - full))
    return f"{_label(name)}{bar}  ", said


def _utc(utc: dict[str, Any]) -> str:
    if utc["generation"] is None:
        said = _in(RED, "no generation can be opened")
    else:
        lanes = _count(utc["lanes_in_use"], "lane")
        said = f"clock_seq {utc['clock_seq']}, generation {utc['generation']}, {lanes} in use"
    return f"{said}, {_count(utc['openings'], 'opening')}"


def _steady(steady: dict[str, Any], clock: dict[str, Any]) -> str:
    if clock["withheld"]:
        required = clock["required_error"]
        said = _in(RED, f"refused until the clock is synchronised to {required:g} s")
    elif steady["held_for"]:
        said = _in(RED, f"held for {steady['held_for']:.1f} s more: the state was lost")
    elif steady["lead"] > 0.001:
        said = _in(YELLOW, f"{steady['lead']:,.3f} s ahead of UTC")
    else:
        said = "level with UTC"
    return f"{said} (rollback {steady['rollback']}, max lead {steady['max_lead']:g} s)"


def _clock(clock: dict[str, Any], utc: dict[str, Any]) -> str:
    if clock["unknown"]:
        said = f"quality not known ({plain(clock['unknown'])})"
    elif clock["synchronised"]:
        said = f"synchronised to {clock['max_error']:.3f} s"
    else:
        said = _in(YELLOW, "not synchronised")
    if clock["leap"]:
        said += ", " + _in(YELLOW, _LEAPS.get(clock["leap"], "leap second"))
    back, forward = (_count(utc[name], "time") for name in ("steps_back", "steps_forward"))
    return f"{said}; set back {back}, forward {forward}"


def _leases(leases: dict[str, Any]) -> str:
    if not leases["page"]:
        return _in(YELLOW, "none, because there is no page; clients use blocks")
    said = f"{leases['out']} out, {leases['granted']:,} granted, {leases['revoked']:,} revoked"
    if leases["refused"]:
        said += f", refused {_refused(leases['refused'])}"
    if leases["held_for"]:
        said += ", " + _in(YELLOW, f"held for {leases['held_for']:.1f} s more")
    elif leases["unpassed"]:
        said += ", " + _in(YELLOW, f"page not passed {leases['unpassed']:,} times")
    return said


def _saves(saves: dict[str, Any]) -> str:
    last = f"{_span(saves['last_age'])} ago, took {saves['last_seconds'] * 1000:.1f} ms"
    said = f"{saves['done']:,} done (last {last}), {saves['failed']:,} failed"
    if saves["failing"]:
        said += ", " + _in(RED, f"still failing: {plain(saves['trouble'])}")
    if saves["under_way_seconds"] > 1:
        said += ", " + _in(YELLOW, f"one has taken {saves['under_way_seconds']:.1f} s so far")
    return said


def _callers(status: dict[str, Any]) -> Iterator[Row]:
    yield _in(DIM, f"{'':<{LABEL}}{'requests':>13} {'ids':>18}   refused"), ""
    for dialect, tally in status["requests"].items():
        numbers = f"{tally['requests']:>13,} {tally['ids']:>18,}   "
        yield _label(dialect) + numbers, _refused(tally["refused"]) or "-"
    said = (
        f"{status['connections']:,} open (limit {status['limits']['connections']:,}),"
        f" highest {status['connections_highest']:,},"
        f" {status['connections_rejected']:,} rejected"
    )
    yield _label("connections"), said


def _refused(by_reason: dict[str, int]) -> str:
    return ", ".join(_bound(f"{count:,} {plain(reason)}") for reason, count in by_reason.items())


def _limits(limits: dict[str, float]) -> str:
    # Without that of the connections, which stands beside those that are open.
    common, own = [], []
    for name, value in limits.items():
        if name.endswith("_per_uid"):
            own.append(_bound(f"{name.removesuffix('_per_uid')} {value:g}"))
        elif name.endswith("_seconds"):
            common.append(_bound(f"{name.removesuffix('_seconds')} {value:g} s"))
        elif name != "connections":
            common.append(_bound(f"{name.replace('_', ' ')} {value:g}"))
    return f"{', '.join(common)}; {_bound('per uid')} {', '.join(own)}"


def _days(full_on: dict[str, str]) -> str:
    kinds: dict[str, list[str]] = {}
    for kind, day in full_on.items():
        kinds.setdefault(day, [day]).append(kind)
    days = sorted(kinds, key=lambda day: (len(day), day))
    return ", ".join(_bound(" ".join(kinds[day])) for day in days)


def _label(text: str) -> str:
    return f"{DIM}{text:<{LABEL}}{PLAIN}"


def _in(colour: str, text: str) -> str:
    """Return a text in a colour, which ends with each word, so that lines can be left out."""
    return " ".join(
        f"{colour}{word}{PLAIN}" if word and colour else word for word in text.split(" ")
    )


def _bound(text: str) -> str:
    """Return a text that stays on one line."""
    return text.replace(" ", _BOUND)


def _folded(text: str, width: int) -> list[str]:
    """Return a text in lines of *width* columns, broken at spaces."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and _columns(lines[-1]) + 1 + _columns(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _cut(line: str, width: int) -> str:
    """Return a line cut off at *width*, with all of its colours."""
    cut = ""
    for piece in _COLOUR.split(line):
        if _COLOUR.match(piece):
            cut += piece
        else:
            cut += piece[:width]
            width -= min(width, len(piece))
    return cut


def _columns(text: str) -> int:
    return len(_COLOUR.sub("", text))


def _left(worker: dict[str, Any]) -> float:
    """Return for how many seconds Snowflakes can be made with a number of a fleet."""
    return max(worker["until_in"] or 0.0, 0.0)


def _mac(node: str) -> str:
    return nodes.to_text(int(node, 16))


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

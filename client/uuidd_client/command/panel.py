"""The status as people read it: one screen, aligned."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

WIDTH = 100
"""Columns beyond which nothing gets clearer."""

TICKS_A_SECOND = 10_000_000
"""What one clock has to give, by short grants."""

LEAD = 20.0
"""Seconds from a save to its horizon, once the daemon has run for a while."""

LABEL = 12

BOLD, RED, YELLOW, GREEN, PLAIN = "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[32m", "\x1b[0m"


def rate(before: dict[str, Any], after: dict[str, Any], seconds: float) -> float | None:
    """Give the ids a second between two statuses; None if the daemon was started in between."""
    given = _ids(after) - _ids(before)
    return None if given < 0 or before["pid"] != after["pid"] else given / max(seconds, 1e-3)


def draw(status: dict[str, Any], rate: float | None, *, width: int, coloured: bool) -> str:
    """Give the screen, of lines that are *width* columns long at most."""
    paint = _Paint(coloured)
    lines = [
        *_head(status, paint),
        "",
        *_bars(status, rate, width, paint),
        "",
        *_timelines(status, paint),
        *_saves(status, paint),
        "",
        *_callers(status),
        "",
        *_rest(status, width),
    ]
    return "\n".join(lines)


class _Paint:
    """Colours text, or leaves it as it is."""

    def __init__(self, on: bool) -> None:
        self._on = on

    def __call__(self, text: str, colour: str) -> str:
        return f"{colour}{text}{PLAIN}" if self._on else text


def _head(status: dict[str, Any], paint: _Paint) -> Iterator[str]:
    utc, saves = status["utc"], status["saves"]
    if status["volatile"]:
        state = paint("serving v1 and v6 from a volatile node", RED)
    elif saves["failing"]:
        state = paint("serving, but saves fail", YELLOW)
    else:
        state = paint("serving", GREEN)
    title = paint(f"uuidd {status['version']}", BOLD)
    yield f"{title}  {state}, pid {status['pid']}, up {_span(status['uptime'])}"
    yield _row("node", f"{_mac(status['node'])} ({status['node_source']})")
    if status["volatile"]:
        yield _row("", f"in use: {_mac(utc['node'])} (volatile)")
    steady = status["steady"]
    if steady["worker"] is not None:
        epoch = datetime.fromtimestamp(steady["epoch"] // 1000, UTC).date()
        yield _row("worker", f"{steady['worker']} (Snowflakes count from {epoch})")


def _bars(status: dict[str, Any], rate: float | None, width: int, paint: _Paint) -> Iterator[str]:
    size = max(10, min(30, width - 50))
    if rate is not None:
        share = rate / TICKS_A_SECOND
        bar = paint(_bar(share, size), RED if share > 0.9 else GREEN)
        yield _row("ids", f"{bar}  {rate:,.0f} a second, {share:.1%} of 10 million")
    left = status["utc"]["horizon_in"]
    if left > 0:
        bar = paint(_bar(left / LEAD, size), GREEN if left > LEAD / 10 else YELLOW)
        yield _row("horizon", f"{bar}  {left:.1f} s left until the next save must be done")
    else:
        yield _row("horizon", f"{_bar(0, size)}  idle: the next request waits for a save")


def _timelines(status: dict[str, Any], paint: _Paint) -> Iterator[str]:
    utc, steady = status["utc"], status["steady"]
    lanes = _count(utc["lanes_in_use"], "lane") + " in use"
    if utc["generation"] is None:
        yield _row("utc", paint("no generation can be opened", RED))
    else:
        yield _row("utc", f"clock_seq {utc['clock_seq']}, generation {utc['generation']}, {lanes}")
    steps = f"UTC set back {_count(utc['regressions'], 'time')}, forward {utc['steps_forward']}"
    yield _row("", f"{_count(utc['openings'], 'opening')}; {steps}")
    if steady["held_for"]:
        said = paint(f"held back for {steady['held_for']:.1f} s: the state was lost", RED)
    elif steady["lead"] > 0.001:
        said = paint(f"{steady['lead']:.3f} s ahead of UTC", YELLOW)
    else:
        said = "level with UTC"
    most = f"{steady['max_lead']:g} s ahead at most"
    yield _row("steady", f"{said} ({steady['rollback']}, {most})")


def _saves(status: dict[str, Any], paint: _Paint) -> Iterator[str]:
    saves = status["saves"]
    last = f"last {_span(saves['last_age'])} ago in {saves['last_seconds'] * 1000:.1f} ms"
    said = f"{saves['done']} done, {last}; {saves['failed']} failed"
    if saves["failing"]:
        said += paint(f", still failing: {saves['trouble']}", RED)
    elif saves["under_way_seconds"] > 1:
        said += paint(f", one under way for {saves['under_way_seconds']:.1f} s", YELLOW)
    yield _row("saves", said)


def _callers(status: dict[str, Any]) -> Iterator[str]:
    yield _row("", f"{'requests':>16} {'ids':>20}   refused")
    for dialect, tally in status["requests"].items():
        refused = ", ".join(f"{count} {reason}" for reason, count in tally["refused"].items())
        yield _row(dialect, f"{tally['requests']:>16,} {tally['ids']:>20,}   {refused or '-'}")
    limits = status["limits"]
    yield _row(
        "connections",
        f"{status['connections']:,} open, {status['connections_highest']:,} at most so far,"
        f" {status['connections_turned_away']:,} turned away",
    )
    yield _row(
        "", f"limit {limits['connections']:,}, of one user {limits['connections_per_uid']:,}"
    )


def _rest(status: dict[str, Any], width: int) -> Iterator[str]:
    limits = {name: value for name, value in status["limits"].items() if "connections" not in name}
    words = [f"{name.replace('_', ' ')} {value:g}" for name, value in limits.items()]
    yield from _folded("limits", words, width)
    kinds: dict[str, list[str]] = {}
    for kind, day in status["full_on"].items():
        kinds.setdefault(day, []).append(kind)
    days = sorted(kinds, key=lambda day: (len(day), day))
    yield from _folded("full on", [f"{day} {' '.join(kinds[day])}" for day in days], width)


def _folded(label: str, words: list[str], width: int) -> Iterator[str]:
    """Give a row of words with commas between, on as many lines as they need."""
    line = ""
    for number, word in enumerate(words, 1):
        more = word + ("," if number < len(words) else "")
        if line and LABEL + len(line) + 1 + len(more) > width:
            yield _row(label, line)
            label, line = "", more
        else:
            line = f"{line} {more}".strip()
    yield _row(label, line)


def _row(label: str, text: str) -> str:
    return f"{label:<{LABEL}}{text}"


def _bar(share: float, size: int) -> str:
    full = round(size * min(max(share, 0.0), 1.0))
    return "\u2588" * full + "\u2591" * (size - full)


def _ids(status: dict[str, Any]) -> int:
    return sum(tally["ids"] for tally in status["requests"].values())


def _mac(node: str) -> str:
    digits = node.removeprefix("0x")
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2))


def _count(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def _span(seconds: float) -> str:
    """Give a span of time in its two largest units."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"

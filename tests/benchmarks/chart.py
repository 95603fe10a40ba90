"""The results of a machine as one drawing: ratios as bars, and round trips as curves."""

from __future__ import annotations

from html import escape
from math import ceil, floor, log10

from tests.benchmarks.rows import Curve, Row, median

WIDTH, LEFT, RIGHT, TOP = 1040, 480, 110, 56
ROW_HEIGHT, GAP = 20, 70
CURVE_LEFT, CURVE_RIGHT, CURVE_HEIGHT, LEGEND_WIDTH = 60, 40, 300, 220

# Without CSS variables, which some viewers do not know.
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.head { font-size: 15px; font-weight: 600; } text.dim { fill: #59636e; }
.back { fill: #ffffff; } .grid { stroke: #d1d9e0; } .base { stroke: #59636e; }
.met { fill: #1a7f37; } .unmet { fill: #bc4c00; } .plain { fill: #8c959f; }
.goal { stroke: #1f2328; stroke-width: 2; } .spread { stroke: #1f2328; opacity: 0.6; }
.curve { fill: none; stroke-width: 2; }
.c0 { stroke: #0969da; } .c1 { stroke: #8250df; }
.c2 { stroke: #59636e; stroke-dasharray: 5 4; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } text.dim { fill: #9198a1; }
.back { fill: #0d1117; } .grid { stroke: #3d444d; } .base { stroke: #9198a1; }
.met { fill: #3fb950; } .unmet { fill: #f0883e; } .plain { fill: #656c76; }
.goal, .spread { stroke: #e6edf3; }
.c0 { stroke: #58a6ff; } .c1 { stroke: #bc8cff; } .c2 { stroke: #9198a1; }
}
"""

CLASSES = {True: "met", False: "unmet", None: "plain"}


def drawn(rows: list[Row], curves: list[Curve]) -> str:
    """Return the text of an SVG file, for light and dark pages."""
    compared = [row for row in rows if row.ratios]
    parts: list[str] = []
    y = 0
    if compared:
        parts += _bars("How many times as fast ours is (more is better)", compared, y)
        y += TOP + ROW_HEIGHT * len(compared) + GAP
    if curves:
        parts += _curves(curves, y)
        y += TOP + CURVE_HEIGHT + GAP
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" role="img">',
            "<title>Benchmarks of uuidd</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="back" width="{WIDTH}" height="{y}"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _bars(title: str, rows: list[Row], top: int) -> list[str]:
    goals = [row.at_least for row in rows if row.at_least]
    values = [ratio for row in rows for ratio in row.ratios]
    low, high = _decades([0.5, 2.0, *goals, *values], steps=(1, 2, 5))
    scale = (WIDTH - LEFT - RIGHT) / log10(high / low)

    def x(value: float) -> float:
        return LEFT + log10(value / low) * scale

    first, last = top + TOP, top + TOP + ROW_HEIGHT * len(rows)
    parts = [_text(20, top + 28, title, "head"), _text(20, last + 40, LEGEND, "dim")]
    for tick in _ticks(low, high):
        parts.append(_line(x(tick), first - 6, x(tick), last + 4, "base" if tick == 1 else "grid"))
        parts.append(_text(x(tick), last + 18, f"{tick:g}", "dim", "middle"))
    for index, row in enumerate(rows):
        y = first + ROW_HEIGHT * index
        middle = y + ROW_HEIGHT / 2
        ratio, goal = median(row.ratios), row.at_least
        begin, end = sorted((x(1), x(ratio)))
        parts += [
            _text(LEFT - 10, middle + 4, f"{row.name} / {row.beside}", "", "end"),
            f'<rect class="{CLASSES[row.met]}" x="{begin:.1f}" y="{y + 4}" '
            f'width="{max(end - begin, 1):.1f}" height="{ROW_HEIGHT - 8}" rx="1"/>',
            _line(x(min(row.ratios)), middle, x(max(row.ratios)), middle, "spread"),
            _text(
                WIDTH - RIGHT + 8,
                middle + 4,
                f"{ratio:.2f}" + (f"  goal {goal:g}" if goal else ""),
            ),
        ]
        if goal:
            parts.append(_line(x(goal), y + 1, x(goal), y + ROW_HEIGHT - 1, "goal"))
    return parts


LEGEND = "Medians of the runs; thin line: the lowest and the highest run; upright mark: the goal."


def _curves(curves: list[Curve], top: int) -> list[str]:
    times = [time for curve in curves for time in curve.microseconds.values()]
    low, high = _decades(times, steps=(1, 10))
    first, last = top + TOP + GAP / 4, top + TOP + CURVE_HEIGHT
    percentiles = sorted({p for curve in curves for p in curve.microseconds})
    width = WIDTH - CURVE_LEFT - CURVE_RIGHT

    def x(percentile: float) -> float:
        return CURVE_LEFT + _nines(percentile) / _nines(percentiles[-1]) * width

    def y(time: float) -> float:
        return last - log10(time / low) / log10(high / low) * (last - first)

    title = "How long a round trip takes: microseconds by percentile"
    parts = [_text(20, top + 28, title, "head")]
    for tick in _ticks(low, high, steps=(1,)):
        parts.append(_line(CURVE_LEFT, y(tick), WIDTH - CURVE_RIGHT, y(tick), "grid"))
        parts.append(_text(CURVE_LEFT - 8, y(tick) + 4, f"{tick:,g}", "dim", "end"))
    for percentile in (p for p in percentiles if p in (1, 50, 90, 95, 99, 99.9, 99.99)):
        parts.append(_line(x(percentile), first, x(percentile), last, "grid"))
        parts.append(_text(x(percentile), last + 18, f"{percentile:g} %", "dim", "middle"))
    for index, curve in enumerate(curves):
        points = " ".join(f"{x(p):.1f},{y(t):.1f}" for p, t in sorted(curve.microseconds.items()))
        legend = 20 + LEGEND_WIDTH * index
        parts += [
            f'<polyline class="curve c{index % 3}" points="{points}"/>',
            f'<path class="curve c{index % 3}" d="M{legend} {top + 48}h28"/>',
            _text(legend + 36, top + 52, curve.name),
        ]
    return parts


def _nines(percentile: float) -> float:
    """Return a position that has as much room for 99 to 99.9 as for 90 to 99."""
    return -log10(1 - percentile / 100)


def _decades(values: list[float], *, steps: tuple[int, ...]) -> tuple[float, float]:
    """Return the ends of a logarithmic scale that has room for all *values*."""
    ticks = [
        float(f"{step}e{power}")
        for power in range(floor(log10(min(values))), ceil(log10(max(values))) + 1)
        for step in steps
    ]
    low = max(tick for tick in ticks if tick <= min(values))
    return low, min(tick for tick in ticks if tick >= max(values))


def _ticks(low: float, high: float, steps: tuple[int, ...] = (1, 2, 5)) -> list[float]:
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    ticks = (float(f"{step}e{power}") for power in powers for step in steps)
    return [tick for tick in ticks if low <= tick <= high]


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">'
        f"{escape(text, quote=False)}</text>"
    )


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line class="{style}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'

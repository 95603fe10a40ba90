"""The ratios of a machine's results as bars, in one drawing."""

from __future__ import annotations

from html import escape
from math import ceil, floor, log10

from tests.benchmarks.rows import Row, median

WIDTH, LEFT, RIGHT, TOP = 1040, 480, 110, 56
ROW_HEIGHT, GAP = 20, 70

# Without CSS variables, which some viewers do not know.
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.head { font-size: 15px; font-weight: 600; } text.dim { fill: #59636e; }
.back { fill: #ffffff; } .grid { stroke: #d1d9e0; } .base { stroke: #59636e; }
.met { fill: #1a7f37; } .unmet { fill: #bc4c00; } .plain { fill: #8c959f; }
.goal { stroke: #1f2328; stroke-width: 2; } .spread { stroke: #1f2328; opacity: 0.6; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } text.dim { fill: #9198a1; }
.back { fill: #0d1117; } .grid { stroke: #3d444d; } .base { stroke: #9198a1; }
.met { fill: #3fb950; } .unmet { fill: #f0883e; } .plain { fill: #656c76; }
.goal, .spread { stroke: #e6edf3; }
}
"""

TITLE = "How many times as fast ours is (more is better)"
LEGEND = "Medians of the runs; thin line: the lowest and the highest run; upright mark: the goal."

CLASSES = {True: "met", False: "unmet", None: "plain"}


def drawn(rows: list[Row]) -> str:
    """Return the text of an SVG file, for light and dark pages."""
    rows = [row for row in rows if row.ratios]
    ticks = _ticks(
        [0.5, 2.0, *(row.at_least or 1 for row in rows), *(r for row in rows for r in row.ratios)]
    )
    scale = (WIDTH - LEFT - RIGHT) / log10(ticks[-1] / ticks[0])

    def x(value: float) -> float:
        return LEFT + log10(value / ticks[0]) * scale

    last = TOP + ROW_HEIGHT * len(rows)
    parts = [_text(20, 28, TITLE, "head"), _text(20, last + 40, LEGEND, "dim")]
    for tick in ticks:
        parts.append(_line(x(tick), TOP - 6, x(tick), last + 4, "base" if tick == 1 else "grid"))
        parts.append(_text(x(tick), last + 18, f"{tick:g}", "dim", "middle"))
    for index, row in enumerate(rows):
        y = TOP + ROW_HEIGHT * index
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
    height = last + GAP
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
            "<title>Benchmarks of uuidd</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="back" width="{WIDTH}" height="{height}"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _ticks(values: list[float]) -> list[float]:
    """Return the ticks of a logarithmic scale that has room for all *values*."""
    powers = range(floor(log10(min(values))), ceil(log10(max(values))) + 1)
    ticks = [float(f"{step}e{power}") for power in powers for step in (1, 2, 5)]
    low = max(tick for tick in ticks if tick <= min(values))
    high = min(tick for tick in ticks if tick >= max(values))
    return [tick for tick in ticks if low <= tick <= high]


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">'
        f"{escape(text, quote=False)}</text>"
    )


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line class="{style}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'

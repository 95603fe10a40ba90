"""The lines of a screen: text in colours, folded and cut to a width."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

LABEL = 13
"""Columns of the labels at the left."""

BOLD, DIM, RED, YELLOW, GREEN = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m", "\x1b[32m"
PLAIN = "\x1b[0m"


class Span(NamedTuple):
    """A piece of text and its colour, "" for none."""

    text: str
    colour: str = ""


Line = list[Span]


def painted(lines: Iterable[Line], *, width: int, coloured: bool) -> str:
    """Return the text of *lines*, each cut off at *width*."""
    return "\n".join(_painted(_cut(line, width), coloured) for line in lines)


def barred(name: str, share: float, size: int, colour: str, said: str) -> Line:
    """Return a label, a bar of *size* columns that is full to *share*, and text."""
    full = round(size * min(max(share, 0.0), 1.0))
    bar = [Span("\u2588" * full, colour), Span("\u2591" * (size - full), DIM)]
    return [label(name), *bar, Span(f"  {said}")]


def row(name: str | Span, spans: list[Span], width: int) -> Iterator[Line]:
    """Return a label and text, on as many lines as the text needs."""
    begin = name if isinstance(name, Span) else label(name)
    gap = Span(" " * max(LABEL - len(begin.text), int(isinstance(name, Span))))
    for number, line in enumerate(folded(spans, width - len(begin.text + gap.text))):
        yield [begin, gap, *line] if not number else [Span(" " * LABEL), *line]


def label(text: str) -> Span:
    """Return a label, as wide as all are."""
    return Span(f"{text:<{LABEL}}", DIM)


def folded(spans: list[Span], width: int) -> Iterator[Line]:
    """Return text in lines of *width* columns, broken at spaces; a ~ is a space without a break."""
    line: Line = []
    used = 0
    for span in spans:
        for number, word in enumerate(span.text.split(" ")):
            # The first goes on with the word before it, which was of another colour.
            gap = " " if number and used else ""
            if used and used + len(gap) + len(word) > width:
                yield line
                line, used, gap = [], 0, ""
            line.append(Span(gap + word.replace("~", " "), span.colour))
            used += len(gap) + len(word)
    yield line


def plain(text: str) -> str:
    """Return a daemon's text without characters that would move a terminal's cursor."""
    return "".join(each if each.isprintable() and each != "~" else "?" for each in text)


def _cut(line: Line, width: int) -> Line:
    """Return a line cut off at *width*."""
    cut: Line = []
    for span in line:
        cut.append(Span(span.text[: max(width, 0)], span.colour))
        width -= len(span.text)
    return cut


def _painted(line: Line, coloured: bool) -> str:
    text = "".join(
        f"{span.colour}{span.text}{PLAIN}" if coloured and span.colour and span.text else span.text
        for span in line
    )
    return text.rstrip()

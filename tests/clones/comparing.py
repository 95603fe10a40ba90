"""Which ids of two clones came twice, by the lines that their programs have sent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tests.clones.machine import Line


class Id(NamedTuple):
    """An id: *by* what it was made, of what *kind*, and its *text*."""

    by: str
    kind: str
    text: str


class Turn(NamedTuple):
    """What a program has drawn in a row, and when that was received.

    *noticed* is whether the daemon had noticed a clone before.
    """

    number: int
    at: float
    noticed: bool
    ids: list[Id]


class Row(NamedTuple):
    """How many ids of one kind were drawn before the daemon noticed the clone, and after it.

    *last* is when the last of those came that are in both, in seconds after the resume, or None.
    """

    by: str
    kind: str
    drawn: int
    in_both: int
    last: float | None
    drawn_after: int
    in_both_after: int


def turns(lines: Iterable[Line], client: str) -> list[Turn]:
    """Return the turns of a program, whose implementation of the client is *client*.

    Raises ValueError if a line is no turn. The first may be the rest of one.
    """
    found = []
    for number, line in enumerate(lines):
        if not number and not line.text.startswith("{"):
            continue
        try:
            said = json.loads(line.text)
            ids = [
                Id(by, kind, text)
                for by, name in ((f"client, {client}", "client"), ("daemon", "daemon"))
                for kind, texts in said[name].items()
                for text in texts
            ]
            found.append(Turn(said["turn"], line.at, said["noticed"], ids))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a turn: {line.text[:200]!r}") from error
    return found


def resumed(original: Sequence[Turn], clone: Iterable[Turn]) -> list[Turn]:
    """Return the turns that a clone has begun after it was resumed.

    It may have drawn those of one turn before, which the machine that it is a copy of did not send.
    """
    last = original[-1].number if original else -1
    return [turn for turn in clone if turn.number > last + 1]


def rows(original: Iterable[Turn], clones: Mapping[float, Sequence[Turn]]) -> list[Row]:
    """Return a row for each kind of each maker, where *clones* are the turns by when they resumed.

    An id is in both if it came twice anywhere: also in one clone, or in the original.
    """
    times = Counter(
        (each.kind, each.text)
        for some in (original, *clones.values())
        for turn in some
        for each in turn.ids
    )
    found: dict[tuple[str, str], Row] = {}
    for begun, some in clones.items():
        for turn in some:
            for by, kind, text in turn.ids:
                row = found.setdefault((by, kind), Row(by, kind, 0, 0, None, 0, 0))
                twice = times[kind, text] > 1
                if turn.noticed:
                    row = row._replace(
                        drawn_after=row.drawn_after + 1, in_both_after=row.in_both_after + twice
                    )
                else:
                    last = max(row.last or 0.0, turn.at - begun) if twice else row.last
                    row = row._replace(drawn=row.drawn + 1, in_both=row.in_both + twice, last=last)
                found[by, kind] = row
    return [found[key] for key in sorted(found)]


def nodes(some: Iterable[Turn], *, noticed: bool) -> set[str]:
    """Return the nodes of the v1 in these turns; if *noticed*, in those after the notice."""
    return {
        each.text.rpartition("-")[2]
        for turn in some
        if turn.noticed or not noticed
        for each in turn.ids
        if each.kind == "v1"
    }


def table(found: Iterable[Row]) -> str:
    """Return *rows* as a table of Markdown."""
    lines = [
        "| by | kind | before: drawn | in both | the last after, s | after: drawn | in both |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for row in found:
        last = "" if row.last is None else f"{row.last:.2f}"
        lines.append(
            f"| {row.by} | {row.kind} | {row.drawn} | {row.in_both} | {last}"
            f" | {row.drawn_after} | {row.in_both_after} |"
        )
    return "\n".join(lines)

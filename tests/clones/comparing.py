"""Which ids of two clones came twice, by the lines that their programs have sent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tests.clones.machine import Line


class Id(NamedTuple):
    """An id: *by* what it was made, of what *kind*, and its *text*."""

    by: str
    kind: str
    text: str


class Turn(NamedTuple):
    """What a program has drawn in a row; *noticed*: the daemon had noticed a clone before."""

    number: int
    noticed: bool
    ids: list[Id]


class Row(NamedTuple):
    """How many ids of one kind were drawn before the daemon noticed the clone, and after it."""

    by: str
    kind: str
    drawn: int
    in_both: int
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
            found.append(Turn(said["turn"], said["noticed"], ids))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a turn: {line.text[:200]!r}") from error
    return found


def resumed(original: Sequence[Turn], clone: Iterable[Turn]) -> list[Turn]:
    """Return the turns that a clone has begun after it was resumed.

    It may have drawn those of one turn before, which the machine that it is a copy of did not send.
    """
    last = original[-1].number if original else -1
    return [turn for turn in clone if turn.number > last + 1]


def rows(original: Iterable[Turn], clones: Sequence[Turn]) -> list[Row]:
    """Return a row for each kind of each maker, from the turns of the original and of all clones.

    An id is in both if it came twice anywhere: also in one clone, or in the original.
    """
    times = Counter((each.kind, each.text) for turn in (*original, *clones) for each in turn.ids)
    drawn, twice = Counter[tuple[str, str, bool]](), Counter[tuple[str, str, bool]]()
    for turn in clones:
        for by, kind, text in turn.ids:
            drawn[by, kind, turn.noticed] += 1
            twice[by, kind, turn.noticed] += times[kind, text] > 1
    return [
        Row(by, kind, *(some[by, kind, late] for late in (False, True) for some in (drawn, twice)))
        for by, kind in sorted({(by, kind) for by, kind, _ in drawn})
    ]


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
        "| by | kind | before: drawn | in both | after: drawn | in both |",
        "|---|---|---:|---:|---:|---:|",
        *(f"| {' | '.join(map(str, row))} |" for row in found),
    ]
    return "\n".join(lines)

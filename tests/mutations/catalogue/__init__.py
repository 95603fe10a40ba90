"""All the ways in which the code is broken: those in the files beside this one.

An entry is what stands between two empty lines::

    NAME: WHY
    in FUNCTION
      code that stays
    - code that is taken away
    + code that is put in its place
    seen by TEST

It may name several tests, each in a line. The files begin with a comment.
"""

from __future__ import annotations

from pathlib import Path

from tests.mutations.mutation import Mutation


def read(text: str) -> list[Mutation]:
    """Return the entries in *text*. Raises ValueError for a line that is no part of one."""
    entries = [entry.splitlines() for entry in text.strip("\n").split("\n\n")]
    return [_entry(lines) for lines in entries if not lines[0].startswith("#")]


def _entry(lines: list[str]) -> Mutation:
    name, _, why = lines[0].partition(": ")
    found: dict[str, list[str]] = {"in ": [], "  ": [], "- ": [], "+ ": [], "seen by ": []}
    old: list[str] = []
    new: list[str] = []
    for line in lines[1:]:
        begin = next((begin for begin in found if line.startswith(begin)), None)
        if begin is None:
            raise ValueError(f"{name}: {line!r} is no line of an entry")
        code = line.removeprefix(begin)
        found[begin].append(code)
        if begin in ("  ", "- "):
            old.append(code)
        if begin in ("  ", "+ "):
            new.append(code)
    (function,) = found["in "]
    return Mutation(name, why, function, "\n".join(old), "\n".join(new), tuple(found["seen by "]))


MUTATIONS = [
    mutation
    for path in sorted(Path(__file__).parent.glob("*.txt"))
    for mutation in read(path.read_text())
]

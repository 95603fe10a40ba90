"""A mutation: one way to break the code, and the tests that should see it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Mutation(NamedTuple):
    """In *file*, *old*, which it holds exactly once, becomes *new*; one of *tests* then fails.

    *why* says what goes wrong for users. *tests* are files or single tests, as pytest takes them;
    the fastest come first, for the first that fails ends the run.
    """

    name: str
    why: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def apply(mutation: Mutation, tree: Path) -> None:
    """Break the copy in *tree*. What was compiled of the file is removed with it."""
    path = tree / mutation.file
    path.write_text(path.read_text().replace(mutation.old, mutation.new))
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def faults(mutations: list[Mutation], tree: Path) -> list[str]:
    """Give what is wrong with the mutations themselves: each is a line for people."""
    found = []
    names = [mutation.name for mutation in mutations]
    for mutation in mutations:
        path = tree / mutation.file
        times = path.read_text().count(mutation.old) if path.is_file() else 0
        if times != 1:
            found.append(f"{mutation.name}: its text is {times} times in {mutation.file}, not once")
        if mutation.old == mutation.new:
            found.append(f"{mutation.name}: it changes nothing")
        if names.count(mutation.name) != 1:
            found.append(f"{mutation.name}: another has the same name")
        found += [
            f"{mutation.name}: there is no {test}"
            for test in mutation.tests
            if not (tree / test.partition("::")[0]).is_file()
        ]
    return found

"""``python -m tests.benchmarks.quote``: copy results.json into both READMEs.

``python -m tests.benchmarks`` does so after a whole run. The command is for a results.json that was
edited by hand.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from statistics import median

from tests.benchmarks import record
from tests.benchmarks.record import Record
from tests.benchmarks.rows import Row, number

HERE = Path(__file__).parent

BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"

SHORT = {
    ("uuid1()", "stdlib uuid1() with C uuidd"): (
        "`uuid1()`",
        "Python's own `uuid.uuid1()`, with util-linux's daemon",
    ),
    ("uuid7()", "uuid_utils.compat.uuid7()"): (
        "`uuid7()`",
        "the library uuid_utils.compat, in Rust, for a `uuid.UUID`",
    ),
    ("uuid7()", "uuid_utils.uuid7(), own type"): (
        "`uuid7()`",
        "the library uuid_utils, in Rust, for an object of its own type",
    ),
    ("libuuid op 2, 8 clients", "C uuidd op 2"): (
        "the daemon, 8 clients, one UUID per request of libuuid",
        "util-linux's daemon, one UUID per request",
    ),
}
"""The rows that the README at the top shows, and what it calls both sides."""


HEAD = (
    *("uuidd", "compared with", "uuidd's figure", "the other's", "unit"),
    *("lowest", "median", "highest", "in Python", "depends on the machine"),
)

IN_PYTHON = ", in Python"
"""In the name of a row: the client does without its C extension."""


def pages(found: Record) -> dict[Path, str]:
    """Return what each README that shows figures has to contain for the results.

    Raises KeyError when a row is missing, and ValueError when a README has no place for figures.
    """
    readmes = {HERE.parents[1] / "README.md": shortest(found), HERE / "README.md": whole(found)}
    return {readme: replaced(readme.read_text(), text) for readme, text in readmes.items()}


def shortest(found: Record) -> str:
    """Return a table of a few rows, with the lowest ratio of any run."""
    rows = {(row.name, row.beside): row for row in found.rows}
    lines = [
        _line(ours, theirs, f"{min(rows[key].ratios):.2f}", "yes" * rows[key].depends)
        for key, (ours, theirs) in SHORT.items()
    ]
    head = _line("uuidd", "compared with", "times as fast", "depends on the machine")
    return "\n".join([head, "|---|---|---|---|", *lines, ""])


def whole(found: Record) -> str:
    """Return tables of all rows, and how they were measured.

    A row in Python is a column of the row in C.
    """
    in_python = {
        (row.name.removesuffix(IN_PYTHON), row.beside): f"{min(row.ratios):.2f}"
        for row in found.rows
        if IN_PYTHON in row.name and row.ratios
    }
    beside = [row for row in found.rows if row.ratios and IN_PYTHON not in row.name]
    return "\n".join(
        [
            _line(*HEAD),
            f"|{'---|' * len(HEAD)}",
            *(_compared(row, in_python.get((row.name, row.beside), "")) for row in beside),
            "",
            _line("uuidd alone", "figure", "unit", "goal"),
            "|---|---|---|---|",
            *(
                _line(_code(row.name), number(median(row.ours)), row.unit, row.goal)
                for row in found.rows
                if not row.ratios
            ),
            "",
            _described(found),
            "",
        ]
    )


def replaced(readme: str, figures: str) -> str:
    """Return *readme* with other figures. Raises ValueError when it has no place for them."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the README has no lines {BEGIN.strip()} and {END.strip()}")
    return before + begin + figures + end + after


def _compared(row: Row, in_python: str) -> str:
    ratios = min(row.ratios), median(row.ratios), max(row.ratios)
    return _line(
        _code(row.name),
        _code(row.beside),
        number(median(row.ours)),
        number(median(row.theirs)),
        row.unit,
        *(f"{each:.2f}" for each in ratios),
        in_python,
        "yes" * row.depends,
    )


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _code(name: str) -> str:
    return f"`{name}`" if re.fullmatch(r"[\w.]+\(.*\)", name) else name


def _described(found: Record) -> str:
    run = found.run
    parts = [
        f"{found.hardware}; {found.kernel}",
        f"{run['implementation']} {run['python']} on {run['cores']} cores",
        f"the client in {run['client']}",
        f"{run['runs']} run{'s' if run['runs'] > 1 else ''} of {run['rounds']} rounds",
        f"load {run['load_before']:g} before",
        ", ".join(f"{name} {version}" for name, version in run["peers"].items()),
    ]
    return f"Measured on: {'; '.join(parts)}."


def main() -> int:
    """Rewrite the READMEs."""
    for path, text in pages(record.load(record.FILE.read_text())).items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

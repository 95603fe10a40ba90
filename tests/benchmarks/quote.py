"""``python -m tests.benchmarks.quote``: copy results.json into both READMEs, and draw results.svg.

``python -m tests.benchmarks`` does so after a whole run. The command is for a results.json that was
edited by hand.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.benchmarks import chart, record
from tests.benchmarks.record import Machine
from tests.benchmarks.rows import Row, median, number

HERE = Path(__file__).parent
DRAWING = HERE / "results.svg"

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
    *("lowest", "median", "highest", "in Python"),
)

IN_PYTHON = ", in Python"
"""In the name of a row: the client does without its C extension."""


def pages(machines: list[Machine]) -> dict[Path, str]:
    """Return what each file that shows figures has to contain for the results.

    Raises KeyError when a row is missing, and ValueError when a README has no place for figures.
    """
    readmes = {
        HERE.parents[1] / "README.md": shortest(machines),
        HERE / "README.md": whole(machines),
    }
    return {
        **{readme: replaced(readme.read_text(), text) for readme, text in readmes.items()},
        DRAWING: chart.drawn(machines[0].rows),
    }


def shortest(machines: list[Machine]) -> str:
    """Return a table of a few rows, with the lowest ratio of any run on any machine."""
    ratios = _ratios(machines)
    depends = {(row.name, row.beside) for row in machines[0].rows if row.depends}
    return "\n".join(
        [
            "| uuidd | compared with | times as fast | depends on the machine |",
            "|---|---|---|---|",
            *(
                f"| {ours} | {theirs} | {min(ratios[row]):.2f} | {'yes' * (row in depends)} |"
                for row, (ours, theirs) in SHORT.items()
            ),
            "",
        ]
    )


def whole(machines: list[Machine]) -> str:
    """Return tables of the rows that hold on all machines, and what was measured where.

    The figures and the median are those of the first machine; the range is that of all machines. A
    row in Python is a column of the row in C.
    """
    ratios = _ratios(machines)
    rows = [row for row in machines[0].rows if not row.depends]
    in_python = {
        (row.name.replace(IN_PYTHON, ""), row.beside): min(ratios[row.name, row.beside])
        for row in rows
        if IN_PYTHON in row.name and row.ratios
    }
    compared = [row for row in rows if row.ratios and IN_PYTHON not in row.name]
    return "\n".join(
        [
            f"| {' | '.join(HEAD)} |",
            f"|{'---|' * len(HEAD)}",
            *(
                _compared(row, ratios[row.name, row.beside], in_python.get((row.name, row.beside)))
                for row in compared
            ),
            "",
            "| uuidd alone | figure | unit | goal |",
            "|---|---|---|---|",
            *(_alone(row) for row in rows if not row.ratios),
            "",
            *(_described(machine) for machine in machines),
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


def _ratios(machines: list[Machine]) -> dict[tuple[str, str], list[float]]:
    found: dict[tuple[str, str], list[float]] = {}
    for row in (row for machine in machines for row in machine.rows):
        found.setdefault((row.name, row.beside), []).extend(row.ratios)
    return found


def _compared(row: Row, everywhere: list[float], in_python: float | None) -> str:
    spread = (min(everywhere), median(row.ratios), max(everywhere))
    figures = (number(median(row.ours)), number(median(row.theirs)), row.unit)
    cells = (_code(row.name), _code(row.beside), *figures, *(f"{ratio:.2f}" for ratio in spread))
    return f"| {' | '.join((*cells, '' if in_python is None else f'{in_python:.2f}'))} |"


def _alone(row: Row) -> str:
    return f"| {_code(row.name)} | {number(median(row.ours))} | {row.unit} | {row.goal} |"


def _code(name: str) -> str:
    return f"`{name}`" if re.fullmatch(r"[\w.]+\(.*\)(\[0\]\.fields)?", name) else name


def _described(machine: Machine) -> str:
    run = machine.run
    parts = [f"{machine.hardware}; {machine.kernel}"]
    if run:
        peers = ", ".join(f"{name} {version}" for name, version in run["peers"].items())
        parts += [
            f"{run['implementation']} {run['python']} on {run['cores']} cores",
            *([f"the client in {run['client']}"] if "client" in run else []),
            f"{run['runs']} run{'s' if run['runs'] > 1 else ''} of {run['rounds']} rounds",
            f"load {run['load_before']:g} before",
            peers,
        ]
    return f"* Machine {machine.name}: " + "; ".join([*parts, *filter(None, [machine.note])]) + "."


def main() -> int:
    """Rewrite the READMEs and the drawing."""
    for path, text in pages(record.load(record.FILE.read_text())).items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

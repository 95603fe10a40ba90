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
from tests.benchmarks.record import Machine
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


def pages(machines: list[Machine]) -> dict[Path, str]:
    """Return what each README that shows figures has to contain for the results.

    Raises KeyError when a row is missing, and ValueError when a README has no place for figures.
    """
    readmes = {
        HERE.parents[1] / "README.md": shortest(machines),
        HERE / "README.md": whole(machines),
    }
    return {readme: replaced(readme.read_text(), text) for readme, text in readmes.items()}


def shortest(machines: list[Machine]) -> str:
    """Return a table of a few rows, with the lowest ratio of any run on any machine."""
    ratios = _ratios(machines)
    depends = {(row.name, row.beside) for row in machines[0].rows if row.depends}
    return "\n".join(
        [
            _line("uuidd", "compared with", "times as fast", "depends on the machine"),
            "|---|---|---|---|",
            *(
                _line(ours, theirs, f"{min(ratios[row]):.2f}", "yes" * (row in depends))
                for row, (ours, theirs) in SHORT.items()
            ),
            "",
        ]
    )


def whole(machines: list[Machine]) -> str:
    """Return tables of all rows of the first machine, and what was measured where.

    The figures and the median are those of the first machine; the range is that of all machines. A
    row in Python is a column of the row in C.
    """
    ratios = _ratios(machines)
    rows = [row for row in machines[0].rows if IN_PYTHON not in row.name or not row.ratios]
    return "\n".join(
        [
            _line(*HEAD),
            f"|{'---|' * len(HEAD)}",
            *(_compared(row, ratios) for row in rows if row.ratios),
            "",
            _line("uuidd alone", "figure", "unit", "goal"),
            "|---|---|---|---|",
            *(
                _line(_code(row.name), number(median(row.ours)), row.unit, row.goal)
                for row in rows
                if not row.ratios
            ),
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


Ratios = dict[tuple[str, str], list[float]]


def _ratios(machines: list[Machine]) -> Ratios:
    found: Ratios = {}
    for row in (row for machine in machines for row in machine.rows):
        found.setdefault((row.name, row.beside), []).extend(row.ratios)
    return found


def _compared(row: Row, ratios: Ratios) -> str:
    everywhere = ratios[row.name, row.beside]
    in_python = ratios.get((row.name + IN_PYTHON, row.beside))
    return _line(
        _code(row.name),
        _code(row.beside),
        number(median(row.ours)),
        number(median(row.theirs)),
        row.unit,
        *(f"{each:.2f}" for each in (min(everywhere), median(row.ratios), max(everywhere))),
        f"{min(in_python):.2f}" if in_python else "",
        "yes" * row.depends,
    )


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _code(name: str) -> str:
    return f"`{name}`" if re.fullmatch(r"[\w.]+\(.*\)", name) else name


def _described(machine: Machine) -> str:
    run = machine.run
    parts = [f"{machine.hardware}; {machine.kernel}"]
    if run:
        peers = ", ".join(f"{name} {version}" for name, version in run["peers"].items())
        parts += [
            f"{run['implementation']} {run['python']} on {run['cores']} cores",
            f"the client in {run['client']}",
            f"{run['runs']} run{'s' if run['runs'] > 1 else ''} of {run['rounds']} rounds",
            f"load {run['load_before']:g} before",
            peers,
        ]
    return f"* Machine {machine.name}: " + "; ".join([*parts, *filter(None, [machine.note])]) + "."


def main() -> int:
    """Rewrite the READMEs."""
    for path, text in pages(record.load(record.FILE.read_text())).items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

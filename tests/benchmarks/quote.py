"""``python -m tests.benchmarks.quote``: copy figures from results.json into the README beside it.

The README quotes one run and nothing else, so that what it says of speed was measured together.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.benchmarks.table import number

RESULTS = Path(__file__).with_name("results.json")
README = Path(__file__).with_name("README.md")

BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"

COMPARED = (
    "uuid1() / stdlib uuid1() with C uuidd",
    "uuid1() / stdlib uuid1(), no daemon",
    "uuid1() / stdlib uuid4() with C uuidd",
    "uuid1() / uuid_utils.compat.uuid1()",
    "uuid1() / fastuuid.uuid1(), own type",
    "uuid7() / uuid_utils.compat.uuid7()",
    "uuid7() / uuid6.uuid7()",
    'next(client.iter("v1", form="text")) / str(stdlib uuid1()) with C uuidd',
    'next(client.iter("v1", form="text")) / str(uuid_utils.uuid1())',
    'make("v1", 1000) / fastuuid.uuid4_bulk(1000)',
    'make("v1", 1000, form="text"), in bursts / fastuuid.uuid4_as_strings_bulk(1000)',
    "ulid() / str(ulid.ULID())",
    "ksuid() / str(ksuid.Ksuid())",
    "snowflake() / snowflake-id",
    "8 processes, uuid1() / stdlib with C uuidd",
    "64 processes, uuid1() / stdlib with C uuidd",
    "rpc take / C uuidd op 2, 1 client",
    "rpc take / C uuidd op 2, 8 clients",
    "rpc take / C uuidd op 2, 64 clients",
    "libuuid op 2 / C uuidd op 2, 8 clients",
    "stdlib uuid1() through our daemon / C uuidd",
    "4 C loops through our daemon / C uuidd",
)
"""The rows that the README shows: one of ours, a slash, and what it is compared with."""


def quoted(results: dict[str, Any]) -> str:
    """Return the README's lines for the results of a run. KeyError when a row is missing."""
    rows = {row["name"]: row for row in results["rows"]}
    run = results["run"]
    return "\n".join(
        [
            "| ours | theirs | ours | theirs | unit | times as fast |",
            "|---|---|---|---|---|---|",
            *(_line(name, rows[name]) for name in COMPARED),
            "",
            f"(CPython {run['python']} on {run['cores']} cores, {run['rounds']} rounds in turns,"
            " medians; "
            + ", ".join(f"{name} {version}" for name, version in run["peers"].items() if version)
            + ".)",
            "",
        ]
    )


def replaced(readme: str, figures: str) -> str:
    """Return *readme* with other figures. ValueError when it has no place for them."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the README has no lines {BEGIN.strip()} and {END.strip()}")
    return before + begin + figures + end + after


def _line(name: str, row: dict[str, Any]) -> str:
    ours, _, theirs = name.partition(" / ")
    cells = (f"`{ours}`" if "(" in ours else ours, theirs)
    figures = (number(row["ours"]), number(row["theirs"]), row["unit"])
    return "| " + " | ".join((*cells, *figures, f"{row['ratio']['value']:.2f}")) + " |"


def main() -> int:
    """Rewrite the README."""
    figures = quoted(json.loads(RESULTS.read_text()))
    README.write_text(replaced(README.read_text(), figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())

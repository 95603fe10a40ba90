"""What runs have found, kept as long as the product and the tests are the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.mutations.executed import state


class Results:
    """Rows by name, in a *file* of lines of JSON; each is there as soon as it is added.

    *former* are the rows of the last state of the product and the tests, if that was another one.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._state = state()
        self.rows: dict[str, Any] = {}
        self.former: dict[str, Any] = {}
        lines = file.read_text().splitlines() if file.exists() else []
        for line in lines[1:]:
            # The last one may have been broken off.
            if line.endswith("]"):
                name, row = json.loads(line)
                self.former[name] = row
        if lines and lines[0] == self._state:
            self.rows, self.former = self.former, {}

    def add(self, name: str, row: Any) -> None:
        """Keep a row; the first one of this state replaces those of another."""
        if not self.rows:
            self._file.parent.mkdir(exist_ok=True)
            self._file.write_text(f"{self._state}\n")
        self.rows[name] = row
        with self._file.open("a") as file:
            file.write(json.dumps([name, row]) + "\n")

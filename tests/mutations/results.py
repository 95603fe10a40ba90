"""What runs have found, kept as long as the product and the tests are the same."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any


class Results:
    """Rows by name, in a *file* of lines of JSON; each is there as soon as it is added.

    *state* stands for the product and the tests, as ``executed.state`` returns it.

    *former* are the rows of the last state of the product and the tests, if that was another one.
    """

    def __init__(self, file: Path, state: str) -> None:
        self._file = file
        self._state = state
        self.rows: dict[str, Any] = {}
        self.former: dict[str, Any] = {}
        lines = file.read_text().splitlines() if file.exists() else []
        for line in lines[1:]:
            # One may have been broken off.
            with suppress(json.JSONDecodeError):
                name, row = json.loads(line)
                self.former[name] = row
        if lines and lines[0] == self._state:
            self.rows, self.former = self.former, {}

    def add(self, name: str, row: Any) -> None:
        """Keep a row; the first one of this state replaces those of another."""
        if not self.rows:
            self._file.parent.mkdir(exist_ok=True)
            self._file.write_text(self._state)
        self.rows[name] = row
        with self._file.open("a") as file:
            # After a line break, because the line before may have been broken off.
            file.write("\n" + json.dumps([name, row]))

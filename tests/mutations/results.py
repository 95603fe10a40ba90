"""What runs have found: it counts as long as the product and the tests are the same."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any


class Results:
    """Rows by name, in a *file* of lines of JSON; each is there as soon as it is added.

    *state* stands for the product and the tests, as ``executed.state`` returns it. *rows* are of
    this state; *former* are the last ones of other states, for names that have none of this one.
    """

    def __init__(self, file: Path, state: str) -> None:
        self._file = file
        self._state = state
        self.rows: dict[str, Any] = {}
        self.former: dict[str, Any] = {}
        for line in file.read_text().splitlines() if file.exists() else ():
            # One may have been broken off.
            with suppress(json.JSONDecodeError):
                found, name, row = json.loads(line)
                (self.rows if found == state else self.former)[name] = row
        for name in self.rows.keys() & self.former.keys():
            del self.former[name]

    def add(self, name: str, row: Any) -> None:
        """Keep a row."""
        self.rows[name] = row
        self.former.pop(name, None)
        self._file.parent.mkdir(exist_ok=True)
        with self._file.open("a") as file:
            # After a line break, because the line before may have been broken off.
            file.write("\n" + json.dumps([self._state, name, row]))

"""A progress bar in one line of a terminal."""

from __future__ import annotations

import os
from typing import TextIO

BAR = 30
"""Cells of the progress bar."""


class Progress:
    """A bar in one line of *stream* while the context lasts, if that is a terminal.

    It has no escape sequences, so that any terminal can show it. It is drawn only when it changes,
    so that it does not disturb the measurement. It is cleared at the end, also by an error.
    """

    def __init__(self, parts: int, stream: TextIO | None) -> None:
        self._stream = stream if stream is not None and stream.isatty() else None
        self._parts = parts
        self._begun = -1
        self._name = ""
        self._line = ""
        self._widest = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._show("")

    def begin(self, name: str) -> None:
        """Show that the next part begins, and its *name*."""
        self._begun += 1
        self._name = name
        self.move(0)

    def move(self, share: float) -> None:
        """Show the *share* of the part that is done, 1 at most."""
        if self._stream is None:
            return
        done = int((self._begun + min(share, 1)) / self._parts * 100)
        bar = "#" * (done * BAR // 100)
        self._show(f"[{bar:.<{BAR}}] {done:3}%  {self._name}"[: _width(self._stream)])

    def _show(self, line: str) -> None:
        if self._stream is None or line == self._line:
            return
        # Stored before it is written: if Ctrl-C comes in between, all of it has to be cleared.
        self._line = line
        self._widest = max(self._widest, len(line))
        self._stream.write(f"\r{line:{self._widest}}" + ("" if line else "\r"))
        self._stream.flush()


def _width(stream: TextIO) -> int:
    """Return the columns of a terminal in which a line can be overwritten: all but the last."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return (columns or 80) - 1

"""Which line of the program has asked for an id, for a warning that names it."""

from __future__ import annotations

import os
import sys
from contextvars import ContextVar
from types import FrameType
from typing import NamedTuple

_PACKAGE = os.path.dirname(__file__) + os.sep


class Caller(NamedTuple):
    """A line outside of this package, as ``warnings.warn_explicit`` wants it."""

    filename: str
    lineno: int
    module: str
    registry: dict[str | tuple[str, type[Warning], int], int]


asked_for: ContextVar[Caller | None] = ContextVar("asked_for", default=None)
"""The line of the task for which a worker thread asks. None: the thread asks for itself."""


def caller() -> Caller:
    """Return the line that has called this package, or the one for which this thread asks."""
    known = asked_for.get()
    if known is not None:
        return known
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        # All of the stack is this package, as in its commands.
        return Caller("sys", 0, "sys", {})
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    module = str(frame.f_globals.get("__name__", "<unknown>"))
    return Caller(frame.f_code.co_filename, frame.f_lineno, module, registry)

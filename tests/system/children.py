"""Children that a program forks, each of which does one thing and ends."""

from __future__ import annotations

import os
from collections.abc import Callable


def each_child(
    count: int,
    at_once: int,
    work: Callable[[], object],
    meanwhile: Callable[[], object] = lambda: None,
) -> None:
    """Let *count* children, of whom *at_once* live at a time, do their *work*, until all ended.

    The parent calls *meanwhile* after each fork. Raises RuntimeError if a child failed.
    """
    for number in range(count):
        if number >= at_once:
            _await_one()
        if not os.fork():
            status = 1
            try:
                work()
                status = 0
            finally:
                os._exit(status)
        meanwhile()
    for _ in range(min(count, at_once)):
        _await_one()


def _await_one() -> None:
    _, status = os.wait()
    if status:
        raise RuntimeError(f"a child ended with {os.waitstatus_to_exitcode(status)}")

"""All that the first id needs, imported then: a program that only imports us does not pay for it.

A thread of its own imports it. CPython runs signal handlers in the main thread, so none comes in
the middle of the import: one that draws waits for that thread, where it would find modules half
imported otherwise.

A fork waits while that goes on. Otherwise its child could be born with the lock of a module held by
a thread that it does not have, and wait for it without an end.
"""

from __future__ import annotations

import os
import threading
from _thread import start_new_thread
from importlib import import_module
from typing import TYPE_CHECKING, Any

from uuidd_client.clocks import pause

if TYPE_CHECKING:
    from uuidd_client.session import Session

LOOK_SECONDS = 0.0005
"""Seconds between two looks whether the import, which takes some 30 ms, has ended."""

_importing = threading.RLock()
_found: dict[str, type[Session] | BaseException] = {}


def _find() -> None:
    """Put the session's class, or what kept it from being imported, where all find it."""
    try:
        with _importing:
            _found["session"] = _imported()
    except BaseException as error:
        _found["session"] = error


def _imported() -> type[Session]:
    from uuidd_client.session import Session

    return Session


def _start() -> None:
    """Import in a thread. A handler, or another thread, starts one more: each waits its turn."""
    try:
        # Not a threading.Thread, which waits for the thread: a child would wait without an end.
        start_new_thread(_find, ())
    except RuntimeError:
        # No thread can be started, at the interpreter's end for one.
        _find()


def session_type() -> type[Session]:
    """Give what a client is in one process. Raises what its import raised."""
    if "session" not in _found:
        if _importing._is_owned():  # type: ignore[attr-defined]  # as threading's Condition asks
            # What draws here came in the middle of an import or a fork of this very thread.
            return _imported()
        started_in = 0
        # No lock, which a handler could find held by what it has come into.
        while "session" not in _found:
            if started_in != os.getpid():
                # A child of a handler that forked here does not have its parent's thread.
                started_in = os.getpid()
                _start()
            pause(LOOK_SECONDS)
    found = _found["session"]
    if isinstance(found, BaseException):
        # Another call tries again.
        _found.pop("session", None)
        raise found
    return found


class Module:
    """Stands for the module *name*, which is imported when something of it is asked for.

    So annotations may name its types, and ``typing.get_type_hints`` finds them.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        with _importing:
            return getattr(import_module(self._name), name)


os.register_at_fork(
    before=_importing.acquire,
    after_in_parent=_importing.release,
    after_in_child=_importing.release,
)

"""Imports that wait until they are needed: a program that only imports us does not pay for them.

The first id imports the session, in a thread of its own. CPython runs signal handlers in the main
thread, so no handler can interrupt the import: a handler that draws an id waits for that thread.
In the main thread it could find modules that are half imported.

A fork waits until that import has ended. Otherwise the child could inherit the lock of a module
that is held by a thread which the child does not have, and would wait for it forever.
"""

from __future__ import annotations

import os
import sys

# Not threading, which takes longer to import than this package.
from _thread import RLock, start_new_thread

from uuidd_client.system import pause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from uuidd_client.session import Session

POLL_SECONDS = 0.0005
"""Seconds between two checks whether the import, which takes some 30 ms, has ended."""

_importing = RLock()
_outcome: dict[str, type[Session] | BaseException] = {}


def _import_in_thread() -> None:
    """Store the session's class, or the error of its import, where all threads find it."""
    try:
        with _importing:
            _outcome["session"] = _import()
    except BaseException as error:
        _outcome["session"] = error


def _import() -> type[Session]:
    from uuidd_client import restoring
    from uuidd_client.session import Session

    restoring.register()
    return Session


def _start() -> None:
    """Import in a thread. A handler or another thread may start one more: they take turns."""
    try:
        # Not a threading.Thread, which waits for the thread: a child would wait forever.
        start_new_thread(_import_in_thread, ())
    except RuntimeError:
        # No thread can be started, for example at the interpreter's end.
        _import_in_thread()


def session_type() -> type[Session]:
    """Return the class of a client's session. Raises what its import raised."""
    if "session" not in _outcome:
        if _importing._is_owned():  # type: ignore[attr-defined]  # as threading's Condition asks
            # A handler draws in the middle of an import or a fork of this very thread.
            return _import()
        started_in = 0
        # Without a lock, because a handler could interrupt the code that holds it.
        while "session" not in _outcome:
            if started_in != os.getpid():
                # Also in the child of a handler that forked here: it has no such thread.
                started_in = os.getpid()
                _start()
            pause(POLL_SECONDS)
    outcome = _outcome["session"]
    if isinstance(outcome, BaseException):
        # Another call tries again.
        _outcome.pop("session", None)
        raise outcome
    return outcome


class Module:
    """A module that is imported when the first of its attributes is read.

    So annotations may name the types of module *name*, and ``typing.get_type_hints`` finds them.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        with _importing:
            __import__(self._name)
            return getattr(sys.modules[self._name], name)


os.register_at_fork(
    before=_importing.acquire,
    after_in_parent=_importing.release,
    after_in_child=_importing.release,
)

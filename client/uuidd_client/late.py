"""All that the first id needs, imported then: a program that only imports us does not pay for it.

A fork waits while that goes on. Otherwise its child could be born with the lock of a module held by
a thread that it does not have, and wait for it without an end.
"""

from __future__ import annotations

import os
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uuidd_client.session import Session

_importing = threading.RLock()


def session_type() -> type[Session]:
    """Give what a client is in one process."""
    with _importing:
        from uuidd_client.session import Session

        return Session


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

"""What the first id needs, imported then: a program that only imports us does not pay for it.

A fork waits while that goes on. Otherwise its child could be born with the lock of a module held by
a thread that it does not have, and wait for it without an end.
"""

from __future__ import annotations

import os
import threading

_importing = threading.RLock()


def load() -> None:
    """Import what the modules of this package import where they use it."""
    with _importing:
        import socket

        from uuidd.core.ids import recipes
        from uuidd.core.timeline import slew, volatile
        from uuidd.core.wire import libuuid, methods, rpc
        from uuidd_client import standin

    # Their use is that they are loaded.
    del socket, recipes, slew, volatile, libuuid, methods, rpc, standin


os.register_at_fork(
    before=_importing.acquire,
    after_in_parent=_importing.release,
    after_in_child=_importing.release,
)

"""Time-based UUIDs from this host's uuidd, at memory speed; from the process itself without one.

    >>> from uuidd_client import uuid1
    >>> uuid1()
    UUID('...')

``uuid1`` and ``uuid6`` use one shared ``Client``, with the socket of ``$UUIDD_SOCKET`` or else
/run/uuidd/request. Both are thread-safe, and safe to use after a fork.
"""

from uuidd_client.client import Client
from uuidd_client.connection import DaemonUnavailable

__all__ = ["Client", "DaemonUnavailable", "uuid1", "uuid6"]

_shared = Client()

# The drawing functions themselves, for a method around each would cost a tenth of its speed.
uuid1 = _shared.drawer("v1")
uuid6 = _shared.drawer("v6")

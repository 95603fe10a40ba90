"""Drops all that was made ahead when a snapshot of this process, or of its machine, is restored.

The same snapshot may be restored many times, and each copy has the same leases, blocks, nodes of
the fallback and random bits. Where the daemon cannot tell, or there is none, a hook has to.
"""

from __future__ import annotations

from uuidd_client.fork_guard import wipe_all

_HOOKS = "snapshot_restore_py"
"""The library of AWS Lambda for hooks of a snapshot (SnapStart), which its runtimes contain."""


def renew() -> None:
    """Drop all ids, leases, blocks and random bits that any client of this process has.

    What follows is as in a fork's child: connections are opened again, and without a daemon the ids
    are of another node. A ``Backfill`` that was made before must not be used any more, and says so.
    """
    wipe_all()


def register() -> None:
    """Let AWS Lambda call ``renew`` after it has restored a snapshot, where its library is."""
    try:
        # Not importlib, which would take longer than all of this.
        hooks = __import__(_HOOKS)
    except ImportError:
        return
    after_restore = getattr(hooks, "register_after_restore", None)
    if after_restore is not None:
        after_restore(renew)

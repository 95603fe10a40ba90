"""Finds what a start would be refused for, without a start: for ``--check``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from uuidd.clock import Clock
from uuidd.node import choose
from uuidd.privileges import acting_as, hand_over, lacks_room
from uuidd.refused import Refused
from uuidd.server.listeners import check_listener
from uuidd.server.pidfile import check_pid_file
from uuidd.server.settings import Settings
from uuidd.server.startup import check_descriptors, check_epoch, epochs_with
from uuidd.server.trust import check_sync
from uuidd.statefile import UnusableError, machine_hash
from uuidd.store import check_store
from uuidd.systemd import notifier


def problems(settings: Settings) -> list[str]:
    """Return a line for each reason for which a start with *settings* would be refused.

    Nothing is changed or locked, and no daemon or engine is asked, so a running daemon is not a
    reason. That a start would set the state aside, or could not save it on a full disk, is a reason
    too, though the daemon would start.
    """
    found = []
    for check in _checks(settings):
        try:
            check()
        except Refused as refused:
            found.append(str(refused))
    return found


def _checks(settings: Settings) -> Iterator[Callable[[], object]]:
    """What a start would do, in its order."""
    yield check_descriptors
    yield lambda: check_sync(settings.require_sync)
    fleet = settings.fleet
    if fleet is not None:
        # Only hosts of a fleet pay for it.
        from uuidd.fleet import engines

        yield lambda: engines.check(fleet.address, unseen=_unseen_credentials())
    yield lambda: choose(settings.node)
    yield lambda: check_epoch(settings, Clock().now())
    yield lambda: notifier().close()
    socket, pid_file = settings.socket, settings.pid_file
    if socket is not None:
        yield lambda: check_listener(socket)
    if pid_file is not None:
        yield lambda: check_pid_file(pid_file)
    yield lambda: _check_state(settings)


def _unseen_credentials() -> Path | None:
    """Return the folder of systemd's credentials if this process cannot look into it.

    Many versions of systemd show it to the service's main process only, but name it to others.
    """
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if not folder or os.access(folder, os.X_OK, effective_ids=True):
        return None
    return Path(folder).absolute()


def _check_state(settings: Settings) -> None:
    """Check the state folder, and the state in it, as the user that the daemon will be."""
    folder, user = settings.state, settings.user
    uid = os.geteuid() if user is None else user.uid
    # What root will hand over to the user is examined as root.
    with acting_as(None if user and hand_over(folder, user, looking=True) else user):
        try:
            state = check_store(folder, machine_hash(), uid)
        except UnusableError as error:
            raise Refused(
                f"{folder / 'state'}: {error}; a start would set it aside and make a new one"
            ) from None
        epochs_with(settings, state)
        saved = folder / "state"
        if lacks_room(folder, saved.stat().st_size if saved.exists() else 1):
            raise Refused(
                f"the state folder {folder} is on a full disk; a start would make v1 and v6 with a"
                " temporary node, and refuse the other kinds but v4; make room, or name another"
                " with --state"
            )

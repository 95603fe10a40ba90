"""Resets a state that keeps ids from being made: a mark in the far future, too early an epoch."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from uuidd.clock import Clock
from uuidd.core.ids import times
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.fence import Claim
from uuidd.core.timeline.state import NO_EPOCHS, State
from uuidd.privileges import acting_as, owner
from uuidd.refused import Refused
from uuidd.statefile import machine_hash
from uuidd.store import FolderStore


def reset_steady(folder: Path) -> str:
    """Set the steady mark of the state in *folder* back to now; return a line on what that gave up.

    The mark of leases is set back too, since steady ids are made from leases as well. A mark that
    is not past now is not changed. Raises Refused, and changes nothing, if the folder cannot be
    used or a daemon uses it.
    """
    with _opened(folder) as (store, state):
        now = Clock().now()
        reached = max(state.steady, state.leases)
        given_up = reached - now
        if given_up <= 0:
            return f"nothing to reset: the steady timeline is not ahead of UTC in {folder}"
        # A number of a fleet is not this host's in that time any more, so another is claimed.
        claimed = isinstance(state.worker, Claim)
        kept = replace(
            state,
            steady=min(state.steady, now),
            leases=min(state.leases, now),
            worker=None if claimed else state.worker,
        )
        store.save(kept)
    repeated = "Flakes" if claimed else "Snowflakes and Flakes"
    return (
        f"reset: steady ids begin at {times.text(now)} instead of {times.text(reached)},"
        f" {given_up / TICKS_PER_SECOND:.3f} s earlier. In that time their order is lost, and"
        f" {repeated} that were made in it may be repeated"
    )


def reset_epoch(folder: Path) -> str:
    """Forget all epochs, so that a later one may be named; return a line on what that gave up.

    Raises Refused, and changes nothing, if the folder cannot be used or a daemon uses it.
    """
    with _opened(folder) as (store, state):
        if not state.epochs:
            return f"nothing to reset: no Snowflakes were made from the state in {folder}"
        store.save(replace(state, epochs=NO_EPOCHS))
    used = ", ".join(f"{epoch} (worker number {n})" for n, epoch in sorted(state.epochs.items()))
    return (
        f"reset: any --epoch may be named now. One that is later than {used} may repeat Snowflakes"
        " that were made so far"
    )


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[tuple[FolderStore, State]]:
    """The store in *folder*, locked, and its state, for a save; root acts as the folder's owner."""
    user = None if os.geteuid() else owner(folder)
    with acting_as(user), contextlib.closing(FolderStore(folder, machine=machine_hash())) as store:
        state = store.load()
        if state is None:
            cause = store.set_aside or f"there is none in {folder}"
            raise Refused(f"no state to reset: {cause}")
        try:
            yield store, state
        except OSError as error:
            raise Refused(
                f"the state cannot be saved in {folder}: {error.strerror or error};"
                " nothing was reset"
            ) from error

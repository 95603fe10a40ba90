"""The way out of a steady timeline that is far in the future: begin it anew at UTC."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from uuidd.clock import Clock
from uuidd.core.ids import times
from uuidd.core.ids.timebased import TICKS_PER_SECOND
from uuidd.store import FolderStore, StoreError, machine_hash


def reset_steady(folder: Path) -> str:
    """Set the steady mark of the state in *folder* back to now; give a line on what it gave up.

    A mark that does not lie past now is left alone. Raises StoreError, and changes nothing, when
    the folder cannot be used or a daemon is using it.
    """
    if _is_empty(folder):
        # Before it is locked: a lock file without a state would tell of one that was lost.
        raise StoreError(f"no state to reset: there is none in {folder}")
    store = FolderStore(folder, machine=machine_hash())
    try:
        state = store.load()
        if state is None:
            cause = store.set_aside or f"there is none in {folder}"
            raise StoreError(f"no state to reset: {cause}")
        now = Clock().now()
        given_up = state.steady - now
        if given_up <= 0:
            return f"nothing to reset: the steady timeline is not ahead of UTC in {folder}"
        try:
            store.save(replace(state, steady=now))
        except OSError as error:
            raise StoreError(
                f"the state cannot be saved in {folder}: {error.strerror}; nothing was reset"
            ) from error
    finally:
        store.close()
    return (
        f"reset: steady ids begin again at {times.text(now)} instead of"
        f" {times.text(state.steady)}, {given_up / TICKS_PER_SECOND:.3f} s earlier. Given up: that"
        " they rise over that time, and that Snowflakes and Flakes made in it do not come again"
    )


def _is_empty(folder: Path) -> bool:
    """Whether a folder is there without a state; if it cannot be looked into the store says so."""
    try:
        return folder.is_dir() and not (folder / "state").exists()
    except OSError:
        return False

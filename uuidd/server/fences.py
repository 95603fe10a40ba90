"""The fence of the worker number as a start finds it."""

from __future__ import annotations

import logging
from pathlib import Path

from uuidd.core.timeline.fence import Claim, Fence
from uuidd.core.timeline.state import State
from uuidd.server.settings import Settings
from uuidd.workers import connecting

log = logging.getLogger("uuidd")


def check_fleet(settings: Settings, *, unseen: Path | None = None) -> None:
    """Check that the engine of a fleet can be asked, without asking it. Raises AddressError.

    Files in the folder *unseen* are not looked at.
    """
    if settings.fleet is not None:
        connecting.check(settings.fleet.address, settings.fleet.access, unseen=unseen)


def begin_fence(settings: Settings, loaded: State | None, product: str = "") -> Fence:
    """Return the fence of the worker number: with a fleet, by the claim that the state has.

    A claim of a machine with another *product* is not used, because that machine may still use it.
    A number that was set by hand is, since it is for this start that it was set.
    """
    kept = None if loaded is None else loaded.worker
    if loaded is not None and loaded.copied_to(product):
        if isinstance(kept, Claim):
            log.warning(
                "the claim to worker number %d was another machine's, so another number is claimed",
                kept.number,
            )
            kept = None
        elif settings.worker is not None and settings.worker == kept:
            log.warning(
                "the machine that saved the state has worker number %d too; if it still runs,"
                " start uuidd here with another --worker, or Snowflakes repeat",
                kept,
            )
    if settings.fleet is None:
        if isinstance(kept, Claim):
            log.warning(
                "the state has a claim to worker number %d of a fleet, and --worker is no URL now",
                kept.number,
            )
        return Fence(settings.worker)
    if loaded is None or not isinstance(kept, Claim):
        return Fence(had=kept if isinstance(kept, int) else None)
    fence = Fence()
    # It is held when the engine has confirmed it, or is found to be silent.
    fence.keep(kept.resumed(loaded.steady))
    return fence

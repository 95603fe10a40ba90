"""The fence of the worker number as a start finds it."""

from __future__ import annotations

import logging
from typing import Any

from uuidd.core.timeline.fence import Claim, Fence, Shared
from uuidd.core.timeline.state import State

log = logging.getLogger("uuidd")


def begin_fence(
    loaded: State | None,
    worker: int | None,
    *,
    in_fleet: bool,
    go_on_after_clone: bool = False,
    product: str = "",
) -> Fence:
    """Return the fence of the worker number: in a fleet, by the claim that the state has.

    *worker* is the number that the administrator has set by hand.

    A claim of a machine with another *product* is not used, because that machine may still use it.
    A number that was set by hand is, since it is for this start that it was set. It is not if a
    clone has it too, unless *go_on_after_clone*.
    """
    kept = None if loaded is None else loaded.worker
    copied = loaded is not None and loaded.copied_to(product)
    if copied and isinstance(kept, Claim):
        if in_fleet:
            log.warning(
                "the claim to worker number %d was another machine's, so another number is claimed",
                kept.number,
            )
        kept = None
    elif copied and worker is not None and worker == kept:
        log.warning(
            "the machine that saved the state has worker number %d too; if it still runs, start"
            " uuidd here with another --worker, or Snowflakes repeat",
            kept,
        )
    shared = kept if isinstance(kept, Shared) else None
    if in_fleet:
        # The number that was set by hand on the machine of which this is a copy is that machine's.
        fence = Fence(had=kept if isinstance(kept, int) and not copied else None, shared=shared)
        if loaded is not None and isinstance(kept, Claim):
            # It is held when the engine has confirmed it, or is found to be silent.
            fence.keep(kept.resumed(loaded.steady))
        return fence
    if isinstance(kept, Claim):
        log.warning(
            "the state has a claim to worker number %d of a fleet, and --worker is no URL now",
            kept.number,
        )
    if worker is None or shared is None or worker != shared.number:
        return Fence(worker, shared=shared if worker is None else None)
    if go_on_after_clone:
        log.warning(
            "worker number %d is used again, as --after-clone go-on says; if the clone still uses"
            " it, Snowflakes repeat",
            worker,
        )
        return Fence(worker)
    why = shared_with_a_clone(worker)
    log.error("Snowflakes are refused: %s", why)
    return Fence(why=why, shared=shared)


def shared_with_a_clone(number: int) -> str:
    """Return why Snowflakes of worker *number* are refused after a clone, and what to do."""
    return (
        f"this machine was cloned, so another one may have worker number {number} too;"
        " start uuidd with another --worker, or with --after-clone go-on; all other kinds go on"
    )


def static_status(fence: Fence) -> dict[str, Any]:
    """Return what ``status`` shows of a number that was set by hand, or of none."""
    number = fence.number
    unknown = ("namespace", "begin", "until", "until_in", "window", "hold", "renewed_age")
    return {
        "number": number,
        "source": "--worker",
        "state": "none" if number is None else "static",
        "why": fence.why if number is None else "",
        **dict.fromkeys((*unknown, "round_trip_seconds")),
        **dict.fromkeys(("renewals", "failed", "fenced", "claims"), 0),
    }

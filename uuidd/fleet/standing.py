"""How a host stands with its worker number in a fleet: for the log, ``status`` and refusals."""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import inf
from typing import Any, Literal

import trio

from uuidd.core.ids import times
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.fence import Claim, Fence
from uuidd.fleet.address import Fleet
from uuidd.fleet.fences import static_status
from uuidd.fleet.record import Holder, Record

State = Literal[
    "static",  # set by hand
    "none",  # no fleet to claim in
    "claiming",  # looking for a number
    "resumed",  # of the state, not confirmed yet
    "held",  # confirmed by the engine
    "away",  # held or looked for while the engine is silent
    "full",  # all numbers are others'
    "fenced",  # another host has the number, which is used up to its fence
]

log = logging.getLogger("uuidd")


class Standing:
    """Counts and logs what becomes of the number of *fence*, and keeps the reason for refusals.

    *fleet* is what the administrator chose. *steady* reads the steady clock, in ticks.
    """

    def __init__(self, fence: Fence, fleet: Fleet, steady: Callable[[], int]) -> None:
        self._fence = fence
        self._fleet = fleet
        self._name, self._url = fleet.address.name, fleet.address.url
        self._steady = steady
        self._silent_since: float | None = None
        # The ticks that are left of the claim when the log tells of a silent engine once more.
        self._tell_at = inf
        self._renewed_at: float | None = None
        self._round_trip: float | None = None
        self.namespace: str | None = None
        self.state: State = "claiming"
        self.trouble = ""
        self.renewals = self.failures = self.fencings = self.claims = 0
        fence.why = (
            f"no worker number yet: {self._name} was not reached so far; all other kinds go on"
        )

    def began(self, how: Literal["claimed", "resumed"], claim: Claim) -> None:
        """Note that *claim* is used from now on: a new one, or that of the state."""
        if how == "claimed":
            self.claims += 1
        self.state = "resumed"
        log.info(
            "%s: worker=%d until=%s engine=%s",
            how,
            claim.number,
            times.text(claim.until),
            self._name,
        )

    def held(self, claim: Claim) -> None:
        """Note that a write was confirmed."""
        self._renewed_at = trio.current_time()
        self.state, self.trouble = "held", ""
        self._fence.why = f"worker number {claim.number} is being renewed; try again"

    def fenced(self, claim: Claim, record: Record, holder: Holder, *, copied: bool) -> None:
        """Note that another host has the number of *claim* now, by *record*.

        *copied*: it may have a copy of this host's state, so this host uses the number no more.
        """
        self.fencings += 1
        other, end = record.host or "another host", times.text(claim.until)
        if other == holder.host:
            other = f"another daemon of {other}"
        self.state, self.trouble = "claiming", f"{other} has the number now"
        now = f"was this host's until {end}"
        what = f"and is used here for ticks before {end} only"
        if copied:
            now = f"is now that of {other}"
            what = "which may have started with a copy of this state, so it is used here no more"
        self._fence.why = f"worker number {claim.number} {now}; try again"
        log.error(
            "fenced: worker number %d of %s was taken by %s, %s; another is claimed",
            claim.number,
            holder.host or "this host",
            other,
            what,
        )

    def forgotten(self, number: int) -> None:
        """Note that the engine has lost what it had confirmed."""
        log.error(
            "%s has lost writes, as after a restore from a backup, so worker number %d is written"
            " there again; two hosts may have another number, so cut off all hosts from the engine,"
            " run uuidd workers raise %s --worker-window %.10gs on its machine, with the longest"
            " window of all hosts, and then let the hosts reach the engine again",
            self._name,
            number,
            self._url,
            self._fleet.window,
        )

    def left(self, claim: Claim) -> None:
        """Note that the namespace is another one than that of *claim*."""
        log.warning(
            "worker number %d was claimed in another fleet than %s has now: namespace=%s",
            claim.number,
            self._name,
            claim.namespace,
        )

    def without_namespace(self) -> None:
        """Note that there is no namespace, or none any more, of which this host has a claim."""
        claim = self._fence.claim
        if claim is None:
            self.say(
                "none",
                f"the fleet is not initialised; run uuidd workers init {self._url} once, and with"
                " --new if no host ever had a number of it",
            )
        else:
            # A number of a fleet that is made anew must not begin before this host's has ended.
            self.say(
                "away",
                f"the fleet of worker number {claim.number} is gone from {self._name}, so the"
                f" number is used up to {times.text(claim.until)} only; run uuidd workers init"
                f" {self._url} with the options of the first time, except --new",
            )

    def of_another_epoch(self, epoch: int, own: int) -> None:
        """Note that the fleet's Snowflakes count from another *epoch* than this daemon's *own*."""
        self.say(
            "none",
            f"the fleet's Snowflakes count from {epoch}, and --epoch is {own};"
            f" start uuidd with --epoch {epoch}",
        )

    def full(self, low: int, high: int, due: tuple[int, int, str] | None) -> None:
        """Note that the numbers *low* to *high* are all taken; *due* may be free next."""
        trouble = f"no worker number of {low} to {high} is free"
        if due is not None:
            tick, number, host = due
            at = times.text(tick + -tick % TICKS_PER_SECOND).replace(".0000000", "")
            trouble += f"; number {number} may be next, at {at}"
            trouble += f" if {host or 'its host'} does not renew it"
        self.say("full", f"{trouble}; uuidd workers list {self._url} shows who has them")

    def say(self, state: State, trouble: str) -> None:
        """Note why there is no number, or soon none any more; log it once.

        While the fleet stays full, nothing more is logged, though another number may be next.
        """
        if trouble != self.trouble and not state == self.state == "full":
            log.warning("%s", trouble)
        self.state, self.trouble = state, trouble
        self._fence.why = f"{trouble}; all other kinds go on"

    def answered(self, seconds: float) -> None:
        """Note that the engine answered, after so many seconds."""
        self._round_trip = seconds
        if self._silent_since is None:
            return
        log.info("back: %s, after %.1f s", self._name, trio.current_time() - self._silent_since)
        self._silent_since, self._tell_at = None, inf
        if self.state == "away":
            self.state, self.trouble = ("held" if self._fence.claim else "claiming"), ""

    def away(self, why: str) -> None:
        """Note a question without an answer; log the first, and when half and all time is over."""
        self.failures += 1
        claim = self._fence.claim
        left = 0 if claim is None else max(0, claim.until - self._steady())
        if self._silent_since is None:
            self._silent_since = trio.current_time()
        self.state, self.trouble = "away", f"{self._name} does not answer ({why})"
        if claim is None:
            self._fence.why = f"no worker number yet: {self.trouble}; all other kinds go on"
        else:
            self._fence.why = (
                f"worker number {claim.number} was reserved until {times.text(claim.until)}, and"
                f" {self.trouble}; all other kinds go on"
            )
        if left <= self._tell_at:
            log.warning("away: %s; Snowflakes for %.0f s more", self.trouble, _seconds(left))
            self._tell_at = -1 if not left else left // 2 if self._tell_at == inf else 0

    @property
    def line(self) -> str:
        """A clause for systemd, "" if all is well."""
        return "" if self.state in ("held", "resumed") else f"worker number: {self.trouble}"

    def status(self, *, lost: bool) -> dict[str, Any]:
        """Return what ``status`` shows of the number. Ticks are ints, spans are seconds.

        If the number is *lost*, another host has it now.
        """
        fence, age = self._fence, self._renewed_at
        there = fence.number is not None
        return {
            **static_status(fence),
            "source": self._name,
            "namespace": self.namespace if fence.claim is None else fence.claim.namespace,
            "state": "fenced" if lost and there else self.state,
            "begin": fence.begin if there else None,
            "until": fence.until if there else None,
            "until_in": _seconds(fence.until - self._steady()) if there else None,
            "window": self._fleet.window,
            "hold": self._fleet.hold,
            "renewed_age": None if age is None else round(trio.current_time() - age, 3),
            "renewals": self.renewals,
            "failed": self.failures,
            "fenced": self.fencings,
            "claims": self.claims,
            "round_trip_seconds": None if self._round_trip is None else round(self._round_trip, 6),
            "why": self.trouble,
        }


def _seconds(ticks: int) -> float:
    return round(ticks / TICKS_PER_SECOND, 3)

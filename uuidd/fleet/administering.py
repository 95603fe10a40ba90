"""What an administrator does to a fleet's worker numbers: make, reserve, free and raise them.

No step lets two hosts use one tick: a register's *until* is lowered only where the administrator
says up to when its number was used.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from uuidd.core.ids.ticks import TICK_BITS, TICKS_PER_SECOND
from uuidd.fleet.engines import Changed
from uuidd.fleet.record import Holder, Meta, Record, new_token
from uuidd.fleet.registers import Registers
from uuidd.refused import Refused

MARGIN_TICKS = 60 * TICKS_PER_SECOND
"""How far past now a freed number begins, and past their window hosts may go on after a restore.

Their clocks differ from this one's, and after a crash a host's steady clock is ahead of UTC."""


@dataclass(frozen=True, slots=True)
class Administrator:
    """Changes the registers of *fleet* as *writer*, at *now*, the tick of UTC."""

    fleet: Registers
    writer: Holder
    now: int

    async def opened(self) -> Meta:
        """Return the namespace. Raises Refused if there is none."""
        meta = await self.fleet.meta()
        if meta is None:
            raise Refused(
                f"{self.fleet.name} has no such namespace; make it with uuidd workers init URL, and"
                " with --new if no host ever had a number of it"
            )
        return meta

    async def init(
        self, meta: Meta, reserve: Collection[int], *, used: tuple[int, int] | None
    ) -> int:
        """Make a namespace, with these numbers reserved. Raises Refused if there is one.

        *used* is the longest window and hold, in ticks, of hosts that may still use numbers of a
        namespace that the engine has lost; None if there was none. Returns the tick at which all
        numbers begin then, which no such host gets past; 0 if they begin at once.
        """
        found = await self.fleet.meta()
        if found is not None:
            raise Refused(
                f"the namespace exists already, with the id {found.id}; nothing was changed"
            )
        _check_range(meta, reserve)
        numbers, until = reserve, 0
        if used is not None:
            numbers = range(meta.low, meta.high + 1)
            until = self.now + used[0] + max(used[1], MARGIN_TICKS)
        free = {number: self._free(until, reserved=number in reserve) for number in numbers}
        try:
            await self.fleet.create(meta, free)
        except Changed:
            raise Refused("the namespace was made by another at the same time") from None
        return until

    async def reserve(self, numbers: Collection[int]) -> None:
        """Let no new host claim these numbers. Raises Refused for one that a host holds."""
        _check_range(await self.opened(), numbers)
        found = {number: await self.fleet.read(number) for number in numbers}
        for number, each in found.items():
            if each is not None and each.held:
                raise Refused(f"number {number} is held by {each.host or 'a host'}")
        for number, each in found.items():
            old = each or self._free(0)
            record = replace(old, reserved=True, claim=new_token(), at=self.now)
            await self._write(number, record, each)

    async def free(self, number: int, found: Record, *, used_until: int | None) -> Record:
        """Let any host claim a number whose host is gone, or that was reserved.

        Returns its register. It begins a minute from now, and past what the register says.
        *used_until* is the tick up to which the number was used, if the administrator knows better
        than the register.
        """
        if used_until is None:
            used_until = max(found.until, self.now + MARGIN_TICKS)
        record = replace(self._free(used_until), other=found.other)
        await self._write(number, record, found)
        return record

    async def raise_all(self, window: int, *, cut_off: bool) -> tuple[int, int]:
        """Let no number begin before all hosts have stopped using theirs, after a restore.

        *window* is the longest that a host has, in ticks. Returns how many registers were changed,
        and the tick before which none begins. Numbers without a register get one, for the backup
        may be older than their first claim. Raises Refused, and changes nothing, if a register
        cannot be read, or shows that a host has a longer window. So it does if a host holds a
        number, unless all are *cut_off*: hosts that renew would reserve their numbers up to the
        tick that is returned.
        """
        meta = await self.opened()
        until = self.now + window + MARGIN_TICKS
        registers = {
            number: self._stopped(number, found, window, cut_off=cut_off)
            for number, found in (await self.fleet.all()).items()
        }
        changed = 0
        for number in range(meta.low, meta.high + 1):
            found = registers.get(number)
            # A host may renew its claim meanwhile; then its register is read again.
            while found is None or found.until < until:
                old = found or self._free(until)
                try:
                    await self.fleet.write(number, replace(old, until=until, at=self.now), found)
                    changed += 1
                    break
                except Changed:
                    found = await self.fleet.read(number)
        return changed, until

    def _stopped(self, number: int, found: Record | str, window: int, *, cut_off: bool) -> Record:
        """Return the register of a number whose host stops within *window*. Raises Refused."""
        if isinstance(found, str):
            raise Refused(found)
        if found.held and found.at and found.until - found.at > window + MARGIN_TICKS:
            seconds = -(-(found.until - found.at) // TICKS_PER_SECOND)
            raise Refused(
                f"host {found.host!r} has reserved number {number} for {seconds} s; run this with"
                f" --worker-window {seconds}s, or free the number first"
            )
        if not cut_off and standing(found, self.now) == "held":
            raise Refused(
                f"number {number} is held by {found.host or 'a host'}, so hosts may reach the"
                " engine; cut off all of them, and then add --hosts-cut-off; nothing was changed"
            )
        return found

    def _free(self, until: int, *, reserved: bool = False) -> Record:
        """Return the register of a number that no host has."""
        if not 0 <= until < 1 << TICK_BITS:
            raise Refused("the time lies outside of 1582 to 5236")
        own = self.writer._asdict()
        return Record(new_token(), until, held=False, reserved=reserved, at=self.now, **own)

    async def _write(self, number: int, record: Record, found: Record | None) -> None:
        try:
            await self.fleet.write(number, record, found)
        except Changed:
            raise Refused(
                f"number {number} was changed by another at the same time; look at it once more"
            ) from None


def standing(record: Record, now: int) -> str:
    """Return how a number stands: reserved, released, held, or silent past its *until*."""
    if record.held:
        return "silent" if record.until <= now else "held"
    return "reserved" if record.reserved else "released"


def _check_range(meta: Meta, numbers: Collection[int]) -> None:
    for number in numbers:
        if not meta.low <= number <= meta.high:
            raise Refused(f"number {number} is not in the fleet's {meta.low} to {meta.high}")

"""A fleet's namespace in an engine: its records, and their keys.

A namespace is made from the registers up: nobody else knows its id before its meta is there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar, TypeVarTuple

import trio

from uuidd.fleet import engines
from uuidd.fleet.address import Address
from uuidd.fleet.engines import ATTEMPT_SECONDS, Away, Changed, Engine, Entry
from uuidd.fleet.record import NUMBERS, Meta, Record, decode, encode
from uuidd.refused import Refused

_Answer = TypeVar("_Answer")
_Values = TypeVarTuple("_Values")


class Registers:
    """The namespace of *address* in *engine*. Each question ends within ATTEMPT_SECONDS.

    Each raises Away if there is no answer then, and Refused if what it reads is no record of ours.
    A question may be cancelled; a write may then have been done. Only one question at a time is
    asked.
    """

    def __init__(self, engine: Engine, address: Address) -> None:
        self.name = address.name
        self._engine = engine
        self._path = address.path.rstrip("/")
        self._is_remote = bool(address.hosts)
        self._meta_key = f"{self._path}/meta"
        self._id = ""
        self._guard: tuple[str, bytes] | None = None
        # A thread may hang with the engine. Saves have other threads, and go on.
        self._thread = trio.CapacityLimiter(1)

    async def meta(self) -> Meta | None:
        """Return the namespace, None if there is none. Ask this first.

        All questions below are about the namespace that was returned last; before that they raise
        RuntimeError.
        """
        entry = await self._ask(self._engine.get, self._meta_key)
        if entry is None:
            self._id = ""
            return None
        meta = decode(Meta, entry.value, self._meta_key)
        self._id, self._guard = meta.id, (self._meta_key, entry.value)
        return meta

    async def create(self, meta: Meta, registers: Mapping[int, Record]) -> None:
        """Make the namespace, with these registers in it from the beginning.

        Raises Changed, and changes no namespace, if there is one.
        """
        own = f"{self._path}/{meta.id}"
        # A copy, for its folder: in some engines a register could not be made without that.
        parts: dict[str, Meta | Record] = {f"{own}/meta": meta}
        parts |= {f"{own}/{number:04}": record for number, record in registers.items()}
        for key, part in (parts | {self._meta_key: meta}).items():
            await self._ask(self._engine.put, key, encode(part), None, None)

    async def all(self) -> Mapping[int, Record | str]:
        """Return all registers; for one that cannot be read, a line that says why."""
        entries = await self._ask(self._engine.list, self._own(""))
        found: dict[int, Record | str] = {}
        for number in range(NUMBERS):
            if (entry := entries.get(key := self._key(number))) is not None:
                try:
                    found[number] = _found(entry, key)
                except Refused as error:
                    found[number] = str(error)
        return found

    async def read(self, number: int) -> Record | None:
        """Return a register, None if there is none."""
        key = self._key(number)
        entry = await self._ask(self._engine.get, key)
        return None if entry is None else _found(entry, key)

    async def write(self, number: int, record: Record, found: Record | None) -> None:
        """Replace the register that was *found*, or make it if that is None.

        Raises Changed if it is not as it was read, exists already, or the namespace is gone.
        """
        key, entry = self._key(number), None if found is None else found.entry
        await self._ask(self._engine.put, key, encode(record), entry, self._guard)

    def rest(self) -> None:
        """End the connection; the next question, which may come minutes later, makes another.

        In between a server may restart, or a firewall may drop an idle connection. No server has to
        keep one for each host of a large fleet.
        """
        self._engine.close()

    def _key(self, number: int) -> str:
        return self._own(f"{number:04}")

    def _own(self, name: str) -> str:
        if not self._id:
            raise RuntimeError("the namespace is asked for first, and must be there")
        return f"{self._path}/{self._id}/{name}"

    async def _ask(self, question: Callable[[*_Values], _Answer], *values: *_Values) -> _Answer:
        """Return the engine's answer, which a thread waits for.

        A thread that hangs is left alone, and its connection is ended. Until the thread ends no
        other question can be asked. An error of an engine's library is no answer either.
        """
        if self._is_remote:
            engines.check_network()
        with trio.move_on_after(ATTEMPT_SECONDS):
            try:
                return await trio.to_thread.run_sync(
                    question, *values, abandon_on_cancel=True, limiter=self._thread
                )
            except (Away, Changed):
                # The engine has ended a connection of which it knows that it is of no use.
                raise
            except trio.Cancelled:
                self._engine.close()
                raise
            except Exception as error:
                self._engine.close()
                raise Away(engines.named(error)) from error
        raise Away(f"no answer within {ATTEMPT_SECONDS:g} s")


@asynccontextmanager
async def connect(address: Address) -> AsyncIterator[Registers]:
    """Give the namespace at *address*, for the time of a block, also while the engine is away.

    Raises Refused as ``engines.check`` does. Call it in the process that goes on with the
    namespace, as its user, and after the last fork.
    """
    engine = engines.opened(address)
    try:
        yield Registers(engine, address)
    finally:
        engine.close()


def _found(entry: Entry, key: str) -> Record:
    return replace(decode(Record, entry.value, key), entry=entry)

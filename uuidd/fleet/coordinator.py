"""What the daemon asks of the engine that keeps a fleet's worker numbers.

An engine must be consistent: a write that was confirmed is never forgotten, and a read sees all
writes that were confirmed before it began. Nothing else is asked of it, neither a clock nor leases.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Protocol

from uuidd.fleet.record import Meta, Record, UnreadableError

ATTEMPT_SECONDS = 3.0
"""How long one question to an engine may take in all; the engine counts as away then."""

Version = Any
"""What an engine knows one state of a register by; only the engine that made it can read it."""


class Away(Exception):
    """The engine gave no answer that can be used; one line that says why, without its name.

    A write may have been done, and may even be done later: read the register to find out.
    """


class Changed(Exception):
    """The register, or its namespace, is not as it was read. Nothing was written."""


@dataclass(frozen=True, slots=True)
class Found:
    """A register as it was read, the *version* to replace it by, and when it was written.

    *written* is in Unix seconds, by the engine's clock; None if the engine does not know it.
    """

    record: Record
    version: Version
    written: float | None = None


@dataclass(frozen=True, slots=True)
class Freed:
    """How many times a number was let go so far, and which one was the last."""

    count: int
    number: int | None


class Coordinator(Protocol):
    """A namespace in an engine. Each question but ``freed`` ends within ATTEMPT_SECONDS.

    Otherwise it raises Away.

    Each raises UnreadableError (of ``record``) if what it reads is no record of ours. A question
    may be cancelled; a write may then have been done. Only one question at a time is asked.
    """

    @property
    def name(self) -> str:
        """The engine, for people: ``etcd h1:2379,h2:2379``."""

    async def meta(self) -> Meta | None:
        """Return the namespace, None if there is none. Ask this first.

        All questions below are about the namespace that was returned last; before that they raise
        RuntimeError.
        """

    async def create(self, meta: Meta, registers: Mapping[int, Record]) -> None:
        """Make the namespace, with these registers in it from the beginning.

        Raises Changed, and changes nothing, if there is a namespace.
        """

    async def taken(self) -> AbstractSet[int]:
        """Return the numbers that have a register."""

    async def registers(self) -> Mapping[int, Found | str]:
        """Return all registers; for one that cannot be read, a line that says why."""

    async def read(self, number: int) -> Found | None:
        """Return a register, None if there is none."""

    async def write(self, number: int, record: Record, version: Version | None) -> Version:
        """Replace the register of that *version*, or make it if *version* is None.

        Returns the new version. Raises Changed if it is not as it was read, exists already, or the
        namespace is gone. If the record says that the number is free, ``freed`` tells of it.
        """

    async def freed(self, after: int | None) -> Freed:
        """Return the number that was let go last, as soon as there were others than *after*.

        At once if *after* is None; otherwise it may take for ever. It may miss some, for some
        engines are told after the write, which may be done without that. After a restore the count
        is lower.
        """


def known_id(found: str | None) -> str:
    """Return the id that ``meta`` *found*. Raises RuntimeError if it has found none yet."""
    if found is None:
        raise RuntimeError("the namespace is asked for first, and must be there")
    return found


def is_let_go(record: Record) -> bool:
    """Whether a write of *record* is one of which ``freed`` tells."""
    return not (record.held or record.reserved)


def one_line(text: object) -> str:
    """Return an engine's own words as a line that can be logged, of 200 characters at most."""
    words = " ".join(str(text).split())
    return "".join(each if each.isprintable() else "?" for each in words)[:200]


def reason(error: BaseException) -> str:
    """Return as one line why an engine gave no answer; *error* may be one of its library.

    Libraries say only in a cause, which may be a group of errors, that a connection was refused.
    """
    if isinstance(error, (Away, UnreadableError)):
        return str(error)
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    kind, said = type(error).__name__, str(error)
    causes = ", ".join(dict.fromkeys(filter(None, _words_of_causes(error))))
    if causes not in said:
        said = f"{said}: {causes}" if said else causes
    return f"{kind}: {one_line(said)}" if said else kind


def _words_of_causes(error: BaseException) -> Iterator[str]:
    """Yield what the deepest causes of an error say; more than one if there is a group."""
    if isinstance(error, BaseExceptionGroup):
        causes = error.exceptions
    elif (cause := error.__cause__ or error.__context__) is not None:
        causes = (cause,)
    else:
        # A cancellation is no Exception, and no cause: somebody wanted it.
        if isinstance(error, Exception):
            yield _system_words(error) or str(error)
        return
    for cause in causes:
        yield from _words_of_causes(cause)


def _system_words(error: Exception) -> str:
    """Return the system's words for an error without those around it, "" if there are none."""
    number = error.errno if isinstance(error, OSError) else None
    words = os.strerror(number) if number else ""
    return words if words and str(error).endswith(words) else ""

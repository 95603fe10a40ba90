"""The client: time-based ids from the daemon's blocks, in the form that is wanted."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator
from itertools import repeat, starmap
from typing import TYPE_CHECKING, Any, Literal, overload
from uuid import UUID, SafeUUID

from uuidd.core.ids import runs
from uuidd_client import late
from uuidd_client.clocks import elapsed
from uuidd_client.forms import ITERATORS, new_uuid, set_int, set_is_safe
from uuidd_client.session import Session, Settings
from uuidd_client.supply import Run

if TYPE_CHECKING:
    from types import TracebackType

_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()


class Client:
    """Draws ids from the uuidd at *socket* (default: $UUIDD_SOCKET, else /run/uuidd/request).

    Thread-safe; a fork's child goes on with a line and blocks of its own. Nothing is connected
    before the first id is wanted.

    *fallback*: make ids in this process when no daemon answers; they are unique by 61 random bits
    and not marked safe. Otherwise, or with $UUIDD_FALLBACK=0, DaemonUnavailable is raised.
    *max_age*: seconds by which an id's time may lag; 0 makes each id a round trip, and so puts the
    ids of all processes in order. *timeout*: seconds to wait for the daemon.
    """

    def __init__(
        self,
        socket: str | os.PathLike[str] | None = None,
        fallback: bool = True,
        max_age: float = 0.1,
        timeout: float = 1.0,
    ) -> None:
        if _seconds("max_age", max_age) < 0:
            raise ValueError(f"max_age is {max_age!r}; it must be 0 or more seconds")
        if _seconds("timeout", timeout) <= 0:
            raise ValueError(f"timeout is {timeout!r}; it must be more than 0 seconds")
        path = None if socket is None else os.fspath(socket)
        self._settings = Settings(path, fallback, max_age, timeout)
        self._sessions: dict[str, Session] = {}
        self._cells: dict[tuple[str, str], list[Run]] = {}
        self._uuid1 = self.drawer("v1")
        self._uuid6 = self.drawer("v6")

    def uuid1(self) -> UUID:
        """Give a v1 UUID; ``is_safe`` is SafeUUID.safe if it came from the daemon (RFC 9562, 5.1).

        Raises DaemonUnavailable when there is no daemon, and no fallback.
        """
        return self._uuid1()

    def uuid6(self) -> UUID:
        """Give a v6 UUID: a v1 whose bytes sort by time (RFC 9562, 5.6). Otherwise as uuid1."""
        return self._uuid6()

    @overload
    def make(self, kind: str, count: int, form: Literal["uuid"] = "uuid") -> list[UUID]: ...
    @overload
    def make(self, kind: str, count: int, form: Literal["text"]) -> list[str]: ...
    @overload
    def make(self, kind: str, count: int, form: Literal["bytes"]) -> bytes: ...
    def make(self, kind: str, count: int, form: str = "uuid") -> list[Any] | bytes:
        """Give exactly *count* ids of *kind*, ``v1`` or ``v6``, in rising order.

        *form* is ``uuid`` or ``text`` for a list, ``bytes`` for all ids packed, 16 bytes each.
        Raises DaemonUnavailable when there is no daemon, and no fallback.
        """
        _known(kind, form)
        if type(count) is not int:
            raise TypeError(f"count is {count!r}; it must be an int")
        if count < 0:
            raise ValueError(f"count is {count}; it must be 0 or more")
        made = self._session().make(kind, count, form)
        return b"".join(made) if form == "bytes" else made

    @overload
    def iter(self, kind: str, form: Literal["uuid"] = "uuid") -> Iterator[UUID]: ...
    @overload
    def iter(self, kind: str, form: Literal["text"]) -> Iterator[str]: ...
    @overload
    def iter(self, kind: str, form: Literal["bytes"]) -> Iterator[bytes]: ...
    def iter(self, kind: str, form: str = "uuid") -> Iterator[Any]:
        """Give an endless iterator over ids of *kind*; each is as current as if made alone.

        *form* is ``uuid``, ``text`` or ``bytes`` (16 each). Threads may share it. ``next`` raises
        DaemonUnavailable when there is no daemon, and no fallback; it may be called again.
        """
        _known(kind, form)
        draw = self.drawer(kind) if form == "uuid" else self._plain_drawer(kind, form)
        return starmap(draw, repeat(()))

    def status(self) -> dict[str, Any]:
        """Give what the daemon tells of itself. Raises DaemonUnavailable when there is none."""
        return self._session().status()

    def close(self) -> None:
        """Hang up. The client can be used again, and connects then."""
        if self._sessions:
            self._session().close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def drawer(self, kind: str) -> Callable[[], UUID]:
        """Give a function that does what ``uuid1`` does, for *kind*, and a little faster."""
        _known(kind, "uuid")
        if not _GIL:
            return self._locked_drawer(kind, "uuid")
        cell, refill = self._cell(kind, "uuid")
        clock, new, uuid_type = elapsed, new_uuid, UUID
        put_int, put_is_safe = set_int, set_is_safe

        def draw_uuid() -> UUID:
            draw, safe, deadline = cell[0]
            try:
                value = draw()
                current = clock() < deadline[0]
            except StopIteration:
                value, current = 0, False
            if not current:
                value, safe = refill()
            made = new(uuid_type)
            put_int(made, value)
            put_is_safe(made, safe)
            return made

        return draw_uuid

    def _plain_drawer(self, kind: str, form: str) -> Callable[[], Any]:
        if not _GIL:
            return self._locked_drawer(kind, form)
        cell, refill = self._cell(kind, form)
        clock = elapsed

        def draw_plain() -> Any:
            draw, _, deadline = cell[0]
            try:
                value = draw()
                if clock() < deadline[0]:
                    return value
            except StopIteration:
                pass
            return refill()[0]

        return draw_plain

    def _locked_drawer(self, kind: str, form: str) -> Callable[[], Any]:
        """Give a drawer for an interpreter without the GIL: there, next() is not atomic."""
        return lambda: self._session().make(kind, 1, form)[0]

    def _cell(self, kind: str, form: str) -> tuple[list[Run], Callable[[], tuple[Any, SafeUUID]]]:
        """Give the place of the run that all drawers of a kind and form share, and its refill.

        The refill gives an id of the new run, and its mark.
        """
        cell = self._cells.setdefault((kind, form), [_EMPTY])

        def refill() -> tuple[Any, SafeUUID]:
            run, value = self._session().run(kind, form)
            cell[0] = run
            return value, run[1]

        return cell, refill

    def _session(self) -> Session:
        sessions = self._sessions
        current = sessions.get("current")
        if current is None:
            late.load()
            # No lock, for a fork's child could find it held: setdefault is atomic.
            current = sessions.setdefault("current", Session(self._settings))
        following = current.following()
        if following is not current:
            sessions["current"] = following
        return following


def _nothing() -> Any:
    raise StopIteration


_EMPTY: Run = (_nothing, SafeUUID.unknown, memoryview(bytes(8)).cast("d"))


def _known(kind: object, form: object) -> None:
    if not (isinstance(kind, str) and kind in runs.KINDS):
        raise ValueError(f"kind is {kind!r}; there are {', '.join(runs.KINDS)}")
    if not (isinstance(form, str) and form in ITERATORS):
        raise ValueError(f"form is {form!r}; there are {', '.join(ITERATORS)}")


def _seconds(name: str, value: object) -> float:
    """Give *value*, or -1 if it is no finite number. TypeError if it is no number at all."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} is {value!r}; it must be a number of seconds")
    return value if math.isfinite(value) else -1

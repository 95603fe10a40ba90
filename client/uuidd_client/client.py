"""The client: ids of any kind and form, made of time that the daemon leases or gives in blocks."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Iterator
from functools import partial

from uuidd.core.ids.checks import look_up, shown
from uuidd.core.ids.kinds import KINDS
from uuidd.core.typed import TYPE_CHECKING, Any
from uuidd_client import extension, life
from uuidd_client.channel import Channel, Settings
from uuidd_client.life import Life
from uuidd_client.notices import Stats
from uuidd_client.system import FINITE, SYSTEM_CLOCK, YEAR, ClientClock, default_path

if TYPE_CHECKING:
    from typing import Literal, Protocol, TypeVar, overload

    from uuidd_client.cutter import Cutter

    UuidKind = Literal["v1", "v4", "v6", "v7"]
    TextKind = Literal["flake", "ulid", "ksuid", "push_id"]
    IntKind = Literal["snowflake"]
    Kind = UuidKind | TextKind | IntKind
    Form = Literal["uuid", "text", "int", "bytes"]

    Id = TypeVar("Id", covariant=True)
    Result = TypeVar("Result")

    class Draws(Protocol[Id]):
        """What a factory returns. Only that of the extension has *next*."""

        def __call__(self) -> Id:
            """Return the next id."""

        @property
        def next(self) -> Id:
            """Return the next id without a call, after which a handler of a signal could fork."""


MAX_MAKE = 10_000_000
"""The most ids of one call: a second of ticks, and a gigabyte as UUIDs."""

MOST_LIVES = 100
"""Lives in which one call is begun again, after which the daemon counts as broken: its page tells
of another clone each time."""


class Client:
    """Ids from the uuidd at *socket* (default: $UUIDD_SOCKET, or /run/uuidd/request if not set).

    A client may be used in any thread, and after a fork: the child has connections, leases and
    blocks of its own. So has a copy or an unpickled client, which takes over only the settings. The
    client connects when it makes its first id. With its second request it takes a lease, if it can
    get one. From then on it makes ids without asking the daemon, and their time is the present one,
    to 1 ms.

    *fallback*: make ids in this process if no daemon answers. They are not marked safe: v1 and v6
    are unique by 61 random bits of the client, Flakes by 47, the others by their own random bits.
    Without it, or with $UUIDD_FALLBACK=0, DaemonUnavailable is raised.
    *max_age*: the most seconds by which the time in an id lags behind, if the id is made without a
    lease or in a list. With 0, the clock is read for each id (without a lease, the daemon is asked
    for each), and ids rise in the order in which all processes make them.
    *timeout*: seconds to wait for the daemon's answer (default: $UUIDD_TIMEOUT; if not set 5, or
    after a wait in vain 0.2 where there is a fallback). After a time-out, calls fall back or fail
    at once until the daemon answers again.

    A call waits if more ids are wanted than there is time for: 10 million a second of each kind (v1
    and v6 together) with a lease, and otherwise of all processes together (4,096,000 Snowflakes).
    """

    def __init__(
        self,
        socket: str | os.PathLike[str] | None = None,
        fallback: bool = True,
        max_age: float = 0.1,
        timeout: float | None = None,
        *,
        _clock: ClientClock | None = None,
    ) -> None:
        if type(fallback) is not bool:
            raise TypeError(f"fallback is {shown(fallback)}; it must be True or False")
        # Written so that nan, which compares false, is refused too.
        if not 0 <= _number("max_age", max_age) < float("inf"):
            raise ValueError(f"max_age is {shown(max_age)}; it must be {FINITE}, 0 or more")
        if timeout is not None and not 0 < _number("timeout", timeout) < float("inf"):
            raise ValueError(f"timeout is {shown(timeout)}; it must be {FINITE} above 0")
        if not isinstance(socket, str | bytes | os.PathLike | None):
            raise TypeError(
                f"socket is {shown(socket)}; it must be a path: a str or an os.PathLike"
            )
        path = None if socket is None else os.fsdecode(socket)
        age, patience = min(max_age, YEAR), None if timeout is None else min(timeout, YEAR)
        # Tests of this project set the clock. A copy of the client has that of the system again.
        clock = _clock or SYSTEM_CLOCK
        self._settings = Settings(path, fallback, age, patience, clock, *_cutters())
        # Once, so that all of it makes ids in the same way.
        self._core = extension.core
        # Apart, so that a client is in no cycle of references, and hangs up as soon as it is gone.
        self._channels = Channels(partial(Channel, self._settings))
        draws: Callable[[Kind], Any] = self.factory
        self._uuid1: Draws[uuid.UUID] = draws("v1")
        self._uuid6: Draws[uuid.UUID] = draws("v6")
        self._uuid7: Draws[uuid.UUID] = draws("v7")
        self._snowflake: Draws[int] = draws("snowflake")
        self._flake: Draws[str] = draws("flake")
        self._ulid: Draws[str] = draws("ulid")
        self._ksuid: Draws[str] = draws("ksuid")
        self._push_id: Draws[str] = draws("push_id")

    def uuid1(self) -> uuid.UUID:
        """Return a v1 UUID (RFC 9562, 5.1); ``is_safe`` is SafeUUID.safe if it is of the daemon.

        Raises DaemonUnavailable if no daemon answers, and there is no fallback.
        """
        return self._uuid1.next if self._core else self._uuid1()

    def uuid6(self) -> uuid.UUID:
        """Return a v6 UUID: a v1 whose bytes sort by time (RFC 9562, 5.6). Otherwise as uuid1."""
        return self._uuid6.next if self._core else self._uuid6()

    def uuid7(self) -> uuid.UUID:
        """Return a v7 UUID: Unix milliseconds first (RFC 9562, 5.7). Otherwise as uuid1.

        The v7 of one client rise even if UTC steps back: by any time with a daemon, by an hour at
        most without one. So do all other kinds but v1, v4 and v6.
        """
        return self._uuid7.next if self._core else self._uuid7()

    def snowflake(self) -> int:
        """Return a Snowflake: 63 bits that sort by time, with the daemon's worker number.

        Snowflakes have no fallback: raises DaemonUnavailable if no daemon answers, and its subclass
        NoWorkerId if the daemon has no worker number.
        """
        return self._snowflake.next if self._core else self._snowflake()

    def flake(self) -> str:
        """Return a Flake: 128 bits that sort by time, in base 62. Raises as uuid1."""
        return self._flake.next if self._core else self._flake()

    def ulid(self) -> str:
        """Return a ULID: 26 characters that sort by time. Raises as uuid1."""
        return self._ulid.next if self._core else self._ulid()

    def ksuid(self) -> str:
        """Return a KSUID: 27 characters that sort by time. Raises as uuid1."""
        return self._ksuid.next if self._core else self._ksuid()

    def push_id(self) -> str:
        """Return a Push ID: 20 characters that sort by time. Raises as uuid1."""
        return self._push_id.next if self._core else self._push_id()

    if TYPE_CHECKING:

        @overload
        def make(self, kind: UuidKind, count: int, form: None = None) -> list[uuid.UUID]: ...
        @overload
        def make(self, kind: TextKind, count: int, form: None = None) -> list[str]: ...
        @overload
        def make(self, kind: IntKind, count: int, form: None = None) -> list[int]: ...
        @overload
        def make(self, kind: Kind, count: int, form: Literal["uuid"]) -> list[uuid.UUID]: ...
        @overload
        def make(self, kind: Kind, count: int, form: Literal["text"]) -> list[str]: ...
        @overload
        def make(self, kind: Kind, count: int, form: Literal["int"]) -> list[int]: ...
        @overload
        def make(self, kind: Kind, count: int, form: Literal["bytes"]) -> bytes: ...
        @overload
        def make(self, kind: Kind, count: int, form: Form | None = None) -> list[Any] | bytes: ...

    def make(self, kind: str, count: int, form: str | None = None) -> list[Any] | bytes:
        """Return exactly *count* ids of *kind*, rising if the kind sorts by time.

        *form* is ``uuid``, ``text`` or ``int`` for a list, ``bytes`` for all ids in one bytes
        object. A kind has the forms that make sense for it; None is the one in which it is mostly
        used.

        Raises ValueError for more than 10,000,000, a second's worth of ticks: use ``iter`` for
        more. Raises DaemonUnavailable if no daemon answers, and there is no fallback.
        """
        form = known(kind, form)
        if not counted(count):
            # Without a request to the daemon.
            return b"" if form == "bytes" else []
        return self._channels.call(lambda channel: channel.make(kind, form, count))

    if TYPE_CHECKING:

        @overload
        def iter(self, kind: UuidKind, form: None = None) -> Iterator[uuid.UUID]: ...
        @overload
        def iter(self, kind: TextKind, form: None = None) -> Iterator[str]: ...
        @overload
        def iter(self, kind: IntKind, form: None = None) -> Iterator[int]: ...
        @overload
        def iter(self, kind: Kind, form: Literal["uuid"]) -> Iterator[uuid.UUID]: ...
        @overload
        def iter(self, kind: Kind, form: Literal["text"]) -> Iterator[str]: ...
        @overload
        def iter(self, kind: Kind, form: Literal["int"]) -> Iterator[int]: ...
        @overload
        def iter(self, kind: Kind, form: Literal["bytes"]) -> Iterator[bytes]: ...
        @overload
        def iter(self, kind: Kind, form: Form | None = None) -> Iterator[Any]: ...

    def iter(self, kind: str, form: str | None = None) -> Iterator[Any]:
        """Return an endless iterator over ids of *kind*; each is as current as if made alone.

        *form* is as for ``make``, but with ``bytes`` each id is an object. Threads may share the
        iterator. ``next`` raises DaemonUnavailable if no daemon answers, and there is no fallback;
        it may be called again.
        """
        draws: Callable[..., Any] = self.factory
        draw = draws(kind, form)
        return draw if self._core else _Ids(draw)

    def status(self) -> dict[str, Any]:
        """Return the daemon's status. Raises DaemonUnavailable if no daemon answers."""
        return self._channels.call(lambda channel: channel.status())

    def renew(self) -> None:
        """Drop all that was made ahead; see ``uuidd_client.renew``, which does the same.

        A snapshot is one of all clients of the process, so this is not for this one alone.
        """
        life.renew()

    def stats(self) -> Stats:
        """Return what this client has done in this process, in all threads."""
        return self._channels.call(lambda channel: channel.stats())

    def close(self) -> None:
        """Close the connections. The client can be used again: it connects then."""
        if self._channels.made:
            self._channels.call(lambda channel: channel.close())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._settings.path or default_path()!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._settings[:4]

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    if TYPE_CHECKING:

        @overload
        def factory(self, kind: UuidKind, form: None = None) -> Callable[[], uuid.UUID]: ...
        @overload
        def factory(self, kind: TextKind, form: None = None) -> Callable[[], str]: ...
        @overload
        def factory(self, kind: IntKind, form: None = None) -> Callable[[], int]: ...
        @overload
        def factory(self, kind: Kind, form: Form | None = None) -> Callable[[], Any]: ...

    def factory(self, kind: str, form: str | None = None) -> Callable[[], Any]:
        """Return a function that returns one id of *kind* in *form*, faster than the methods.

        It cannot be pickled; the client, its methods and the functions of the module can.
        """
        core, wanted, channels = self._core, known(kind, form), self._channels

        def first(channel: Channel) -> tuple[Any, Any]:
            """Return what makes the next ids, and the first: the extension wants the cutter."""
            made = channel.make(kind, wanted, 1)
            cutter: Any = channel.cutter(kind)
            if not core:
                cutter = nothing if cutter is None else cutter.draw(kind, wanted)
            return cutter, made if wanted == "bytes" else made[0]

        if core:
            draws: Callable[[], Any] = core.Draw(kind, wanted, partial(channels.call, first))
            return draws

        cut: Callable[[], Any] = nothing

        def draw() -> Any:
            """Return the next id."""
            nonlocal cut
            made = cut()
            if made is None:
                # First, for the end of a cutter may run the handler of a signal, which may fork.
                cut = nothing
                cut, made = channels.call(first)
            # Here nothing is called any more, because a handler could fork in it.
            return made

        return draw


class Channels:
    """The channels of a client: one in each life. *made* holds them by life.

    *new* returns the channel of a life, which follows that of the life before, if there was one.
    """

    def __init__(self, new: Callable[[Life, Channel | None], Channel]) -> None:
        self.new = new
        self.made: dict[Life, Channel] = {}

    def call(self, use: Callable[[Channel], Result]) -> Result:
        """Return what *use* returns for the channel of this life, in which all of it was done.

        The result belongs to this life alone: where that is over, the result is dropped, and made
        again in the next one.
        """
        lives = 0
        while True:
            alive = life.current()
            channel = self._of(alive)
            try:
                result = use(channel)
            except Exception:
                if not alive.over:
                    raise
            else:
                # This is the last look: after it, no handler runs before the caller has the result.
                if not alive.over:
                    return result
            if (lives := lives + 1) == MOST_LIVES:
                raise channel.broken(f"its page told of {MOST_LIVES} clones in one call")

    def cutter(self, kind: str) -> Cutter | None:
        """Return the cutter for ids of *kind* in this life, if threads may share it."""
        return self._of(life.current()).cutter(kind)

    def _of(self, alive: Life) -> Channel:
        """Return the channel of a life. That of the life before is dropped, and ends."""
        found = self.made.get(alive)
        if found is None:
            former = list(self.made.items())
            found = self.made.setdefault(alive, self.new(alive, former[-1][1] if former else None))
            for ended, _ in former:
                # Another thread, or a handler, may have made that of this life meanwhile.
                if ended.over:
                    self.made.pop(ended, None)
        return found


def _cutters() -> tuple[type[Cutter], bool]:
    """Return the class of cutters, and whether threads may share one."""
    if extension.core is not None:
        return extension.core.Cutter, True
    # Here, for nothing needs it where the extension makes the ids.
    from uuidd_client.cutter import Cutter

    return Cutter, getattr(sys, "_is_gil_enabled", lambda: True)()


class _Ids:
    """An endless iterator over what *draw* returns, which threads may share."""

    __slots__ = ("_draw",)

    def __init__(self, draw: Callable[[], Any]) -> None:
        self._draw = draw

    def __iter__(self) -> _Ids:
        return self

    def __next__(self) -> Any:
        # Both are of Python, so no handler of a signal can fork between the two.
        return self._draw()


def nothing(*_: str) -> None:
    """Stand for what draws ids of a cutter where there is none."""


def known(kind: str, form: object) -> str:
    """Return *form*, or the default of *kind* for None.

    Raises ValueError for an unknown *kind*, and for a form that it does not have.
    """
    forms = look_up("kind", kind, KINDS).forms
    if form is None:
        return forms[0]
    if not (isinstance(form, str) and form in forms):
        raise ValueError(f"form is {shown(form)}; the forms of {kind} are {', '.join(forms)}")
    return form


def counted(count: object) -> int:
    """Return *count*, 0 to MAX_MAKE. Raises ValueError, or TypeError if it is not an int."""
    if type(count) is not int:
        raise TypeError(f"count is {shown(count)}; it must be an int")
    if count < 0:
        raise ValueError(f"count is {shown(count)}; it must be 0 or more")
    if count > MAX_MAKE:
        raise ValueError(
            f"count is {shown(count)}; make returns {MAX_MAKE} ids at most: call it again for more,"
            " or use iter, which has no limit"
        )
    return count


def _number(name: str, value: object) -> float:
    """Return *value*. Raises TypeError if it is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} is {shown(value)}; it must be a number of seconds")
    return value

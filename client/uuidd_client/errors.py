"""What a client raises."""

from __future__ import annotations

from typing import Any


class DaemonUnavailable(Exception):
    """No daemon gave what was asked for: *path* is the socket, *cause* says what happened there.

    *late*: it did not answer within the time-out, or had not yet answered an earlier request.
    *code*: it answered with an error, which has this code; None for any other cause.
    """

    def __init__(
        self, path: str, cause: str, *, late: bool = False, code: str | None = None
    ) -> None:
        refused = code is not None
        what = f"uuidd at {path} gives none" if refused else f"no answer from uuidd at {path}"
        super().__init__(f"{what}: {cause}")
        self.path = path
        self.cause = cause
        self.late = late
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception's own way would call the class with the message alone.
        return _revived, (type(self), self.args), self.__dict__


class NoWorkerId(DaemonUnavailable):
    """The daemon has no worker number, without which there are no Snowflakes."""

    def __init__(self, path: str) -> None:
        super().__init__(
            path,
            "it has no worker number; start it with --worker N, 0 to 1023",
            code="no_worker_id",
        )


class TimeOutOfRange(Exception):
    """Ids of *kind* cannot tell the time that it is: only ticks from *begin* to before *end*."""

    def __init__(self, kind: str, tick: int, begin: int, end: int) -> None:
        from uuidd.core.ids.times import text

        super().__init__(
            f"the time is {text(tick)}; a {kind} tells times from {text(begin)} to {text(end - 1)}:"
            " check the clock, or use another kind"
        )
        self.kind = kind

    def __reduce__(self) -> tuple[Any, ...]:
        return _revived, (type(self), self.args), self.__dict__


class RateExceeded(Exception):
    """More ids of *kind* were wanted than are free just now, by a client that does not wait.

    Nothing was given out: *free* of *wanted* can be had at once.
    """

    def __init__(self, kind: str, wanted: int, free: int) -> None:
        super().__init__(
            f"{wanted} ids of kind {kind} are more than the {free} that are free now; ask for"
            " fewer, again later, or from a Client(wait=True)"
        )
        self.kind = kind
        self.wanted = wanted
        self.free = free

    def __reduce__(self) -> tuple[Any, ...]:
        return _revived, (type(self), self.args), self.__dict__


def _revived(kind: type[Exception], args: tuple[Any, ...]) -> Exception:
    made = kind.__new__(kind)
    made.args = args
    return made

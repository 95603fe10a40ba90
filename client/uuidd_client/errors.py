"""The exceptions of the client."""

from __future__ import annotations

import errno
import os

from uuidd.core.typed import TYPE_CHECKING, Any
from uuidd.core.wire import MOST_PATH_BYTES

if TYPE_CHECKING:
    from typing import Self

CODES = (
    "bad_params",
    "busy",
    "must_wait",
    "no_lease",
    "no_worker_id",
    "not_permitted",
    "unavailable",
    "unknown_method",
)
"""The codes of the daemon's errors; see uuidd/protocol.md."""

SYSTEM_REASONS = {
    errno.ENOENT: "no_socket",
    errno.ENOTDIR: "no_socket",
    errno.EACCES: "no_access",
    errno.EPERM: "no_access",
    errno.ECONNREFUSED: "no_listener",
}
"""The reasons for which there is no connection, by the error of the system; else ``system``."""


class _Copied(Exception):
    """An error that is pickled and copied whole: its class takes more than the text."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[Exception], args: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error


class DaemonUnavailable(_Copied):
    """There is no daemon, or it refused: *path* is its socket, *cause* says what happened.

    *reason* is a word for programs, of those that client/README.md lists: the texts may change.
    *code*: the code of the error that it answered with; None for any other cause.
    """

    def __init__(
        self, path: str, cause: str, reason: str = "refused", *, code: str | None = None
    ) -> None:
        refused = code is not None
        what = f"uuidd at {path} refused" if refused else f"no answer from uuidd at {path}"
        super().__init__(f"{what}: {cause}")
        self.path = path
        self.cause = cause
        self.reason = code if code in CODES else reason
        self.code = code

    def again(self) -> Self:
        """Return an error that says the same, without the traceback of this one."""
        again: Self = _rebuild(type(self), self.args, self.__dict__)
        return again


def unreachable(path: str, error: OSError) -> DaemonUnavailable:
    """Return the error of a client that the system let have no connection."""
    cause = error.strerror or str(error)
    size = len(os.fsencode(path))
    if size > MOST_PATH_BYTES:
        # Python refuses such a path itself, and does not say what is allowed.
        cause = f"the path has {size} bytes, and a socket's at most {MOST_PATH_BYTES}"
    return DaemonUnavailable(path, cause, SYSTEM_REASONS.get(error.errno or 0, "system"))


class NoWorkerId(DaemonUnavailable):
    """The daemon has no worker number, which Snowflakes need."""

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(path, cause, code="no_worker_id")


class TimeOutOfRange(_Copied):
    """Ids of *kind* cannot hold the current time: only ticks from *begin* to before *end*."""

    def __init__(self, kind: str, tick: int, begin: int, end: int) -> None:
        from uuidd.core.ids.times import text

        super().__init__(
            f"the time is {text(tick)}; a {kind} holds times from {text(begin)} to {text(end - 1)}:"
            " check the clock, or use another kind"
        )
        self.kind = kind

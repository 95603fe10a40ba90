"""What the administrator chose for the daemon, and the limits that nobody chooses."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from uuidd.core.ids.snowflake import TWITTER_EPOCH
from uuidd.core.timeline.slew import MAX_LEAD_SECONDS
from uuidd.core.timeline.steady import Rollback

if TYPE_CHECKING:
    from uuidd.fleet.address import Fleet
    from uuidd.privileges import User


Number = TypeVar("Number", int, float)


def _limit(default: Number, least: Number, counted: str) -> Number:
    """A limit, the least that it can be set to, and what it counts, for the help of its option."""
    found: Number = field(default=default, metadata={"least": least, "help": counted})
    return found


@dataclass(slots=True)
class Limits:
    """What one client, or all together, can ask of the daemon; each can be set, and is in status.

    All parts of the daemon read the same object. With less than the least of a limit the daemon
    would serve nobody.
    """

    # The longest useful one, a take or make with the longest names and numbers, has about 40.
    request_bytes: int = _limit(4096, 64, "the most bytes that one request may have")

    # Those sent beyond it wait in the socket.
    pipelined: int = _limit(
        1024,
        1,
        "the most requests of one connection that are answered in a row, before their replies are"
        " sent and other connections are served",
    )

    # Each costs some KiB, and a process has about as many descriptors.
    connections: int = _limit(16384, 1, "the most connections of all users together")

    # One user alone cannot shut out the others.
    connections_per_uid: int = _limit(
        8192,
        1,
        "the most connections of one user; root and the daemon's own user have no such limit",
    )

    # More are refused at once, so that they cost no more than an answer does.
    waiting_per_uid: int = _limit(
        64,
        1,
        "the most requests of one user that wait for free ticks; further ones are refused",
    )

    # Each may keep some 100 KiB.
    unread_per_uid: int = _limit(
        256,
        1,
        "the most connections of one user that have not read their replies; further ones are"
        " closed",
    )

    # Clients send a request in one piece; only a broken or hostile one takes longer. But on a busy
    # host a well-behaved client may not run for 0.1 s between two system calls.
    request_seconds: float = _limit(
        5.0,
        0.1,
        "the most seconds from a request's first byte to its last; when a limit on connections is"
        " reached, also from connecting to the first request",
    )

    reply_seconds: float = _limit(
        5.0, 0.1, "the most seconds that a client may take to read a reply"
    )


ROOM_SECONDS = 0.2
"""How long a whole block waits for free ticks: twice what the largest needs when no other asks."""

SOON_SECONDS = 0.05
"""How long a request with ``wait=false`` may take. A save to a disk that works takes less, and our
client considers a daemon silent after four times as long."""

MAX_REJECTIONS = 32
"""Rejected connections that wait to be told why at the same time; more are closed at once."""

SPARE_DESCRIPTORS = 96
"""Descriptors kept for files, the log, the queues of users, and rejected connections."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the administrator chose.

    *socket* is None when systemd passes it; *pid_file* is None when none is wanted; *idle_timeout*
    is in seconds, 0 for never. *worker* is the worker number of Snowflakes, or *fleet* says where
    to get one; *epoch* is theirs in Unix milliseconds; *max_lead*, in seconds, and *rollback* are
    the steady timeline's. *require_sync* is the largest error of the clock, in seconds, with which
    the steady timeline begins, None for any. *go_on_after_clone* keeps a *worker* number that was
    set by hand after the machine was cloned. *user* is the one that root becomes once it listens.
    """

    socket: Path | None
    state: Path
    node: str = "random"
    pid_file: Path | None = None
    idle_timeout: int = 0
    limits: Limits = field(default_factory=Limits)
    worker: int | None = None
    fleet: Fleet | None = None
    epoch: int = TWITTER_EPOCH
    max_lead: float = MAX_LEAD_SECONDS
    rollback: Rollback = "slew"
    require_sync: float | None = None
    go_on_after_clone: bool = False
    user: User | None = None

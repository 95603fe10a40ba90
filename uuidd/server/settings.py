"""What the administrator chose for the daemon, and the limits that nobody chooses."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from uuidd.core.ids.snowflake import TWITTER_EPOCH
from uuidd.core.timeline.slew import MAX_LEAD_SECONDS
from uuidd.core.timeline.steady import Rollback

if TYPE_CHECKING:
    from uuidd.fleet.address import Fleet
    from uuidd.privileges import User


@dataclass(slots=True)
class Limits:
    """What one client, or all together, can ask of the daemon; each can be set, and is in status.

    All parts of the daemon read the same object.
    """

    request_bytes: int = 4096
    """Bytes of one rpc request. The longest useful one has about 40."""

    pipelined: int = 1024
    """Requests of one connection that are answered before their replies are sent and others have
    their turn. Those sent beyond it wait in the socket."""

    connections: int = 16384
    """Connections in all: each costs some KiB, and a process has about as many descriptors."""

    connections_per_uid: int = 8192
    """Connections of one user, so that one alone cannot shut out the others. Root and the daemon's
    own user are exempt."""

    waiting_per_uid: int = 64
    """Requests of one user that wait for free ticks at the same time. More are refused at once, so
    that they cost no more than an answer does."""

    unread_per_uid: int = 256
    """Connections of one user whose replies wait to be read: each may keep some 100 KiB. One more
    is closed at once."""

    request_seconds: float = 5.0
    """From a request's first byte to its last. Clients send a request in one piece; only a broken
    or hostile one takes longer. When there is no room for another connection, this is also how long
    a connection may wait for its first request."""

    reply_seconds: float = 5.0
    """For a reply to be read."""


LEAST: dict[str, int | float] = {
    # A take or make with all its parameters, and the longest names and numbers, has less.
    "request_bytes": 64,
    # Below one, no request is ever answered, and no connection accepted.
    "pipelined": 1,
    "connections": 1,
    "connections_per_uid": 1,
    # One request that waits, and one reply that is on its way, for each user.
    "waiting_per_uid": 1,
    "unread_per_uid": 1,
    # On a busy host a well-behaved client may not run for as long between two system calls.
    "request_seconds": 0.1,
    "reply_seconds": 0.1,
}
"""The least that each limit can be set to: with less the daemon would serve nobody."""

ROOM_SECONDS = 0.2
"""How long a whole block waits for free ticks: twice what the largest needs when no other asks."""

SOON_SECONDS = 0.05
"""How long a request with ``wait=false`` may take. A save to a disk that works takes less, and our
client considers a daemon silent after four times as long."""

STOP_SECONDS = 2.0
"""How long a stopping daemon goes on with the requests that it has begun to answer."""

LAST_SAVE_SECONDS = 10.0
"""How long a stopping daemon waits for its last saves; without them it loses a generation."""

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
    *level* is the log level.
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
    level: int = logging.INFO

"""The limits: what one caller, or all together, can ask of the daemon."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Limits:
    """What is in force. Each can be set on the command line and is shown in ``status``."""

    request_bytes: int = 4096
    """Bytes of one rpc request. The longest useful one has about 40."""

    pipelined: int = 1024
    """Requests of one connection that are answered before their replies are sent, and others have
    their turn; what is sent beyond waits in the socket."""

    connections: int = 16384
    """Connections in all: each costs some KiB, and a process has about as many descriptors."""

    connections_per_uid: int = 8192
    """Connections of one user, so that one alone cannot shut out the others. Root and the daemon's
    own user are excepted."""

    waiting_per_uid: int = 64
    """Requests of one user that wait for room at any one time. More are refused at once, so that
    they cost no more than an answer does."""

    unread_per_uid: int = 256
    """Connections of one user whose replies wait to be read: each may keep some 100 KiB. One more
    is closed at once."""

    request_seconds: float = 5.0
    """From a request's first byte to its last. Callers send a request in one piece; only a broken
    or hostile one takes longer. Also how long a connection may wait for its first request where
    there is no room for another connection."""

    reply_seconds: float = 5.0
    """For a reply to be read."""


LEAST: dict[str, int | float] = {
    # A take or make with all its parameters, and the longest names and numbers, has less.
    "request_bytes": 64,
    # Below one, no request is ever answered, or nobody gets in.
    "pipelined": 1,
    "connections": 1,
    "connections_per_uid": 1,
    # One request that may wait, and one reply that may be on its way, for each user.
    "waiting_per_uid": 1,
    "unread_per_uid": 1,
    # On a busy host a caller that means well may not run for so long between two system calls.
    "request_seconds": 0.1,
    "reply_seconds": 0.1,
}
"""The least that each limit can be set to: with less the daemon would serve nobody."""

ROOM_SECONDS = 0.2
"""How long a whole grant waits for room: twice what the largest needs when nobody else asks."""

SOON_SECONDS = 0.05
"""How long a request with ``wait=false`` may take. A save to a disk that works takes less, and our
client takes a daemon for silent after four times as long."""

STOP_SECONDS = 2.0
"""How long a stopping daemon goes on with what is being answered."""

LAST_SAVE_SECONDS = 10.0
"""How long a stopping daemon waits for its last saves; without them it loses a generation."""

TURNED_AWAY = 32
"""Connections over a limit that are told so at any one time; more are closed at once."""

SPARE_DESCRIPTORS = 96
"""Descriptors kept for files, the log, the queues of users, and those who are turned away."""


def as_settings(limits: Limits) -> dict[str, int | float]:
    """Give the limits by name."""
    return {field.name: getattr(limits, field.name) for field in fields(limits)}

"""What the administrator chose for the daemon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from uuidd.core.ids.snowflake import TWITTER_EPOCH
from uuidd.core.timeline.steady import MAX_LEAD_SECONDS, Rollback
from uuidd.privileges import User
from uuidd.server.limits import Limits


class Reread(NamedTuple):
    """What a running daemon takes over when it is told to reload: its limits and its log level.

    *restart_for* names the options that were changed too, and that only a restart takes over.
    """

    limits: Limits
    level: int
    restart_for: tuple[str, ...] = ()


class RereadError(Exception):
    """What should be taken over cannot be used; one line that says why."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the administrator chose.

    *socket* is None when systemd passes it; *pid_file* is None when none is wanted; *idle_timeout*
    is in seconds, 0 for never. *worker* is the machine number of Snowflakes, *epoch* theirs in Unix
    milliseconds; *max_lead*, in seconds, and *rollback* are the steady timeline's. *user* is whom
    root becomes once it listens. *reread* gives anew what may change while the daemon runs; it
    raises RereadError.
    """

    socket: Path | None
    state: Path
    node: str = "random"
    pid_file: Path | None = None
    idle_timeout: int = 0
    limits: Limits = field(default_factory=Limits)
    worker: int | None = None
    epoch: int = TWITTER_EPOCH
    max_lead: float = MAX_LEAD_SECONDS
    rollback: Rollback = "slew"
    user: User | None = None
    reread: Callable[[], Reread] | None = None

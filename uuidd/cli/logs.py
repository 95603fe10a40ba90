"""Where the daemon's log goes: standard error, or syslog from the background."""

from __future__ import annotations

import logging
import logging.handlers
from pathlib import Path

SYSLOG = Path("/dev/log")


def to_stderr(level: int) -> None:
    """Log to standard error from *level* on, an event a line."""
    _use(logging.StreamHandler(), "uuidd: %(levelname)s: %(message)s", level)


def to_syslog(level: int) -> None:
    """Log to syslog from *level* on, where there is one; a background has nowhere else."""
    try:
        handler: logging.Handler = logging.handlers.SysLogHandler(
            str(SYSLOG), logging.handlers.SysLogHandler.LOG_DAEMON
        )
    except OSError:
        handler = logging.NullHandler()
    _use(handler, "uuidd[%(process)d]: %(message)s", level)


def _use(handler: logging.Handler, form: str, level: int) -> None:
    handler.setFormatter(logging.Formatter(form))
    logging.basicConfig(handlers=[handler], level=level, force=True)

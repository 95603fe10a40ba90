"""A daemon that saves as far ahead as one that has run for long: by $REACH seconds, from its start.

A daemon that has just started reaches half its uptime, and tests have no time for that.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from unittest import mock

from tests.rig import Daemon
from uuidd import cli


def main(words: list[str]) -> int | None:
    """Be the daemon."""
    reach = float(os.environ["REACH"])
    with (
        mock.patch("uuidd.server.startup.FIRST_REACH", reach),
        mock.patch("uuidd.server.saver.FIRST_REACH", reach),
    ):
        return cli.main(words)


def far_reaching(
    seconds: float,
    *arguments: str,
    socket: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Daemon:
    """Return a daemon whose saves reach so far from its start on."""
    known = {**(environment or {}), "REACH": str(seconds)}
    return Daemon(*arguments, socket=socket, module=__name__, environment=known)

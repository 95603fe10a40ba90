"""``uuidctl renew``: has the daemon share nothing any longer with a copy of this machine."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
from typing import Any

from uuidd_client.command.common import timeout
from uuidd_client.system import default_path

RNDRESEEDCRNG = 0x5207
"""From <linux/random.h>: let the kernel's random generator draw a new key (Linux 4.17)."""


def add_to(commands: Any) -> None:
    """Add the command to an argparse parser's commands."""
    command = commands.add_parser(
        "renew",
        help="tell the daemon that this machine was cloned",
        description="Tell the daemon that this machine was cloned, for hosts where no signal does."
        " The daemon draws another node, and all programs of this host drop what they have in"
        " advance. Only root and the user that the daemon runs as may do this. Run it in each clone"
        " before the clone is used.",
    )
    command.set_defaults(do=_do)


def _do(given: argparse.Namespace) -> int:
    # Not at the start: most commands need none.
    from uuidd_client.connection import Connection

    # The clone has the kernel's old key too. Only root may ask for a new one. A kernel that has
    # heard of the clone itself (vmgenid) has drawn it.
    with contextlib.suppress(OSError), open("/dev/urandom", "rb") as device:
        fcntl.ioctl(device, RNDRESEEDCRNG)
    with contextlib.closing(Connection(given.socket or default_path(), timeout())) as connection:
        renewed = connection.renew()
    saved = "" if renewed.get("saved") else "; the state is saved within 10 s"
    ended = renewed.get("leases", 0)
    print(f"renewed, {ended} lease{'' if ended == 1 else 's'} ended{saved}")
    return 0

"""The options that say who the daemon is to a fleet's engine; ``uuidd workers`` has them too."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuidd.fleet.address import Address

_FILES = {
    "secret": "the file with the user's password at the engine, on one line; no other user of this"
    " host may be able to read it",
    "ca": "the file with the certificates (PEM) that may sign the engine's; TLS is used, and names"
    " are checked, with zks://, etcds:// and postgresql:// (default: the system's)",
    "cert": "the file with the certificate (PEM) to show the engine",
    "key": "the file with that certificate's key (PEM); no other user of this host may be able to"
    " read it",
}


def add_access(made: argparse._ActionsContainer) -> None:
    """Add --worker-user, --worker-secret, --worker-ca, --worker-cert and --worker-key."""
    made.add_argument("--worker-user", default="", metavar="NAME", help="the user at the engine")
    for name, what in _FILES.items():
        made.add_argument(
            f"--worker-{name}",
            metavar="FILE",
            help=f"{what}; without a slash in it, FILE is one of systemd's credentials",
        )


def reached(address: Address, given: argparse.Namespace) -> Address:
    """Return *address* with what these options say, and absolute paths. Raises Refused."""
    from uuidd.fleet.address import place

    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    files = {name: getattr(given, f"worker_{name}") for name in _FILES}
    paths = {
        name: place(f"--worker-{name}", text, folder)
        for name, text in files.items()
        if text is not None
    }
    return replace(address, user=given.worker_user or address.user, files=paths)


def span(text: str) -> float:
    """Return the seconds in a span such as ``20s``, ``10m``, ``2h`` or ``1d``.

    Raises ArgumentTypeError for anything else, and for more than 30 days.
    """
    number, unit = text[:-1], text[-1:]
    plain = number.isascii() and number.replace(".", "", 1).isdigit() and len(number) < 10
    seconds = float(number) * _UNITS[unit] if plain and unit in _UNITS else 0.0
    if not 0 < seconds <= MAX_SPAN:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is not a span above 0 and up to 30d, such as 20s, 10m, 2h or 1d"
        )
    return seconds


_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
MAX_SPAN = 30 * 86400.0

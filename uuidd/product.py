"""The product UUID, which tells a machine from a copy of its disk (SMBIOS, 7.2.1).

A hypervisor gives each machine another one, and keeps it over restarts and live migrations.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from uuidd.statefile import digest

CREDENTIAL = "product-uuid"
"""The name under which systemd passes what only root can read to a service of another user."""

FILES = (
    Path("/sys/class/dmi/id/product_uuid"),
    Path("/sys/firmware/devicetree/base/vm,uuid"),
    Path("/sys/hypervisor/uuid"),
)
"""Where kernels show it: by SMBIOS, which only root can read; by a device tree; under Xen."""

_MAX_BYTES = 64

_SHARED = (
    bytes.fromhex("03000200040005000006000700080009"),
    bytes.fromhex("123456781234567890abcddeefaabbcc"),
)
"""What vendors ship on boards to which they gave none."""


def product_hash(files: Iterable[Path] | None = None) -> str:
    """Return a hash of this machine's product UUID, "" if it has none that this user can read.

    *files* are where to look, the first one first: the credential of the service, then FILES. It is
    hashed because only root may read it, and all users can read the state.
    """
    for path in _places() if files is None else files:
        found = _read(path)
        if found is not None:
            return digest(b"uuidd product " + _in_any_order(found))
    return ""


def _places() -> Iterator[Path]:
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if folder:
        yield Path(folder, CREDENTIAL)
    yield from FILES


def _read(path: Path) -> bytes | None:
    """Return the UUID in a file; None if there is none, or one that many machines have."""
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES).decode("ascii").rstrip("\0").strip()
        # Not by the library's UUID: its import would delay each start.
        found = bytes.fromhex(text.replace("-", ""))
    except (OSError, ValueError):
        return None
    few = len(set(found)) <= 2
    shared = _in_any_order(found) in map(_in_any_order, _SHARED)
    return None if len(found) != 16 or few or shared else found


def _in_any_order(found: bytes) -> bytes:
    """Return the same bytes for a UUID and the one with its first three fields turned round.

    Before SMBIOS 2.6 nothing said which of the two is meant, so an update may change it.
    """
    return min(found, found[3::-1] + found[5:3:-1] + found[7:5:-1] + found[8:])

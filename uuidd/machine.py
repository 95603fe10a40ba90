"""Which host this is: a state of another one must not be used."""

from __future__ import annotations

from pathlib import Path

from uuidd.core.timeline.state import State
from uuidd.statefile import UnusableError, digest


def check_machine(state: State, machine: str) -> None:
    """See to it that a state is not of another host. Raises UnusableError.

    While one of both has no machine-id they count as the same: a host may get its own later
    (machine-id(5)).
    """
    if "" not in (state.machine, machine) and state.machine != machine:
        raise UnusableError("it is of another host (machine-id differs)")


def machine_hash(path: Path = Path("/etc/machine-id")) -> str:
    """Give what tells this host from others: a hash of its machine-id, "" while it has none.

    Hashed, for machine-id(5) asks not to show it to others, and the state file can be read by all.
    """
    try:
        machine_id = path.read_text().strip()
    except (OSError, ValueError):
        return ""
    # An image has one of these until its hosts get their own at their first boot.
    known = machine_id not in ("", "uninitialized")
    return digest(b"uuidd " + machine_id.encode()) if known else ""

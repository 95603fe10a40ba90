"""What Segment's ``ksuid`` prints of a KSUID: ``uuidctl inspect -f``."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuidd.core.ids.inspect import Reading

PARTS = ("string", "time", "timestamp", "payload", "raw")
"""The formats that show a part of it, and not all."""

_ID_BYTES, _PAYLOAD_BYTES = 20, 16


def add_to(command: argparse.ArgumentParser) -> None:
    """Add -f to the command."""
    command.add_argument(
        "-f",
        dest="format",
        choices=("inspect", *PARTS),
        metavar="FORMAT",
        help="for KSUIDs: print this, as ksuid does, in UTC: string, inspect, time or timestamp,"
        " or the bytes of the payload or (raw) of the whole",
    )


def show(reading: Reading, form: str) -> None:
    """Print a KSUID in one of the formats; its bytes without a line break."""
    if form in ("payload", "raw"):
        raw = reading.value.to_bytes(_ID_BYTES, "big")
        sys.stdout.flush()
        sys.stdout.buffer.write(raw if form == "raw" else raw[-_PAYLOAD_BYTES:])
        sys.stdout.buffer.flush()
        return
    texts = {
        "string": reading.text,
        "inspect": f"{inspected(reading)}\n",
        "time": _time(reading),
        "timestamp": str(reading.fields["timestamp"]),
    }
    print(texts[form], flush=True)


def inspected(reading: Reading) -> str:
    """Return what ``ksuid -f inspect`` prints."""
    fields = reading.fields
    return (
        f"REPRESENTATION:\n\n  String: {reading.text}\n     Raw: {reading.value:040X}\n\n"
        f"COMPONENTS:\n\n       Time: {_time(reading)}\n  Timestamp: {fields['timestamp']}\n"
        f"    Payload: {fields['payload']}"
    )


def _time(reading: Reading) -> str:
    return str(reading.fields["time"]).replace("T", " ").replace("Z", " +0000 UTC")

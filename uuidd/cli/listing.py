"""How ``uuidd workers list`` shows a fleet's worker numbers: as a table, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from uuidd.core.ids.ticks import TICKS_PER_MS, TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.core.ids.times import text
from uuidd.fleet.administering import standing
from uuidd.fleet.record import Meta, Record

_UNUSED_SECONDS = 100 * 31_557_600.0
"""A register that is so old was made for a number that nobody used."""


def rows(registers: Mapping[int, Record | str], now: int) -> list[dict[str, Any]]:
    """Return what is shown of each register, at the tick *now*."""
    shown: list[dict[str, Any]] = []
    for number, record in sorted(registers.items()):
        if isinstance(record, str):
            shown.append({"number": number, "state": "unreadable", "why": record})
            continue
        # The writer's clock against the engine's, which not every engine tells.
        written = None if record.entry is None else record.entry.written
        at = (record.at - UNIX_EPOCH) / TICKS_PER_SECOND
        shown.append(
            {
                "number": number,
                "host": record.host,
                "state": standing(record, now),
                "reserved": record.reserved,
                "until": text(record.until, TICKS_PER_MS),
                "until_in": round((record.until - now) / TICKS_PER_SECOND, 1),
                "written_ago": round((now - record.at) / TICKS_PER_SECOND, 1),
                "clock_offset": None if written is None else round(at - written, 3),
                "claim": record.claim,
                "machine": record.machine,
                "version": record.version,
            }
        )
    return shown


def as_json(name: str, meta: Meta, rows: list[dict[str, Any]]) -> str:
    """Return the namespace and these rows as JSON; *name* is the engine's."""
    namespace = {"id": meta.id, "epoch": meta.epoch, "low": meta.low, "high": meta.high}
    return json.dumps({"engine": name, "namespace": namespace, "numbers": rows}, indent=1)


def as_table(meta: Meta, rows: list[dict[str, Any]]) -> str:
    """Return a line for the namespace, and one for each number that has a register."""
    free = meta.high - meta.low + 1 - sum(meta.low <= row["number"] <= meta.high for row in rows)
    lines = [
        f"namespace {meta.id}, numbers {meta.low} to {meta.high}, epoch"
        f" {text(UNIX_EPOCH + meta.epoch * TICKS_PER_MS, TICKS_PER_MS)}; {free} were never used"
    ]
    if rows:
        lines.append(
            f"{'number':>6}  {'state':10} {'until':>12} {'written':>12} {'clock':>8}  host"
        )
    for row in rows:
        if "why" in row:
            lines.append(f"{row['number']:>6}  unreadable: {row['why']}")
            continue
        offset = row["clock_offset"]
        state = f"{row['state']}{'*' if row['reserved'] and row['state'] != 'reserved' else ''}"
        lines.append(
            f"{row['number']:>6}  {state:10} {_ahead(row['until_in']):>12}"
            f" {_ahead(-row['written_ago']):>12} {'' if offset is None else f'{offset:+z.1f} s':>8}"
            f"  {row['host']}"
        )
    return "\n".join(lines)


def _ahead(seconds: float) -> str:
    """Return a span from now, such as ``in 9.5 min`` or ``20 s ago``."""
    size = abs(seconds)
    if size > _UNUSED_SECONDS:
        return "-"
    for unit, length in (("years", 31_557_600.0), ("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if size >= 2 * length:
            span = f"{size / length:.1f} {unit}"
            break
    else:
        span = f"{size:.0f} s"
    return f"in {span}" if seconds > 0 else f"{span} ago"

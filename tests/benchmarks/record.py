"""results.json: what was measured."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.rows import Row

FILE = Path(__file__).with_name("results.json")


@dataclass(frozen=True, slots=True)
class Record:
    """What was measured, on which machine, and with what; *run* is for people: no fixed keys."""

    hardware: str
    kernel: str
    run: dict[str, Any]
    rows: list[Row]


def hardware() -> str:
    """Return this machine's processor, its cores, and whether it is a virtual machine."""
    told: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        told.setdefault(key.strip(), value.strip())
    virtual = ", virtual machine" if "hypervisor" in told.get("flags", "").split() else ""
    return f"{told.get('model name', platform.machine())}, {os.cpu_count()} cores{virtual}"


def kernel() -> str:
    """Return this machine's kernel and its version."""
    return f"{platform.system()} {platform.release().partition('-')[0]}"


def load(text: str) -> Record:
    """Return the record in a JSON text."""
    told = json.loads(text)
    return Record(**{**told, "rows": [Row(**row) for row in told["rows"]]})


def dump(record: Record) -> str:
    """Return the JSON text for a record, with each row on a line of its own."""
    told = asdict(record)
    rows = ",\n".join(map(json.dumps, told.pop("rows")))
    return f'{json.dumps(told)[:-1]}, "rows": [\n{rows}\n]}}\n'

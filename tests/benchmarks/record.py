"""results.json: what was measured, on each machine."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.benchmarks.rows import Row

FILE = Path(__file__).with_name("results.json")


@dataclass(frozen=True, slots=True)
class Machine:
    """What was measured on one machine, and with what; *run* is for people and has no fixed keys.

    A record whose figures came from elsewhere may have ratios alone; *note* says so.
    """

    name: str
    hardware: str
    kernel: str
    run: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    rows: list[Row] = field(default_factory=list)


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


def load(text: str) -> list[Machine]:
    """Return the machines that a JSON text tells of."""
    return [
        Machine(**{**machine, "rows": [Row(**row) for row in machine["rows"]]})
        for machine in json.loads(text)
    ]


def dump(machines: Iterable[Machine]) -> str:
    """Return the JSON text for the machines, with each row on a line of its own."""
    return f"[{','.join(map(_text, machines))}]\n"


def _text(machine: Machine) -> str:
    told = asdict(machine)
    rows = ",\n".join(map(json.dumps, told.pop("rows")))
    return f'\n{json.dumps(told)[:-1]}, "rows": [\n{rows}\n]}}'


def with_machine(machines: list[Machine], measured: Machine) -> list[Machine]:
    """Return the machines with *measured* in place of the one that has its name, or else last."""
    by_name = {machine.name: machine for machine in machines}
    return list({**by_name, measured.name: measured}.values())

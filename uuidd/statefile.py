"""The state file: text with a checksum, which people can read.

Its first line holds the format, its version and the SHA-256 of the rest, so damage of any kind is
found. The rest is JSON. The version is raised when a daemon that knows only an earlier one would
lose something.

========  ==========================================================================================
format 1  1,024 generations of 16 lanes; it is read as one without epochs
format 2  added ``epochs``
format 3  64 generations of 256 lanes, and ``leases``. A generation of the earlier formats is a part
          of one of these, whose mark is the highest of its 16 parts.
format 4  added ``worker``: a number that was set by hand, or a claim to one
format 5  added ``product``: a hash of the product UUID; and a ``worker`` that is used no more,
          because a clone of the machine has it too
format 6  added ``now`` and ``elapsed``: what both clocks said at the save
========  ==========================================================================================
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from uuidd.core.ids.nodes import NODE_BITS
from uuidd.core.ids.snowflake import EPOCH_BITS, WORKER_BITS
from uuidd.core.ids.ticks import TICK_BITS
from uuidd.core.timeline.fence import Claim, Kept, Shared
from uuidd.core.timeline.generation import GENERATION_BITS
from uuidd.core.timeline.state import Node, State

FORMAT = 6
EARLIEST_FORMAT = 1
"""The oldest format that is still read."""

_MAGIC = "uuidd-state"
_EARLIER_GENERATION_BITS = 10
"""Until format 2."""


class UnusableError(Exception):
    """A state file that cannot be used: damaged, of a newer format, or of another host."""


def encode(state: State) -> bytes:
    """Return the bytes of the state file."""
    body = {
        "node": f"0x{state.node.value:012x}",
        "node_source": state.node.source,
        "machine": state.machine,
        "product": state.product,
        "generation": state.generation,
        "floor": state.floor,
        "steady": state.steady,
        "leases": state.leases,
        "now": state.now,
        "elapsed": state.elapsed,
        "worker": _encoded(state.worker),
        "epochs": {str(number): state.epochs[number] for number in sorted(state.epochs)},
        "marks": {str(number): state.marks[number] for number in sorted(state.marks)},
    }
    text = json.dumps(body, indent=1) + "\n"
    return f"{_MAGIC} {FORMAT} sha256:{digest(text.encode())}\n".encode() + text.encode()


def decode(data: bytes) -> State:
    """Return the state in the bytes of a state file.

    Raises UnusableError, which says what is wrong, for a file that is torn, changed or newer.
    """
    head, _, body = data.partition(b"\n")
    words = head.decode("ascii", "replace").split(" ")
    if len(words) != 3 or words[0] != _MAGIC:
        raise UnusableError("it is damaged: its first line is not a uuidd-state line")
    if words[1] not in map(str, range(EARLIEST_FORMAT, FORMAT + 1)):
        raise UnusableError(f"it has format {words[1]!r}, and this version reads 1 to {FORMAT}")
    if words[2] != f"sha256:{digest(body)}":
        raise UnusableError("it is damaged: its checksum does not match")
    try:
        return _state(json.loads(body), int(words[1]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnusableError(f"it is damaged: {type(error).__name__} {error}") from error


def check_machine(state: State, machine: str) -> None:
    """Check that a state is not of another host. Raises UnusableError.

    If one of the two has no machine-id they count as the same host, because a host may get its
    machine-id later (machine-id(5)).
    """
    if "" not in (state.machine, machine) and state.machine != machine:
        raise UnusableError("it is of another host (machine-id differs)")


def machine_hash(path: Path = Path("/etc/machine-id")) -> str:
    """Return a hash of this host's machine-id, "" while it has none.

    It is hashed because machine-id(5) asks to keep it private, and all users can read the state.
    """
    try:
        machine_id = path.read_text().strip()
    except (OSError, ValueError):
        return ""
    # The image of a host has one of these until the first boot.
    known = machine_id not in ("", "uninitialized")
    return digest(b"uuidd " + machine_id.encode()) if known else ""


def digest(data: bytes) -> str:
    """Return the SHA-256 of *data* in hex."""
    return hashlib.sha256(data).hexdigest()


def _state(body: dict[str, object], version: int) -> State:
    # The version lies outside the checksum, so one that was changed is found by this.
    if ("leases" in body) != (version >= 3):
        raise KeyError("leases")
    if ("worker" in body) != (version >= 4):
        raise KeyError("worker")
    if ("product" in body) != (version >= 5):
        raise KeyError("product")
    for name in ("now", "elapsed"):
        if (name in body) != (version >= 6):
            raise KeyError(name)
    bits = _EARLIER_GENERATION_BITS if version <= 2 else GENERATION_BITS
    marks: dict[int, int] = {}
    for number, mark in _numbers("marks", body["marks"], bits, TICK_BITS).items():
        whole = number >> bits - GENERATION_BITS
        marks[whole] = max(mark, marks.get(whole, 0))
    return State(
        node=Node(_number(int(str(body["node"]), 16), NODE_BITS), str(body["node_source"])),
        machine=str(body["machine"]),
        generation=_number(body["generation"], bits) >> bits - GENERATION_BITS,
        marks=marks,
        floor=_number(body["floor"], TICK_BITS),
        steady=_number(body["steady"], TICK_BITS),
        epochs={} if version == 1 else _numbers("epochs", body["epochs"], WORKER_BITS, EPOCH_BITS),
        leases=0 if version <= 2 else _number(body["leases"], TICK_BITS),
        worker=_worker(body.get("worker")),
        product=str(body.get("product", "")),
        now=_number(body.get("now", 0), TICK_BITS),
        elapsed=_number(body.get("elapsed", 0), TICK_BITS),
    )


def _encoded(worker: Kept) -> object:
    if isinstance(worker, Shared):
        return {"shared": worker.number}
    return asdict(worker) if isinstance(worker, Claim) else worker


def _worker(value: object) -> Kept:
    if not isinstance(value, dict):
        return None if value is None else _number(value, WORKER_BITS)
    if value.keys() == {"shared"}:
        return Shared(_number(value["shared"], WORKER_BITS))
    claim = Claim(**value)
    if type(claim.namespace) is not str or type(claim.token) is not str:
        raise TypeError("a namespace or a token is not text")
    _number(claim.number, WORKER_BITS)
    _number(claim.begin, TICK_BITS)
    _number(claim.until, TICK_BITS)
    return claim


def _numbers(name: str, value: object, key_bits: int, bits: int) -> dict[int, int]:
    if not isinstance(value, dict):
        raise TypeError(f"{name} is not a map")
    return {_number(int(key), key_bits): _number(number, bits) for key, number in value.items()}


def _number(value: object, bits: int) -> int:
    if type(value) is not int or not 0 <= value < 1 << bits:
        raise ValueError(f"{value!r} is not an int of {bits} bits")
    return value

"""The state file: text with a checksum, which people can read.

Its first line holds the format, its version and the SHA-256 of the rest, so damage of any kind is
found. The rest is JSON. The version is raised when a daemon that knows only an earlier one would
lose something; no daemon reads another version than its own.
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

_MAGIC = "uuidd-state"

_TICKS = ("floor", "steady", "leases", "now", "elapsed")


class UnusableError(Exception):
    """A state file that cannot be used: damaged, of another format, or of another host."""


def encode(state: State) -> bytes:
    """Return the bytes of the state file."""
    body = {
        "node": f"0x{state.node.value:012x}",
        "node_source": state.node.source,
        "machine": state.machine,
        "product": state.product,
        "generation": state.generation,
        **{name: getattr(state, name) for name in _TICKS},
        "worker": _encoded(state.worker),
        "epochs": {str(number): state.epochs[number] for number in sorted(state.epochs)},
        "marks": {str(number): state.marks[number] for number in sorted(state.marks)},
    }
    text = json.dumps(body, indent=1) + "\n"
    return f"{_MAGIC} {FORMAT} sha256:{digest(text.encode())}\n".encode() + text.encode()


def decode(data: bytes, machine: str = "") -> State:
    """Return the state in the bytes of a state file.

    Raises UnusableError, which says what is wrong: it is torn, changed, of another format, or not
    of the host *machine*. If the state or the reader does not know its host, both count as the same
    one, because a host may get its machine-id later (machine-id(5)).
    """
    head, _, body = data.partition(b"\n")
    words = head.decode("ascii", "replace").split(" ")
    if len(words) != 3 or words[0] != _MAGIC:
        raise UnusableError("it is damaged: its first line is not a uuidd-state line")
    if words[1] != str(FORMAT):
        raise UnusableError(f"it has format {words[1]!r}, and this version reads format {FORMAT}")
    if words[2] != f"sha256:{digest(body)}":
        raise UnusableError("it is damaged: its checksum does not match")
    try:
        state = _state(json.loads(body))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnusableError(f"it is damaged: {type(error).__name__} {error}") from error
    if "" not in (state.machine, machine) and state.machine != machine:
        raise UnusableError("it is of another host (machine-id differs)")
    return state


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


def _state(body: dict[str, object]) -> State:
    return State(
        node=Node(_number(int(str(body["node"]), 16), NODE_BITS), str(body["node_source"])),
        machine=str(body["machine"]),
        generation=_number(body["generation"], GENERATION_BITS),
        marks=_numbers("marks", body["marks"], GENERATION_BITS, TICK_BITS),
        epochs=_numbers("epochs", body["epochs"], WORKER_BITS, EPOCH_BITS),
        worker=_worker(body["worker"]),
        product=str(body["product"]),
        **{name: _number(body[name], TICK_BITS) for name in _TICKS},
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

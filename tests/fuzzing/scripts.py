"""A daemon's life as bytes: what callers send in each round, in which pieces, and how they end.

::

    life   | variant 8 | rounds |
    round  | weather 8 | scripts of it 8 | each: length 16, bytes |
    script | ending 8 | cuts of it 8 | each: place 8, in 256ths of the payload | payload |

Any bytes are a life: what is missing is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise


class Ending(IntEnum):
    """What a caller does after its last piece."""

    SHUT = 0
    """Says that no more comes, and reads to the end."""

    GO = 1
    """Closes at once, and reads nothing."""

    STAY = 2
    """Says nothing more, and stays."""

    DEAF = 3
    """Says that no more comes, and reads a second later."""


ENDINGS = tuple(Ending)


@dataclass(frozen=True, slots=True)
class Script:
    """What one caller does."""

    ending: Ending
    pieces: list[bytes]


@dataclass(frozen=True, slots=True)
class Round:
    """What happens to the host, and then what callers do at the same time."""

    weather: int
    scripts: list[Script]


def packed(variant: int, rounds: Sequence[tuple[int, Sequence[bytes]]]) -> bytes:
    """Return the bytes of a life."""
    told = [bytes([variant])]
    for weather, scripts in rounds:
        told.append(bytes([weather, len(scripts)]))
        told += [len(script).to_bytes(2, "big") + script for script in scripts]
    return b"".join(told)


def unpacked(data: bytes) -> tuple[int, list[Round]]:
    """Return the life that any bytes tell: its variant, and its rounds."""
    variant, rounds = _parted(data)
    return variant, [
        Round(weather, [_script(script) for script in scripts]) for weather, scripts in rounds
    ]


def fewer(data: bytes) -> Iterator[bytes]:
    """Yield lives in which some rounds, a caller, a cut or a change of weather is left out."""
    variant, rounds = _parted(data)
    size = len(rounds) // 2
    while size:
        for at in range(0, len(rounds), size):
            yield packed(variant, rounds[:at] + rounds[at + size :])
        size //= 2
    for at, (weather, scripts) in enumerate(rounds):
        before, after = rounds[:at], rounds[at + 1 :]
        for place, script in enumerate(scripts):
            others = scripts[:place], scripts[place + 1 :]
            yield packed(variant, [*before, (weather, [*others[0], *others[1]]), *after])
            cuts = script[1] if len(script) > 1 else 0
            if cuts:
                uncut = script[:1] + b"\0" + script[2 + cuts :]
                yield packed(variant, [*before, (weather, [*others[0], uncut, *others[1]]), *after])
        if weather:
            yield packed(variant, [*before, (0, scripts), *after])


def _parted(data: bytes) -> tuple[int, list[tuple[int, list[bytes]]]]:
    variant = data[0] if data else 0
    rounds: list[tuple[int, list[bytes]]] = []
    at = 1
    while at < len(data):
        weather, count = data[at], (data[at + 1] if at + 1 < len(data) else 0)
        at += 2
        scripts = []
        for _ in range(min(count, 32)):
            size = int.from_bytes(data[at : at + 2], "big")
            scripts.append(data[at + 2 : at + 2 + size])
            at += 2 + size
        rounds.append((weather, scripts))
    return variant, rounds


def _script(data: bytes) -> Script:
    ending, cuts = Ending(data[0] % 4 if data else 0), data[1] if len(data) > 1 else 0
    payload = data[2 + cuts :]
    places = sorted(cut * len(payload) // 256 for cut in data[2 : 2 + cuts])
    edges = [0, *places, len(payload)]
    pieces = [payload[begin:end] for begin, end in pairwise(edges)]
    return Script(ending, [piece for piece in pieces if piece])

"""A target: what is fuzzed, and with what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random


class Broken(Exception):
    """A property does not hold; the message says which."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is fuzzed.

    *run* gives what came of an input: one outcome for each call that it stands for. *inputs* gives
    inputs without end. *seconds* of the processor's time is the most that *together* inputs may
    take. *weighed*: now and then the memory that one takes is measured. *fewer* gives inputs with
    less in them, where that takes more than to leave out bytes.
    """

    name: str
    run: Callable[[bytes], Sequence[str]]
    inputs: Callable[[Random], Iterator[bytes]]
    together: int = 256
    seconds: float = 5.0
    weighed: bool = True
    fewer: Callable[[bytes], Iterator[bytes]] | None = None


def require(holds: bool, what: str) -> None:
    """Raise Broken, saying *what* should be so, unless it is."""
    if not holds:
        raise Broken(what)

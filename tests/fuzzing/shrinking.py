"""From an input that fails to the smallest one that fails the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic

PATIENCE = 20.0
"""Seconds for which smaller inputs are looked for."""

Fewer = Callable[[bytes], Iterator[bytes]]


def smallest(
    data: bytes,
    fails: Callable[[bytes], bool],
    patience: float = PATIENCE,
    fewer: Fewer | None = None,
) -> bytes:
    """Return *data* with all left out that *fails* does not need, and with zeros for what it does.

    *fewer* gives what to try first. The result is as small as it is when *patience* seconds are
    over.
    """
    end = monotonic() + patience

    def try_it(less: bytes) -> bool:
        return monotonic() < end and fails(less)

    while fewer is not None:
        found = next((less for less in fewer(data) if try_it(less)), None)
        if found is None:
            break
        data = found
    size = max(len(data) // 2, 1)
    while size:
        at, shrunk = 0, False
        while at < len(data):
            shorter = data[:at] + data[at + size :]
            if try_it(shorter):
                data, shrunk = shorter, True
            else:
                at += size
        if not shrunk or size > 1:
            size //= 2
    for at in range(len(data)):
        plainer = data[:at] + b"\0" + data[at + 1 :]
        if data[at] and try_it(plainer):
            data = plainer
    return data

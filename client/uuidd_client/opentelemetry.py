"""Trace ids for OpenTelemetry that sort by time.

Set ``OTEL_PYTHON_ID_GENERATOR=uuidd``, or pass ``IdGenerator()`` to a ``TracerProvider``. This
module needs the extra ``opentelemetry``.
"""

from __future__ import annotations

import os
import time

from opentelemetry.sdk.trace import id_generator

import uuidd_client
from uuidd_client.client import Client
from uuidd_client.errors import DaemonUnavailable, TimeOutOfRange
from uuidd_client.life import current
from uuidd_client.system import WrongVariable

__all__ = ["IdGenerator"]

_MS_BITS, _TAIL_BYTES = 48, 10


class IdGenerator(id_generator.IdGenerator):
    """Makes the ids of traces and spans, by *client* or that of the module's functions.

    A trace id has the bits of a ULID: the time, to 100 ns, then the lane, and in the lowest 58 bits
    random ones, which samplers look at. A span id is random. None is zero, and none repeats in a
    fork's child. Where the client raises an error, a trace id has the milliseconds and 80 random
    bits, because tracing must not end a program's request.
    """

    def __init__(self, client: Client | None = None) -> None:
        used = uuidd_client._client(client)
        self._trace = used.factory("ulid", "uuid")
        self._span = used.factory("v4", "bytes")

    def generate_trace_id(self) -> int:
        """Return 128 bits that sort by time."""
        while True:
            alive = current()
            try:
                made: int = self._trace().int
            except (DaemonUnavailable, TimeOutOfRange, WrongVariable):
                made = _alone()
            if made and not alive.over:
                return made

    def generate_span_id(self) -> int:
        """Return 64 random bits."""
        while True:
            alive = current()
            # All bits of a v4 are random, except four in its 7th byte and two in its 9th.
            try:
                drawn = self._span()
            except WrongVariable:
                drawn = os.urandom(16)
            made = int.from_bytes(drawn[:6] + drawn[-2:], "big")
            if made and not alive.over:
                return made

    def is_trace_id_random(self) -> bool:
        """Return True: the lowest 56 bits of a trace id are random (W3C Trace Context, level 2)."""
        return True


def _alone() -> int:
    ms = time.time_ns() // 1_000_000 & (1 << _MS_BITS) - 1
    return ms << 8 * _TAIL_BYTES | int.from_bytes(os.urandom(_TAIL_BYTES), "big")

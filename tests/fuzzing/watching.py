"""What no input may cost: time without end, or memory without bound."""

from __future__ import annotations

import resource
import signal
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOM = 512 << 20
"""Bytes of memory that may be asked for beyond what is in use already."""

MOST = 4 << 20
"""Bytes that a codec may hold at once for one input, which has some KiB."""


class Hang(Exception):
    """An input took longer than any may."""


class Heavy(Exception):
    """An input took more memory than any may."""


@contextmanager
def in_time(seconds: float) -> Iterator[None]:
    """Raise Hang in what is done meanwhile after *seconds* of the processor's time.

    Its time and not the clock's, for the machine may be busy with others' work.
    """

    def ring(*_: object) -> None:
        raise Hang(f"not done after {seconds:g} s")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def in_room(size: int = ROOM) -> Iterator[None]:
    """Let MemoryError be raised meanwhile when *size* bytes more than now are asked for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + size
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def weigh(run: Callable[[], object], most: int = MOST) -> None:
    """Do it, and raise Heavy when it held more than *most* bytes at any time."""
    tracemalloc.start()
    try:
        run()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    if peak > most:
        raise Heavy(f"more than {most} bytes were held at once")


def highest() -> int:
    """Return the most MiB of memory that this process has ever used."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

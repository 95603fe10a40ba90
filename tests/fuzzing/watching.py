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
"""Bytes that a reader may hold at once for one input, which has some KiB."""


@contextmanager
def in_time_and_room(seconds: float) -> Iterator[None]:
    """Fail after *seconds* of the processor's time, and raise MemoryError beyond some more memory.

    Its time and not the clock's, for the machine may be busy with others' work.
    """

    def ring(*_: object) -> None:
        raise AssertionError(f"not done after {seconds:g} s")

    before = signal.signal(signal.SIGPROF, ring)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + ROOM
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def peak(run: Callable[[], object]) -> int:
    """Do it, and return the most bytes that it held at any time."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def highest() -> int:
    """Return the most MiB of memory that this process has ever used."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

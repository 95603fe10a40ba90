"""The files in which libuuid and util-linux's daemon keep which ticks they have used."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from uuidd.core.ids.ticks import TICK_BITS, TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.core.ids.versions import CLOCK_SEQ_BITS

LIBUUID_CLOCK = Path("/var/lib/libuuid/clock.txt")
LIBUUID_CONT = Path("/var/lib/libuuid/clock-cont.txt")

MAX_CLOCK_FILE = 4096
"""Bytes read of a file; libuuid's clock file has 56."""

_CLOCK = rb"clock: ([0-9a-fA-F]{4}) tv: (-?\d+) (-?\d+) adj: (-?\d+)(?!\S)"
_CONT = rb"cont: (\d+)(?!\S)"


def libuuid_mark(path: Path = LIBUUID_CLOCK) -> int | None:
    """Return the tick from which on libuuid has used none under this host's MAC, by one file.

    Its clock file holds what was used last: the microsecond of Unix time, and the ticks beyond it.
    The file of its continuous clock, LIBUUID_CONT, holds what is reserved, in ticks of Unix time.
    None if there is no such file, or if it cannot be read or has neither form. Never raises or
    waits.
    """
    if found := _find(_CLOCK, path):
        used = int(found[2]) * TICKS_PER_SECOND + int(found[3]) * 10 + int(found[4])
        mark = used + 1
    elif found := _find(_CONT, path):
        mark = int(found[1])
    else:
        return None
    return min(max(0, UNIX_EPOCH + mark), (1 << TICK_BITS) - 1)


def libuuid_clock_seq(path: Path = LIBUUID_CLOCK) -> int | None:
    """Return the clock sequence in libuuid's clock file, which it uses with this host's MAC.

    None if there is no such file, or if it cannot be read or has another form. Never raises or
    waits, also if the path is a FIFO.
    """
    found = _find(_CLOCK, path)
    # The file may hold the variant too; libuuid keeps only these bits of what it reads.
    return int(found[1], 16) & ((1 << CLOCK_SEQ_BITS) - 1) if found else None


def _find(form: bytes, path: Path) -> re.Match[bytes] | None:
    """Return how *form* matches the beginning of a regular file; None if it does not."""
    try:
        # O_NONBLOCK, because the open of a FIFO would wait for its writer.
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return None
    try:
        regular = stat.S_ISREG(os.fstat(opened).st_mode)
        return re.match(form, os.read(opened, MAX_CLOCK_FILE)) if regular else None
    except OSError:
        return None
    finally:
        os.close(opened)

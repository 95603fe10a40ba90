"""The files in which libuuid, and util-linux's daemon, keep what they have used without uuidd."""

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
"""Bytes read of libuuid's clock file; it has 56, and what follows them is not looked at."""

_CLOCK = re.compile(rb"clock: ([0-9a-fA-F]{4}) tv: (-?\d+) (-?\d+) adj: (-?\d+)(?!\S)")
_CONT = re.compile(rb"cont: (\d+)(?!\S)")


def libuuid_mark(path: Path = LIBUUID_CLOCK) -> int | None:
    """Give the tick at or past which libuuid has used none under this host's MAC, as a file says.

    Its clock file tells what was used last: the microsecond of Unix time, and the ticks beyond.
    That of its continuous clock, LIBUUID_CONT, tells what is reserved, in ticks of Unix time. None
    when there is no such file, or it cannot be read, or is of neither form. Never raises or waits.
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
    """Give the clock sequence in libuuid's own clock file, whose users share this host's MAC.

    None when there is no such file, or it cannot be read, or is of another form. Never raises,
    and never waits: a FIFO in its place is no clock file.
    """
    found = _find(_CLOCK, path)
    # libuuid keeps only these bits of what it reads, so the variant may be left in the file.
    return int(found[1], 16) & ((1 << CLOCK_SEQ_BITS) - 1) if found else None


def _find(form: re.Pattern[bytes], path: Path) -> re.Match[bytes] | None:
    """Give what the beginning of one of libuuid's files says, None when it says no such thing."""
    try:
        return form.match(_head(path))
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return None


def _head(path: Path) -> bytes:
    """Give the beginning of a regular file, and nothing of any other kind of file."""
    # O_NONBLOCK: else the open itself would wait for a FIFO's writer.
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        regular = stat.S_ISREG(os.fstat(opened).st_mode)
        return os.read(opened, MAX_CLOCK_FILE) if regular else b""
    finally:
        os.close(opened)

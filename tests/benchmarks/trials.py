"""``python trials.py TRIAL``: try one thing for which the ids of a maker could be relied on.

It needs nothing but Python. It reads the maker's setup and statement, as JSON, from standard input,
and prints a word or two.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import platform
import re
import select
import signal
import socket
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

Draw = Callable[[], Any]

CLONE_NEWPID, MADV_KEEPONFORK = 0x20000000, 19
SYS_CLONE = {"x86_64": 56, "aarch64": 220}

WARM = 2000
"""Ids that are made before what is tried."""

SPARSE = 300
"""Ids of the trial of random bits."""


def order(draw: Draw) -> str:
    """Whether each id of a process is above the one before it."""
    return "yes" if _rise([draw() for _ in range(10_000)]) else "no"


def processes(draw: Draw) -> str:
    """How long after an id of another process those of a process are above it."""
    for seconds, count, word in ((0, 500, "yes"), (0.002, 50, "to 1 ms"), (1.1, 2, "to 1 s")):
        here, there = socket.socketpair()
        child = not os.fork()
        mine, ids = there if child else here, []
        # A program that goes on for a while; the first ids may be older.
        for _ in range(WARM):
            draw()
        for turn in range(2 * count):
            if turn % 2 == child:
                time.sleep(seconds)
                ids.append(_key(draw()))
                mine.send(b"x")
            else:
                mine.recv(1)
        if child:
            there.sendall(json.dumps(ids).encode())
            os._exit(0)
        theirs = json.loads(here.recv(1 << 20))
        os.wait()
        if _rise([id for pair in zip(ids, theirs, strict=True) for id in pair]):
            return word
    return "no"


def set_back(draw: Draw) -> str:
    """Whether ids go on after the last one when UTC is set back, or have the new time, or stop."""

    def give_up(*_: object) -> None:
        raise TimeoutError

    before = [draw() for _ in range(WARM)]
    clock = Path(os.environ["FAKETIME_TIMESTAMP_FILE"])
    clock.with_suffix(".new").write_text("-10")
    clock.with_suffix(".new").rename(clock)
    # Under libfaketime the system call of time.sleep may fail.
    select.select([], [], [], 0.05)
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(3)
    try:
        after = [draw() for _ in range(WARM)]
    except TimeoutError:
        return "stop"
    except Exception as error:
        return type(error).__name__
    return "go on" if all(_rise([before[-1], id]) for id in after) else "go back"


def fork(draw: Draw) -> str:
    """What ids of a child have in common with those of its parent."""
    return _common(draw, os.fork)


def fork_in_c(draw: Draw) -> str:
    """The same, if Python does not notice the fork."""
    return _common(draw, ctypes.CDLL(None).fork)


def copy(draw: Draw) -> str:
    """The same, if no one can tell the two processes apart, as in two copies of a machine."""
    return _common(draw, _copied)


def _copied() -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    # What a fork's child would find empty is copied too.
    for begin, end in re.findall(r"(?m)^(\w+)-(\w+) rw-p", Path("/proc/self/maps").read_text()):
        start, size = int(begin, 16), int(end, 16) - int(begin, 16)
        libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), MADV_KEEPONFORK)
    # The first process of a pid namespace has a child with its own pid in another.
    if os.getpid() != 1 or libc.unshare(CLONE_NEWPID):
        raise RuntimeError("it needs root, and unshare --pid --fork")
    # Not fork(3), which tells libraries of C that it was called.
    return int(libc.syscall(SYS_CLONE[platform.machine()], signal.SIGCHLD, 0, 0, 0, 0))


def bits(draw: Draw) -> str:
    """Whether there are any; if so, strace tells how many the system is asked for."""
    ids = []
    for _ in range(SPARSE):
        ids.append(draw())
        # Some use what they have until the next millisecond.
        time.sleep(0.002)
    return "" if _ends_vary(ids) else "none"


TRIALS = (order, processes, set_back, fork, fork_in_c, copy, bits)


def _common(draw: Draw, forked: Callable[[], int]) -> str:
    for _ in range(WARM):
        draw()
    read, write = os.pipe()
    begin = time.time()
    child = not forked()
    ids = []
    for turn in range(1, 100):
        # Both draw at one moment, so that ids come twice if they can.
        while time.time() < begin + turn / 200:
            pass
        ids += [str(draw()) for _ in range(500)]
    if child:
        with open(write, "w") as file:
            json.dump(ids, file)
        os._exit(0)
    os.close(write)
    with open(read) as file:
        theirs = json.load(file)
    if set(ids) & set(theirs):
        return "the same ids"
    # 48 bits of UUIDs: of 32 random bits, 50,000 ids of each have some in common by chance.
    common = {id[-12:] for id in ids} & {id[-12:] for id in theirs}
    return "the same bits" if _ends_vary(ids) and len(common) > 3 else "differ"


def _ends_vary(ids: list[Any]) -> bool:
    """Whether ids end in random bits. Those of v1 end in a node, and those of ints in a count."""
    return not isinstance(ids[0], int) and len({str(id)[-8:] for id in ids}) > len(ids) // 2


def _key(id: Any) -> Any:
    """Return what ids are compared by."""
    if isinstance(id, uuid.UUID) and id.version == 1:
        return id.time
    return id if isinstance(id, int) else str(id)


def _rise(ids: list[Any]) -> bool:
    return all(one < next for one, next in itertools.pairwise(map(_key, ids)))


def main() -> None:
    """Read a maker's setup and statement as JSON, and print what the trial has found."""
    setup, statement = json.load(sys.stdin)
    names: dict[str, Any] = {}
    exec(setup, names)  # noqa: S102  (it comes from makers.py)
    draw = eval(f"lambda: {statement}", names)  # noqa: S307  (as above)
    sys.stdout.write({trial.__name__: trial for trial in TRIALS}[sys.argv[1]](draw))


if __name__ == "__main__":
    main()

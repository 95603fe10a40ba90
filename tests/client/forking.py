"""A program that draws, forks in a given way, and lets parent and children draw on.

Run as ``python -m tests.client.forking WAY BUSY FOLDER``; each process leaves its ids in a file of
FOLDER. BUSY is what other threads do at the fork: ``nothing``, ``drawing`` ids, or ``locked``,
where one of them is in the channel.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path

from tests.client.raw import raw_fork
from uuidd_client import Client, uuid1, uuid6

CHILDREN = 8
EACH = 2000
THREADS = 3

client = Client()
texts = client.iter("v6", form="text")


def draw() -> list[str]:
    ids = [str(uuid1()) for _ in range(EACH)] + [str(uuid6()) for _ in range(EACH)]
    ids += [next(texts) for _ in range(EACH)]
    return ids + client.make("v1", EACH, form="text")


@contextmanager
def drawing(found: list[str]) -> Iterator[None]:
    """Let threads draw, and add to what was *found*."""
    done = threading.Event()

    def draw_on() -> None:
        while not done.is_set():
            found.extend(draw())

    threads = [threading.Thread(target=draw_on) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


@contextmanager
def locked(_: list[str]) -> Iterator[None]:
    """Let a thread be in the channel."""
    held, done = threading.Event(), threading.Event()

    def use(_: object) -> None:
        held.set()
        done.wait()

    thread = threading.Thread(
        target=lambda: client._channels.call(lambda channel: channel.in_turn(use))
    )
    thread.start()
    held.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()


def leave(folder: Path, ids: list[str]) -> None:
    (folder / str(os.getpid())).write_text("\n".join(ids))


def by_call(fork: Callable[[], int], folder: Path) -> Callable[[], bool]:
    """Return what waits for a child that *fork* makes, and tells whether all went well in it."""
    pid = fork()
    if not pid:
        try:
            leave(folder, draw())
            os._exit(0)
        finally:
            os._exit(1)
    return lambda: os.waitpid(pid, 0)[1] == 0


def by_multiprocessing(folder: Path) -> Callable[[], bool]:
    """Return the same for a child that multiprocessing forks."""
    child = multiprocessing.get_context("fork").Process(target=lambda: leave(folder, draw()))
    child.start()

    def wait() -> bool:
        child.join()
        return child.exitcode == 0

    return wait


FORKS: dict[str, Callable[[Path], Callable[[], bool]]] = {
    "os": partial(by_call, os.fork),
    "raw": partial(by_call, raw_fork),
    "multiprocessing": by_multiprocessing,
}

BUSY: dict[str, Callable[[list[str]], AbstractContextManager[object]]] = {
    "nothing": nullcontext,
    "drawing": drawing,
    "locked": locked,
}


def main(way: str, busy: str, folder: Path) -> bool:
    """Draw, so that what a child inherits is in use; fork; draw. Return whether a child failed."""
    # Of the missing daemon; and Python 3.12's, that a fork of many threads is asking for trouble.
    warnings.simplefilter("ignore")
    ids = draw()
    with BUSY[busy](ids):
        waits = [FORKS[way](folder) for _ in range(CHILDREN)]
        if busy != "locked":
            ids += draw()
        well = [wait() for wait in waits]
    leave(folder, ids + draw())
    return not all(well)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))

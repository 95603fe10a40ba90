"""A program whose threads are in the middle of things when it forks.

Run as ``python -m tests.client.threading_and_forking WAY FOLDER``; each process leaves its ids in
a file of FOLDER.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

from tests.client.raw import raw_fork
from uuidd_client import Client

CHILDREN = 8
EACH = 2000
THREADS = 3

client = Client()


def draw() -> list[str]:
    """Return ids drawn in three ways."""
    texts = client.iter("v1", form="text")
    ids = [str(client.uuid1()) for _ in range(EACH)]
    ids += client.make("v1", EACH, form="text")
    return ids + [next(texts) for _ in range(EACH)]


def drawing(folder: Path) -> None:
    """Fork while other threads draw."""
    done = threading.Event()
    found: list[list[str]] = []

    def draw_on() -> None:
        while not done.is_set():
            found.append(draw())

    threads = [threading.Thread(target=draw_on) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    try:
        fork(folder, os.fork)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    found.append(draw())
    leave(folder, [id for ids in found for id in ids])


def locked(folder: Path, way: Callable[[], int]) -> None:
    """Fork while another thread holds the session's lock."""
    first = draw()
    held, done = threading.Event(), threading.Event()

    def use(_: object) -> None:
        held.set()
        done.wait()

    def hold() -> None:
        client._channels.call(lambda channel: channel.in_turn(use))

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        fork(folder, way)
    finally:
        done.set()
        thread.join()
    leave(folder, first + draw())


def fork(folder: Path, way: Callable[[], int]) -> None:
    """Let children draw, and wait for them."""
    children = []
    for _ in range(CHILDREN):
        pid = way()
        if not pid:
            try:
                leave(folder, draw())
                os._exit(0)
            finally:
                os._exit(1)
        children.append(pid)
    if sum(os.waitpid(pid, 0)[1] for pid in children):
        sys.exit(1)


def leave(folder: Path, ids: list[str]) -> None:
    """Leave the ids of this process."""
    (folder / str(os.getpid())).write_text("\n".join(ids))


def main(way: str, folder: Path) -> None:
    """Fork in the middle of things, in the given way."""
    # Of the missing daemon; and Python 3.12's, that a fork of many threads is asking for trouble.
    warnings.simplefilter("ignore")
    if way == "drawing":
        drawing(folder)
    else:
        locked(folder, raw_fork if way == "locked-raw" else os.fork)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

"""A program that is cloned: a fork's child keeps all of its memory, as the copy of a machine does.

Run as ``python -m tests.client.cloning SIGNAL FOLDER``. It prints, as JSON, how many ids were drawn
of each kind in each way by both clones, and how many of them came in both. SIGNAL is how both learn
of it before they draw: ``none``; ``page``, by that of the daemon; ``renew``, because they call
that. After ``alone,`` there is no daemon. After ``real,`` it is a real one, which is told to renew,
and otherwise a fake.

The clones' clocks go alike, unless the daemon is real. They share it, as if it had been renewed in
each of them, but no connection.
"""

from __future__ import annotations

import json
import mmap
import os
import stat
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock


class Kept(mmap.mmap):
    """Memory that a child keeps."""

    def madvise(self, *_: int) -> None:
        """Do nothing, above all no MADV_WIPEONFORK."""


mmap.mmap = Kept  # type: ignore[misc]
with mock.patch("os.register_at_fork"):
    import uuidd_client

from tests.client.fakes import Time  # noqa: E402  (after what it imports of the client)
from tests.client.lanes import Clock, World  # noqa: E402
from tests.client.raw import of_child  # noqa: E402
from tests.kinds import apart  # noqa: E402
from tests.rig import Daemon  # noqa: E402
from uuidd.core.ids.kinds import KINDS  # noqa: E402

if TYPE_CHECKING:
    from uuidd_client.client import Kind

BEFORE = 12
"""Calls before the machine is cloned."""

AFTER = 30
"""Calls of each clone."""

Draws = Callable[[], Iterable[Any]]


def ways(client: uuidd_client.Client, kind: Kind) -> Iterator[tuple[str, Draws]]:
    """Return each way to draw ids of a kind; each draws one id or a few at a call."""
    form: Any
    for form in KINDS[kind].forms:
        yield f"factory, {form}", partial(called, client.factory(kind, form))
        yield f"iter, {form}", partial(islice, client.iter(kind, form), 2)
        if form == "bytes":
            yield "packed", lambda: apart(kind, client.make(kind, 5, "bytes"))
        else:
            yield f"make, {form}", partial(client.make, kind, 5, form)
    if kind != "v4":
        name = kind.replace("v", "uuid") if kind in ("v1", "v6", "v7") else kind
        yield "method", partial(called, getattr(client, name))


def called(draw: Callable[[], Any]) -> list[Any]:
    return [draw()]


def drawn(draw: Draws, time: Time | Clock, count: int) -> list[str]:
    """Return ids of *count* calls, as they are printed; in their middle the clock moves far."""
    ids = []
    for number in range(count):
        ids += [str(each) for each in draw()]
        time.move(2.0 if number == AFTER // 2 else 1e-6)
    return ids


def cloned(draw: Draws, time: Time | Clock, signal: Callable[[], object]) -> tuple[int, int]:
    """Return how many ids two clones draw, and how many of them are in both."""

    def clone() -> bytes:
        for name in os.listdir("/proc/self/fd"):
            if is_socket(int(name)):
                os.close(int(name))
        signal()
        return json.dumps(drawn(draw, time, AFTER)).encode()

    there = json.loads(of_child(clone))
    signal()
    here = drawn(draw, time, AFTER)
    assert len(set(here)) == len(here)
    assert len(set(there)) == len(there)
    return len(here) + len(there), len(set(here) & set(there))


def is_socket(descriptor: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def main(how: str, folder: Path) -> None:
    warnings.simplefilter("ignore")
    *where, signal = how.split(",")
    with ExitStack() as ends:
        time: Time | Clock = Clock() if "real" in where else Time()
        time.move(10)
        world = World(folder / "s", time)
        path, renew = world.path, world.lanes.renew
        if "real" in where:
            daemon = ends.enter_context(Daemon("--worker=5", "--after-clone=go-on"))
            path, renew = daemon.socket, partial(daemon.call, "renew")
        elif "alone" not in where:
            ends.enter_context(world.server())
        os.environ["UUIDD_SOCKET"] = str(path)
        signals = {"none": lambda: None, "page": renew, "renew": uuidd_client.renew}
        found = {}
        kind: Any
        for kind in KINDS:
            if "alone" in where and kind == "snowflake":
                # It has no fallback.
                continue
            for name, draw in ways(uuidd_client.Client(_clock=time), kind):
                drawn(draw, time, BEFORE)
                found[f"{kind}, {name}"] = cloned(draw, time, signals[signal])
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

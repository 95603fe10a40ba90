"""A program that draws while a signal handler raises, again and again, wherever it may be.

Run as ``python -m tests.client.interrupted SOCKET``; prints JSON.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
import warnings
from types import FrameType

# Before the signals: an import that a signal broke off is CPython's own business.
import uuidd.core.timeline.slew
import uuidd.core.wire.libuuid
import uuidd.core.wire.methods
import uuidd.core.wire.rpc  # noqa: F401
from uuidd_client import Client

SECONDS = 0.7


class Alarm(Exception):
    """What the handler raises."""


def handle(_: int, __: FrameType | None) -> None:
    """Raise."""
    raise Alarm


def main(socket: str) -> None:
    """Draw, and tell what came."""
    client = Client(socket, max_age=0.001)
    client.uuid1()
    found: list[str] = []
    rounds = alarms = 0
    signal.signal(signal.SIGALRM, handle)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        rounds += 1
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0001 + rounds % 397 * 1e-6)
            for _ in range(100):
                found += client.make("v1", 3, form="text")
                found.append(str(client.uuid1()))
        except Alarm:
            alarms += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    thread = threading.Thread(target=lambda: found.append(str(client.uuid1())))
    thread.start()
    thread.join(10)
    told = {"alarms": alarms, "again": len(found) - len(set(found)), "stuck": thread.is_alive()}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    # What a broken-off call left open, and the fallback: neither is the point here.
    warnings.simplefilter("ignore")
    main(sys.argv[1])

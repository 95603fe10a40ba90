"""The first id of a process, which imports what it needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

PATIENCE = 60.0

PROGRAM = """
import itertools, signal, sys, threading, warnings
warnings.simplefilter("ignore")
from uuidd_client import Client
client = Client("/nowhere")
ids = []
signal.signal(signal.SIGALRM, lambda *_: ids.append(client.uuid7()))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.01)
ids.append(client.uuid7())
signal.setitimer(signal.ITIMER_REAL, 0)
{after}
"""


def run(after: str, program: str = PROGRAM) -> str:
    """Return the output of a process that draws its first id, while signal handlers draw too."""
    done = subprocess.run(
        [sys.executable, "-c", program.format(after=after)],
        capture_output=True,
        timeout=PATIENCE,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_signal_handler_may_draw_in_the_middle_of_the_first_draw() -> None:
    """It finds nothing half imported, and waits for no lock that is held below it."""
    assert run("print(len(set(ids)) == len(ids) > 1)") == "True\n"


def test_no_thread_is_left_of_the_import() -> None:
    """It lasts as long as the first draw does."""
    wait = "for thread in threading.enumerate()[1:]: thread.join(20)"
    assert run(f"{wait}\nprint(threading.active_count())") == "1\n"


def test_threads_may_draw_first_at_once() -> None:
    """All of them wait for one import, and get an id."""
    program = """
import threading, warnings
warnings.simplefilter("ignore")
from uuidd_client import Client
ids, client = [], Client("/nowhere")
threads = [threading.Thread(target=lambda: ids.append(client.uuid7())) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(set(ids)))
"""
    assert run("", program) == "8\n"


def test_a_failed_import_is_told_to_the_caller_and_tried_again() -> None:
    """What is missing is named, and is found once it is there."""
    program = """
import sys, warnings
warnings.simplefilter("ignore")
from uuidd_client import Client
sys.modules["msgpack"] = None
try: Client("/nowhere").uuid7()
except ImportError as error: print("msgpack" in str(error))
del sys.modules["msgpack"]
print(Client("/nowhere").uuid7().version)
"""
    assert run("", program) == "True\n7\n"


def test_a_signal_handler_may_fork_in_the_middle_of_the_first_draw() -> None:
    """The child has no thread that imports, so it starts its own, and gets an id as well."""
    program = """
import os, signal, warnings
from tests.client.breaking import come_between
from uuidd_client import lazy

# Python 3.12 warns of a fork beside a thread, here that of the import.
warnings.simplefilter("ignore", DeprecationWarning)

def draw_first(at):
    born = []
    def fork():
        born.append(os.fork())
        signal.alarm(20)
    come_between(lazy.session_type, at, fork)
    os._exit(bool(born and born[0] and os.wait()[1]))

failed = 0
for at in (*range(1, 9), *range(9, 60, 5)):
    pid = os.fork()
    if not pid:
        signal.alarm(20)
        draw_first(at)
    failed += os.waitpid(pid, 0)[1] != 0
print(failed)
"""
    assert run("", program) == "0\n"

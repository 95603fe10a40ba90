"""Interpreters of one process each have clients of their own (PEP 684)."""

from __future__ import annotations

import os
import sys

import pytest

from tests.rig import Daemon
from tests.tools import output

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("implementation")]

CREATE = """
import os, sys
if sys.version_info >= (3, 13):
    from _interpreters import create, exec as run
else:
    from _xxsubinterpreters import create, run_string as run
"""
"""Python has public names for this from 3.14 on."""

DRAW = """
import sys, uuid, uuidd_client
ids = [uuidd_client.uuid7() for _ in range(100)]
assert all(type(id) is uuid.UUID for id in ids)
print(*ids, flush=True)
"""

SCRIPT = f"""{CREATE}
interpreters = [create() for _ in range(3)]
for _ in range(5):
    for interpreter in interpreters:
        assert run(interpreter, {DRAW!r}) is None
    exec({DRAW!r})
os._exit(0)  # CPython 3.13.0 crashes at the end of a process whose interpreters imported datetime.
"""


def test_no_two_interpreters_draw_an_id(daemon: Daemon) -> None:
    environment = {**os.environ, "UUIDD_SOCKET": str(daemon.socket)}
    ids = output(sys.executable, "-c", SCRIPT, env=environment).split()
    assert len(set(ids)) == len(ids) == 5 * 4 * 100

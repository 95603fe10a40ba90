"""A descriptor whose close takes long, and which a caller passes along, delays no other caller.

A TCP socket with SO_LINGER waits for its peer when it is closed, here for good. Others take long
for what they hold.
"""

from __future__ import annotations

import socket
import sys

import pytest

from tests.rig import Daemon, until
from tests.system.attacker import Actor, connected
from tests.system.test_attacks import ATTACKER, guarded, served, status
from uuidd.server.descriptors import bar_descriptors, may_hold_descriptors

pytestmark = pytest.mark.usefixtures("as_root")

ROUNDS, MIB, WATCHED = 4, 200, 2000
"""How many connections of each way, and how much there is to be freed."""


THIS_KERNEL, OLDER_KERNEL = "uuidd.cli", "tests.system.older_kernel"
"""Modules whose ``main`` is a daemon: as it is, and as on a kernel without SO_PASSRIGHTS."""


def bars() -> bool:
    """Whether this kernel has SO_PASSRIGHTS."""
    with socket.socket(socket.AF_UNIX) as sock:
        bar_descriptors(sock)
        return not may_hold_descriptors(sock)


@pytest.mark.parametrize("module", [THIS_KERNEL, OLDER_KERNEL])
def test_a_descriptor_that_closes_slowly_delays_no_other(module: str) -> None:
    """Where the kernel can bar descriptors none comes through; else each ends its connection."""
    with guarded(module=module) as daemon:
        with Actor(daemon.socket, ATTACKER, "passing", ROUNDS, MIB, WATCHED) as attacker:
            served(daemon)
            told = attacker.saw()
            if module == THIS_KERNEL and bars():
                assert told == {"passed": 0, "barred": told["barred"]}
                assert told["barred"] >= 3 * ROUNDS
            else:
                assert told["passed"] >= 3 * ROUNDS
                assert status(daemon)["requests"]["rpc"]["refused"]["descriptors"] >= 3 * ROUNDS
        until(lambda: status(daemon)["connections"] == 1)


def test_a_descriptor_of_one_who_is_rejected_delays_no_other() -> None:
    """What is never read of a connection over the limit is closed just as well."""
    with guarded("--max-connections-per-uid=2", module=OLDER_KERNEL) as daemon:
        with Actor(daemon.socket, ATTACKER, "passing", ROUNDS, 1, 1) as attacker:
            served(daemon)
            assert attacker.saw()["passed"] >= 3 * ROUNDS
        until(lambda: status(daemon)["connections"] == 1)


def test_a_descriptor_from_before_the_start_delays_no_other() -> None:
    """Callers may have connected to a socket of systemd's before the daemon could bar anything."""

    def activated(*command: str) -> list[str]:
        path = next(word for word in command if word.startswith("--socket=")).partition("=")[2]
        return [sys.executable, "-m", "tests.system.activated", path, str(ROUNDS), *command]

    with guarded("--socket-activation", wrap=activated) as daemon:
        served(daemon)
        if bars():
            with connected(daemon.socket) as sock, pytest.raises(PermissionError):
                socket.send_fds(sock, [b"\x02"], [sock.fileno()])


def test_a_stop_does_not_wait_for_descriptors() -> None:
    """Those that are unread at the stop, and those that are being closed, end with the process."""
    daemon = Daemon(module=OLDER_KERNEL)
    daemon.folder.chmod(0o755)
    with daemon, Actor(daemon.socket, ATTACKER, "passing", ROUNDS, 1, 1):
        served(daemon)
        assert daemon.stop() == 0

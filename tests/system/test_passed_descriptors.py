"""Descriptors that callers pass, and those that the daemon passes, harm no other caller.

Some that callers pass along take long to close: a TCP socket with SO_LINGER waits for its peer,
here for good. Those that the daemon passes count as the daemon's until they are read.
"""

from __future__ import annotations

import os
import socket
import sys

import msgpack
import pytest

from tests.rig import Daemon, until
from tests.system.attacker import Actor, connected
from tests.system.test_attacks import ANOTHER, ATTACKER, guarded, served, status
from tests.tools import need
from uuidd.server.descriptors import SO_PASSRIGHTS, bar_descriptors

pytestmark = pytest.mark.usefixtures("as_root")

ROUNDS, MIB, WATCHED = 4, 200, 2000
"""How many connections of each way, and how much there is to be freed."""


THIS_KERNEL, OLDER_KERNEL = "uuidd.cli", "tests.system.older_kernel"
"""Modules whose ``main`` is a daemon: as it is, and as on a kernel without SO_PASSRIGHTS."""


def bars() -> bool:
    """Whether this kernel has SO_PASSRIGHTS."""
    with socket.socket(socket.AF_UNIX) as sock:
        bar_descriptors(sock)
        try:
            return not sock.getsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS)
        except OSError:
            return False


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


DESCRIPTORS, OF_ONE = 200, 52
"""How many descriptors a daemon may have; a user may then have so many connections."""


def few_descriptors(*command: str) -> list[str]:
    """Return a command for a daemon that may have few, so that an attack is soon over."""
    return [need("prlimit"), f"--nofile={DESCRIPTORS}", *command]


def leased(daemon: Daemon) -> tuple[str | None, int]:
    """Ask for a lease; return the error, and how many pages came."""
    with daemon.connect() as connection:
        connection.sock.sendall(msgpack.packb([0, 1, "lease", []]))
        data, passed, _, _ = socket.recv_fds(connection.sock, 65536, 4)
        for fd in passed:
            os.close(fd)
        _, _, error, _ = msgpack.unpackb(data)
        return error, len(passed)


def test_pages_that_one_user_does_not_read_keep_none_from_others() -> None:
    """A connection counts as its user's until the page was read, also after it has ended."""
    with guarded(wrap=few_descriptors) as daemon:
        with Actor(daemon.socket, ATTACKER, "unread_pages", 2 * DESCRIPTORS) as attacker:
            assert leased(daemon) == (None, 1)
            until(lambda: status(daemon)["connections"] == OF_ONE + 1)
            assert status(daemon)["leases"]["unpassed"] == 0
            assert attacker.saw() == OF_ONE
        until(lambda: status(daemon)["connections"] == 1)


def test_pages_that_cannot_be_passed_are_told_of() -> None:
    """A client gets no lease then, and the lane is not held. The log and the status say why."""
    with guarded(wrap=few_descriptors) as daemon:
        with (
            Actor(daemon.socket, ATTACKER, "unread_pages", OF_ONE),
            Actor(daemon.socket, ANOTHER, "unread_pages", OF_ONE),
        ):
            assert leased(daemon) == (
                "no_lease: the page could not be passed over this connection; blocks serve"
                " meanwhile; ask again in 10.0 s",
                0,
            )
            found = status(daemon)["leases"]
            assert found["out"] == 0
            assert found["unpassed"] > 0
            assert found["refused"]["unpassed"] > 0
        (line,) = [line for line in daemon.lines if "page" in line]
        assert line.startswith(
            "uuidd: WARNING: the page could not be passed, so clients get no leases: "
        )
        until(lambda: status(daemon)["connections"] == 1)
        assert leased(daemon) == (None, 1)

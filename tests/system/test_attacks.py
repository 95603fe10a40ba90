"""Attacks by users of the host: no other user loses an id, a request or much time (P5).

The daemon runs as a user of its own, attackers and victim as others. What single callers send is
in tests/daemon/test_connection.py.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from typing import Any

import msgpack
import pytest

from tests.judge import Span, assert_apart
from tests.rig import PATIENCE, SOON, Daemon, resident_kib, until
from tests.system.attacker import GREED, REFUSED, Actor
from tests.tools import need
from uuidd.core.timeline.leases import PER_USER
from uuidd.server.descriptors import SO_PASSRIGHTS, bar_descriptors

pytestmark = pytest.mark.usefixtures("as_root")

ATTACKER, ANOTHER, VICTIM = 12345, 12346, 23456
"""Users without a name, a group or a right."""

MAX_AGE = 1_000_000
"""The most ticks by which a block may lag: 0.1 s."""


@contextlib.contextmanager
def guarded(*arguments: str, **how: Any) -> Iterator[Daemon]:
    """Start a daemon that runs as "nobody", and check that no attack changes its settings."""
    daemon = Daemon("--user", "nobody", *arguments, **how)
    daemon.folder.chmod(0o755)
    with daemon:
        before = unchanging(daemon)
        yield daemon
        assert unchanging(daemon) == before, daemon.lines
        assert daemon.stop() == 0
    # A line for ten seconds with refusals, and some for its start and its end.
    assert len(daemon.lines) < 20, daemon.lines
    assert all(len(line) < 1000 and "Traceback" not in line for line in daemon.lines)


@contextlib.contextmanager
def attacked(daemon: Daemon, role: str, *numbers: int, by: int = 1) -> Iterator[list[Actor]]:
    """Let one user attack, or two, and check that another is served meanwhile."""
    served(daemon, 20)
    with contextlib.ExitStack() as attack:
        actors = [
            attack.enter_context(Actor(daemon.socket, uid, role, *numbers))
            for uid in (ATTACKER, ANOTHER)[:by]
        ]
        victim = served(daemon)
        yield actors
    assert_disjoint(victim)
    until(lambda: status(daemon)["connections"] == 1)


def status(daemon: Daemon) -> dict[str, Any]:
    found: dict[str, Any] = daemon.call("status")
    return found


def unchanging(daemon: Daemon) -> dict[str, Any]:
    """Return the part of a daemon's status that no request may change."""
    found = status(daemon)
    common = ("version", "pid", "node", "node_source", "limits", "volatile")
    kept = {name: found[name] for name in common}
    for timeline, names in {
        "utc": ("generation", "node"),
        "steady": ("max_lead", "rollback", "worker", "epoch"),
    }.items():
        kept |= {f"{timeline} {name}": found[timeline][name] for name in names}
    return kept


def served(
    daemon: Daemon, rounds: int = 50, *, count: int = 10, whole: bool = False
) -> dict[str, Any]:
    """Let the victim ask meanwhile, and check that it is served as ever; return what it saw."""
    with Actor(daemon.socket, VICTIM, "victim", rounds, count, int(whole)) as victim:
        saw: dict[str, Any] = victim.saw()
    assert saw["refused"] == 0
    assert len(saw["blocks"]) == 2 * rounds
    assert saw["slowest"] < SOON
    assert saw["ahead"] <= 0
    assert saw["lag"] <= MAX_AGE
    return saw


def assert_disjoint(*seen: dict[str, Any]) -> None:
    """Fail if a (node, clock_seq, tick) is in two blocks, or one was from the future."""
    assert_apart(
        Span((node, clock_seq), first, first + count)
        for each in seen
        for node, clock_seq, first, count in each["blocks"]
    )
    assert max(each["ahead"] for each in seen) <= 0


# --- connections


def test_silent_connections_cost_no_time() -> None:
    with guarded() as daemon, attacked(daemon, "silent", 350):
        # Those with half of a request are closed upon after a while.
        assert status(daemon)["connections_highest"] >= 1000


@pytest.mark.parametrize("each", [1_000, pytest.param(5_000, marks=pytest.mark.thorough)])
def test_idle_connections_cost_no_time(each: int) -> None:
    with guarded() as daemon:
        served(daemon)
        before = resident_kib(daemon.pid)
        with attacked(daemon, "idle", each, by=2) as actors:
            assert status(daemon)["connections"] >= 2 * each
            assert resident_kib(daemon.pid) - before < each + 4096
            assert_disjoint(served(daemon), *(actor.saw() for actor in actors))


@pytest.mark.parametrize("callers", [1_000, pytest.param(20_000, marks=pytest.mark.thorough)])
def test_connections_that_come_and_go_cost_no_time(callers: int) -> None:
    with guarded() as daemon, attacked(daemon, "storm", callers) as (attacker,):
        assert attacker.saw() >= callers


def test_one_user_can_take_the_leases_of_one_user_only() -> None:
    """Others are granted leases meanwhile, and no disk is kept busy.

    All can read the page, and nobody can change it, or attach anything to it.
    """
    with guarded() as daemon, attacked(daemon, "leases", 200) as (attacker,):
        assert leased(daemon) == (None, 1)
        told = attacker.saw()
        assert told["held"] == PER_USER
        assert [each.split(",")[0] for each in told["heard"]] == [
            f"no_lease: uid {ATTACKER} has {PER_USER} leases"
        ]
        assert len(told["read"]) == 200
        assert len(set(told["read"])) == 1
        assert told["changed"] == []
        assert told["asked"] > 0
        found = status(daemon)
        assert found["leases"]["granted"] == PER_USER + 1
        assert found["saves"]["done"] < 100


@pytest.mark.parametrize("connections", [20, pytest.param(200, marks=pytest.mark.thorough)])
def test_unread_replies_pile_up_nowhere(connections: int) -> None:
    with guarded("--max-reply-seconds=1") as daemon:
        served(daemon, 20)
        before = resident_kib(daemon.pid)
        with attacked(daemon, "unread", connections) as (attacker,):
            # On a busy machine each needs its time to be asked, answered and found unread.
            until(
                lambda: status(daemon)["requests"]["rpc"]["refused"].get("unread") == connections,
                6 * PATIENCE,
            )
            assert attacker.saw() == connections
        # A reply of 64 KiB for each, and as much again that the allocator keeps.
        assert resident_kib(daemon.pid) - before < connections * 128 + 4096


# --- greed


@pytest.mark.parametrize(
    ("counts", "answered"),
    [
        pytest.param((10_000_000, 1_000_001, 2**31 - 1), False, id="more than there is"),
        pytest.param((1_000_000,), True, id="all that there is"),
        # A count below one stands for one.
        pytest.param((-1, 0, 1, -(2**31), 1000, -1000), True, id="less than one"),
    ],
)
def test_bulks_overlap_nothing_and_never_come_early(
    counts: tuple[int, ...], answered: bool
) -> None:
    """Each block of many connections of two users is current, past and its caller's alone.

    A request for too many moves no clock and uses up no clock sequence, however often it comes.
    """
    with guarded() as daemon, attacked(daemon, "bulks", *counts, by=2) as actors:
        seen = [actor.saw() for actor in actors]
        for each in seen:
            assert each["answered" if answered else "unanswered"] > 10
            assert bool(each["answered"]) == answered
        refused = status(daemon)["requests"]["libuuid"]["refused"]
        # A tenth of a second for each connection: there may be too few free ticks.
        allowed = {"malformed"} if not answered else {"busy"} if max(counts) > 1000 else set()
        assert set(refused) <= allowed
        assert sum(refused.values()) == sum(each["unanswered"] for each in seen)
        assert_disjoint(served(daemon), *seen)
        assert max(each["lag"] for each in seen) <= MAX_AGE


@pytest.mark.parametrize("greed", GREED)
def test_greed_shuts_no_other_user_out(greed: str) -> None:
    """Beside 200 connections that ask for all, each small request of another user is answered.

    The answers come soon, and each whole block is whole.
    """
    way = list(GREED).index(greed)
    with (
        guarded() as daemon,
        Actor(daemon.socket, ATTACKER, "greedy", 100, way) as one,
        Actor(daemon.socket, ATTACKER, "greedy", 100, way) as other,
    ):
        beside = served(daemon, 10, count=1000)
        wholes = served(daemon, 10, count=100_000, whole=True)
        told = [one.saw(), other.saw()]
        assert all(each["answers"] for each in told)
        assert {block[3] for block in wholes["blocks"]} == {10, 100_000}
        assert_disjoint(beside, wholes)
        heard = [error for each in told for error in each["heard"]]
        if greed in REFUSED:
            assert {error.partition(": ")[0] for error in heard} == {"busy"}
            # That it waits as often as it may, or has had its share: which, is a matter of time.
            assert [error for error in heard if f"uid {ATTACKER} has " in error]


# --- descriptors: those that callers pass, and those that the daemon passes

ROUNDS = 4
"""How many connections of each way."""

THIS_KERNEL, OLDER_KERNEL = "uuidd.cli", "tests.system.older_kernel"
"""Modules whose ``main`` is a daemon: as it is, and as on a kernel without SO_PASSRIGHTS."""


def bars() -> bool:
    with socket.socket(socket.AF_UNIX) as sock:
        bar_descriptors(sock)
        try:
            return not sock.getsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS)
        except OSError:
            return False


@pytest.mark.parametrize("module", [THIS_KERNEL, OLDER_KERNEL])
def test_a_descriptor_that_closes_slowly_delays_no_other(module: str) -> None:
    """Where the kernel can bar descriptors none comes through; else each ends its connection."""
    with (
        guarded(module=module) as daemon,
        attacked(daemon, "passing", ROUNDS) as (attacker,),
    ):
        told = attacker.saw()
        if module == THIS_KERNEL and bars():
            assert told["passed"] == 0
            assert told["barred"] >= 3 * ROUNDS
        else:
            assert told["passed"] >= 3 * ROUNDS
            assert status(daemon)["requests"]["rpc"]["refused"]["descriptors"] >= 3 * ROUNDS


def test_a_descriptor_of_one_who_is_rejected_delays_no_other() -> None:
    """What is never read of a connection over the limit is closed just as well."""
    with (
        guarded("--max-connections-per-uid=2", module=OLDER_KERNEL) as daemon,
        attacked(daemon, "passing", ROUNDS) as (attacker,),
    ):
        assert attacker.saw()["passed"] >= 3 * ROUNDS


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
    with (
        guarded(wrap=few_descriptors) as daemon,
        Actor(daemon.socket, ATTACKER, "unread_pages", 2 * DESCRIPTORS) as attacker,
    ):
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

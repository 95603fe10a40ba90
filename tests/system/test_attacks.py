"""Attacks by users of the host: no other user loses an id, a request or much time (P5).

The daemon runs as a user of its own, attackers and victim as others. What single callers send is
in tests/daemon/test_connection.py; callers of the same user are in test_shortages.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import msgpack
import pytest

from tests.judge import Span, assert_apart
from tests.rig import PATIENCE, SOON, Daemon, until
from tests.system.attacker import FIRST_BYTES, GREED, REFUSED, Actor, libuuid
from uuidd.core.timeline.leases import PER_USER

pytestmark = pytest.mark.usefixtures("as_root")

ATTACKER, ANOTHER, VICTIM = 12345, 12346, 23456
"""Users without a name, a group or a right."""

ROUNDS = 50
"""How often the victim asks in each dialect."""

PAUSE_MS = 3

MAX_AGE = 1_000_000
"""The most ticks by which a block may lag: 0.1 s."""


@contextlib.contextmanager
def guarded(*arguments: str, **how: Any) -> Iterator[Daemon]:
    """Start a daemon that runs as "nobody", and check that no attack changes its settings."""
    daemon = Daemon("--user", "nobody", *arguments, **how)
    daemon.folder.chmod(0o755)
    with daemon:
        before = status(daemon)
        yield daemon
        assert unchanging(status(daemon)) == unchanging(before)
        assert daemon.stop() == 0
    # A line for ten seconds with refusals, and some for its start and its end.
    assert len(daemon.lines) < 20, daemon.lines
    assert all(len(line) < 1000 and "Traceback" not in line for line in daemon.lines)


def status(daemon: Daemon) -> dict[str, Any]:
    """Return the daemon's status."""
    found: dict[str, Any] = daemon.call("status")
    return found


def unchanging(found: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a status that no request may change."""
    kept = {name: found[name] for name in ("version", "pid", "node", "node_source", "limits")}
    for timeline, names in {
        "utc": ("generation", "openings", "node"),
        "steady": ("max_lead", "rollback", "worker", "epoch"),
    }.items():
        kept |= {f"{timeline} {name}": found[timeline][name] for name in names}
    return kept | {"volatile": found["volatile"]}


def served(daemon: Daemon, rounds: int = ROUNDS) -> dict[str, Any]:
    """Let the victim ask meanwhile, and check that it is served as ever; return what it saw."""
    with Actor(daemon.socket, VICTIM, "victim", rounds, PAUSE_MS) as victim:
        saw: dict[str, Any] = victim.saw()
    assert saw["refused"] == 0
    for took in (saw["took"], saw["connected"]):
        assert len(took) == rounds
        assert max(took) < SOON
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


# --- what goes wrong in util-linux's daemon


def test_silent_connections_cost_no_time() -> None:
    """A thousand connections of one user, silent or with half a request, cost others no time."""
    with guarded() as daemon, Actor(daemon.socket, ATTACKER, "silent", 350):
        served(daemon)
        assert status(daemon)["connections"] >= 1000


def test_a_bulk_of_ten_million_is_never_answered() -> None:
    """Such a request moves no clock and uses up no clock sequence, however often it comes."""
    with guarded() as daemon:
        with Actor(daemon.socket, ATTACKER, "bulks", 10_000_000, 1_000_001, 2**31 - 1) as attacker:
            victim = served(daemon)
            bulks = attacker.saw()
        assert bulks["answered"] == 0
        assert bulks["unanswered"] > 10
        assert status(daemon)["requests"]["libuuid"]["refused"]["malformed"] == bulks["unanswered"]
        assert_disjoint(victim)


@pytest.mark.parametrize("counts", [(1_000_000,), (-1, 0, 1, -(2**31), 1000, -1000)])
def test_bulks_overlap_nothing_and_never_come_early(counts: tuple[int, ...]) -> None:
    """Each block of many connections of two users is current, past and its caller's alone.

    A count below one stands for one.
    """
    with guarded() as daemon:
        with (
            Actor(daemon.socket, ATTACKER, "bulks", *counts) as one,
            Actor(daemon.socket, ANOTHER, "bulks", *counts) as other,
        ):
            victim = served(daemon)
            seen = [one.saw(), other.saw()]
        assert all(each["answered"] > 10 for each in seen)
        refused = status(daemon)["requests"]["libuuid"]["refused"]
        # A tenth of a second for each connection: there may be too few free ticks.
        assert set(refused) <= ({"busy"} if max(counts) > 1000 else set())
        assert sum(refused.values()) == sum(each["unanswered"] for each in seen)
        assert_disjoint(victim, *seen)
        assert max(each["lag"] for each in seen) <= MAX_AGE


# --- connections


@pytest.mark.parametrize("each", [1_000, pytest.param(5_000, marks=pytest.mark.thorough)])
def test_idle_connections_cost_no_time(each: int) -> None:
    """Connections of two users cost the daemon half a KiB or so each."""
    with guarded() as daemon:
        served(daemon, 20)
        before = daemon.resident_kib()
        with (
            Actor(daemon.socket, ATTACKER, "idle", each) as one,
            Actor(daemon.socket, ANOTHER, "idle", each) as other,
        ):
            assert status(daemon)["connections"] >= 2 * each
            assert daemon.resident_kib() - before < each + 4096
            victim = served(daemon)
            assert_disjoint(victim, one.saw(), other.saw())
        until(lambda: status(daemon)["connections"] == 1)


@pytest.mark.parametrize("callers", [1_000, pytest.param(20_000, marks=pytest.mark.thorough)])
def test_connections_that_come_and_go_cost_no_time(callers: int) -> None:
    """Half of them send a byte. No connection is left, and others wait only a short time."""
    with guarded() as daemon:
        with Actor(daemon.socket, ATTACKER, "storm", callers) as attacker:
            with Actor(daemon.socket, VICTIM, "victim", 15, PAUSE_MS) as victim:
                saw = victim.saw()
            assert attacker.saw() >= callers
        assert saw["refused"] == 0
        assert max(saw["took"] + saw["connected"]) < SOON
        assert_disjoint(saw)
        until(lambda: status(daemon)["connections"] == 1)
        served(daemon, 20)


def test_one_user_can_take_the_connections_of_one_user_only() -> None:
    """Beyond the limit an rpc request gets an error that says why, and libuuid's none."""
    with guarded("--max-connections-per-uid=64", "--max-connections=256") as daemon:
        with Actor(daemon.socket, ATTACKER, "hoard", 200) as attacker:
            served(daemon)
            told = attacker.saw()
        assert told["held"] == 64
        assert told["closed"] == 0
        assert told["libuuid"] == ""
        assert told["heard"] == [
            f"busy: uid {ATTACKER} has 64 connections open, the most one user may have;"
            " share one, or close some"
        ]
        found = status(daemon)
        assert found["connections_rejected"] == 200 - 64 + 1
        assert found["requests"]["rpc"]["refused"] == {"connections": 137}


def test_one_user_can_take_the_leases_of_one_user_only() -> None:
    """Others are granted leases meanwhile, and no disk is kept busy.

    All can read the page, and nobody can change it, or attach anything to it.
    """
    with guarded() as daemon:
        served(daemon, 20)
        with Actor(daemon.socket, ATTACKER, "leases", 200) as attacker:
            served(daemon)
            with daemon.connect() as other:
                assert other.call("lease")["token"]
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


# --- unread replies


@pytest.mark.parametrize("connections", [20, pytest.param(200, marks=pytest.mark.thorough)])
def test_unread_replies_pile_up_nowhere(connections: int) -> None:
    """Each connection asks for 4,000,000 ids; all are closed when their time is up."""
    with guarded("--max-reply-seconds=1") as daemon:
        served(daemon, 20)
        before = daemon.resident_kib()
        with Actor(daemon.socket, ATTACKER, "unread", connections) as attacker:
            served(daemon)
            # On a busy machine each needs its time to be asked, answered and found unread.
            until(
                lambda: status(daemon)["requests"]["rpc"]["refused"].get("unread") == connections,
                6 * PATIENCE,
            )
            assert attacker.saw() == connections
        # A reply of 64 KiB for each, and as much again that the allocator keeps.
        assert daemon.resident_kib() - before < connections * 128 + 4096


def test_a_reply_read_byte_by_byte_is_cut_off() -> None:
    """A caller that always reads a little has no more time than one that never reads."""
    with (
        guarded("--max-reply-seconds=1") as daemon,
        Actor(daemon.socket, ATTACKER, "dripping", 20) as attacker,
    ):
        served(daemon)
        until(lambda: status(daemon)["requests"]["rpc"]["refused"].get("unread") == 20)
        until(lambda: status(daemon)["connections"] == 1)
        assert attacker.saw() <= 20


# --- bytes


def test_every_first_byte_ends_in_an_answer_or_a_close() -> None:
    """No connection is left open by any of the 256, with nothing, zeros or noise after it."""
    with guarded("--max-request-seconds=1") as daemon:
        before = daemon.resident_kib()
        with Actor(daemon.socket, ATTACKER, "first_bytes") as attacker:
            served(daemon, 50)
            told = attacker.saw()
        assert len(told) == 256 * len(FIRST_BYTES)
        answered = {name for name, end in told.items() if end == "answered"}
        # Ops 0 to 3 need nothing more, and 4 and 5 a count; noise is one of millions.
        assert answered == {
            *(f"{op} {rest}" for op in range(4) for rest in FIRST_BYTES),
            "4 zeros",
            "5 zeros",
            "5 noise",
            # A request without params, and one with numbers for its method and params.
            *(f"{op} {rest}" for op in (0x93, 0x94) for rest in ("zeros", "noise")),
        }
        assert set(told.values()) == {"answered", "closed"}
        assert daemon.resident_kib() - before < 8192


# --- power over the daemon

LIKELY = [
    *("shutdown", "stop", "kill", "quit", "exit", "restart", "reload", "set", "get", "config"),
    *("reset", "reset_steady", "reset-steady", "set_clock", "set_node", "set_limits", "limits"),
    *("save", "load", "state", "exec", "eval", "system", "ping", "help", "list", "debug", "log"),
    *("__class__", "__init__", "__dict__", "_make", "_status", "answer", "rpc", "libuuid", ""),
    *("Take", "TAKE", "take ", "take\0", "status\n", "\0", "../status", "system.listMethods"),
]


def test_no_request_changes_or_ends_the_daemon() -> None:
    """After every op there could be, and every method guessed, the daemon is the same."""
    with guarded("--worker=1") as daemon:
        for op in range(256):
            # Half a request is closed in its own time; here each has bytes enough.
            libuuid(daemon.socket, bytes([op]) + b"\xc1" * 8)
        values: list[Any] = [[], [1], ["limits", 1], [{"node": 1}], [None, None], [True] * 64]
        with daemon.connect() as connection:
            for method in LIKELY:
                for params in values:
                    assert connection.ask(method, *params)[2].startswith("unknown_method: ")
            for method in ("take", "make", "status"):
                for params in values[1:]:
                    assert connection.ask(method, *params)[2].startswith("bad_params: ")
            for method in (*LIKELY, "take", "make", "status"):
                for params in values:
                    connection.sock.sendall(msgpack.packb([2, method, params]))
            assert connection.call("take", "utc", 1)["count"] == 1


def test_no_reply_goes_to_another() -> None:
    """Each of a hundred connections that ask at once for different counts gets its own count."""
    with guarded() as daemon:
        with (
            Actor(daemon.socket, ATTACKER, "matching", 50) as one,
            Actor(daemon.socket, ANOTHER, "matching", 50) as other,
        ):
            victim = served(daemon, 50)
            seen = [one.saw(), other.saw()]
        assert [each["strange"] for each in seen] == [0, 0]
        assert_disjoint(victim, *seen)


def test_another_user_cannot_end_the_daemon() -> None:
    """``uuidd -k`` fails, and so does every signal: the kernel refuses."""
    with guarded() as daemon:
        with Actor(daemon.socket, ATTACKER, "killer", daemon.process.pid) as attacker:
            told = attacker.saw()
        assert told == {"refused": 6, "status": 1}
        assert daemon.process.poll() is None
        served(daemon, 20)


# --- greed

TAKES = 10


def taken(daemon: Daemon, count: int, *, whole: bool) -> dict[str, Any]:
    """Let the victim take *count* ticks, again and again; check that it never waits long."""
    with Actor(daemon.socket, VICTIM, "taker", count, int(whole), TAKES) as victim:
        found: dict[str, Any] = victim.saw()
    assert found["heard"] == []
    assert len(found["blocks"]) == TAKES
    assert found["slowest"] < SOON
    return found


@pytest.mark.parametrize("greed", GREED)
def test_greed_shuts_no_other_user_out(greed: str) -> None:
    """Beside 200 connections that ask for all, each small request of another user is answered.

    The answers come soon, and each whole block is whole.
    """
    way = list(GREED).index(greed)
    with guarded() as daemon:
        with (
            Actor(daemon.socket, ATTACKER, "greedy", 100, way) as one,
            Actor(daemon.socket, ATTACKER, "greedy", 100, way) as other,
        ):
            beside = taken(daemon, 1000, whole=False)
            wholes = taken(daemon, 100_000, whole=True)
            told = [one.saw(), other.saw()]
        assert all(each["answers"] for each in told)
        assert {block[3] for block in wholes["blocks"]} == {100_000}
        assert_disjoint(beside, wholes)
        heard = [error for each in told for error in each["heard"]]
        if greed in REFUSED:
            assert {error.partition(": ")[0] for error in heard} == {"busy"}
            # That it waits as often as it may, or has had its share: which, is a matter of time.
            assert [error for error in heard if f"uid {ATTACKER} has " in error]

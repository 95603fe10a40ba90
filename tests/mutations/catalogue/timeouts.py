"""Waits without an end, or with a later one."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

CONNECTION = "client/uuidd_client/connection.py"
ISSUER = "uuidd/server/issuer.py"
ISSUER_TESTS = (
    "tests/daemon/test_issuer.py::test_after_a_second_without_a_save_a_volatile_node_serves",
    "tests/daemon/test_issuer.py::test_no_whole_grant_waits_longer_than_a_fifth_of_a_second",
)

MUTATIONS = [
    Mutation(
        "client-timeout-not-heeded",
        "a hung daemon hangs its callers",
        CONNECTION,
        "            self._sock.settimeout(left)\n            data =",
        "            self._sock.settimeout(10)\n            data =",
        ("tests/client/test_connection.py",),
    ),
    Mutation(
        "client-timeout-anew-with-each-byte",
        "a daemon that trickles holds its callers",
        CONNECTION,
        "            self._sock.settimeout(left)\n            data =",
        "            self._sock.settimeout(self._timeout)\n            data =",
        ("tests/client/test_connection.py",),
    ),
    Mutation(
        "client-waits-in-full-backlog",
        "a hung daemon hangs its callers before they are accepted",
        CONNECTION,
        "_timeval(max(deadline - elapsed(), 0.001))",
        "_timeval(max(deadline - elapsed(), 10.0))",
        ("tests/client/test_connection.py",),
    ),
    Mutation(
        "client-tries-hung-daemon-each-second",
        "a hung daemon costs every second call a time-out",
        "client/uuidd_client/source.py",
        "min(2 * self.retry, MAX_RETRY) if late and self.retry else RETRY",
        "RETRY",
        ("tests/client/test_source.py",),
    ),
    Mutation(
        "save-wait-unbounded",
        "a hung disk hangs all callers",
        ISSUER,
        "until = begun + SAVE_SECONDS",
        "until = begun + 3600",
        ISSUER_TESTS,
    ),
    Mutation(
        "room-wait-unbounded",
        "a whole request waits as long as others take",
        ISSUER,
        "no_room = no_room or trio.current_time() + ROOM_SECONDS",
        "no_room = trio.current_time() + ROOM_SECONDS",
        ISSUER_TESTS,
    ),
    Mutation(
        "last-save-unbounded",
        "with a hung disk the daemon does not end",
        "uuidd/server/saver.py",
        "with trio.move_on_after(patience):",
        "with trio.move_on_after(60 * patience):",
        ("tests/daemon/test_saver.py",),
    ),
]

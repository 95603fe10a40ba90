"""Waits without an end, or with a later one."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

CONNECTION = "client/uuidd_client/connection.py"
ISSUER = "uuidd/server/allocator.py"
ISSUER_TESTS = (
    "tests/daemon/test_issuer.py::test_after_a_second_without_a_save_a_volatile_node_serves",
    "tests/daemon/test_issuer.py::test_no_whole_grant_waits_longer_than_a_fifth_of_a_second",
)

MUTATIONS = [
    Mutation(
        "client-timeout-not-heeded",
        "a hung daemon hangs its callers",
        CONNECTION,
        "sock.receive(READ_BYTES, left)",
        "sock.receive(READ_BYTES, 10)",
        ("tests/client/test_connection.py",),
    ),
    Mutation(
        "client-timeout-anew-with-each-byte",
        "a daemon that trickles holds its callers",
        CONNECTION,
        "sock.receive(READ_BYTES, left)",
        "sock.receive(READ_BYTES, self._timeout)",
        ("tests/client/test_connection.py",),
    ),
    Mutation(
        "client-waits-in-full-backlog",
        "a hung daemon hangs its callers before they are accepted",
        "client/uuidd_client/stream.py",
        "_timeval(left)",
        "_timeval(left + 10)",
        ("tests/client/test_connection.py",),
    ),
    Mutation(
        "silence-forgotten",
        "a silent daemon holds up every call for the time-out",
        CONNECTION,
        "            elif self._sock.is_quiet():\n",
        "            elif False:\n",
        ("tests/client/test_silence.py",),
    ),
    Mutation(
        "silence-kept-to-oneself",
        "each timeline of a process waits for a silent daemon",
        CONNECTION,
        "return now if self._silence.known(now) else now + self._timeout",
        "return now + self._timeout",
        ("tests/client/test_silence.py",),
    ),
    Mutation(
        "one-channel-for-both-timelines",
        "a v1 waits behind a v7 that waits for the daemon's disk",
        "client/uuidd_client/session.py",
        "        channel = self._channels.get(name)\n",
        '        name = "all"\n        channel = self._channels.get(name)\n',
        (
            "tests/client/test_client.py::test_an_id_of_one_timeline_is_not_held_up_by_a_wait_for_the_other",
        ),
    ),
    Mutation(
        "slow-disk-is-silence",
        "a disk that takes 0.3 s to sync leaves its host without safe ids",
        CONNECTION,
        "deadline = self._asked_at + self._timeout + methods.SAVE_SECONDS",
        "deadline = self._asked_at + self._timeout",
        ("tests/client/test_connection.py",),
    ),
    Mutation(
        "silence-without-an-end",
        "a daemon that answers again is never heard",
        CONNECTION,
        "            self._heard()\n        now =",
        "        now =",
        ("tests/client/test_silence.py",),
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

"""Waits that never end, or end too late."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "client-timeout-not-heeded",
        "a daemon that hangs holds its clients",
        "Connection._receive",
        "sock.receive(..., left)",
        "sock.receive(..., 6)",
        ("test_silence_ends_with_the_time_out",),
    ),
    Mutation(
        "client-timeout-restarted-by-each-byte",
        "a daemon that sends a byte now and then holds its clients",
        "Connection._receive",
        "deadline - elapsed()",
        "self._timeout",
        ("test_a_silence_after_a_piece_ends_with_the_time_out_of_the_whole",),
    ),
    Mutation(
        "client-waits-in-full-backlog",
        "a daemon that hangs holds its clients before they are accepted",
        "Stream.connect_until",
        "_timeval(left)",
        "_timeval(left + 6)",
        ("test_a_full_backlog_ends_with_the_time_out",),
    ),
    Mutation(
        "silence-forgotten",
        "a silent daemon holds up every call for the time-out",
        "Connection._deadline",
        "self._sock.is_quiet()",
        "False",
        ("test_one_request_is_out_on_a_connection_while_the_daemon_is_silent",),
    ),
    Mutation(
        "silence-kept-to-oneself",
        "each timeline of a process waits for a silent daemon",
        "Connection._deadline",
        "now if self._silence.known(now) else now + self._timeout",
        "now + self._timeout",
        ("test_one_call_waits_for_a_silent_daemon_whatever_is_drawn",),
    ),
    Mutation(
        "one-channel-for-both-timelines",
        "a v1 waits behind a v7 that waits for the daemon's disk",
        "Session.channel",
        "channel = self._channels.get(name)",
        """
        name = "all"
        channel = self._channels.get(name)
        """,
        ("test_an_id_of_one_timeline_is_not_held_up_by_a_wait_for_the_other",),
    ),
    Mutation(
        "slow-disk-is-silence",
        "a disk that takes 0.3 s to sync leaves its host without safe ids",
        "Connection._take",
        "self._asked_at + self._timeout + methods.SAVE_SECONDS",
        "self._asked_at + self._timeout",
        ("test_a_daemon_that_waits_has_its_own_time_for_that",),
    ),
    Mutation(
        "silence-without-an-end",
        "a daemon that answers again is never asked",
        "Connection._deadline",
        "self._heard()",
        "",
        ("test_a_daemon_whose_backlog_is_full_is_silent_until_it_has_room",),
    ),
    Mutation(
        "save-wait-unbounded",
        "a hung disk holds all clients",
        "Allocator.take_waiting",
        "until = begun + SAVE_SECONDS",
        "until = begun + 3600",
        ("test_without_a_save_in_time_a_volatile_node_serves",),
    ),
    Mutation(
        "room-wait-unbounded",
        "a request for a whole block waits as long as others take ticks",
        "Allocator.take_waiting",
        "no_room or trio.current_time() + ROOM_SECONDS",
        "trio.current_time() + ROOM_SECONDS",
        ("test_no_whole_grant_waits_longer_than_a_fifth_of_a_second",),
    ),
    Mutation(
        "last-save-unbounded",
        "with a hung disk the daemon does not end",
        "Saver.finish",
        "trio.move_on_after(patience)",
        "trio.move_on_after(60 * patience)",
        ("test_finish_gives_up_on_a_hung_save",),
    ),
]

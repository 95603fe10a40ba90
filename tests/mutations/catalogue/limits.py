"""Limits that are not enforced, so that one client harms others."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "request-bytes-not-bounded",
        "one request fills the memory",
        "unpack_requests",
        "size > limit",
        "size > 1 << 30",
        (
            "test_a_request_may_have_as_many_bytes_as_the_limit_and_no_more",
            "test_a_request_past_the_limit_is_refused_with_both_sizes",
        ),
    ),
    Mutation(
        "request-bytes-not-heeded-in-task",
        "--max-request-bytes means nothing",
        "_rpc",
        "answer_requests(..., ..., uid=..., limits=limits, ends=..., monotonic=...)",
        """
        answer_requests(
            ..., ..., uid=..., limits=Limits(request_bytes=1 << 30), ends=..., monotonic=...
        )
        """,
        (
            "test_connection.test_a_longer_request_is_closed_upon",
            "test_the_request_limit_can_be_set",
        ),
    ),
    Mutation(
        "request-bytes-not-heeded-in-poller",
        "--max-request-bytes means nothing",
        "Poller._answer",
        "answer_requests(..., ..., uid=..., limits=self._limits, ends=..., monotonic=...)",
        """
        answer_requests(
            ..., ..., uid=..., limits=Limits(request_bytes=1 << 30), ends=..., monotonic=...
        )
        """,
        ("test_the_request_limit_holds_on_a_connection_that_was_silent",),
    ),
    Mutation(
        "pipelined-not-bounded",
        "one caller's replies fill the memory",
        "answer_requests",
        "answered >= limits.pipelined",
        "False",
        ("test_a_turn_ends_after_as_many_requests_as_the_limit_says",),
    ),
    Mutation(
        "connections-not-bounded",
        "the daemon runs out of descriptors",
        "Admission.refusal",
        "self.open >= self._limits.connections",
        "False",
        ("test_nobody_enters_past_the_limit_in_all",),
    ),
    Mutation(
        "connections-per-uid-not-bounded",
        "one user shuts out all others",
        "Admission.refusal",
        "self._by_uid[uid] >= self._limits.connections_per_uid",
        "False",
        ("test_each_user_has_a_limit_of_its_own",),
    ),
    Mutation(
        "root-not-spared",
        "one user shuts out the administrator who would stop it",
        "Admission.__init__",
        "{0, own_uid}",
        "{own_uid}",
        (
            "test_the_user_with_the_most_may_lose_connections",
            "test_root_and_the_daemons_user_have_no_limit_of_their_own",
        ),
    ),
    Mutation(
        "connection-not-counted-out",
        "after some days no connection is accepted",
        "Admission.leave",
        "self.open -= 1",
        "",
        ("test_the_highest_count_is_kept", "test_a_connection_that_ends_makes_room_for_others"),
    ),
    Mutation(
        "rejections-not-bounded",
        "clients over the limit are kept without a limit",
        "Admission.begin_rejection",
        "self._rejections >= MAX_REJECTIONS",
        "False",
        ("test_so_many_may_wait_to_be_told", "test_who_was_told_makes_room_for_the_next"),
    ),
    Mutation(
        "rejected-may-stay",
        "clients over the limit are kept for ever",
        "connection.reject",
        """
        if not data:
            data = await stream.receive_until(until)
        """,
        """
        if not data:
            data = await stream.receive_until(1e9)
        """,
        ("test_one_rejected_may_not_stay",),
    ),
    Mutation(
        "peers-group-taken-for-uid",
        "limits are for the wrong user",
        "peer_uid",
        "_UCRED.unpack(...)[1]",
        "_UCRED.unpack(...)[2]",
        ("test_another_peers_user_is_known",),
    ),
    Mutation(
        "waiting-per-uid-not-bounded",
        "one user's waiting requests use up the daemon's time",
        "Allocator.take",
        "self._waiting[uid] >= most",
        "self._waiting[uid] < 0",
        ("test_only_so_many_requests_of_one_user_wait_for_room",),
    ),
    Mutation(
        "must-wait-not-told",
        "a client takes a daemon whose disk is slow for a silent one",
        "Allocator.take_waiting",
        "inf if wait else begun + SOON_SECONDS",
        "inf",
        (
            "test_room_that_comes_later_is_told_at_once",
            "test_a_user_who_has_had_the_share_hears_when_there_is_more",
        ),
    ),
    Mutation(
        "must-wait-gives-up-the-stored-node",
        "a request that does not wait turns utc volatile",
        "Allocator.take_waiting",
        """
        if trio.current_time() >= until:
            ...
        if trio.current_time() >= soon:
            ...
        """,
        """
        if trio.current_time() >= min(until, soon):
            ...
        if trio.current_time() >= soon:
            ...
        """,
        (
            "test_a_save_that_hangs_is_told_within_50_ms",
            "test_whoever_asks_again_with_wait_is_served_once_it_is_saved",
        ),
    ),
    Mutation(
        "turn-of-one-connection-without-an-end",
        "one connection with many requests keeps all others waiting",
        "answer_requests",
        "monotonic() > ends",
        "False",
        ("test_the_turn_ends_between_two_requests",),
    ),
    Mutation(
        "unread-per-uid-not-bounded",
        "one user's unread replies fill the memory",
        "_flush",
        "turns.unread[uid] < limits.unread_per_uid",
        "turns.unread[uid] >= 0",
        ("test_of_one_user_only_so_many_may_leave_their_replies_unread",),
    ),
    Mutation(
        "silence-makes-no-room",
        "silent clients use up the connections",
        "Evictor._evict_silent",
        "self._drop(stream)",
        "",
        ("test_those_long_silent_make_room", "test_silence_is_looked_for_once_a_second"),
    ),
    Mutation(
        "silence-of-others-makes-room",
        "one user's many connections have those of others closed",
        "Evictor._evict_silent",
        "self._admission.refusal(stream.uid)",
        "True",
        ("test_one_users_silence_makes_no_room_for_another",),
    ),
    Mutation(
        "some-users-shut-out-others",
        "two users who keep all connections shut out all others for good",
        "Evictor.make_room",
        "self._end_silent(long) or self._end_some_of_most(uid)",
        "self._end_silent(long)",
        (
            "test_the_user_with_the_most_makes_room",
            "test_those_in_the_middle_of_a_request_make_room_soon",
        ),
    ),
    Mutation(
        "half-requests-keep-all-connections",
        "two users who send a byte now and then shut out all others for good",
        "Evictor._evict_of_largest",
        "stream.end_reading()",
        "",
        ("test_those_in_the_middle_of_a_request_make_room_soon",),
    ),
    Mutation(
        "stop-forgets-who-has-just-connected",
        "a stop lets libuuid's callers be killed by SIGPIPE",
        "_Connections.finish",
        "begun + NEW_GRACE",
        "begun",
        (
            "test_stop_leaves_a_second_to_those_who_have_just_connected",
            "test_stop_does_not_wait_for_those_who_have_just_asked",
        ),
    ),
    Mutation(
        "no-watch-left-ends-the-daemon",
        "a low fs.epoll.max_user_watches ends the daemon",
        "Poller._park",
        "OSError",
        "KeyError",
        ("test_a_connection_that_cannot_be_watched_is_hung_up_on",),
    ),
    Mutation(
        "request-time-restarted-by-each-byte",
        "clients that send a byte now and then use up the connections",
        "_rpc",
        """
        if end:
            deadline = trio.current_time() + limits.request_seconds
            ...
        if stopped_by is PARTIAL:
            more = await stream.receive_until(deadline)
            ...
        """,
        """
        if end:
            deadline = trio.current_time() + limits.request_seconds
            ...
        if stopped_by is PARTIAL:
            more = await stream.receive_until(trio.current_time() + limits.request_seconds)
            ...
        """,
        ("test_one_byte_a_second_ends_after_five_seconds",),
    ),
    Mutation(
        "libuuid-request-time-restarted-by-each-byte",
        "clients that send a byte now and then use up the connections",
        "_libuuid",
        "stream.receive_until(deadline)",
        "stream.receive_until(trio.current_time() + 10)",
        ("test_a_first_request_in_pieces_has_five_seconds",),
    ),
    Mutation(
        "reply-unbounded-in-time",
        "clients that never read use up the connections",
        "Stream.send",
        "trio.move_on_after(seconds)",
        "trio.move_on_after(1e6)",
        (
            "test_a_caller_that_never_reads_is_closed_upon_after_five_seconds",
            "test_a_caller_that_never_reads_costs_little_memory",
        ),
    ),
    Mutation(
        "share-not-enforced",
        "one greedy user takes all ticks",
        "Shares.check",
        "gathered < 0",
        "gathered < -1e15",
        (
            "test_a_shortage_is_forgotten_after_a_fifth_of_a_second",
            "test_users_of_whole_grants_get_the_same_number_of_ticks",
        ),
    ),
    Mutation(
        "share-not-divided",
        "greedy users take the others' ticks",
        "Shares.check",
        "self._lanes / self._parts",
        "float(self._lanes)",
        (
            "test_users_of_whole_grants_get_the_same_number_of_ticks",
            "test_users_of_short_grants_get_the_same_time",
        ),
    ),
    Mutation(
        "poller-serves-from-the-first-again",
        "the first connections of a user shut out its others",
        "Poller._serve_user",
        "not queue.ready",
        "True",
        ("test_who_was_not_reached_in_a_turn_comes_before_who_was",),
    ),
    Mutation(
        "poller-user-without-end-of-turn",
        "one user with many connections shuts out the others",
        "Poller._serve_user",
        """
        if self._monotonic() > ends:
            break
        """,
        "",
        ("test_a_user_with_many_connections_delays_another_by_one_turn",),
    ),
    Mutation(
        "poller-no-turn-for-tasks",
        "requests that had to wait are not answered while others come",
        "Poller.run",
        "monotonic() > round_ends",
        "monotonic() > round_ends + 1e6",
        ("test_others_have_their_turn_though_there_is_always_a_request",),
    ),
    Mutation(
        "unread-kept-by-the-system-without-bound",
        "replies that nobody reads fill the memory",
        "Stream.bound_unread",
        "UNREAD_BYTES",
        "1 << 30",
        (
            "test_a_caller_that_never_reads_costs_little_memory",
            "test_replies_to_what_came_before_malformed_bytes_are_sent_whole",
        ),
    ),
    Mutation(
        "server-snowflake-without-worker",
        "a host without a number makes Snowflakes",
        "Service._parse",
        "self._issuer.worker is None",
        "self._issuer.worker == -1",
        ("test_snowflakes_need_a_worker_number",),
    ),
    Mutation(
        "make-in-one-go",
        "a request for a thousand ids delays everyone by milliseconds",
        "Maker.make",
        """
        if call.count > PIECES.get(call.kind, MAX_MAKE):
            return None
        """,
        "",
        ("test_more_ids_than_are_made_in_one_go_are_for_a_task",),
    ),
    Mutation(
        "makes-side-by-side",
        "one user's large requests have all their ids in the daemon's memory at once",
        "Maker.make_waiting",
        """
        async with turns.turn(uid):
            block = ...
            return await self._made(call, block)
        """,
        """
        async with turns.turn(id(call)):
            block = ...
            return await self._made(call, block)
        """,
        ("test_of_one_users_makes_only_one_is_half_made",),
    ),
    Mutation(
        "pieces-without-a-turn",
        "a request for a thousand ids delays everyone by milliseconds",
        "Maker._made",
        "await trio.lowlevel.checkpoint()",
        "",
        ("test_others_have_their_turn_between_the_pieces_of_a_make",),
    ),
    Mutation(
        "failed-grant-is-charged",
        "a request that got nothing counts, and its user gets less than its share",
        "Shares.draw",
        "self.contended and given",
        "self.contended",
        ("test_a_grant_that_failed_costs_nothing",),
    ),
    Mutation(
        "poller-polls-for-everyone",
        "the daemon polls in vain after each request that comes now and then",
        "_LoneClient.note",
        "now < self._at + LONE_SECONDS",
        "True",
        ("test_a_lone_client_is_polled_for_a_moment",),
    ),
    Mutation(
        "poller-polls-before-others",
        "one client that asks without a pause delays each new connection by a millisecond",
        "Poller.run",
        """
        self._lone.present = False
        await trio.lowlevel.checkpoint()
        """,
        "self._lone.present = False",
        ("test_others_have_their_turn_before_a_lone_client_is_polled_for",),
    ),
    Mutation(
        "descriptors-not-barred",
        "a descriptor that is passed along, and closes slowly, stops the daemon",
        "bar_descriptors",
        "listener.setsockopt(_LEVEL, SO_PASSRIGHTS, 0)",
        "listener.setsockopt(_LEVEL, SO_PASSRIGHTS, 1)",
        ("test_a_barred_listener_takes_no_descriptor",),
    ),
    Mutation(
        "descriptor-closed-by-reader",
        "on an older kernel a descriptor that closes slowly stops the daemon",
        "WaryStream.receive_now",
        "flags & socket.MSG_CTRUNC",
        "flags & socket.MSG_OOB",
        ("test_a_descriptor_is_not_closed_where_it_is_read",),
    ),
    Mutation(
        "descriptor-closed-with-its-connection",
        "on an older kernel a descriptor that closes slowly stops the daemon",
        "WaryStream.close",
        "self._dropper.drop(self.sock)",
        "self.sock.close()",
        (
            "test_the_peer_sees_the_end_before_descriptors_are_closed",
            "test_after_its_end_the_dropper_leaves_all_to_the_process",
        ),
    ),
]

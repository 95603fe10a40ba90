"""Limits that are not enforced: one caller harms others."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "request-bytes-not-bounded",
        "one request fills the memory",
        "requests",
        "size > limit",
        "size > 1 << 30",
        ("test_rpc",),
    ),
    Mutation(
        "request-bytes-not-heeded-in-task",
        "--max-request-bytes means nothing",
        "_answer_some",
        "limits.request_bytes",
        "1 << 30",
        ("daemon.test_connection",),
    ),
    Mutation(
        "request-bytes-not-heeded-in-hub",
        "--max-request-bytes means nothing",
        "Poller._answer",
        "self._limits().request_bytes",
        "1 << 30",
        ("test_survivors",),
    ),
    Mutation(
        "pipelined-not-bounded",
        "one caller's replies fill the memory",
        "_answer_some",
        "answered >= limits.pipelined",
        "False",
        ("test_survivors",),
    ),
    Mutation(
        "connections-not-bounded",
        "the daemon runs out of descriptors",
        "Admission.refusal",
        "self.open >= self.limits.connections",
        "self.open < 0",
        ("test_admission",),
    ),
    Mutation(
        "connections-per-uid-not-bounded",
        "one user shuts out all others",
        "Admission.refusal",
        "self._by_uid[uid] >= self.limits.connections_per_uid",
        "self._by_uid[uid] < 0",
        ("test_admission",),
    ),
    Mutation(
        "root-not-spared",
        "one user shuts out who would mend that",
        "Admission.__init__",
        "{0, own_uid}",
        "{own_uid}",
        ("test_admission",),
    ),
    Mutation(
        "connection-not-counted-out",
        "after some days nobody is let in",
        "Admission.leave",
        "self.open -= 1",
        "",
        ("test_admission",),
    ),
    Mutation(
        "turned-away-not-bounded",
        "those over the limit are kept without a limit",
        "Admission.begin_telling",
        "self._being_told >= TURNED_AWAY",
        "self._being_told < 0",
        ("test_admission",),
    ),
    Mutation(
        "turned-away-may-stay",
        "those over the limit are kept for ever",
        "turn_away",
        """
        if not data:
            data = await stream.receive_until(until)
        """,
        """
        if not data:
            data = await stream.receive_until(1e9)
        """,
        ("test_acceptor",),
    ),
    Mutation(
        "peers-group-taken-for-uid",
        "limits are for the wrong user",
        "peer_uid",
        "_UCRED.unpack(...)[1]",
        "_UCRED.unpack(...)[2]",
        ("test_admission",),
    ),
    Mutation(
        "waiting-per-uid-not-bounded",
        "one user's waiting requests cost all the time there is",
        "Allocator.take",
        "self._waiting[uid] >= most",
        "self._waiting[uid] < 0",
        ("test_only_so_many_requests_of_one_user_wait_for_room",),
    ),
    Mutation(
        "must-wait-not-told",
        "a caller takes a daemon whose disk is slow for a silent one",
        "Allocator.take_waiting",
        "inf if wait else begun + SOON_SECONDS",
        "inf",
        ("test_must_wait",),
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
        ("test_must_wait",),
    ),
    Mutation(
        "turns-of-many-users-not-shorter",
        "many users who ask for much keep a save of the state waiting",
        "Turns.seconds",
        "max(least, min(most, ROUND_SECONDS / max(1, len(self._locks))))",
        "most",
        ("daemon.test_connection",),
    ),
    Mutation(
        "unread-per-uid-not-bounded",
        "one user's unread replies fill the memory",
        "_flush",
        "turns.unread[uid] < limits.unread_per_uid",
        "turns.unread[uid] >= 0",
        ("daemon.test_connection",),
    ),
    Mutation(
        "silence-makes-no-room",
        "silent callers use up the connections",
        "Room._end_silent",
        "self._drop(stream)",
        "",
        ("test_acceptor",),
    ),
    Mutation(
        "silence-of-others-makes-room",
        "one user's many connections have those of others closed",
        "Room._end_silent",
        "self._admission.refusal(stream.uid)",
        "True",
        ("test_acceptor",),
    ),
    Mutation(
        "some-users-shut-out-others",
        "two users who keep all connections shut out all others for good",
        "Room.make",
        "self._end_silent(long) or self._end_some_of_most(uid)",
        "self._end_silent(long)",
        ("test_acceptor",),
    ),
    Mutation(
        "half-requests-keep-all-connections",
        "two users who send a byte now and then shut out all others for good",
        "Room._end_some_of_most",
        "stream.end_reading()",
        "",
        ("test_acceptor",),
    ),
    Mutation(
        "stop-forgets-who-has-just-connected",
        "a stop kills callers of libuuid's by SIGPIPE",
        "Acceptor._hear_out",
        "begun + NEW_GRACE",
        "begun",
        ("test_acceptor",),
    ),
    Mutation(
        "no-watch-left-ends-the-daemon",
        "a low fs.epoll.max_user_watches ends the daemon",
        "Poller._park",
        "OSError",
        "KeyError",
        ("test_poller",),
    ),
    Mutation(
        "request-time-anew-with-each-byte",
        "callers that drip use up the connections",
        "_rpc",
        """
        if part.end:
            deadline = trio.current_time() + limits.request_seconds
            ...
        if part.partial:
            more = await stream.receive_until(deadline)
            ...
        """,
        """
        if part.end:
            deadline = trio.current_time() + limits.request_seconds
            ...
        if part.partial:
            more = await stream.receive_until(trio.current_time() + limits.request_seconds)
            ...
        """,
        ("daemon.test_connection",),
    ),
    Mutation(
        "libuuid-request-time-anew-with-each-byte",
        "callers that drip use up the connections",
        "_libuuid",
        "stream.receive_until(deadline)",
        "stream.receive_until(trio.current_time() + 10)",
        ("daemon.test_connection",),
    ),
    Mutation(
        "reply-unbounded-in-time",
        "callers that never read use up the connections",
        "Stream.send",
        "trio.move_on_after(seconds)",
        "trio.move_on_after(1e6)",
        ("daemon.test_connection",),
    ),
    Mutation(
        "share-not-enforced",
        "one greedy user takes all ticks",
        "Shares.check",
        "gathered < 0",
        "gathered < -1e15",
        ("test_fairness",),
    ),
    Mutation(
        "share-not-divided",
        "greedy users take the others' ticks",
        "Shares.check",
        "self._lanes / self._parts",
        "float(self._lanes)",
        ("test_fairness",),
    ),
    Mutation(
        "hub-serves-from-the-first-again",
        "the first connections of a user shut out his others",
        "Poller._serve_some",
        "not queue.ready",
        "True",
        ("test_poller",),
    ),
    Mutation(
        "hub-user-without-end-of-turn",
        "one user with many connections shuts out the others",
        "Poller._serve_some",
        """
        if monotonic() > ends:
            break
        """,
        "",
        ("test_poller",),
    ),
    Mutation(
        "hub-no-turn-for-tasks",
        "requests that had to wait are not answered while others come",
        "Poller.run",
        "monotonic() > turn_ends",
        "monotonic() > turn_ends + 1e6",
        ("test_poller",),
    ),
    Mutation(
        "unread-kept-by-the-system-without-bound",
        "replies that nobody reads fill the memory",
        "Stream.bound_unread",
        "UNREAD_BYTES",
        "1 << 30",
        ("test_poller", "daemon.test_connection"),
    ),
    Mutation(
        "server-snowflake-without-worker",
        "a host without a number makes Snowflakes",
        "Service._parse",
        "self._issuer.worker is None",
        "self._issuer.worker == -1",
        ("test_making",),
    ),
    Mutation(
        "make-in-one-go",
        "who asks for a thousand ids delays everyone by milliseconds",
        "Maker.make",
        """
        if call.count > PIECES.get(call.kind, MAX_MAKE):
            return None
        """,
        "",
        ("test_poller", "test_making"),
    ),
    Mutation(
        "makes-side-by-side",
        "who asks for thousands of ids at once has them all in the daemon's memory",
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
        ("test_making",),
    ),
    Mutation(
        "pieces-without-a-turn",
        "who asks for a thousand ids delays everyone by milliseconds",
        "Maker._made",
        "await trio.lowlevel.checkpoint()",
        "",
        ("test_making",),
    ),
    Mutation(
        "failed-grant-is-charged",
        "who asks where there is nothing pays for it, and gets less than his share",
        "Shares.draw",
        "self.contended and given",
        "self.contended",
        ("test_fairness",),
    ),
    Mutation(
        "hub-lingers-for-everyone",
        "a daemon that is asked now and then looks for more in vain each time",
        "Poller._serve_some",
        "now < self._only_at + SOON",
        "True",
        ("test_poller",),
    ),
    Mutation(
        "hub-lingers-before-others",
        "one who asks without a pause lets those who connect wait for a millisecond each",
        "Poller.run",
        """
        self._lone = False
        await trio.lowlevel.checkpoint()
        """,
        "self._lone = False",
        ("test_poller",),
    ),
    Mutation(
        "descriptors-not-barred",
        "a descriptor that is passed along, and closes slowly, stops the daemon",
        "bar_descriptors",
        "listener.setsockopt(_LEVEL, SO_PASSRIGHTS, 0)",
        "listener.setsockopt(_LEVEL, SO_PASSRIGHTS, 1)",
        ("test_descriptors",),
    ),
    Mutation(
        "descriptor-closed-by-reader",
        "on an older kernel a descriptor that closes slowly stops the daemon",
        "WaryStream.receive_now",
        "flags & socket.MSG_CTRUNC",
        "flags & socket.MSG_OOB",
        ("test_descriptors",),
    ),
    Mutation(
        "descriptor-closed-with-its-connection",
        "on an older kernel a descriptor that closes slowly stops the daemon",
        "WaryStream.close",
        "self._dropper.drop(self.sock)",
        "self.sock.close()",
        ("test_descriptors",),
    ),
]

"""Limits that are not enforced: one caller harms others."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

ACCEPTOR_TESTS = ("tests/daemon/test_acceptor.py",)
ADMISSION = "uuidd/server/admission.py"
ADMISSION_TESTS = ("tests/daemon/test_admission.py",)
CONVERSATION = "uuidd/server/conversation.py"
CONVERSATION_TESTS = ("tests/daemon/test_conversation.py",)
HUB = "uuidd/server/hub.py"
HUB_TESTS = ("tests/daemon/test_hub.py",)
SHARES = "uuidd/server/shares.py"
WARY = "uuidd/server/wary.py"
WARY_TESTS = ("tests/daemon/test_wary.py",)
SHARES_TESTS = ("tests/daemon/test_shares.py",)

_MORE = (
    "            more = await stream.receive_until({})\n            if not more:\n                "
)
_LEFT = "deadline"
_ANEW = "trio.current_time() + limits.request_seconds"

MUTATIONS = [
    Mutation(
        "request-bytes-not-bounded",
        "one request fills the memory",
        "uuidd/core/wire/rpc.py",
        "    if size > limit:",
        "    if size > 1 << 30:",
        ("tests/core/test_rpc.py",),
    ),
    Mutation(
        "request-bytes-not-heeded-in-task",
        "--max-request-bytes means nothing",
        CONVERSATION,
        "for request, part.end in rpc.requests(data, limit=limits.request_bytes):",
        "for request, part.end in rpc.requests(data, limit=1 << 30):",
        CONVERSATION_TESTS,
    ),
    Mutation(
        "request-bytes-not-heeded-in-hub",
        "--max-request-bytes means nothing",
        HUB,
        "limit=self._limits().request_bytes",
        "limit=1 << 30",
        ("tests/daemon/test_survivors.py",),
    ),
    Mutation(
        "pipelined-not-bounded",
        "one caller's replies fill the memory",
        CONVERSATION,
        "                or answered >= limits.pipelined\n",
        "",
        ("tests/daemon/test_survivors.py",),
    ),
    Mutation(
        "connections-not-bounded",
        "the daemon runs out of descriptors",
        ADMISSION,
        "if self.open >= self.limits.connections:",
        "if self.open < 0:",
        ADMISSION_TESTS,
    ),
    Mutation(
        "connections-per-uid-not-bounded",
        "one user shuts out all others",
        ADMISSION,
        "self._by_uid[uid] >= self.limits.connections_per_uid:",
        "self._by_uid[uid] < 0:",
        ADMISSION_TESTS,
    ),
    Mutation(
        "root-not-spared",
        "one user shuts out who would mend that",
        ADMISSION,
        "self._spared = {0, own_uid}",
        "self._spared = {own_uid}",
        ADMISSION_TESTS,
    ),
    Mutation(
        "connection-not-counted-out",
        "after some days nobody is let in",
        ADMISSION,
        "        self.open -= 1\n",
        "",
        ADMISSION_TESTS,
    ),
    Mutation(
        "turned-away-not-bounded",
        "those over the limit are kept without a limit",
        ADMISSION,
        "if self._being_told >= TURNED_AWAY:",
        "if self._being_told < 0:",
        ADMISSION_TESTS,
    ),
    Mutation(
        "turned-away-may-stay",
        "those over the limit are kept for ever",
        CONVERSATION,
        "data = await stream.receive_until(until)\n    if not data or data[0] not in RPC_FIRST:",
        "data = await stream.receive_until(1e9)\n    if not data or data[0] not in RPC_FIRST:",
        ACCEPTOR_TESTS,
    ),
    Mutation(
        "peers-group-taken-for-uid",
        "limits are for the wrong user",
        "uuidd/server/peers.py",
        "uid: int = _UCRED.unpack(sock.getsockopt(_LEVEL, _PEERCRED, _SIZE))[1]",
        "uid: int = _UCRED.unpack(sock.getsockopt(_LEVEL, _PEERCRED, _SIZE))[2]",
        ADMISSION_TESTS,
    ),
    Mutation(
        "waiting-per-uid-not-bounded",
        "one user's waiting requests cost all the time there is",
        "uuidd/server/issuer.py",
        "if self._waiting[uid] >= most:",
        "if self._waiting[uid] < 0:",
        ("tests/daemon/test_issuer.py::test_only_so_many_requests_of_one_user_wait_for_room",),
    ),
    Mutation(
        "must-wait-not-told",
        "a caller takes a daemon whose disk is slow for a silent one",
        "uuidd/server/issuer.py",
        "soon = inf if wait else begun + SOON_SECONDS",
        "soon = inf",
        ("tests/daemon/test_must_wait.py",),
    ),
    Mutation(
        "must-wait-gives-up-the-stored-node",
        "a request that does not wait turns utc volatile",
        "uuidd/server/issuer.py",
        "if trio.current_time() >= until:",
        "if trio.current_time() >= min(until, soon):",
        ("tests/daemon/test_must_wait.py",),
    ),
    Mutation(
        "unread-per-uid-not-bounded",
        "one user's unread replies fill the memory",
        CONVERSATION,
        "turns.unread[uid] < limits.unread_per_uid:",
        "turns.unread[uid] >= 0:",
        CONVERSATION_TESTS,
    ),
    Mutation(
        "first-request-unbounded-in-time",
        "silent callers use up the connections",
        CONVERSATION,
        "    deadline = trio.current_time() + limits.request_seconds\n    if not data:",
        "    deadline = trio.current_time() + 1e6\n    if not data:",
        CONVERSATION_TESTS,
    ),
    Mutation(
        "request-time-anew-with-each-byte",
        "callers that drip use up the connections",
        CONVERSATION,
        _MORE.format(_LEFT) + "service.rpc",
        _MORE.format(_ANEW) + "service.rpc",
        CONVERSATION_TESTS,
    ),
    Mutation(
        "libuuid-request-time-anew-with-each-byte",
        "callers that drip use up the connections",
        CONVERSATION,
        _MORE.format(_LEFT) + "service.libuuid",
        _MORE.format(_ANEW) + "service.libuuid",
        CONVERSATION_TESTS,
    ),
    Mutation(
        "reply-unbounded-in-time",
        "callers that never read use up the connections",
        "uuidd/server/stream.py",
        "with trio.move_on_after(seconds):",
        "with trio.move_on_after(1e6):",
        CONVERSATION_TESTS,
    ),
    Mutation(
        "share-not-enforced",
        "one greedy user takes all ticks",
        SHARES,
        "if gathered < 0:",
        "if gathered < -1e15:",
        SHARES_TESTS,
    ),
    Mutation(
        "share-not-divided",
        "greedy users take the others' ticks",
        SHARES,
        "share = self._lanes / self._parts",
        "share = float(self._lanes)",
        SHARES_TESTS,
    ),
    Mutation(
        "hub-serves-from-the-first-again",
        "the first connections of a user shut out his others",
        HUB,
        "        if not queue.ready:\n            ready =",
        "        if True:\n            ready =",
        HUB_TESTS,
    ),
    Mutation(
        "hub-user-without-end-of-turn",
        "one user with many connections shuts out the others",
        HUB,
        "            if monotonic() > ends:\n                break\n",
        "",
        HUB_TESTS,
    ),
    Mutation(
        "hub-no-turn-for-tasks",
        "requests that had to wait are not answered while others come",
        HUB,
        "                    if monotonic() > turn_ends:\n",
        "                    if monotonic() > turn_ends + 1e6:\n",
        HUB_TESTS,
    ),
    Mutation(
        "unread-kept-by-the-system-without-bound",
        "replies that nobody reads fill the memory",
        "uuidd/server/stream.py",
        "socket.SO_SNDBUF, UNREAD_BYTES)",
        "socket.SO_SNDBUF, 1 << 30)",
        (*HUB_TESTS, *CONVERSATION_TESTS),
    ),
    Mutation(
        "server-snowflake-without-worker",
        "a host without a number makes Snowflakes",
        "uuidd/server/service.py",
        "self._issuer.worker is None:",
        "self._issuer.worker == -1:",
        ("tests/daemon/test_making.py",),
    ),
    Mutation(
        "make-in-one-go",
        "who asks for a thousand ids delays everyone by milliseconds",
        "uuidd/server/making.py",
        "        if call.count > PIECES.get(call.kind, MAX_MAKE):\n            return None\n",
        "",
        ("tests/daemon/test_hub.py", "tests/daemon/test_making.py"),
    ),
    Mutation(
        "makes-side-by-side",
        "who asks for thousands of ids at once has them all in the daemon's memory",
        "uuidd/server/making.py",
        "            async with turns.turn(uid):\n                block",
        "            async with turns.turn(id(call)):\n                block",
        ("tests/daemon/test_making.py",),
    ),
    Mutation(
        "pieces-without-a-turn",
        "who asks for a thousand ids delays everyone by milliseconds",
        "uuidd/server/making.py",
        "                await trio.lowlevel.checkpoint()\n",
        "                pass\n",
        ("tests/daemon/test_making.py",),
    ),
    Mutation(
        "failed-grant-is-charged",
        "who asks where there is nothing pays for it, and gets less than his share",
        "uuidd/server/shares.py",
        "        if self.contended and given:\n",
        "        if self.contended:\n",
        ("tests/daemon/test_shares.py",),
    ),
    Mutation(
        "hub-lingers-for-everyone",
        "a daemon that is asked now and then looks for more in vain each time",
        HUB,
        " and now < self._only_at + SOON",
        "",
        HUB_TESTS,
    ),
    Mutation(
        "hub-lingers-before-others",
        "one who asks without a pause lets those who connect wait for a millisecond each",
        HUB,
        "                    await trio.lowlevel.checkpoint()\n                    turn_ends",
        "                    turn_ends",
        HUB_TESTS,
    ),
    Mutation(
        "descriptors-not-barred",
        "a descriptor that is passed along, and closes slowly, stops the daemon",
        WARY,
        "listener.setsockopt(_LEVEL, SO_PASSRIGHTS, 0)",
        "listener.setsockopt(_LEVEL, SO_PASSRIGHTS, 1)",
        WARY_TESTS,
    ),
    Mutation(
        "descriptor-closed-by-reader",
        "on an older kernel a descriptor that closes slowly stops the daemon",
        WARY,
        "            if flags & socket.MSG_CTRUNC:\n",
        "            if flags & socket.MSG_OOB:\n",
        WARY_TESTS,
    ),
    Mutation(
        "descriptor-closed-with-its-connection",
        "on an older kernel a descriptor that closes slowly stops the daemon",
        WARY,
        "self._dropper.drop(self.sock)",
        "self.sock.close()",
        WARY_TESTS,
    ),
]

"""What is read from the wire, or written to it, otherwise than it should be."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

RPC = "uuidd/core/wire/rpc.py"
METHODS = "uuidd/core/wire/methods.py"
LIBUUID = "uuidd/core/wire/libuuid.py"

MUTATIONS = [
    Mutation(
        "bool-taken-for-count",
        "true is one tick",
        METHODS,
        "if type(count) is not int or",
        "if not isinstance(count, int) or",
        ("tests/core/test_methods.py",),
    ),
    Mutation(
        "bool-taken-for-type",
        "false is a request",
        RPC,
        "or not value or type(value[0]) is not int:",
        "or not value or not isinstance(value[0], int):",
        ("tests/core/test_rpc.py",),
    ),
    Mutation(
        "bool-taken-for-tick",
        "a client makes ids of a bad answer",
        METHODS,
        "type(first) is type(count) is type(clock_seq) is int",
        "isinstance(first, int) and isinstance(count, int) and isinstance(clock_seq, int)",
        ("tests/core/test_methods.py",),
    ),
    Mutation(
        "notification-done",
        "a notification takes ticks that nobody hears of",
        "uuidd/server/service.py",
        '        if msgid is None:\n            self.rpc.requests += 1\n            return b""\n',
        "        if msgid is None:\n            msgid = 0\n",
        ("tests/daemon/test_conversation.py",),
    ),
    Mutation(
        "closed-without-a-word",
        "whoever sends a request that is too long does not hear why the connection ended",
        RPC,
        "return MalformedError(told, _msgid(data))",
        "return MalformedError(told)",
        ("tests/core/test_rpc.py",),
    ),
    Mutation(
        "error-as-array",
        "clients in Go fail on each error",
        RPC,
        'msgid, f"{code}: {message}", None]',
        "msgid, [code, message], None]",
        ("tests/core/test_rpc.py",),
    ),
    Mutation(
        "count-not-bounded",
        "one request takes ticks of hours",
        METHODS,
        "or not 1 <= count <= most:",
        "or not 1 <= count:",
        ("tests/core/test_methods.py",),
    ),
    Mutation(
        "libuuid-count-not-bounded",
        "one request takes ticks of hours",
        LIBUUID,
        "if echo > MAX_TIME:",
        "if echo > 2**31:",
        ("tests/core/test_libuuid.py",),
    ),
    Mutation(
        "libuuid-count-below-one",
        "a negative count turns the clock back",
        LIBUUID,
        "return Ask(op, max(1, echo), echo)",
        "return Ask(op, echo, echo)",
        ("tests/core/test_libuuid.py",),
    ),
    Mutation(
        "libuuid-reply-of-another-length",
        "libuuid's callers take the reply for none",
        LIBUUID,
        "_TIME_REPLY.pack(20, first, echo)",
        "_TIME_REPLY.pack(16, first, echo)",
        ("tests/core/test_libuuid.py",),
    ),
    Mutation(
        "libuuid-reply-of-any-length",
        "a client waits for the end of a reply that has none",
        LIBUUID,
        "if not 0 <= size <= 4 + 16 * MAX_RANDOM:",
        "if size < 0:",
        ("tests/core/test_libuuid.py",),
    ),
    Mutation(
        "libuuid-reply-of-another-version",
        "a client makes v1 ids of what is none",
        LIBUUID,
        "or uuids.version(uuid) != 1:",
        "or uuids.version(uuid) > 8:",
        ("tests/core/test_libuuid.py",),
    ),
    Mutation(
        "items-not-bounded",
        "a message of 4 kB costs megabytes",
        RPC,
        '"max_array_len": MAX_ITEMS,\n    "max_map_len": MAX_ITEMS,',
        '"max_array_len": 1 << 20,\n    "max_map_len": 1 << 20,',
        ("tests/core/test_rpc.py",),
    ),
    Mutation(
        "snowflake-slot-twice",
        "two blocks hold the same Snowflake",
        "uuidd/core/ids/snowflake.py",
        "(rest - 1) * SLOTS // TICKS_PER_MS + 1\n",
        "rest * SLOTS // TICKS_PER_MS\n",
        ("tests/core/test_snowflakes.py",),
    ),
]

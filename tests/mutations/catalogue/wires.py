"""Messages read or written wrongly."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "bool-taken-for-count",
        "true counts as one tick",
        "methods._count",
        "type(count) is not int",
        "not isinstance(count, int)",
        ("test_a_count_out_of_range_is_refused",),
    ),
    Mutation(
        "bool-taken-for-type",
        "false counts as the type of a request",
        "_request",
        "type(value[0]) is not int",
        "not isinstance(value[0], int)",
        ("test_another_shape_is_malformed",),
    ),
    Mutation(
        "bool-taken-for-tick",
        "a client makes ids of a bad answer",
        "methods.unpack_block",
        "type(first) is type(count) is type(clock_seq) is int",
        "isinstance(first, int) and isinstance(count, int) and isinstance(clock_seq, int)",
        ("test_a_field_out_of_range_is_no_block",),
    ),
    Mutation(
        "notification-done",
        "a notification takes ticks that nobody hears of",
        "Service.answer",
        """
        if msgid is None:
            ...
        """,
        """
        if msgid is None:
            msgid = 0
        """,
        ("test_what_wants_no_answer_is_ignored",),
    ),
    Mutation(
        "closed-without-an-answer",
        "the client is not told that its request was too long",
        "_too_long",
        "MalformedError(told, _msgid(data))",
        "MalformedError(told)",
        ("test_what_begins_as_a_request_is_malformed_with_its_msgid",),
    ),
    Mutation(
        "error-as-array",
        "clients in Go fail on each error",
        "pack_error",
        'f"{code}: {message}"',
        "[code, message]",
        ("test_messages_are_packed_as_published",),
    ),
    Mutation(
        "count-not-bounded",
        "one request takes the ticks of hours",
        "methods._count",
        "1 <= count <= most",
        "1 <= count",
        ("test_a_count_out_of_range_is_refused",),
    ),
    Mutation(
        "libuuid-count-not-bounded",
        "one request takes the ticks of hours",
        "libuuid.unpack_request",
        "echo > MAX_BLOCK",
        "echo > 2**31",
        ("test_more_than_a_million_is_refused",),
    ),
    Mutation(
        "libuuid-count-below-one",
        "a negative count turns the clock back",
        "libuuid.unpack_request",
        "Request(op, max(1, echo), echo)",
        "Request(op, echo, echo)",
        (
            "test_libuuid.test_a_request_is_unpacked_once_it_is_whole",
            "test_bytes_after_a_request_are_passed_over",
        ),
    ),
    Mutation(
        "libuuid-reply-of-another-length",
        "libuuid does not accept the reply",
        "bulk_time_reply",
        "_TIME_REPLY.pack(20, first, echo)",
        "_TIME_REPLY.pack(16, first, echo)",
        (
            "test_the_reply_to_bulk_time_echoes_the_count",
            "test_a_body_is_unpacked_once_the_reply_is_whole",
        ),
    ),
    Mutation(
        "libuuid-reply-of-any-length",
        "a client waits for the end of a reply that never comes",
        "unpack_body",
        "not 0 <= size <= 4 + 16 * MAX_RANDOM",
        "size < 0",
        ("test_a_length_that_no_reply_has_is_refused",),
    ),
    Mutation(
        "libuuid-reply-of-another-version",
        "a client makes v1 ids of a reply that has none",
        "libuuid.unpack_block",
        "uuids.version(uuid) != 1",
        "uuids.version(uuid) > 8",
        ("test_another_body_reserves_nothing",),
    ),
    Mutation(
        "items-not-bounded",
        "a message of 4 kB costs megabytes",
        "rpc",
        "MAX_ITEMS = ...",
        "MAX_ITEMS = 1 << 20",
        ("test_an_array_or_map_has_64_items_at_most",),
    ),
    Mutation(
        "snowflake-slot-twice",
        "two blocks hold the same Snowflake",
        "place_from",
        "(ms << SEQUENCE_BITS) + (rest - 1) * SLOTS // TICKS_PER_MS + 1",
        "(ms << SEQUENCE_BITS) + rest * SLOTS // TICKS_PER_MS",
        (
            "test_a_place_is_found_at_its_tick",
            "test_the_place_from_a_tick_is_the_first_one_not_before_it",
        ),
    ),
]

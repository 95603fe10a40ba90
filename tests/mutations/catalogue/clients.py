"""Client: what ids are made of, and what is reported about them."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "block-deadline-not-checked-at-draw",
        "ids are drawn from a block that is too old, or a parent's",
        "Client.factory.draw",
        "begin <= clock() < deadline[0]",
        "deadline",
        ("test_no_id_comes_twice_after_a_fork",),
    ),
    Mutation(
        "block-deadline-not-checked-at-iteration",
        "ids of an iterator are drawn from a block that is too old, or a parent's",
        "Client.iter.draw",
        "begin <= now < deadline[0]",
        "deadline",
        ("test_after_a_fork_parent_and_child_give_the_plain_ids_of_blocks_of_their_own",),
    ),
    Mutation(
        "block-deadline-not-checked-at-refill",
        "ids are made from a block that is too old",
        "Supply._ensure",
        "self._first < self._end and self._valid()",
        "self._first < self._end",
        ("test_what_was_taken_back_is_no_demand", "test_a_blocks_age_counts_from_the_request"),
    ),
    Mutation(
        "block-age-from-its-end",
        "the first ids of a block lag by more than max_age",
        "Supply._fetch",
        "begin + self._max_age - age",
        "begin + self._max_age",
        (
            "test_a_run_tells_until_when_it_may_be_drawn_from",
            "test_a_block_is_used_until_it_is_too_old",
        ),
    ),
    Mutation(
        "block-outlives-a-step-back-at-draw",
        "v1 ids lie in the future after UTC stepped back",
        "Client.factory.draw",
        "begin <= clock() < deadline[0]",
        "clock() < deadline[0]",
        ("test_a_step_of_utc_ends_a_block",),
    ),
    Mutation(
        "block-outlives-a-step-back-at-iteration",
        "v1 ids of an iterator lie in the future after UTC stepped back",
        "Client.iter.draw",
        "begin <= now < deadline[0]",
        "now < deadline[0]",
        ("test_a_step_of_utc_ends_a_block",),
    ),
    Mutation(
        "block-outlives-a-step-back-at-refill",
        "v1 ids made at once lie in the future after UTC stepped back",
        "Supply._valid",
        "self._begin <= utc() < self._deadline[0]",
        "utc() < self._deadline[0]",
        ("test_a_step_of_utc_ends_a_block",),
    ),
    Mutation(
        "random-ids-wait-for-good",
        "a core dump holds the next secrets, and a clone of the machine repeats them",
        "Supply._fetch",
        "self._span(begin, begin + self._max_age)",
        'self._span(begin, float("inf"))',
        ("test_v4_ids_that_wait_are_dropped_with_time",),
    ),
    Mutation(
        "many-random-ids-wait",
        "a core dump holds the next thousand secrets",
        "Supply.run",
        "LONG_RUNS[form] if self._timeline else RANDOM_RUN",
        "LONG_RUNS[form]",
        ("test_few_v4_ids_wait_in_memory",),
    ),
    Mutation(
        "waiting-for-a-block-is-lack-of-demand",
        "on a busy host blocks stay small, and most time goes into requests",
        "Supply._fetch",
        """
        asked = self._demand.size(..., ..., asked_at)
        block, from_daemon = self._take(asked)
        self._demand.came(elapsed())
        """,
        """
        asked = self._demand.size(..., ..., asked_at)
        block, from_daemon = self._take(asked)
        self._demand.came(asked_at)
        """,
        ("test_the_time_that_a_block_took_to_come_is_no_lack_of_demand",),
    ),
    Mutation(
        "burst-sized-by-its-last-block",
        "each burst of ids costs more than one round trip",
        "Demand.size",
        "self._burst + used",
        "used",
        (
            "test_after_a_rest_the_last_burst_is_asked_for",
            "test_each_burst_counts_from_the_rest_before_it",
        ),
    ),
    Mutation(
        "warning-names-the-client",
        "the warning of a missing daemon does not name the user's own line",
        "_warn",
        "_callers_level()",
        "2",
        ("test_the_warning_names_the_line_that_drew",),
    ),
    Mutation(
        "function-without-its-name",
        "uuid7 cannot be the default of a field of Django, nor be sent to a pool of processes",
        "_named",
        "draw.__module__, draw.__name__, draw.__qualname__ = (__name__, name, name)",
        "draw.__module__ = __name__",
        (
            "test_a_public_function_is_known_by_its_public_name",
            "test_help_of_a_function_reads_well",
        ),
    ),
    Mutation(
        "client-pickled-without-wait",
        "a client that does not wait does so in another process",
        "Client.__reduce__",
        "partial(type(self), wait=self._wait)",
        "type(self)",
        ("test_a_client_comes_out_of_a_pickle_with_its_settings",),
    ),
    Mutation(
        "module-names-sought-at-exit",
        "a program with a hook for exceptions ends with a traceback",
        "Stream.is_open",
        "self._fstat(self.fileno())",
        "os.fstat(self.fileno())",
        ("test_a_process_ends_without_a_word",),
    ),
    Mutation(
        "safe-mark-on-all",
        "ids made without a daemon are marked safe",
        "Supply._fetch",
        "SafeUUID.safe if from_daemon else SafeUUID.unknown",
        "SafeUUID.safe",
        (
            "test_ids_are_marked_by_where_their_block_came_from",
            "test_a_call_that_spans_blocks_marks_each_id_by_its_own",
        ),
    ),
    Mutation(
        "safe-mark-on-fallback",
        "ids made without a daemon are marked safe",
        "Source.take",
        "return found, False",
        "return found, True",
        (
            "test_a_block_made_here_is_not_the_daemons",
            "test_the_daemon_serves_again_once_it_is_tried",
        ),
    ),
    Mutation(
        "runs-overlap",
        "two runs hold the same ids",
        "Supply._use",
        """
        count = min(..., ..., ...)
        self._first += count
        """,
        "count = min(..., ..., ...)",
        ("test_made_ids_are_those_of_their_ticks",),
    ),
    Mutation(
        "run-taken-back-while-drawn-from",
        "an id that another thread has just drawn is made again",
        "Supply._take_back",
        "self._layout.random or left[0] in self._ids(self._out_form, first, 1)",
        "True",
        ("test_a_run_drawn_from_in_the_middle_of_taking_back_is_dropped",),
    ),
    Mutation(
        "larger-block-accepted",
        "a client uses what another daemon never gave",
        "Connection._checked",
        "block.count > count",
        "block.count > 1_000_000",
        ("test_a_larger_block_than_was_asked_for_is_refused",),
    ),
    Mutation(
        "larger-libuuid-block-accepted",
        "a client uses what util-linux's daemon never reserved",
        "Connection._take_by_libuuid",
        "min(block.count, asked)",
        "block.count",
        ("test_util_linux_grants_no_more_than_was_asked",),
    ),
    Mutation(
        "response-to-another-msgid-accepted",
        "one block is taken for the answer to two requests",
        "Connection._exchange",
        "response.msgid != self._msgid",
        "response.msgid < 0",
        ("test_an_answer_to_another_request_is_refused",),
    ),
    Mutation(
        "connection-kept-after-interrupt",
        "the answer to an interrupted request is taken for the next one's",
        "Connection._exchange",
        """
        if self._unanswered is None:
            self.close()
        """,
        "",
        ("test_a_call_after_an_interrupted_one_is_answered",),
    ),
    Mutation(
        "fallback-steady-not-past-used",
        "the fallback makes steady ids that the daemon has given out",
        "Source.take_steady",
        "past = self._latest.end",
        "past = 0",
        (
            "test_steady_ticks_rise_from_the_daemons_to_those_made_here",
            "test_sources_that_share_what_they_reached_rise_from_the_daemon_on",
        ),
    ),
    Mutation(
        "fallback-of-each-session-its-own",
        "steady ids fall when a signal handler draws where there is no daemon",
        "Source.take_steady",
        "local_fallback.get()",
        "type(local_fallback.get())()",
        ("test_sources_of_one_process_go_on_after_one_another",),
    ),
    Mutation(
        "fallback-loses-a-handlers-change",
        "a signal handler and what it interrupted get the same ticks",
        "_Shared.change",
        'link.after.setdefault("next", following) is following',
        'link.after.setdefault("next", following)',
        ("test_a_signal_handler_may_come_in_between_anywhere",),
    ),
    Mutation(
        "fallback-shared-with-child",
        "without a daemon a child makes ids under its parent's node",
        "PerProcess.get",
        "value.alive[0]",
        "True",
        ("test_a_process_has_one_and_a_child_has_another",),
    ),
    Mutation(
        "frozen-clock-is-waited-for",
        "a v1 without a daemon hangs where a test has frozen the clock",
        "Fallback.take.take",
        "waited >= STILL_SECONDS or now <= utc.still",
        "False",
        (
            "test_nobody_waits_longer_for_a_clock_that_stands_still",
            "test_a_clock_known_to_stand_still_is_not_waited_for_again",
        ),
    ),
    Mutation(
        "fallback-never-lets-go",
        "one id drawn while the clock was far ahead leaves all later ones there",
        "Fallback.take_steady.take",
        "end - now > MAX_LEAD",
        "end < now",
        (
            "test_more_than_an_hour_ahead_order_begins_anew",
            "test_steady_ticks_of_a_clock_that_stands_still_lead_it_by_an_hour_at_most",
        ),
    ),
    Mutation(
        "floor-never-let-go",
        "a client that was far ahead never uses the daemon again",
        "Source._take_later",
        "reached - end > MAX_LEAD",
        "reached < 0",
        ("test_a_daemon_more_than_an_hour_behind_is_used",),
    ),
    Mutation(
        "daemon-steady-not-past-used",
        "steady ids fall when the daemon is back",
        "Source._take_later",
        "max(block.first, reached)",
        "block.first",
        ("test_of_a_daemons_block_what_was_used_is_cut_off",),
    ),
    Mutation(
        "daemon-behind-is-used",
        "steady ids fall when a daemon that lost its state is back",
        "Source._take_later",
        "end <= reached",
        "end < 0",
        (
            "test_a_daemon_behind_what_was_used_is_not_used",
            "test_without_fallback_a_daemon_behind_is_told_of",
        ),
    ),
    Mutation(
        "reached-forgotten",
        "steady ids fall between daemon and fallback",
        "Source.take_steady",
        "latest.end = end",
        "",
        (
            "test_steady_ticks_rise_from_the_daemons_to_those_made_here",
            "test_a_daemon_behind_what_was_used_is_not_used",
        ),
    ),
    Mutation(
        "snowflake-without-worker",
        "a host without a number makes Snowflakes",
        "Supply._take",
        "block.worker is None",
        "block.worker == -1",
        ("test_a_snowflake_needs_a_worker_number",),
    ),
    Mutation(
        "snowflake-by-fallback",
        "a process without a daemon tries to make Snowflakes",
        "Supply._take",
        'self._source.take_steady(count, fallback=self._kind != "snowflake")',
        "self._source.take_steady(count, fallback=True)",
        ("test_only_snowflakes_have_no_fallback",),
    ),
    Mutation(
        "blocks-without-a-place-are-asked-for-without-an-end",
        "a broken daemon holds a caller for good",
        "Supply._ensure",
        """
        for _ in range(MAX_EMPTY):
            ...
        """,
        """
        while True:
            ...
        """,
        ("test_a_daemon_whose_blocks_have_no_place_is_given_up",),
    ),
    Mutation(
        "node-may-change-without-an-end",
        "a broken daemon holds a caller for a minute",
        "Supply._fetch",
        "self._nodes > MAX_NODES",
        "False",
        ("test_a_daemon_whose_node_is_another_each_time_is_given_up",),
    ),
    Mutation(
        "older-block-not-trimmed",
        "v1 ids fall from block to block",
        "Supply._ensure",
        "self._first = last_used + 1",
        "",
        ("test_an_overlapping_block_is_trimmed", "test_ids_rise_into_the_fallback_and_back"),
    ),
    Mutation(
        "another-node-in-the-same-run",
        "steady ids fall when the node changes",
        "Supply._fetch",
        "self._not_before = self._end - 1 + recipe.room(self._end - 1)",
        "",
        ("test_under_another_node_or_worker_ids_go_on_in_the_next_millisecond",),
    ),
    Mutation(
        "fallback-without-consent",
        "ids are made without a daemon where that was forbidden",
        "may_fall_back",
        'bool(wanted) and os.environ.get("UUIDD_FALLBACK") != "0"',
        "bool(wanted)",
        ("test_the_fallback_takes_the_callers_and_the_administrators_consent",),
    ),
    Mutation(
        "fallback-node-is-fixed",
        "two processes without a daemon make the same ids",
        "uuidd_client.system.random_bits",
        "int.from_bytes(random_bytes((count + 7) // 8), ...) >> -count % 8",
        "0",
        ("test_two_processes_without_a_daemon_have_two_nodes",),
    ),
    Mutation(
        "closed-descriptor-taken-for-connection",
        "a program's own file is written to, or closed",
        "Stream.is_open",
        "(found.st_dev, found.st_ino) == self._identity",
        "found.st_dev >= 0",
        ("test_a_process_that_closed_all_descriptors_draws_on",),
    ),
    Mutation(
        "connection-is-left-to-the-collector",
        "a program that turns warnings into errors is warned of a socket that does not leak",
        "uuidd_client.stream.Stream",
        "def __del__(self) -> None: ...",
        "def unused(self) -> None: ...",
        ("test_a_connect_that_is_broken_off_anywhere_leaves_no_socket",),
    ),
    Mutation(
        "half-made-connection-is-not-closed",
        "each Ctrl-C during a connect costs a descriptor",
        "Stream.close_own",
        """
        if self._identity is None and descriptor >= 0:
            ...
        """,
        "",
        ("test_a_connect_that_is_broken_off_anywhere_leaves_no_socket",),
    ),
    Mutation(
        "lack-of-descriptors-gets-through",
        "a program without a descriptor left gets an OSError where it had a fallback",
        "Connection._open",
        """
        try:
            sock = Stream()
        except OSError as error:
            ...
        """,
        """
        try:
            sock = Stream()
        except TimeoutError as error:
            ...
        """,
        ("test_without_a_descriptor_left_the_error_says_so",),
    ),
    Mutation(
        "signal-ends-the-connect",
        "a signal during a connect leaves a socket that is not connected",
        "Stream.connect_until",
        """
        if elapsed() >= deadline:
            raise TimeoutError from None
        """,
        "raise OSError from None",
        ("test_a_full_backlog_ends_with_the_time_out",),
    ),
    Mutation(
        "ours-taken-for-util-linuxs",
        "each block of v1 from our own daemon costs a connection for a minute",
        "Connection.take",
        """
        if self._closes_on_rpc:
            ...
        """,
        """
        if True:
            ...
        """,
        (
            "test_the_dialect_is_kept_for_a_minute",
            "test_a_daemon_that_closed_twice_in_a_call_is_not_taken_for_util_linuxs",
        ),
    ),
    Mutation(
        "trickle-is-read-for-ever",
        "a daemon that sends byte after byte holds a caller past its time-out",
        "Connection._receive",
        "left <= 0",
        "left <= -1e9",
        ("test_what_comes_after_the_time_out_is_not_waited_for",),
    ),
    Mutation(
        "older-block-outlives-a-handler",
        "ids drawn after a signal handler's are below them",
        "Channel.in_turn",
        "self._drop_blocks()",
        "",
        ("test_ids_after_a_signal_handlers_are_above_them",),
    ),
]

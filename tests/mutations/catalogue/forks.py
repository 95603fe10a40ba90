"""Forks: what a child wrongly keeps of its parent."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "memory-not-wiped",
        "a child goes on with its parent's block",
        "ForkGuard.__init__",
        "self._memory.madvise(MADV_WIPEONFORK)",
        "",
        (
            "test_a_child_finds_the_page_empty",
            "test_a_child_finds_the_page_empty_on_an_older_kernel",
        ),
    ),
    Mutation(
        "memory-not-wiped-by-hook",
        "on an older kernel a child goes on with its parent's block",
        "ForkGuard.__init__",
        "_unwiped.add(self)",
        "",
        (
            "test_a_child_finds_the_page_empty_on_an_older_kernel",
            "test_a_page_that_nobody_uses_is_not_kept",
        ),
    ),
    Mutation(
        "session-shared-with-child",
        "parent and child read each other's answers",
        "Session.__init__",
        "self.alive = alive()",
        'self.alive = memoryview(b"1")',
        ("test_a_child_has_a_connection_of_its_own",),
    ),
    Mutation(
        "ids-of-a-fork-in-between-are-kept",
        "a handler forks in the middle of a draw, and both processes have its ids",
        "PerProcess.call",
        """
        if value.alive[0]:
            return result
        """,
        "return result",
        ("test_a_child_of_a_handler_leaves_the_parents_connection_alone",),
    ),
    Mutation(
        "error-of-a-parents-call-in-its-child",
        "a handler forks and draws, and the call it interrupted fails in the child",
        "Connection._opened",
        "raise Forked",
        "raise AssertionError",
        ("test_a_handler_may_fork_and_draw_wherever_it_comes",),
    ),
    Mutation(
        "child-waits-for-its-parents-import",
        "a handler forks in the middle of the first draw, and the child never gets an id",
        "session_type",
        "started_in != os.getpid()",
        "not started_in",
        ("test_a_signal_handler_may_fork_in_the_middle_of_the_first_draw",),
    ),
    Mutation(
        "child-of-a-handler-reads",
        "a handler forks while its parent waits, and the child takes the parent's answer",
        "uuidd_client.stream.Stream.receive",
        """
        if not self._alive[0]:
            raise Forked
        return self.recv(count)
        """,
        "return self.recv(count)",
        (
            "test_ids_are_distinct_under_signals_whose_handler_forks",
            "test_no_id_comes_twice_wherever_a_handler_forks",
        ),
    ),
    Mutation(
        "random-buffer-kept",
        "a child's random ids are its parent's",
        "uuidd_client.system",
        "random_bytes = os.urandom",
        """
        _ahead = bytearray()


        def random_bytes(count: int) -> bytes:
            if len(_ahead) < count:
                _ahead.extend(os.urandom(65536 + count))
            taken = bytes(_ahead[:count])
            del _ahead[:count]
            return taken
        """,
        ("test_v4_goes_on_in_a_fork_with_others",),
    ),
    Mutation(
        "random-bytes-twice",
        "two random ids of the daemon are alike",
        "Entropy.take",
        "self._used = end",
        "self._used = end - 1",
        ("test_32_uuids_take_one_read", "test_bytes_that_do_not_suffice_are_dropped"),
    ),
    Mutation(
        "random-bytes-wait-for-good",
        "a clone of the machine gives out the random ids of the other",
        "Entropy.take",
        "not 0 <= self._utc() - self._read_at < MAX_AGE",
        "False",
        ("test_bytes_that_have_waited_are_dropped",),
    ),
    Mutation(
        "backfill-in-child",
        "a child's backfilled ids are its parent's",
        "Backfill._check_process",
        "self._alive[0]",
        "True",
        ("client.test_times",),
    ),
]

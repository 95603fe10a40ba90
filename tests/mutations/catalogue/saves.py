"""Saves: steps left out, or in another order."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "volatile-until-the-next-request",
        "an idle daemon reports a trouble that is over",
        "Saver._save_once",
        "self._timelines.utc.leave_volatile(now=...)",
        "",
        ("test_trouble_that_is_over_is_told_no_longer",),
    ),
    Mutation(
        "save-without-fsync-of-file",
        "after a power cut the state is empty",
        "FolderStore.save",
        "os.fsync(fd)",
        "",
        ("test_what_is_synced_is_the_whole_file", "test_a_failed_sync_of_the_file_is_an_error"),
    ),
    Mutation(
        "save-without-fsync-of-folder",
        "after a power cut the state is an older one",
        "FolderStore.save",
        "os.fsync(self._folder_fd)",
        "",
        (
            "test_a_failed_sync_of_the_folder_is_an_error",
            "test_a_save_syncs_renames_and_syncs_the_folder",
        ),
    ),
    Mutation(
        "save-renames-first",
        "a crash in the middle leaves half a state",
        "FolderStore.save",
        """
        with open(fd, "wb") as file:
            ...
        self._unused = False
        os.rename(_NEW, _STATE, src_dir_fd=folder, dst_dir_fd=folder)
        """,
        """
        os.rename(_NEW, _STATE, src_dir_fd=folder, dst_dir_fd=folder)
        with open(fd, "wb") as file:
            ...
        self._unused = False
        """,
        ("test_what_is_synced_is_the_whole_file", "test_a_failed_sync_of_the_file_is_an_error"),
    ),
    Mutation(
        "save-in-place",
        "a crash in the middle leaves half a state",
        "store",
        '_STATE, _NEW, _LOCK = "state", "state.new", "lock"',
        '_STATE, _NEW, _LOCK = "state", "state", "lock"',
        ("test_a_save_to_a_disk_gone_read_only_fails", "test_a_failed_rename_leaves_the_old_state"),
    ),
    Mutation(
        "save-follows-links",
        "a planted link makes the daemon overwrite another file",
        "FolderStore.save",
        "os.O_NOFOLLOW",
        "0",
        ("test_a_temporary_file_that_is_a_link_is_not_followed",),
    ),
    Mutation(
        "save-ended-before-write",
        "ids are given past a mark that is not written yet",
        "Saver._save_once",
        """
        begun = self._saving_since = trio.current_time()
        if self.unsaved_since is None:
            ...
        try:
            await self._save(state)
        except OSError as error:
            ...
        else:
            ...
        """,
        """
        begun = self._saving_since = trio.current_time()
        self._timelines.end_save(state, completed=True)
        try:
            await self._save(state)
        except OSError as error:
            ...
        else:
            ...
        """,
        ("test_nothing_is_given_past_the_horizon_while_saves_fail",),
    ),
    Mutation(
        "stop-without-exact-marks",
        "each clean stop costs a generation",
        "Saver.run",
        "await self._save_once(0, 0)",
        "",
        (
            "test_finish_saves_the_exact_mark_of_steady",
            "test_finish_lets_the_save_under_way_end_first",
        ),
    ),
    Mutation(
        "stop-with-marks-at-now",
        "the marks of a clean stop are not exact",
        "Utc.begin_save",
        "top if self._closed else max(top, now + lead)",
        "max(top, now + lead)",
        ("test_a_clean_stop_saves_the_exact_marks",),
    ),
    Mutation(
        "stop-with-steady-mark-at-now",
        "the mark of a clean stop is not exact",
        "Steady.begin_save",
        "self.next if self._closed else max(self.next, ahead)",
        "max(self.next, ahead)",
        (
            "test_a_closed_one_gives_nothing_and_saves_the_exact_mark",
            "test_a_clean_stop_saves_the_exact_marks_of_both",
        ),
    ),
    Mutation(
        "stop-goes-on-giving",
        "ids are given after the last marks were written",
        "Utc.take",
        """
        if self._closed:
            raise Closed
        """,
        "",
        ("test_after_a_close_nothing_is_given",),
    ),
    Mutation(
        "stop-goes-on-giving-steady",
        "steady ids are given after the last mark was written",
        "Steady.take",
        """
        if self._closed:
            raise Closed
        """,
        "",
        ("test_a_closed_one_gives_nothing_and_saves_the_exact_mark",),
    ),
    Mutation(
        "failed-save-forgotten",
        "a mark that reached the disk all the same is overtaken",
        "Horizon.end_save",
        """
        if completed:
            self.saved = self.limit = mark
            self.in_flight = None
        """,
        """
        if completed:
            self.saved = self.limit = mark
        self.in_flight = None
        """,
        ("test_a_failed_save_counts_until_one_completes",),
    ),
    Mutation(
        "failed-steady-save-forgotten",
        "a mark that reached the disk all the same is overtaken",
        "Horizon.begin_save",
        "mark if self.in_flight is None else min(self.in_flight, mark)",
        "mark",
        (
            "test_a_failed_save_counts_until_a_later_one_completes",
            "test_the_limit_never_passes_a_mark_that_the_disk_may_hold",
        ),
    ),
    Mutation(
        "each-steady-request-waits-for-a-save-that-hangs",
        "a client of both timelines is held up at each request",
        "Allocator.take_waiting",
        "until = min(until, self._saver.unsaved_since + SAVE_SECONDS)",
        "",
        (
            "test_steady_never_turns_volatile",
            "test_while_saves_hang_only_the_first_steady_requests_wait",
        ),
    ),
    Mutation(
        "a-save-that-hung-is-remembered",
        "steady is refused once a save takes a moment, though saves succeed again",
        "Saver._note_success",
        "self.unsaved_since = None",
        "",
        (
            "test_steady_is_on_again_once_its_lead_is_small_enough",
            "test_once_a_save_succeeds_steady_requests_wait_for_the_next_again",
        ),
    ),
    Mutation(
        "late-is-refused-though-saved",
        "a busy daemon refuses what it could give",
        "Allocator.take_waiting",
        """
        if trio.current_time() >= until:
            self._do_without_save(timeline)
            continue
        if trio.current_time() >= soon:
            ...
        with trio.move_on_at(min(until, soon)):
            await self._saver.settled()
        """,
        """
        if trio.current_time() >= soon:
            ...
        with trio.move_on_at(min(until, soon)):
            await self._saver.settled()
        if trio.current_time() >= until:
            self._do_without_save(timeline)
            continue
        """,
        ("test_who_is_woken_late_by_a_save_that_succeeded_is_served",),
    ),
    Mutation(
        "failed-save-counts",
        "ids are given out past what the broken disk has",
        "Saver._save_once",
        "completed = False",
        "completed = True",
        (
            "test_a_failing_save_is_tried_again_with_growing_pauses",
            "test_those_who_wait_do_not_hurry_a_failing_save",
        ),
    ),
    Mutation(
        "lock-given-back-under-save",
        "a save that hung overwrites the next daemon's state",
        "FolderStore.close",
        """
        if self._saving:
            return
        """,
        "",
        ("test_close_keeps_the_lock_while_a_save_hangs",),
    ),
]

"""Starts: what is forgotten."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "reload-checks-no-start",
        "what the next start refuses passes a reload",
        "reread",
        "wrong = problems(..., running=...)",
        "wrong = []",
        ("test_a_bad_file_keeps_what_was",),
    ),
    Mutation(
        "service-fails-over-and-over",
        "a service that cannot start fills the log",
        "scripts.uuidd",
        "time.sleep(2)",
        "",
        (
            "test_a_service_with_a_wrong_flag_waits_too",
            "test_a_service_that_cannot_be_imported_waits_too",
        ),
    ),
    Mutation(
        "start-ignores-mark",
        "after a crash the same generation goes on",
        "Utc.__init__",
        "self._mark(self._number) - now",
        "0",
        (
            "test_after_a_crash_the_next_generation_is_opened",
            "test_a_generation_is_opened_again_from_its_mark_on",
        ),
    ),
    Mutation(
        "start-takes-foreign-state",
        "two hosts make ids of one node",
        "check_machine",
        '"" not in (state.machine, machine) and state.machine != machine',
        "not state.machine",
        ("test_another_hosts_file_is_set_aside", "test_a_host_that_is_not_known_is_no_other"),
    ),
    Mutation(
        "start-takes-numbers-out-of-range",
        "a mark below zero or past all time is believed",
        "statefile._number",
        "type(value) is not int or not 0 <= value < 1 << bits",
        "type(value) is not int",
        ("test_a_field_out_of_range_is_damage",),
    ),
    Mutation(
        "start-without-lock",
        "two daemons save over each other",
        "FolderStore._lock",
        "fcntl.LOCK_EX | fcntl.LOCK_NB",
        "fcntl.LOCK_SH | fcntl.LOCK_NB",
        (
            "test_a_refused_daemon_leaves_the_holders_pid",
            "test_a_refused_folder_leaves_no_descriptor",
        ),
    ),
    Mutation(
        "start-forgets-lost-state",
        "a state that was deleted is taken for a first start",
        "FolderStore.load",
        "self.lost = not self._unused",
        "self.lost = False",
        (
            "test_a_state_that_is_gone_from_a_used_folder_is_lost",
            "test_a_start_that_was_killed_before_it_saved_counts_as_lost",
        ),
    ),
    Mutation(
        "start-forgets-damaged-state",
        "a state that was set aside is taken for a first start",
        "FolderStore.load",
        "self.lost = True",
        "self.lost = False",
        (
            "test_a_state_that_is_set_aside_is_lost",
            "test_a_start_that_lost_its_state_keeps_the_lock_file",
        ),
    ),
    Mutation(
        "start-tells-steady-of-no-loss",
        "after a lost state steady ids come again",
        "begin_timelines",
        "store.lost",
        "False",
        ("test_a_state_that_is_gone_holds_steady_back",),
    ),
    Mutation(
        "start-without-hold",
        "after a lost state steady ids come again",
        "Steady.__init__",
        "now + LOST_SECONDS * TICKS_PER_SECOND if mark is None and lost else 0",
        "0",
        (
            "test_a_lost_mark_holds_everything_back_for_20_s",
            "test_a_wait_for_a_lost_mark_is_no_lead",
        ),
    ),
    Mutation(
        "start-steady-at-utc",
        "after a crash steady ids come again",
        "Steady.__init__",
        "mark if mark is not None else max(now, ...)",
        "now if mark is not None else max(now, ...)",
        ("test_the_first_tick_is_the_mark",),
    ),
    Mutation(
        "start-steady-without-mark",
        "steady's mark is saved, and not read",
        "begin_timelines",
        "None if loaded is None else loaded.steady",
        "None",
        ("test_a_start_far_ahead_adds_nothing_to_its_lead",),
    ),
    Mutation(
        "start-without-first-save",
        "ids are given past a horizon that no disk has",
        "_save_first",
        "store.save(state)",
        "",
        ("test_the_first_horizon_is_on_the_disk_when_the_daemon_says_that_it_started",),
    ),
    Mutation(
        "start-takes-pid-file-of-a-living-daemon",
        "of two daemons only one is in the pid file, and its end removes the other's",
        "pidfile._check",
        "fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)",
        "",
        ("test_the_file_of_a_process_that_lives_is_left_to_it",),
    ),
    Mutation(
        "stop-removes-anothers-pid-file",
        "the next daemon's pid file is gone",
        "pid_file",
        "os.path.samestat(os.fstat(fd), os.lstat(path))",
        "os.lstat(path)",
        ("test_anothers_file_is_not_removed",),
    ),
    Mutation(
        "start-keeps-node-of-unknown-host",
        "hosts made from one image make ids of one node",
        "Utc.__init__",
        "loaded.machine == machine",
        "True",
        ("test_a_host_known_by_another_machine_id_draws_a_new_node",),
    ),
    Mutation(
        "start-with-a-later-epoch",
        "Snowflakes of the past come again",
        "with_epoch",
        "epoch > earliest",
        "epoch > earliest + 1000",
        (
            "test_a_later_epoch_is_refused_and_changes_nothing",
            "test_no_snowflake_comes_twice_whatever_epochs_are_asked_for",
        ),
    ),
    Mutation(
        "start-forgets-the-epoch",
        "a later epoch is not noticed",
        "begin_timelines",
        "Timelines(..., ..., worker=..., epoch=..., epochs=epochs)",
        "Timelines(..., ..., worker=..., epoch=...)",
        ("test_the_epoch_is_saved_before_any_snowflake", "test_an_earlier_epoch_is_taken_over"),
    ),
    Mutation(
        "failed-start-leaves-its-lock",
        "after a first start that failed, steady ids are held back for 20 s",
        "FolderStore.close",
        """
        if self._unused:
            self._remove_lock()
        """,
        "",
        ("test_a_start_that_saved_nothing_leaves_an_unused_folder",),
    ),
]

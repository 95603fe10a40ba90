"""State file and its folder: checks left out."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "checksum-not-checked",
        "a state with a bit flipped is believed",
        "statefile.decode",
        'words[2] != f"sha256:{digest(body)}"',
        'not words[2].startswith("sha256:")',
        ("test_every_shorter_file_is_damaged", "test_a_torn_file_is_set_aside"),
    ),
    Mutation(
        "format-not-checked",
        "a newer daemon's state is misread",
        "statefile.decode",
        "words[1] not in map(str, range(EARLIEST_FORMAT, FORMAT + 1))",
        "not words[1]",
        ("test_a_newer_format_is_told_as_such", "test_a_newer_file_is_set_aside"),
    ),
    Mutation(
        "folder-owner-not-checked",
        "another user can give the daemon old marks",
        "FolderStore._check_owner",
        "found.st_uid not in (0, own)",
        "found.st_uid < 0",
        ("test_a_folder_of_another_user_is_refused", "test_another_owner_is_found_by_who_opens_it"),
    ),
    Mutation(
        "folder-mode-not-checked",
        "anybody can give the daemon old marks",
        "FolderStore._check_owner",
        "found.st_mode & 0o022",
        "found.st_mode & 0o002",
        ("test_a_folder_that_others_can_write_to_is_refused",),
    ),
    Mutation(
        "set-aside-over-another",
        "a state that was set aside before is deleted",
        "FolderStore._put_aside",
        "number += 1",
        "break",
        ("test_a_file_is_set_aside_under_a_free_name",),
    ),
    Mutation(
        "save-by-path",
        "a daemon whose folder was moved overwrites another's state",
        "FolderStore.save",
        "os.rename(_NEW, _STATE, src_dir_fd=folder, dst_dir_fd=folder)",
        'os.rename(f"/proc/self/fd/{folder}/{_NEW}", self.folder / _STATE)',
        ("test_a_save_goes_to_the_folder_that_is_locked",),
    ),
    Mutation(
        "save-in-a-folder-that-is-gone",
        "a daemon whose folder was moved goes on beside another",
        "FolderStore.save",
        """
        if reason := self.moved_away():
            ...
        """,
        "",
        ("test_a_save_is_refused_once_the_path_leads_elsewhere",),
    ),
    Mutation(
        "request-without-folder-check",
        "a daemon whose folder was moved gives ids for 20 s beside another",
        "Allocator._take",
        "self._saver.check(at.elapsed)",
        "",
        (
            "test_the_folder_is_not_looked_at_for_each_request",
            "test_utc_goes_on_under_a_volatile_node_and_steady_is_refused",
        ),
    ),
    Mutation(
        "folder-check-voids-nothing",
        "a daemon whose folder was moved gives ids for 20 s beside another",
        "Saver.check",
        "self._timelines.void_saves()",
        "",
        (
            "test_utc_goes_on_under_a_volatile_node_and_steady_is_refused",
            "test_nothing_is_given_out_10_ms_after_the_folder_was_moved",
        ),
    ),
    Mutation(
        "folder-check-counts-though-gone",
        "a save that was under way lets a daemon go on beside another",
        "Saver.check",
        """
        if reason := self._unusable():
            self.check_at = 0
            ...
        else:
            self.check_at = elapsed + int(CHECK_SECONDS * TICKS_PER_SECOND)
        """,
        """
        if reason := self._unusable():
            self.check_at = elapsed + int(CHECK_SECONDS * TICKS_PER_SECOND)
            ...
        else:
            self.check_at = elapsed + int(CHECK_SECONDS * TICKS_PER_SECOND)
        """,
        ("test_a_save_under_way_gives_nothing_back",),
    ),
    Mutation(
        "start-without-wait",
        "a daemon gives out what another, whose folder was moved, still gives out",
        "begin_timelines",
        "select.select((), (), (), CHECK_SECONDS)",
        "",
        ("test_a_start_waits_until_the_daemon_before_must_have_noticed",),
    ),
]

"""What of the state's file and folder is not checked."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "checksum-not-checked",
        "a state with a bit flipped is believed",
        "statefile.decode",
        'words[2] != f"sha256:{digest(body)}"',
        'not words[2].startswith("sha256:")',
        ("test_store",),
    ),
    Mutation(
        "format-not-checked",
        "a newer daemon's state is misread",
        "statefile.decode",
        "words[1] not in map(str, range(EARLIEST_FORMAT, FORMAT + 1))",
        "not words[1]",
        ("test_store",),
    ),
    Mutation(
        "folder-owner-not-checked",
        "another user can give the daemon old marks",
        "FolderStore._check_owner",
        "found.st_uid not in (0, own)",
        "found.st_uid < 0",
        ("test_store",),
    ),
    Mutation(
        "folder-mode-not-checked",
        "anybody can give the daemon old marks",
        "FolderStore._check_owner",
        "found.st_mode & 0o022",
        "found.st_mode & 0o002",
        ("test_store",),
    ),
    Mutation(
        "set-aside-over-another",
        "a state that was set aside before is deleted",
        "FolderStore._put_aside",
        "number += 1",
        "break",
        ("test_store",),
    ),
    Mutation(
        "save-by-path",
        "a daemon whose folder was moved saves over another's state",
        "FolderStore.save",
        "os.rename(_NEW, _STATE, src_dir_fd=folder, dst_dir_fd=folder)",
        'os.rename(f"/proc/self/fd/{folder}/{_NEW}", self.folder / _STATE)',
        ("test_misplaced",),
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
        ("test_misplaced",),
    ),
    Mutation(
        "request-without-look",
        "a daemon whose folder was moved gives ids for 20 s beside another",
        "Allocator._take",
        "self._saver.check(at.elapsed)",
        "",
        ("test_misplaced",),
    ),
    Mutation(
        "look-voids-nothing",
        "a daemon whose folder was moved gives ids for 20 s beside another",
        "Saver.check",
        "self._timelines.void_saves()",
        "",
        ("test_misplaced",),
    ),
    Mutation(
        "look-counts-though-gone",
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
        ("test_misplaced",),
    ),
    Mutation(
        "start-without-wait",
        "a daemon gives what another, whose folder was moved, still gives",
        "_begun",
        "select.select((), (), (), CHECK_SECONDS)",
        "",
        ("test_misplaced",),
    ),
]

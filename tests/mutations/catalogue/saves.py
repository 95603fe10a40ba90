"""What a save leaves out, or does in another order."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "volatile-until-the-next-request",
        "an idle daemon tells of trouble that is over",
        "Saver._save_once",
        "self._timelines.settle(at=self._read())",
        "",
        ("test_trouble_that_is_over_is_told_no_longer",),
    ),
    Mutation(
        "save-without-fsync-of-file",
        "after a power cut the state is empty",
        "FolderStore.save",
        "os.fsync(fd)",
        "",
        ("test_store",),
    ),
    Mutation(
        "save-without-fsync-of-folder",
        "after a power cut the state is an older one",
        "FolderStore.save",
        "os.fsync(self._folder_fd)",
        "",
        ("test_store",),
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
        ("test_store",),
    ),
    Mutation(
        "save-in-place",
        "a crash in the middle leaves half a state",
        "store",
        '_STATE, _NEW, _LOCK = "state", "state.new", "lock"',
        '_STATE, _NEW, _LOCK = "state", "state", "lock"',
        ("test_store",),
    ),
    Mutation(
        "save-follows-links",
        "a planted link has the daemon write over another file",
        "FolderStore.save",
        "os.O_NOFOLLOW",
        "0",
        ("test_store",),
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
        ("test_saver",),
    ),
    Mutation(
        "stop-without-exact-marks",
        "each clean stop costs a generation",
        "Saver.run",
        "await self._save_once(0, 0)",
        "",
        ("test_saver",),
    ),
    Mutation(
        "stop-with-marks-at-now",
        "the marks of a clean stop are not exact",
        "Utc.begin_save",
        "top if self._closed else max(top, now + lead)",
        "max(top, now + lead)",
        ("test_utc",),
    ),
    Mutation(
        "stop-with-steady-mark-at-now",
        "the mark of a clean stop is not exact",
        "Steady.begin_save",
        "self.next if self._closed else max(self.next, ahead)",
        "max(self.next, ahead)",
        ("test_steady",),
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
        ("test_utc",),
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
        ("test_steady",),
    ),
    Mutation(
        "failed-save-forgotten",
        "a mark that reached the disk all the same is overtaken",
        "Horizon.end_save",
        """
        if completed:
            self._saved = self.limit = mark
            self._in_flight = None
        """,
        """
        if completed:
            self._saved = self.limit = mark
        self._in_flight = None
        """,
        ("test_horizon", "test_utc"),
    ),
    Mutation(
        "failed-steady-save-forgotten",
        "a mark that reached the disk all the same is overtaken",
        "Horizon.begin_save",
        "mark if self._in_flight is None else min(self._in_flight, mark)",
        "mark",
        ("test_horizon", "test_utc"),
    ),
    Mutation(
        "each-steady-request-waits-for-a-save-that-hangs",
        "who asks for both kinds is held up at each request",
        "Allocator.take_waiting",
        "until = min(until, self._saver.unsaved_since + SAVE_SECONDS)",
        "",
        ("test_steady_allocator",),
    ),
    Mutation(
        "a-save-that-hung-is-remembered",
        "steady is refused once a save takes a moment, though saves succeed again",
        "Saver._note_success",
        "self.unsaved_since = None",
        "",
        ("test_steady_allocator",),
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
        ("test_steady_allocator",),
    ),
    Mutation(
        "failed-save-counts",
        "ids go on past what the broken disk has",
        "Saver._save_once",
        "completed = False",
        "completed = True",
        ("test_saver",),
    ),
    Mutation(
        "lock-given-back-under-save",
        "a save that hung comes over the next daemon's state",
        "FolderStore.close",
        """
        if self._saving:
            return
        """,
        "",
        ("test_store",),
    ),
]

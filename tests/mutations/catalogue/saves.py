"""What a save leaves out, or does in another order."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

UTC = "uuidd/core/timeline/utc.py"
STEADY = "uuidd/core/timeline/steady.py"
STORE = "uuidd/store.py"
SAVER = "uuidd/server/saver.py"
ISSUER = "uuidd/server/allocator.py"
STORE_TESTS = ("tests/daemon/test_store.py",)
SAVER_TESTS = ("tests/daemon/test_saver.py",)
STEADY_ISSUER_TESTS = ("tests/daemon/test_steady_issuer.py",)

_WRITE = """            with open(fd, "wb") as file:
                file.write(encode(state))
                file.flush()
                os.fsync(fd)
"""
_USED = "            self._unused = False\n"
_RENAME = "            os.rename(_NEW, _STATE, src_dir_fd=folder, dst_dir_fd=folder)\n"

MUTATIONS = [
    Mutation(
        "volatile-until-the-next-request",
        "an idle daemon tells of trouble that is over",
        SAVER,
        "        self._timelines.settle(at=self._read())\n",
        "",
        ("tests/daemon/test_process.py::test_trouble_that_is_over_is_told_no_longer",),
    ),
    Mutation(
        "save-without-fsync-of-file",
        "after a power cut the state is empty",
        STORE,
        "                os.fsync(fd)\n",
        "",
        STORE_TESTS,
    ),
    Mutation(
        "save-without-fsync-of-folder",
        "after a power cut the state is an older one",
        STORE,
        "            os.fsync(self._folder_fd)",
        "            pass",
        STORE_TESTS,
    ),
    Mutation(
        "save-renames-first",
        "a crash in the middle leaves half a state",
        STORE,
        _WRITE + _USED + _RENAME,
        _RENAME + _WRITE + _USED,
        STORE_TESTS,
    ),
    Mutation(
        "save-in-place",
        "a crash in the middle leaves half a state",
        STORE,
        '_STATE, _NEW, _LOCK = "state", "state.new", "lock"',
        '_STATE, _NEW, _LOCK = "state", "state", "lock"',
        STORE_TESTS,
    ),
    Mutation(
        "save-follows-links",
        "a planted link has the daemon write over another file",
        STORE,
        "os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW",
        "os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC",
        STORE_TESTS,
    ),
    Mutation(
        "save-ended-before-write",
        "ids are given past a mark that is not written yet",
        SAVER,
        "        begun = self._saving_since = trio.current_time()\n",
        "        begun = self._saving_since = trio.current_time()\n"
        "        self._timelines.end_save(state, completed=True)\n",
        SAVER_TESTS,
    ),
    Mutation(
        "stop-without-exact-marks",
        "each clean stop costs a generation",
        SAVER,
        "        await self._save_once(0, 0)\n",
        "",
        SAVER_TESTS,
    ),
    Mutation(
        "stop-with-marks-at-now",
        "the marks of a clean stop are not exact",
        UTC,
        "top if self._closed else max(top, now + lead)",
        "max(top, now + lead)",
        ("tests/core/test_utc.py",),
    ),
    Mutation(
        "stop-with-steady-mark-at-now",
        "the mark of a clean stop is not exact",
        STEADY,
        "mark = self.next if self._closed else max(self.next, ahead)",
        "mark = max(self.next, ahead)",
        ("tests/core/test_steady.py",),
    ),
    Mutation(
        "stop-goes-on-giving",
        "ids are given after the last marks were written",
        UTC,
        "        if self._closed:\n            raise Closed\n",
        "",
        ("tests/core/test_utc.py",),
    ),
    Mutation(
        "stop-goes-on-giving-steady",
        "steady ids are given after the last mark was written",
        STEADY,
        "        if self._closed:\n            raise Closed\n",
        "",
        ("tests/core/test_steady.py",),
    ),
    Mutation(
        "failed-save-forgotten",
        "a mark that reached the disk all the same is overtaken",
        UTC,
        "            self._saved = state.marks\n            self._unsettled = None\n",
        "            self._saved = state.marks\n        self._unsettled = None\n",
        ("tests/core/test_utc.py",),
    ),
    Mutation(
        "failed-steady-save-forgotten",
        "a mark that reached the disk all the same is overtaken",
        STEADY,
        "self._unsettled = mark if self._unsettled is None else min(self._unsettled, mark)",
        "self._unsettled = mark",
        ("tests/core/test_steady.py", "tests/core/test_steady_machine.py"),
    ),
    Mutation(
        "each-steady-request-waits-for-a-save-that-hangs",
        "who asks for both kinds is held up at each request",
        ISSUER,
        "until = min(until, self._saver.unsaved_since + SAVE_SECONDS)",
        "pass",
        STEADY_ISSUER_TESTS,
    ),
    Mutation(
        "a-save-that-hung-is-remembered",
        "steady is refused once a save takes a moment, though saves succeed again",
        SAVER,
        "        self.unsaved_since = None\n        if",
        "        if",
        STEADY_ISSUER_TESTS,
    ),
    Mutation(
        "late-is-refused-though-saved",
        "a busy daemon refuses what it could give",
        ISSUER,
        """                    await self._saver.settled()
""",
        """                    await self._saver.settled()
                if trio.current_time() >= until:
                    self._do_without_save(timeline)
""",
        STEADY_ISSUER_TESTS,
    ),
    Mutation(
        "failed-save-counts",
        "ids go on past what the broken disk has",
        SAVER,
        "            completed = False",
        "            completed = True",
        SAVER_TESTS,
    ),
    Mutation(
        "lock-given-back-under-save",
        "a save that hung comes over the next daemon's state",
        STORE,
        "        if self._saving:\n            return\n",
        "",
        STORE_TESTS,
    ),
]

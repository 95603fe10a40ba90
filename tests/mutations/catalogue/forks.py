"""What a fork's child keeps of its parent."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

PAGE = "client/uuidd_client/page.py"

_BUFFERED = """_ahead = bytearray()


def random_bytes(count: int) -> bytes:
    if len(_ahead) < count:
        _ahead.extend(os.urandom(65536 + count))
    taken = bytes(_ahead[:count])
    del _ahead[:count]
    return taken


"""

MUTATIONS = [
    Mutation(
        "memory-not-wiped",
        "a child goes on in its parent's block",
        PAGE,
        "            self._memory.madvise(MADV_WIPEONFORK)\n",
        "            pass\n",
        ("tests/client/test_page.py", "tests/client/test_forks.py"),
    ),
    Mutation(
        "memory-not-wiped-by-hook",
        "on an older kernel a child goes on in its parent's block",
        PAGE,
        "            _unwiped.add(self)\n",
        "            pass\n",
        ("tests/client/test_page.py",),
    ),
    Mutation(
        "session-shared-with-child",
        "parent and child read each other's answers",
        "client/uuidd_client/session.py",
        "        if self._page.alive[0]:\n",
        "        if self._page is not None:\n",
        ("tests/client/test_client.py::test_a_child_has_a_line_of_its_own",),
    ),
    Mutation(
        "random-buffer-kept",
        "a child's random ids are its parent's",
        "client/uuidd_client/forms.py",
        "random_bytes = os.urandom\n",
        _BUFFERED,
        (
            "tests/client/test_forks.py",
            "tests/client/test_kinds.py::test_v4_goes_on_in_a_fork_with_others",
        ),
    ),
    Mutation(
        "random-bytes-twice",
        "two random ids of the daemon are alike",
        "uuidd/server/entropy.py",
        "        self._used = end\n",
        "        self._used = end - 1\n",
        ("tests/daemon/test_entropy.py",),
    ),
    Mutation(
        "random-bytes-wait-for-good",
        "a clone of the machine gives the random ids of the other",
        "uuidd/server/entropy.py",
        " or not 0 <= self._utc() - self._read_at < MAX_AGE:",
        ":",
        ("tests/daemon/test_entropy.py",),
    ),
    Mutation(
        "backfill-in-child",
        "a child's backfilled ids are its parent's",
        "client/uuidd_client/given.py",
        "if os.getpid() != self._process:",
        "if not self._process:",
        ("tests/client/test_given.py",),
    ),
]

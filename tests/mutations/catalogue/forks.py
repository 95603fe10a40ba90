"""What a fork's child keeps of its parent."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

PAGE = "client/uuidd_client/fork_guard.py"

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
        "        if self._alive[0]:\n",
        "        if self._alive is not None:\n",
        ("tests/client/test_client.py::test_a_child_has_a_connection_of_its_own",),
    ),
    Mutation(
        "ids-of-a-fork-in-between-are-kept",
        "a handler forks in the middle of a draw, and both processes have its ids",
        "client/uuidd_client/session.py",
        "                if session._alive[0]:\n                    return given\n",
        "                return given\n",
        ("tests/client/test_forking_handlers.py",),
    ),
    Mutation(
        "error-of-a-parents-call-in-its-child",
        "a handler forks and draws, and what it came into fails in the child",
        "client/uuidd_client/connection.py",
        "            raise Forked\n        return self._sock\n",
        "            raise AssertionError\n        return self._sock\n",
        ("tests/client/test_forking_handlers.py",),
    ),
    Mutation(
        "child-waits-for-its-parents-import",
        "a handler forks in the middle of the first draw, and the child never gets an id",
        "client/uuidd_client/late.py",
        "            if started_in != os.getpid():\n",
        "            if not started_in:\n",
        ("tests/client/test_late.py",),
    ),
    Mutation(
        "child-of-a-handler-reads",
        "a handler forks while its parent waits, and the child takes the parent's answer",
        "client/uuidd_client/stream.py",
        "            raise Forked\n        return self.recv(count)\n",
        "            pass\n        return self.recv(count)\n",
        ("tests/client/test_forking_handlers.py",),
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
        "client/uuidd_client/times.py",
        "if not self._alive[0]:",
        "if not self._alive:",
        ("tests/client/test_given.py",),
    ),
]

"""Lives of a process: what was made ahead in one life is never used in another.

A fork, a restored snapshot and a clone of the machine are one event: each leaves two processes, or
machines, that have the same blocks, leases, nodes and random bits. So it ends the *life*. The
kernel ends it in a fork's child, whoever forked, ``renew`` ends it where a snapshot was restored,
and a daemon ends it when it learns that its machine was cloned. The last step of a call is a look
at the life that it began in: if that is over, the result is dropped, and made again in the next.
"""

from __future__ import annotations

import mmap
import os

from uuidd.core.typed import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from uuidd.core.ids.places import Origin
    from uuidd_client.lease import Page

MADV_WIPEONFORK = 18
"""From <linux/mman.h>; Linux 4.14 or newer."""

FOREVER = (1 << 63) - 1
"""A tick that no clock reaches."""

_HOOKS = "snapshot_restore_py"
"""The library of AWS Lambda for hooks of a snapshot (SnapStart), which its runtimes contain."""


class Over(Exception):
    """Raised by what belongs to a life that is over, for example in a fork's child."""


class Watch(NamedTuple):
    """Until when something may be used that was made ahead.

    It may be used before the tick ``horizon[0]``, and while ``token[0]`` is *value*. Both are
    memoryviews of one word. UTC is read first, then the horizon, then the token; see
    core/timeline/leases.py.
    """

    horizon: memoryview
    token: memoryview
    value: int


class Source(NamedTuple):
    """The places from *first* to *end*, as long as UTC is at *since* or later, and before *until*.

    Of a *lane* those are there that UTC has reached, whatever *end* is. Its ids have *origin*, and
    UUIDs are marked *safe* or not. It ends as ``Watch`` says.
    """

    first: int
    end: int
    since: int
    until: int
    origin: Origin
    safe: bool
    lane: bool
    horizon: memoryview
    token: memoryview
    value: int


def word(value: int) -> memoryview:
    """Return a memoryview of one word of 64 bits, which holds *value*."""
    found = memoryview(bytearray(8)).cast("Q")
    found[0] = value
    return found


class Life:
    """One life. ``alive[0]`` is 1 until it ends; *watch* is for what was made in this process.

    *page* is the page that the process was passed last, by whichever daemon: all are of one
    machine. *pid* is the process.
    """

    def __init__(self, page: Page | None = None) -> None:
        memory = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        try:  # noqa: SIM105  (contextlib, which nothing else here needs, takes longer to import)
            memory.madvise(MADV_WIPEONFORK)
        except OSError:
            # On an older kernel only the forks by Python's own calls are noticed, see below.
            pass
        self.alive = memoryview(memory).cast("Q")[0:1]
        self.alive[0] = 1
        self.pid = os.getpid()
        self.page: Page | None = None
        self.watch = Watch(word(FOREVER), word(0), 0)
        if page is not None:
            self.passed(page)

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        watch = self.watch
        return not self.alive[0] or watch.token[0] != watch.value

    def end(self) -> None:
        """End it."""
        self.alive[0] = 0

    def passed(self, page: Page) -> None:
        """Note the page that a daemon has passed. From now on it says whether there was a clone."""
        if page is not self.page:
            self.page, before = page, self.watch
            self.watch = Watch(word(FOREVER), page.clones, page.clones[0])
            # What was made until now would notice no clone.
            before.horizon[0] = 0


_lives = {0: Life()}
"""The latest life has the highest number. One that a thread has put below it is used by nobody."""


def current() -> Life:
    """Return the life that this process is in."""
    while True:
        number = max(list(_lives))
        life = _lives.get(number)
        if life is None:
            continue
        if not life.over:
            return life
        # Also where a daemon has told of a clone: a cutter looks at this one word of its life.
        life.end()
        # Each step is atomic, and there is no lock, which a child could find held.
        _lives.setdefault(number + 1, Life(life.page))
        for former in list(_lives):
            if former <= number:
                _lives.pop(former, None)


def renew() -> None:
    """Drop all ids, leases, blocks and random bits that any client of this process has.

    What follows is as in a fork's child: connections are opened again, and without a daemon the ids
    are of another node. A ``Backfill`` that was made before must not be used any more, and says so.
    """
    current().end()


os.register_at_fork(after_in_child=renew)

try:
    # Not importlib, which would take longer than all of this.
    _after_restore = __import__(_HOOKS).register_after_restore
except (ImportError, AttributeError):
    pass
else:
    _after_restore(renew)

"""How a process learns that its machine was cloned: by the epoch in the page of a daemon.

A clone has all that this process has made ahead, or may still make: blocks, leases, random bits. So
who keeps any of these also keeps a ``Watch``, and drops them once it has *moved*. A lease needs
none: the daemon clears its token too.

Without a page (there is no daemon, an earlier one, or a machine of 32 bits) no watch ever moves.
Then only the deadlines of what was made ahead help.
"""

from __future__ import annotations

import os
import weakref

from uuidd_client import extension
from uuidd_client.lease import Page

NO_EPOCHS = memoryview(bytes(8)).cast("Q")
"""Stands for the epoch of a page if there is none."""


class Watch:
    """What was made in *epoch* of *page* may be used while ``epochs[0]`` is *epoch*.

    *epochs* is a memoryview of one word, because it is read at each id.
    """

    __slots__ = ("epoch", "epochs")

    def __init__(self, page: Page | None, epoch: int = 0) -> None:
        self.epochs = NO_EPOCHS if page is None else page.epochs
        self.epoch = 0 if page is None else epoch

    @property
    def moved(self) -> bool:
        """Whether the daemon has noticed since then that the machine was cloned."""
        return self.epochs[0] != self.epoch


NEVER = Watch(None)
"""The watch of what no page is about."""


_pages: weakref.WeakValueDictionary[tuple[int, int], Page] = weakref.WeakValueDictionary()
"""The pages that are in use, by the device and the inode of their memory."""


class _Latest:
    """The page that this process was passed last, by whichever daemon: all are of one machine."""

    page: Page | None = None


def page_of(descriptor: int) -> Page:
    """Return the page of a *descriptor*, which stays the caller's. Raises PageError.

    The connections of a process to one daemon share it, because each mapping costs a descriptor.
    """
    found = os.fstat(descriptor)
    identity = found.st_dev, found.st_ino
    page = _pages.get(identity)
    if page is None:
        page = _pages.setdefault(identity, Page(descriptor))
    if page is not _Latest.page:
        _Latest.page = page
        if extension.core is not None:
            extension.core.watch(page.epochs)
    return page


def latest() -> Watch:
    """Return the watch of what is made from now on, by this process alone."""
    page = _Latest.page
    return NEVER if page is None else Watch(page, page.epochs[0])

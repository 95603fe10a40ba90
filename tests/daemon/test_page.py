from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import stat
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.tools import descriptors, failing
from uuidd.server.page import MFD_NOEXEC_SEAL, PAGE_BYTES, Page, PageError

FALLOC_FL_PUNCH_HOLE, FALLOC_FL_KEEP_SIZE = 2, 1


@contextlib.contextmanager
def reopened(page: Page) -> Iterator[int]:
    """Enter another descriptor of a page, to write to it."""
    fd = os.open(f"/proc/self/fd/{page.fd}", os.O_RDWR)
    try:
        yield fd
    finally:
        os.close(fd)


def write_reopened(page: Page) -> None:
    with reopened(page) as fd:
        os.write(fd, b"x")


def map_reopened(page: Page) -> None:
    """Map another descriptor to write to it. Raises OSError."""
    with reopened(page) as fd:
        mmap.mmap(fd, PAGE_BYTES)


def punch(page: Page) -> None:
    """Take the memory out of a page. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
    if libc.fallocate(page.fd, mode, ctypes.c_long(0), ctypes.c_long(PAGE_BYTES)):
        raise OSError(ctypes.get_errno(), "fallocate")


def protect(page: Page) -> None:
    """Make a mapping of a page that can be read one that can be written to. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    at = libc.mmap(None, PAGE_BYTES, mmap.PROT_READ, mmap.MAP_SHARED, page.fd, ctypes.c_long(0))
    try:
        both = mmap.PROT_READ | mmap.PROT_WRITE
        if libc.mprotect(ctypes.c_void_p(at), PAGE_BYTES, both):
            raise OSError(ctypes.get_errno(), "mprotect")
    finally:
        libc.munmap(ctypes.c_void_p(at), PAGE_BYTES)


@pytest.mark.parametrize(
    "attack",
    [
        lambda page: os.write(page.fd, b"x"),
        lambda page: os.ftruncate(page.fd, 0),
        lambda page: os.ftruncate(page.fd, 2 * PAGE_BYTES),
        lambda page: mmap.mmap(page.fd, PAGE_BYTES),
        lambda page: fcntl.fcntl(page.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE),
        write_reopened,
        map_reopened,
        punch,
        protect,
    ],
    ids=["write", "shrink", "grow", "map", "seal", "write anew", "map anew", "punch", "protect"],
)
def test_nobody_who_has_the_descriptor_can_change_a_page(
    page: Page, attack: Callable[[Page], object]
) -> None:
    page.words[3] = 7
    with pytest.raises(PermissionError):
        attack(page)
    page.words[4] = 8
    assert list(page.words[3:5]) == [7, 8]
    assert os.fstat(page.fd).st_size == PAGE_BYTES


def test_a_page_is_not_left_to_programs_that_are_started(page: Page) -> None:
    assert fcntl.fcntl(page.fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC


def test_clients_have_no_right_to_write_to_a_page(page: Page) -> None:
    """With it they could attach attributes, which use the kernel's memory for good."""
    assert stat.S_IMODE(os.fstat(page.fd).st_mode) == stat.S_IRUSR


def test_the_memory_of_a_page_is_there_before_anything_is_written(page: Page) -> None:
    """A write to memory that cannot be had would end the daemon."""
    assert os.fstat(page.fd).st_blocks * 512 >= PAGE_BYTES


def test_a_page_that_is_closed_leaves_no_descriptor() -> None:
    before = descriptors()
    Page().close()
    assert os.listdir("/proc/self/fd") == before


def test_what_is_written_is_read_by_all_who_have_the_descriptor() -> None:
    """In the byte order of the host, 64 bits a word. Also after the daemon's end, by holders."""
    page = Page()
    with mmap.mmap(page.fd, PAGE_BYTES, prot=mmap.PROT_READ) as read:
        page.words[3] = 2**64 - 2
        page.close()
        assert read[24:32] == (2**64 - 2).to_bytes(8, sys.byteorder)


def test_an_older_kernel_makes_a_page_too() -> None:
    """One that knows nothing of memory without programs, which is only a further bar."""

    def create(name: str, flags: int) -> int:
        if flags & MFD_NOEXEC_SEAL:
            raise OSError(errno.EINVAL, "Invalid argument")
        return os.memfd_create(name, flags)

    page = Page(create)
    page.words[0] = 1
    page.close()


def _unsealable(name: str, flags: int) -> int:
    return os.memfd_create(name, os.MFD_CLOEXEC)


@pytest.mark.parametrize("create", [failing(errno.ENOMEM), _unsealable])
def test_where_there_can_be_no_page_nothing_is_left(create: Callable[[str, int], int]) -> None:
    before = descriptors()
    with pytest.raises(PageError, match=r"^the kernel gives no sealed memory: [A-Z].*$"):
        Page(create)
    assert os.listdir("/proc/self/fd") == before


def test_a_machine_of_32_bits_has_no_page() -> None:
    """It writes a word in two halves, and a holder could read one of each."""
    with pytest.raises(PageError, match=r"^a machine of 32 bits does not write 64 bits at once$"):
        Page(pointer_bytes=4)

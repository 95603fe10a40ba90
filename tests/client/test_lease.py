"""The page of a daemon, as a client reads it, and a lease of one of its lanes."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import pytest

from tests.client.fakes import START
from tests.client.lanes import Lanes
from uuidd.core.timeline.page import HORIZON_AT, MAGIC_AT, PAGE_MAGIC, TOKENS_AT
from uuidd_client.lease import PAGE_BYTES, SEALS, Lease, Page, PageError, page_of


@contextlib.contextmanager
def memory(size: int = PAGE_BYTES, seals: int = SEALS, magic: int = PAGE_MAGIC) -> Iterator[int]:
    """Memory that a daemon could pass."""
    descriptor = os.memfd_create("page", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.write(descriptor, magic.to_bytes(8, sys.byteorder))
        os.truncate(descriptor, size)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        yield descriptor
    finally:
        os.close(descriptor)


# --- what is a page


def test_a_page_shows_what_the_daemon_writes(lanes: Lanes) -> None:
    """At once, without a call to the system."""
    page = Page(lanes.fd)
    lanes.words[HORIZON_AT] = 12345
    assert page.words[HORIZON_AT] == 12345


def test_the_words_of_a_page_cannot_be_written_to(lanes: Lanes) -> None:
    """Only the daemon does that."""
    with pytest.raises(TypeError, match="read-only"):
        Page(lanes.fd).words[HORIZON_AT] = 1


def test_a_file_is_no_page() -> None:
    """A daemon could shorten it, and end its readers by a signal.

    A file of a tmpfs has seals, so there the error is another one.
    """
    words = "it cannot be mapped: Invalid argument|it has the seals 0x1 and 0 bytes"
    with tempfile.TemporaryFile() as file, pytest.raises(PageError, match=words):
        Page(file.fileno())


@pytest.mark.parametrize("missing", [0x2, 0x4, 0x10])
def test_memory_without_a_seal_is_no_page(missing: int) -> None:
    """One that it may shrink, one that it may grow, and one that clients may write to."""
    words = f"it has the seals {SEALS & ~missing:#x} and 4096 bytes; a page has at least 0x16"
    with memory(seals=SEALS & ~missing) as descriptor, pytest.raises(PageError, match=words):
        Page(descriptor)


@pytest.mark.parametrize("size", [0, PAGE_BYTES - 1, PAGE_BYTES + 1])
def test_memory_of_another_size_is_no_page(size: int) -> None:
    """Neither shorter nor longer."""
    with memory(size) as descriptor, pytest.raises(PageError, match=f"0x16 and {size} bytes; a"):
        Page(descriptor)


@pytest.mark.parametrize("magic", [0, PAGE_MAGIC + 1])
def test_memory_with_another_first_word_is_no_page(magic: int) -> None:
    """As that of a later version."""
    words = f"it begins with {magic:#x}, not 0x757569646c6e0001"
    with memory(magic=magic) as descriptor, pytest.raises(PageError, match=words):
        Page(descriptor)


def test_a_closed_descriptor_is_no_page() -> None:
    """The error says what the system said."""
    with memory() as descriptor:
        pass
    with pytest.raises(PageError, match="it cannot be mapped: Bad file descriptor"):
        Page(descriptor)


def test_a_refused_page_leaves_no_descriptor_open() -> None:
    """Also if it was mapped before it was refused."""
    with memory(magic=0) as descriptor:
        # What other tests have left goes first.
        gc.collect()
        before = os.listdir("/proc/self/fd")
        with pytest.raises(PageError):
            Page(descriptor)
        gc.collect()
        assert os.listdir("/proc/self/fd") == before


def test_a_page_is_let_go_with_its_descriptor(lanes: Lanes) -> None:
    """Nothing is left of a connection that has ended."""
    before = os.listdir("/proc/self/fd")
    Page(lanes.fd)
    gc.collect()
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.process
def test_a_page_does_not_close_the_file_that_got_its_number() -> None:
    """A program that closes all descriptors, as daemons do, keeps the files that it opens then."""
    program = (
        "import fcntl, gc, os\n"
        "from uuidd.server.page import Page as Written\n"
        "from uuidd.core.timeline.page import MAGIC_AT, PAGE_MAGIC\n"
        "from uuidd_client.lease import Page\n"
        "written = Written()\n"
        "written.words[MAGIC_AT] = PAGE_MAGIC\n"
        "page = Page(written.fd)\n"
        "before = os.listdir('/proc/self/fd')\n"
        "os.closerange(3, 100)\n"
        "mine = [os.open('/dev/null', os.O_RDONLY) for _ in range(20)]\n"
        "del page\n"
        "gc.collect()\n"
        "for each in mine:\n"
        "    os.fstat(each)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_all_connections_to_one_daemon_share_its_page(lanes: Lanes) -> None:
    """A page costs a descriptor; that of another daemon is another one."""
    other = Lanes()
    found = [page_of(os.dup(fd)) for fd in (lanes.fd, other.fd, lanes.fd)]
    assert found[0] is found[2] is not found[1]
    assert None not in found
    other.close()


# --- a lease


def test_a_tick_before_the_horizon_is_allowed(lanes: Lanes) -> None:
    """The last of them is the one before it."""
    lease = lanes.lease()
    lanes.words[HORIZON_AT] = START + 10
    assert [lease.allows(START + tick) for tick in (0, 9, 10, 11)] == [True, True, False, False]


def test_no_tick_is_allowed_without_the_token(lanes: Lanes) -> None:
    """Neither when the lane is free, nor when another has it."""
    lease = lanes.lease()
    assert lease.allows(START)
    lanes.words[TOKENS_AT + lease.lane] = 0
    assert not lease.allows(START)
    lanes.words[TOKENS_AT + lease.lane] += 1
    assert not lease.allows(START)


def test_the_horizon_is_read_before_the_token(lanes: Lanes) -> None:
    """A horizon that was raised after the lease had ended does not count."""
    lease = lanes.lease()

    class Words(list[int]):
        def __getitem__(self, at: int) -> int:  # type: ignore[override]  # no slice is read
            # As if the daemon ran now.
            lanes.revoke()
            return lanes.words[at]

    lease.words = Words()  # type: ignore[assignment]  # the daemon runs when it is read
    assert not lease.allows(START)


def test_a_lease_has_ended_when_the_token_is_another(lanes: Lanes) -> None:
    """A horizon that has passed does not end it: it may be raised."""
    lease = lanes.lease()
    lanes.words[HORIZON_AT] = 0
    assert not lease.ended
    lanes.revoke()
    assert lease.ended


def test_ids_of_a_lease_have_its_lane_node_and_clock_sequence(lanes: Lanes) -> None:
    """They are of the one who holds it."""
    granted = lanes.grant()
    origin = Lease(granted, lanes.page).origin
    found = origin.lane, origin.node, origin.clock_seq
    assert found == (granted.lane, granted.node, granted.clock_seq)
    assert lanes.words[MAGIC_AT] == PAGE_MAGIC

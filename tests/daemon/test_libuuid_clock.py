from __future__ import annotations

import os
import threading
from pathlib import Path
from uuid import UUID

import pytest

from tests.tools import descriptors, in_private_mounts, need, output
from uuidd.core.ids.ticks import UNIX_EPOCH
from uuidd.libuuid_clock import libuuid_clock_seq, libuuid_mark

CLOCK_FILE = b"clock: 1261 tv: 0000001795232089 00833877 adj: 00000000\n"


def clock_file(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "clock.txt"
    path.write_bytes(content)
    return path


CLOCK_MARK = UNIX_EPOCH + 1795232089 * 10**7 + 833877 * 10 + 1
CONT_FILE = b"cont: 00017952320898338770                   \n"
"""As libuuid 2.41 writes it: 20 digits, and blanks over a longer one."""
CONT_MARK = UNIX_EPOCH + 17952320898338770
LAST_TICK = (1 << 60) - 1


@pytest.mark.parametrize(
    ("content", "clock_seq", "mark"),
    [
        (CLOCK_FILE, 0x1261, CLOCK_MARK),
        (CLOCK_FILE + b"left over from a longer one\n", 0x1261, CLOCK_MARK),
        # The file may hold the variant too.
        (CLOCK_FILE.replace(b"1261", b"D261"), 0x1261, CLOCK_MARK),
        (CLOCK_FILE.replace(b"adj: 00000000", b"adj: 00000009"), 0x1261, CLOCK_MARK + 9),
        (b"clock: 3fff tv: 1795232089 833877 adj: 0\n", 0x3FFF, CLOCK_MARK),
        (b"clock: 0000 tv: 1795232089 833877 adj: -3", 0, CLOCK_MARK - 3),
        (CONT_FILE, None, CONT_MARK),
        (b"cont: 17952320898338770", None, CONT_MARK),
        (b"cont: 0\n", None, UNIX_EPOCH),
        # However many digits stand there, a mark is a tick.
        (b"cont: " + b"9" * 4000, None, LAST_TICK),
        (b"clock: 3fff tv: " + b"9" * 4000 + b" 0 adj: 0\n", 0x3FFF, LAST_TICK),
        (b"clock: 3fff tv: -" + b"9" * 4000 + b" 0 adj: 0\n", 0x3FFF, 0),
        # An empty, torn or foreign file is no guess.
        *(
            (content, None, None)
            for content in (
                b"",
                b"\0" * 56,
                b" " + CLOCK_FILE,
                CLOCK_FILE[:20],
                CLOCK_FILE.replace(b"1261", b"12g1"),
                CLOCK_FILE.replace(b"1261", b"261"),
                CLOCK_FILE.replace(b"1261", b"11261"),
                CLOCK_FILE.replace(b"adj: 00000000", b"adj: 0x"),
                CLOCK_FILE.replace(b"clock", b"clack"),
                b"\xff\xfe" + CLOCK_FILE,
                b"cont: ",
                b"cont: -5\n",
                b"cont: 12x\n",
                b" " + CONT_FILE,
            )
        ),
    ],
)
def test_a_clock_sequence_and_a_mark_are_read_from_files_of_libuuid(
    tmp_path: Path, content: bytes, clock_seq: int | None, mark: int | None
) -> None:
    """A mark is the tick after the last one used, or the first one that is not reserved."""
    path = clock_file(tmp_path, content)
    assert (libuuid_clock_seq(path), libuuid_mark(path)) == (clock_seq, mark)


def test_no_more_than_4_kib_are_read(tmp_path: Path) -> None:
    """What goes on past 4 KiB is cut there, so a huge file in its place costs nothing."""
    endless = clock_file(tmp_path, CLOCK_FILE[:-1] + b"0" * 5000 + b"x")
    assert libuuid_clock_seq(endless) == 0x1261


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    """A FIFO without a writer, which would hold up a plain open for ever, is answered at once."""
    path = tmp_path / "clock.txt"
    os.mkfifo(path)
    answers: list[int | None] = []
    reader = threading.Thread(target=lambda: answers.append(libuuid_clock_seq(path)), daemon=True)
    reader.start()
    reader.join(5)
    in_time = list(answers)
    os.close(os.open(path, os.O_RDWR))  # lets a reader go that does wait
    assert in_time == [None]


def test_a_fifo_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "clock.txt"
    os.mkfifo(path)
    both_ends = os.open(path, os.O_RDWR)
    try:
        os.write(both_ends, CLOCK_FILE)
        assert libuuid_clock_seq(path) is None
        assert os.read(both_ends, 100) == CLOCK_FILE
    finally:
        os.close(both_ends)


def test_a_file_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path, Path("clock\0.txt"), Path("/proc/self/mem")):
        assert libuuid_mark(path) is libuuid_clock_seq(path) is None


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    path = clock_file(tmp_path, CLOCK_FILE)
    before = descriptors()
    for read in (path, tmp_path):
        libuuid_clock_seq(read)
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.process
def test_libuuids_own_file_has_a_mark_past_its_last_uuid(tmp_path: Path) -> None:
    uuidgen = need("uuidgen")
    script = f"{uuidgen} -t; {uuidgen} -t; cat /var/lib/libuuid/clock.txt"
    first, last, clock = output(*in_private_mounts("sh", "-c", script)).splitlines()
    mark = libuuid_mark(clock_file(tmp_path, clock.encode()))
    assert mark is not None
    assert UUID(first).time < UUID(last).time < mark <= UUID(last).time + 10**7

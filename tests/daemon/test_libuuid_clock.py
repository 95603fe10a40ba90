from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from uuid import UUID

import pytest

import uuidd
from tests.tools import in_private_mounts, need
from uuidd.clock import Clock
from uuidd.core.ids.ticks import UNIX_EPOCH
from uuidd.core.timeline.state import Node
from uuidd.libuuid_clock import libuuid_clock_seq, libuuid_mark
from uuidd.server import events, startup
from uuidd.server.settings import Settings
from uuidd.store import FolderStore

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


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    path = clock_file(tmp_path, CLOCK_FILE)
    before = set(os.listdir("/proc/self/fd"))
    libuuid_clock_seq(path)
    libuuid_clock_seq(tmp_path)
    assert set(os.listdir("/proc/self/fd")) == before


def test_a_file_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path, Path("clock\0.txt"), Path("/proc/self/mem")):
        assert libuuid_mark(path) is libuuid_clock_seq(path) is None


@pytest.mark.process
def test_libuuids_own_file_has_a_mark_past_its_last_uuid() -> None:
    uuidgen = need("uuidgen")
    script = f"{uuidgen} -t; {uuidgen} -t; cat /var/lib/libuuid/clock.txt"
    done = subprocess.run(
        in_private_mounts("sh", "-c", script), capture_output=True, text=True, check=True
    )
    first, last, clock = done.stdout.splitlines()
    with tempfile.TemporaryDirectory() as folder:
        mark = libuuid_mark(clock_file(Path(folder), clock.encode()))
    assert mark is not None
    assert UUID(first).time < UUID(last).time < mark <= UUID(last).time + 10**7


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Where a start looks for libuuid's two files."""
    clock, cont = tmp_path / "clock.txt", tmp_path / "clock-cont.txt"
    monkeypatch.setattr(startup, "LIBUUID_CLOCK", clock)
    monkeypatch.setattr(startup, "LIBUUID_CONT", cont)
    return clock, cont


def test_a_start_reads_the_marks_of_both_files_of_libuuid(files: tuple[Path, Path]) -> None:
    clock, cont = files
    assert startup.libuuid_marks(CLOCK_MARK) == []
    clock.write_bytes(CLOCK_FILE)
    cont.write_bytes(b"cont: 17952320998338770\n")
    assert startup.libuuid_marks(CLOCK_MARK + 10**7) == [
        (clock, -(10**7)),
        (cont, UNIX_EPOCH + 17952320998338770 - CLOCK_MARK - 10**7),
    ]


DAY = 24 * 3600 * 10**7


@pytest.mark.parametrize(
    ("clock_ahead", "cont_ahead", "floor"),
    [
        (-(10**7), 10**7, 10**7),
        (10**7, -(10**7), 10**7),
        (5, DAY, DAY),
        (5, DAY + 1, 5),
        (-5, DAY + 1, 0),
    ],
)
def test_a_fixed_node_begins_past_the_later_mark_of_libuuid(
    files: tuple[Path, Path], tmp_path: Path, clock_ahead: int, cont_ahead: int, floor: int
) -> None:
    now = CLOCK_MARK - clock_ahead
    clock, cont = files
    clock.write_bytes(CLOCK_FILE)
    cont.write_bytes(f"cont: {now + cont_ahead - UNIX_EPOCH}\n".encode())
    with contextlib.closing(FolderStore(tmp_path, machine="")) as store:
        timelines, *_ = startup.begin_timelines(
            Settings(socket=None, state=tmp_path),
            Node(0x00163E000001, "mac eth0"),
            store,
            Clock(utc=lambda: (now - UNIX_EPOCH) * 100),
        )
        state = store.load()
    assert state is not None
    assert state.floor == now + floor
    assert timelines.utc.node.fixed


@pytest.mark.parametrize(
    ("ahead", "used", "line"),
    [
        (10**7, True, "beginning after what libuuid has used: file=/clock, +1.000 s from now"),
        (-5, True, "beginning after what libuuid has used: file=/clock, -0.000 s from now"),
        (
            DAY + 1,
            False,
            "libuuid's clock file is of a time too far ahead, and is ignored: file=/clock,"
            " +86400.000 s from now",
        ),
    ],
)
def test_a_mark_of_libuuid_has_a_line_in_the_log(
    caplog: pytest.LogCaptureFixture, ahead: int, used: bool, line: str
) -> None:
    caplog.set_level("INFO")
    events.libuuid_mark(Path("/clock"), ahead, used=used)
    assert caplog.messages == [line]


IMPORTING = """
import time
from pathlib import Path
from tests.rig import Daemon

unix = time.time_ns() // 100
folder = Path("/var/lib/libuuid")
(folder / "clock.txt").write_text(f"clock: 1261 tv: {unix // 10**7:016d} 00000000 adj: 00000000\\n")
# Further ahead than a start takes on a busy machine.
mark = unix + 10 * 10**7
(folder / "clock-cont.txt").write_text(f"cont: {mark:020d}\\n")
with Daemon("--node=0x448899365732") as daemon, daemon.connect() as line:
    print(*[said for said in daemon.lines if "what libuuid has used" in said], sep="\\n")
    nodes, block = [], {}
    while block.get("node") != bytes.fromhex("448899365732"):
        block = line.call("take", "utc", 1000)
        nodes.append(block["node"])
    print(len(set(nodes)), block["first"] - 0x01B21DD213814000 >= mark, block["clock_seq"] >> 8)
"""


@pytest.mark.system
def test_a_daemon_repeats_nothing_of_libuuids() -> None:
    done = subprocess.run(
        in_private_mounts(sys.executable, "-c", IMPORTING),
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(uuidd.__file__).parents[1],
    )
    assert done.stderr == ""
    clock, cont, last = done.stdout.splitlines()
    assert clock.startswith(
        "uuidd: INFO: beginning after what libuuid has used: file=/var/lib/libuuid/clock.txt"
    )
    assert "file=/var/lib/libuuid/clock-cont.txt, +" in cont
    assert last == f"2 True {(0x1261 >> 8) + 32}"

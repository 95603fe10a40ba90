"""P8: the signals by which a host tells that it was cloned, and hosts that lack them."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.daemon.fakes import UID, Inside, meanwhile, no_signal
from tests.tools import descriptors, failing
from uuidd import clones
from uuidd.clones import AT_ONCE, ClockSets, KernelLog, NoSignal, VmClock, kernel_log
from uuidd.core.wire.methods import unpack_block
from uuidd.server.clones import CONFIRM_SECONDS, JUMP, LOOK_SECONDS

pytestmark = pytest.mark.usefixtures("autojump_clock")

GENERATION, DISRUPTION, FLAGS, SEQUENCE = 104, 16, 24, 12
"""Where the numbers are in the page, by linux/vmclock-abi.h."""


class Page:
    """A file that stands for the device, and the hypervisor that writes to it."""

    def __init__(self, path: Path, *, generation: bool = True) -> None:
        self.path = path
        path.write_bytes(bytes(4096))
        self.write(0, "<4sIHBBI", b"VCLK", 4096, 1, 1, 0, 2)
        self.write(FLAGS, "<Q", 1 << 8 if generation else 0)
        self.sequence = 2

    def write(self, at: int, form: str, *values: object) -> None:
        """Write numbers into the page."""
        with self.path.open("r+b") as file:
            file.seek(at)
            file.write(struct.pack(form, *values))

    def begin(self) -> None:
        """Begin to write: the sequence number is odd."""
        self.sequence += 1
        self.write(SEQUENCE, "<I", self.sequence)

    end = begin

    def write_whole(self, at: int, value: int) -> None:
        """Write a number as a hypervisor does."""
        self.begin()
        self.write(at, "<Q", value)
        self.end()

    def restore(self, generation: int = 7) -> None:
        """Restore the machine from a snapshot."""
        self.begin()
        self.write(GENERATION, "<Q", generation)
        self.write(DISRUPTION, "<Q", generation)
        self.end()


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return Page(tmp_path / "vmclock0")


@pytest.fixture
def vmclock(page: Page) -> Iterator[VmClock]:
    with contextlib.closing(VmClock(page.path)) as opened:
        yield opened


def moved(page: Page) -> None:
    page.write_whole(DISRUPTION, 9)


@pytest.mark.parametrize(
    ("generation", "happens", "alarms"),
    [
        (True, lambda page: None, [False, False]),
        (True, Page.restore, [True, False]),
        # The hypervisor keeps the clock of the page up to date, and each time moves the sequence.
        (True, lambda page: page.write_whole(72, 12345), [False]),
        (True, moved, [False]),
        # A hypervisor without the counter of generations tells nothing else of a restore.
        (False, moved, [True, False]),
        # The machine was moved to another hypervisor; nobody knows what happened meanwhile.
        (False, lambda page: page.write_whole(FLAGS, 1 << 8), [True, False]),
        # What is mapped stays.
        (True, lambda page: page.path.unlink(), [False]),
    ],
    ids=["nothing", "restore", "time", "migration", "disruption", "a new counter", "no device"],
)
def test_only_what_may_be_a_copy_is_an_alarm_and_once(
    tmp_path: Path, generation: bool, happens: Callable[[Page], object], alarms: list[bool]
) -> None:
    page = Page(tmp_path / "vmclock0", generation=generation)
    with contextlib.closing(VmClock(page.path)) as vmclock:
        happens(page)
        assert [vmclock.changed() for _ in alarms] == alarms


def test_a_page_that_stays_locked_is_taken_as_changed_once(page: Page, vmclock: VmClock) -> None:
    page.begin()
    assert [vmclock.changed() for _ in range(3)] == [True, False, False]
    page.end()
    assert [vmclock.changed() for _ in range(3)] == [True, False, False]


def test_a_write_that_is_torn_is_read_again(page: Page, vmclock: VmClock) -> None:
    """What was written halfway counts as changed, and what is there at the end is known."""
    page.begin()
    page.write(GENERATION, "<I", 7)
    assert vmclock.changed()
    page.write(GENERATION, "<Q", 7)
    page.end()
    vmclock.changed()
    assert not vmclock.changed()
    page.restore(8)
    assert vmclock.changed()


NEWS = b"5,742,12541823,-;random: crng reseeded due to virtual machine fork\n"
OTHER = b"6,743,12541900,-;usb 1-1: new device\n SUBSYSTEM=usb\n"


class Log:
    """A kernel's log: each write is a record, each read returns one."""

    def __init__(self) -> None:
        self._writing, reading = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.read = KernelLog(reading.detach())

    def say(self, *records: bytes) -> None:
        """Add records."""
        for record in records:
            self._writing.send(record)

    def close(self) -> None:
        """Close both ends."""
        self._writing.close()
        self.read.close()


@pytest.fixture
def kernel() -> Iterator[Log]:
    with contextlib.closing(Log()) as log:
        yield log


@pytest.mark.parametrize(
    ("records", "heard"),
    [
        ([], [False]),
        ([OTHER, NEWS, OTHER], [True, False]),
        # A flood is read in parts, so that others have their turn.
        ([OTHER] * AT_ONCE + [NEWS], [False, True]),
        *(
            ([record, OTHER], [False])
            for record in (
                b"\n",
                b"5",
                b"x,1,2,-;random: crng reseeded due to virtual machine fork\n",
                b"6,1,2,-;random: crng init done\n",
                b"6,1,2,-;a b: random: crng reseeded due to virtual machine fork\n",
                # Of the facilities user and local7, which programs have.
                b"13,1,2,-;random: crng reseeded due to virtual machine fork\n",
                b"191,1,2,-;random: crng reseeded due to virtual machine fork\n",
            )
        ),
    ],
)
def test_only_the_kernels_own_news_are_an_alarm_and_once(
    kernel: Log, records: list[bytes], heard: list[bool]
) -> None:
    kernel.say(*records)
    assert [kernel.read.heard() for _ in heard] == heard


def test_dropped_records_are_an_alarm(kernel: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them may have been the news."""
    answers = iter([BrokenPipeError(), BlockingIOError()])

    def lost(*_: object) -> bytes:
        raise next(answers)

    monkeypatch.setattr(os, "read", lost)
    assert kernel.read.heard()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a host with the driver's device, where no page and no log is yet."""
    drivers = tmp_path / "drivers"
    drivers.mkdir()
    (drivers / "VMGENCTR:00").symlink_to(tmp_path)
    monkeypatch.setattr(clones, "DRIVERS", (drivers,))
    monkeypatch.setattr(clones, "KMSG", tmp_path / "kmsg")
    return tmp_path


def vmclock_of(host: Path) -> VmClock:
    return VmClock(host / "vmclock0")


def log_of(_: Path) -> KernelLog:
    return kernel_log()


def passed_log(_: Path) -> KernelLog:
    return kernel_log(os.open("/dev/null", os.O_RDONLY))


def without_driver(host: Path) -> None:
    (host / "drivers" / "VMGENCTR:00").unlink()
    (host / "drivers" / "module").symlink_to(host)


Open = Callable[[Path], object]


@pytest.mark.parametrize(
    ("opened", "change", "why"),
    [
        # As where PrivateDevices= hides them.
        (vmclock_of, str, "no {}/vmclock0"),
        (log_of, str, "no {}/kmsg"),
        *((log, without_driver, "no vmgenid device") for log in (log_of, passed_log)),
        # As in containers of systemd-nspawn.
        (log_of, lambda host: (host / "kmsg").touch(), "{}/kmsg is not the kernel's log here"),
        (passed_log, str, "{}/kmsg is not the kernel's log here"),
        *(
            (
                vmclock_of,
                lambda host, content=content: (host / "vmclock0").write_bytes(content),
                f"{{}}/vmclock0 {why}",
            )
            for content, why in (
                (b"", "cannot be mapped: "),
                (b"VCLK", "cannot be mapped: "),
                (bytes(4096), "has no page of a vmclock"),
                (b"KLCV".ljust(4096), "has no page of a vmclock"),
            )
        ),
    ],
)
def test_a_signal_that_is_not_there_is_told_and_leaves_no_descriptor(
    host: Path, opened: Open, change: Open, why: str
) -> None:
    change(host)
    before = descriptors()
    with pytest.raises(NoSignal) as lack:
        opened(host)
    assert str(lack.value).startswith(why.format(host))
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize(("opened", "name"), [(vmclock_of, "vmclock0"), (log_of, "kmsg")])
def test_no_right_to_a_signal_is_told(
    host: Path, monkeypatch: pytest.MonkeyPatch, opened: Open, name: str
) -> None:
    """As for other users than root where kernel.dmesg_restrict is set. Root may read all."""
    monkeypatch.setattr(os, "open", failing(errno.EPERM))
    with pytest.raises(NoSignal, match=f"^{host}/{name} cannot be read: Operation not permitted$"):
        opened(host)


async def test_the_daemon_renews_at_the_kernels_news(kernel: Log) -> None:
    host = Host(log=lambda: kernel.read)
    async with host.running():
        kernel.say(OTHER)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert host.inside.clones.noticed == 0
        kernel.say(NEWS)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert (host.inside.clones.noticed, host.inside.clones.last_by) == (1, "vmgenid")


class Sets(ClockSets):
    """Tells that UTC was set when a test says so."""

    def __init__(self) -> None:
        self.fd, self._writing = os.pipe2(os.O_NONBLOCK)

    def set(self) -> None:
        """Let the kernel tell that UTC was set."""
        os.write(self._writing, bytes(8))

    def close(self) -> None:
        """Close both ends."""
        os.close(self._writing)
        super().close()


class Host:
    """A daemon's inside that listens."""

    def __init__(
        self,
        *,
        page: Callable[[], VmClock] = no_signal,
        log: Callable[[], KernelLog] = no_signal,
    ) -> None:
        self.sets = Sets()
        self.inside = Inside(ahead=10, vmclock=page, log=log, sets=lambda: self.sets)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Listen meanwhile."""
        with self.inside.clones:
            async with meanwhile(self.inside.clones.run):
                await trio.testing.wait_all_tasks_blocked()
                yield


@pytest.mark.parametrize(
    ("seconds", "told", "noticed"),
    [
        # A process that was restored from a file finds UTC ahead, though no clock was set.
        (2, "", 1),
        # The kernel may tell it before or after the daemon reads the clock.
        *((3600, when, 0) for when in ("before", "after")),
        # Clones are not restored in the past.
        *((step, "", 0) for step in (-3600, -2, 0.9 * JUMP / 1e9)),
    ],
)
async def test_only_a_jump_that_nobody_announced_is_an_alarm(
    seconds: float, told: str, noticed: int
) -> None:
    host = Host()
    async with host.running():
        host.inside.wall.step(seconds)
        if told == "before":
            host.sets.set()
            await trio.testing.wait_all_tasks_blocked(0.01)
        host.inside.clock.read()
        if told == "after":
            await trio.sleep(CONFIRM_SECONDS / 2)
            host.sets.set()
        await trio.sleep(2 * CONFIRM_SECONDS)
        clones = host.inside.clones
        assert (clones.noticed, clones.last_by) == (noticed, "clock" if noticed else "")


@pytest.mark.parametrize(("seconds", "pause"), [(0.005, 1), (3600, CONFIRM_SECONDS / 5)])
async def test_a_set_clock_excuses_no_later_jump(seconds: float, pause: float) -> None:
    """Nor does what a time daemon set by some milliseconds."""
    host = Host()
    async with host.running():
        host.inside.wall.step(seconds)
        host.sets.set()
        await trio.sleep(pause)
        host.inside.wall.step(5)
        host.inside.clock.read()
        await trio.sleep(1)
        assert host.inside.clones.noticed == 1


async def test_a_jump_that_was_found_before_anybody_listened_is_an_alarm() -> None:
    host = Host()
    host.inside.wall.step(5)
    host.inside.clock.read()
    async with host.running():
        await trio.sleep(2 * CONFIRM_SECONDS)
        assert host.inside.clones.noticed == 1


async def test_the_kernel_tells_of_no_set_clock_at_first() -> None:
    with contextlib.closing(ClockSets()) as opened:
        assert not opened.was_set()


async def test_the_status_says_which_signals_there_are() -> None:
    host = Host()
    async with host.running():
        status = host.inside.report.status()
        assert status["clones"]["signals"] == {
            "vmclock": "none here",
            "vmgenid": "none here",
            "clock": "",
        }


async def test_nothing_is_looked_at_where_there_is_no_page() -> None:
    host = Host()
    with host.inside.clones:
        assert host.inside.clones.changed is None


async def test_holders_of_leases_are_told_soon(page: Page) -> None:
    """They send no requests, so the page is looked at for them."""
    host = Host(page=lambda: VmClock(page.path))
    async with host.running():
        await trio.sleep(LOOK_SECONDS / 2)
        host.inside.timelines.lease(at=host.inside.clock.read(), uid=UID)
        # As after each answer, such as that with the lease.
        assert host.inside.clones.changed is not None
        assert not host.inside.clones.changed()
        await trio.sleep(LOOK_SECONDS / 2)
        page.restore()
        await trio.sleep(2 * LOOK_SECONDS)
        assert host.inside.clones.last_by == "vmclock"
        assert host.inside.timeline.leases.epoch == 1


async def test_a_clone_is_noticed_while_nobody_asks_or_holds_a_lease(page: Page) -> None:
    host = Host(page=lambda: VmClock(page.path))
    async with host.running():
        page.restore()
        await trio.sleep(11 * LOOK_SECONDS)
        assert host.inside.clones.last_by == "vmclock"


@pytest.mark.parametrize("when", ["before", "meanwhile"])
async def test_no_answer_is_of_before_the_clone(
    page: Page, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(page=lambda: VmClock(page.path))
    inside = host.inside
    with inside.clones:
        before = inside.take().node
        await trio.sleep(0.1)
        take = inside.allocator.take

        def taken(*args: object, **kwargs: object) -> object:
            block = take(*args, **kwargs)  # type: ignore[arg-type]
            page.restore()
            return block

        if when == "before":
            page.restore()
        else:
            monkeypatch.setattr(inside.allocator, "take", taken)
        async with inside.saving(), inside.talking() as peer:
            reply = await peer.call("take", "utc", 1)
        assert unpack_block(reply.result).node != before
        assert inside.clones.noticed == 1

"""How a host tells that its machine was cloned: three signals, in a class each.

Each raises NoSignal on a host that does not have it. ``server/clones.py`` says what comes of them.

*The page of the vmclock device*: memory in which the hypervisor tells of a restored snapshot.

1. The hypervisor changes ``vm_generation_counter`` when it restores the machine from a snapshot,
   before the machine runs. A hypervisor that does not have this counter changes
   ``disruption_marker``, but also after a live migration, which makes no copy. The layout is that
   of linux/vmclock-abi.h: little endian, each number aligned.
2. A sequence number guards the page: it is odd while the hypervisor writes, and another one after
   that. So as long as it and the marker are what they were, nothing has changed: two loads.
3. Otherwise the page is read again until the sequence number is even, and the same before and
   after. If it stays odd, the page is taken as changed. That is told once: not again before
   another number is in the page.

*The kernel's log* says that the generation of the virtual machine has changed (Linux 5.18). The
driver of the vmgenid device then gives the random generator another key, and says so. It tells
programs nothing else: the event NEW_VMGENID of Linux 6.8 was taken back in 6.8.8. Each read of
/dev/kmsg returns one record: its number, which holds the facility; more numbers; and after a
semicolon its text. What a program writes there never has the facility of the kernel, 0.

*Whether somebody has set UTC*: timerfd_create(2), TFD_TIMER_CANCEL_ON_SET. The kernel tells so each
time that UTC is set, by whomever, also after a suspend. It tells nothing when a process was
stopped, written to a file, and restored later (CRIU, gVisor): no clock was set, and yet UTC is
ahead of what CLOCK_BOOTTIME says, which goes on from where the process was stopped.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import stat
import time
from pathlib import Path


class NoSignal(Exception):
    """The host does not have this signal; a few words that say why."""


VMCLOCK = Path("/dev/vmclock0")
"""The device, since Linux 6.13. A host has one at most."""

MAGIC = int.from_bytes(b"VCLK", "little")

HAS_GENERATION = 1 << 8
"""The flag that says that the page has ``vm_generation_counter``."""

SEQUENCE_AT, DISRUPTION_AT, FLAGS_AT, GENERATION_AT = 1, 2, 3, 13
"""The numbers of 64 bits that are read. The upper half of the first is the sequence number, and the
lower half never changes."""

TRIES = 100
"""How often the page is read while the hypervisor writes to it. It writes for less than one."""


class VmClock:
    """The page of the device at *path*. Raises NoSignal."""

    def __init__(self, path: Path = VMCLOCK) -> None:
        try:
            # O_NONBLOCK, because anything may be at the path of a test.
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            raise NoSignal(f"no {path}") from None
        except OSError as error:
            raise NoSignal(f"{path} cannot be read: {error.strerror}") from error
        try:
            # The driver maps this one page, to be read, and nothing else.
            self._memory = mmap.mmap(fd, mmap.PAGESIZE, prot=mmap.PROT_READ)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise NoSignal(f"{path} cannot be mapped: {why}") from error
        finally:
            os.close(fd)
        self._words = memoryview(self._memory).cast("Q")
        if self._words[0] & 0xFFFF_FFFF != MAGIC:
            self.close()
            raise NoSignal(f"{path} has no page of a vmclock")
        self._at = GENERATION_AT
        self._sequence = self._marker = -1
        self._known: tuple[int, int] | None = None
        self.changed()

    def changed(self) -> bool:
        """Return whether the machine may have been cloned since the last call."""
        words = self._words
        if words[SEQUENCE_AT] == self._sequence and words[self._at] == self._marker:
            return False
        known, self._known = self._known, None
        for _ in range(TRIES):
            self._sequence = words[SEQUENCE_AT]
            self._at = GENERATION_AT if words[FLAGS_AT] & HAS_GENERATION else DISRUPTION_AT
            self._marker = words[self._at]
            if words[SEQUENCE_AT] == self._sequence and not self._sequence >> 32 & 1:
                self._known = self._at, self._marker
                break
        return self._known is None or known != self._known

    def close(self) -> None:
        """Let go of the page."""
        self._words.release()
        self._memory.close()


KMSG = Path("/dev/kmsg")

KMSG_DEVICE = os.makedev(1, 11)
"""What /dev/kmsg is. In a container another file may be there."""

NEWS = b"random: crng reseeded due to virtual machine fork"

RECORD_BYTES = 8192
"""More than the longest record (PRINTK_MESSAGE_MAX)."""

AT_ONCE = 64
"""Records that are read in a row, before others have their turn."""

DRIVERS = (Path("/sys/bus/acpi/drivers/vmgenid"), Path("/sys/bus/platform/drivers/vmgenid"))
"""Where the kernel lists the devices of the driver, before and since Linux 6.10."""


class KernelLog:
    """Listens to the kernel's log from now on.

    *fd* is /dev/kmsg, opened for reading; it is closed with this. The host has a device whose
    driver says there what is meant.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        os.set_blocking(fd, False)

    def heard(self) -> bool:
        """Read what is new, and return whether the machine may have been cloned.

        Dropped records may have told of a clone, so they count as one.
        """
        found = False
        for _ in range(AT_ONCE):
            try:
                record = os.read(self.fd, RECORD_BYTES)
            except BlockingIOError:
                break
            except BrokenPipeError:
                found = True
                continue
            found = found or _is_news(record)
        return found

    def close(self) -> None:
        """Listen no longer. A second call does nothing."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def kernel_log(passed: int | None = None) -> KernelLog:
    """Listen to the log that systemd has *passed*, or else opened here. Raises NoSignal.

    What was passed is closed then.
    """
    if not _has_device():
        if passed is not None:
            with contextlib.suppress(OSError):
                os.close(passed)
        raise NoSignal("no vmgenid device")
    try:
        fd = os.open(KMSG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC) if passed is None else passed
        found = os.fstat(fd)
    except FileNotFoundError as error:
        raise NoSignal(f"no {KMSG}") from error
    except OSError as error:
        raise NoSignal(f"{KMSG} cannot be read: {error.strerror}") from error
    if not stat.S_ISCHR(found.st_mode) or found.st_rdev != KMSG_DEVICE:
        os.close(fd)
        raise NoSignal(f"{KMSG} is not the kernel's log here")
    # What is in the log already is not new.
    os.lseek(fd, 0, os.SEEK_END)
    return KernelLog(fd)


def _is_news(record: bytes) -> bool:
    begin, _, text = record.partition(b";")
    priority, _, _ = begin.partition(b",")
    # The lower three bits are the level, the others the facility.
    return priority.isdigit() and int(priority) >> 3 == 0 and text.startswith(NEWS)


def _has_device() -> bool:
    for folder in DRIVERS:
        # The devices are links; all else that is there are files.
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            if any(entry.is_symlink() and entry.name != "module" for entry in entries):
                return True
    return False


TFD_TIMER_ABSTIME, TFD_TIMER_CANCEL_ON_SET = 1, 2

LATE = 9_000_000_000
"""A time in Unix seconds, in the year 2255, at which the timer is over: it needs one."""


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", ctypes.c_long * 2), ("value", ctypes.c_long * 2))


class ClockSets:
    """Tells when UTC was set; *fd* can be read then. Raises NoSignal."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd: int = self._libc.timerfd_create(time.CLOCK_REALTIME, os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0:
            raise NoSignal(f"timerfd_create: {os.strerror(ctypes.get_errno())}")
        flags = TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET
        spec = _Itimerspec((0, 0), (LATE, 0))
        if self._libc.timerfd_settime(self.fd, flags, ctypes.byref(spec), None) < 0:
            number = ctypes.get_errno()
            self.close()
            raise NoSignal(f"timerfd_settime: {os.strerror(number)}")

    def was_set(self) -> bool:
        """Return whether UTC was set since the last call."""
        try:
            os.read(self.fd, 8)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno != errno.ECANCELED:
                raise
        # Or it was set to a time after LATE.
        return True

    def close(self) -> None:
        """Listen no longer."""
        os.close(self.fd)

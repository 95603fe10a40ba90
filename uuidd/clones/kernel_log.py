"""The kernel's log, which says that the generation of the virtual machine has changed (Linux 5.18).

The driver of the vmgenid device then gives the random generator another key, and says so. It tells
programs nothing else: the event NEW_VMGENID of Linux 6.8 was taken back in 6.8.8. Each read of
/dev/kmsg returns one record: its number, which holds the facility; more numbers; and after a
semicolon its text. What a program writes there never has the facility of the kernel, 0.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

from uuidd.clones import NoSignal

PATH = Path("/dev/kmsg")

DEVICE = os.makedev(1, 11)
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

    *fd* is /dev/kmsg, opened for reading; it is closed with this. *has_device* tells whether there
    is a device whose driver would say what is meant.
    """

    def __init__(self, fd: int, has_device: Callable[[], bool] | None = None) -> None:
        self._has_device = has_device or _has_device
        self.fd = fd
        os.set_blocking(fd, False)

    @property
    def lack(self) -> str:
        """Why nothing of clones is in this host's log, "" if it is."""
        return "" if self._has_device() else "no vmgenid device"

    def heard(self) -> bool:
        """Read what is new, and return whether the machine may have been cloned.

        If records were dropped because too many came, it may have been, where there is a device.
        """
        found = False
        for _ in range(AT_ONCE):
            try:
                record = os.read(self.fd, RECORD_BYTES)
            except BlockingIOError:
                break
            except BrokenPipeError:
                found = found or self._has_device()
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
        fd = os.open(PATH, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC) if passed is None else passed
        found = os.fstat(fd)
    except FileNotFoundError as error:
        raise NoSignal(f"no {PATH}") from error
    except OSError as error:
        raise NoSignal(f"{PATH} cannot be read: {error.strerror}") from error
    if not stat.S_ISCHR(found.st_mode) or found.st_rdev != DEVICE:
        os.close(fd)
        raise NoSignal(f"{PATH} is not the kernel's log here")
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

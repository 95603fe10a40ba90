"""The kernel's message that the generation of the virtual machine has changed (Linux 6.8).

The driver of the vmgenid device sends it to all who listen to the kernel's events (netlink(7),
NETLINK_KOBJECT_UEVENT), after it has given the random generator another key.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path
from struct import Struct

from uuidd.clones import NoSignal

NETLINK_KOBJECT_UEVENT = 15

FROM_THE_KERNEL = 1
"""The group of messages of the kernel. That of the next number is udev's."""

NEWS = b"NEW_VMGENID=1"

MESSAGE_BYTES = 8192
"""More than the kernel's longest (UEVENT_BUFFER_SIZE, 2,048 bytes, and the path)."""

BUFFER_BYTES = 1 << 20
"""What may wait to be read. The kernel doubles it, or takes net.core.rmem_max if that is less."""

AT_ONCE = 64
"""Messages that are read in a row, before others have their turn."""

DRIVERS = (Path("/sys/bus/acpi/drivers/vmgenid"), Path("/sys/bus/platform/drivers/vmgenid"))
"""Where the kernel lists the devices of the driver, before and since Linux 6.10."""

_UCRED = Struct("3i")


class Uevents:
    """Listens to the kernel's events. Raises NoSignal.

    *has_device* tells whether there is a device that sends the one that is meant.
    """

    def __init__(self, has_device: Callable[[], bool] | None = None) -> None:
        self._has_device = has_device or _has_device
        flags = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        try:
            self.sock = socket.socket(socket.AF_NETLINK, flags, NETLINK_KOBJECT_UEVENT)
        except OSError as error:
            raise NoSignal(f"no netlink socket: {error.strerror}") from error
        try:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            self.sock.bind((0, FROM_THE_KERNEL))
        except OSError as error:
            self.sock.close()
            raise NoSignal(f"the kernel's events cannot be heard: {error.strerror}") from error

    @property
    def lack(self) -> str:
        """Why this host sends no such event, "" if it does."""
        return "" if self._has_device() else "no vmgenid device"

    def heard(self) -> bool:
        """Read what has arrived, and return whether the machine may have been cloned.

        If messages were lost because too many came, it may have been, where there is a device.
        """
        found = False
        for _ in range(AT_ONCE):
            try:
                data, control, _, address = self.sock.recvmsg(
                    MESSAGE_BYTES, socket.CMSG_SPACE(_UCRED.size)
                )
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                found = found or self._has_device()
                continue
            found = found or (_from_the_kernel(address, control) and NEWS in data.split(b"\0"))
        return found

    def close(self) -> None:
        """Listen no longer."""
        self.sock.close()


def _from_the_kernel(address: tuple[int, int], control: list[tuple[int, int, bytes]]) -> bool:
    """Whether a message is of the kernel, which alone has the port and the pid 0."""
    pids = [
        _UCRED.unpack_from(data)[0]
        for level, kind, data in control
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS) and len(data) >= _UCRED.size
    ]
    return address[0] == 0 and pids == [0]


def _has_device() -> bool:
    for folder in DRIVERS:
        try:
            # The devices are links; all else that is there are files.
            if any(entry.is_symlink() and entry.name != "module" for entry in os.scandir(folder)):
                return True
        except OSError:
            continue
    return False

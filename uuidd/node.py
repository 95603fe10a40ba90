"""The fixed node that an administrator asked for with ``--node``.

A MAC makes a good node only if no other host has the same one. So only universally administered
unicast MACs are taken from an interface: locally administered ones are made up by software, and
may be the same in containers and virtual machines of many hosts. An administrator who knows that a
MAC is unique can still pass it as a number.
"""

from __future__ import annotations

import contextlib
import re
import sys
from pathlib import Path
from typing import NamedTuple

from uuidd.core.ids.nodes import MULTICAST, NODE_BITS
from uuidd.core.timeline.state import Node
from uuidd.output import printable
from uuidd.refused import Refused

SYS_CLASS_NET = Path("/sys/class/net")

LOCAL = 1 << 41
"""The bit of a locally administered MAC, which no maker of network cards sets (RFC 9542, 2.1)."""

LOOPBACK_TYPE = "772"
"""The content of a loopback interface's ``type`` file in Linux (ARPHRD_LOOPBACK)."""

_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+")
_OCTETS = re.compile(r"[0-9a-fA-F]{2}(?:(?::[0-9a-fA-F]{2}){5}|(?:-[0-9a-fA-F]{2}){5})")

_FORMS = "random, mac, mac:IFACE, a number like 0x448899365732, or 44:88:99:36:57:32"
_WAY_OUT = "use --node random (the default), or give the node itself with --node 0x..."


class _Interface(NamedTuple):
    """An interface, its MAC as text ("" for none), and why that cannot be a node, "" if it can.

    *number* is the kernel's index, which comes first because interfaces are sorted by it.
    """

    number: int
    name: str
    mac: str
    fault: str

    def __str__(self) -> str:
        return f"{printable(self.name)} ({self.fault or f'{self.mac}, usable'})"


def choose(spec: str, *, net: Path = SYS_CLASS_NET) -> Node | None:
    """Return the node that *spec* names, or None for ``random``, which is then kept in the state.

    ``mac`` is the MAC of the first interface, by the kernel's index, that has a usable one;
    ``mac:IFACE`` is that of this interface. 48 bits in hex are used as they are, also with the
    local or the multicast bit.

    Raises Refused for anything else, for an interface that this host does not have (the error
    lists those that it has), and for an interface whose MAC other hosts may have too.
    """
    form, colon, name = spec.partition(":")
    if spec == "random":
        return None
    if form != "mac":
        return Node(_given(spec), "given")
    found = _interfaces(net)
    fit = [each for each in found if (each.name == name if colon else not each.fault)]
    if not fit:
        there_are = f"there are: {', '.join(map(str, found)) or 'none'}"
        if colon:
            raise _refusal(spec, f"there is no such interface; {there_are}")
        raise _refusal(spec, f"no interface has a usable MAC; {there_are}; {_WAY_OUT}")
    interface = fit[0]
    if interface.fault:
        raise _refusal(
            spec,
            f"{interface} cannot give the node, which must be a universally administered"
            f" unicast MAC; {_WAY_OUT}",
        )
    return Node(_number(interface.mac), f"mac {printable(interface.name)}")


def _given(spec: str) -> int:
    if _OCTETS.fullmatch(spec):
        return _number(spec)
    if not _NUMBER.fullmatch(spec):
        # int() would also take signs, underscores and the digits of other scripts.
        raise _refusal(spec, f"not a node; it is one of {_FORMS}")
    value = int(spec, 16)
    if value >> NODE_BITS:
        raise _refusal(
            spec, f"a node has {NODE_BITS} bits, at most 12 hex digits; this has more; shorten it"
        )
    return value


def _refusal(spec: str, problem: str) -> Refused:
    return Refused(f"--node {spec!r}: {problem}")


def _interfaces(net: Path) -> list[_Interface]:
    """Return all interfaces in the order of the kernel's index; those without one last, by name."""
    # Imported here because it takes 49 ms, and the default node needs no MAC.
    import ifaddr

    listed: list[Path] = []
    with contextlib.suppress(OSError):
        # The bonding driver puts a plain file, bonding_masters, in this folder.
        listed = [entry for entry in net.iterdir() if entry.is_dir()]
    others: set[str] = set()
    # In a sandbox without netlink, MACs can still be read. ifaddr decodes every name as UTF-8.
    with contextlib.suppress(OSError, UnicodeError):
        # An address may have a label instead of its interface's own name, as eth0:1.
        others = {adapter.name.partition(":")[0] for adapter in ifaddr.get_adapters()}
    # Their names, which may be free text, are no part of a path.
    others -= {folder.name for folder in listed}
    found = [_Interface(sys.maxsize, name, "", "no MAC") for name in others]
    return sorted(found + [_interface(folder) for folder in listed])


def _interface(folder: Path) -> _Interface:
    index, mac = _read(folder / "ifindex"), _read(folder / "address")
    loopback = folder.name == "lo" or _read(folder / "type") == LOOPBACK_TYPE
    return _Interface(
        int(index) if index.isdecimal() else sys.maxsize,
        folder.name,
        mac,
        "loopback" if loopback else _fault(mac),
    )


def _fault(mac: str) -> str:
    """Return why this MAC cannot be a node, "" if it can."""
    # A tunnel has no MAC, or an IP address instead; that of InfiniBand has 20 octets.
    if not mac:
        return "no MAC"
    if not _OCTETS.fullmatch(mac):
        return f"{printable(mac)} is not 6 octets"
    value = _number(mac)
    if not value:
        return "no MAC, all zero"
    if value & MULTICAST:
        return f"{mac} is multicast"
    return f"{mac} is locally administered" if value & LOCAL else ""


def _number(octets: str) -> int:
    return int(octets.replace(":", "").replace("-", ""), 16)


def _read(path: Path) -> str:
    """Return the file's one line, "" if it cannot be read or the interface has just gone."""
    try:
        return path.read_text("ascii").strip()
    except (OSError, UnicodeError):
        return ""

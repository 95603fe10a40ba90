from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import ifaddr
import pytest
from ifaddr import IP, Adapter

import uuidd
from tests.tools import failing, refusal, run
from uuidd.core.timeline.state import Node
from uuidd.node import choose

GOOD = "44:88:99:36:57:32"
GOOD_VALUE = 0x448899365732
OTHER = "00:16:3e:00:00:01"
OTHER_VALUE = 0x00163E000001
LOCAL = "02:fc:00:00:00:01"


def folder(net: Path, name: str, mac: str | None, *, index: int | None, kind: int = 1) -> None:
    """Write what Linux shows of an interface in /sys/class/net."""
    (net / name).mkdir(parents=True)
    (net / name / "type").write_text(f"{kind}\n")
    if mac is not None:
        (net / name / "address").write_text(f"{mac}\n")
    if index is not None:
        (net / name / "ifindex").write_text(f"{index}\n")


def adapter(name: str, *addresses: str) -> Adapter:
    """Return what ifaddr has of an interface: an IPv6 address comes with a flow and a scope."""
    ips = [IP((each, 0, 4) if ":" in each else each, 24, name) for each in addresses]
    return Adapter(name, name, ips)


def lists(*adapters: Adapter) -> Callable[[], Iterable[Adapter]]:
    return lambda: adapters


no_netlink = failing(errno.EAFNOSUPPORT)


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """A host with a loopback, and eth0 with a MAC that can be a node."""
    net = tmp_path / "net"
    folder(net, "lo", "00:00:00:00:00:00", index=1, kind=772)
    folder(net, "eth0", GOOD, index=2)
    return net


def chosen(spec: str, net: Path, adapters: Callable[[], Iterable[Adapter]]) -> Node | None:
    """Return the node of a host with these interfaces."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ifaddr, "get_adapters", adapters)
        return choose(spec, net=net)


def refused(spec: str, net: Path, *adapters: Adapter) -> str:
    """Return the line with which *spec* is refused, but for the option with which it begins."""
    line = refusal(chosen, spec, net, lists(*adapters))
    assert line.isprintable()
    assert line.startswith(f"--node {spec!r}: ")
    return line.partition(": ")[2]


def test_random_is_left_to_the_state(net: Path) -> None:
    assert chosen("random", net, lists()) is None


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        ("0x448899365732", GOOD_VALUE),
        ("0XABCDEF", 0xABCDEF),
        ("0xffffffffffff", (1 << 48) - 1),
        ("0x0000000000000001", 1),
        ("44:88:99:36:57:32", GOOD_VALUE),
        ("44-88-99-36-57-32", GOOD_VALUE),
        ("aB:cD:eF:00:00:01", 0xABCDEF000001),
        ("03:00:00:00:00:01", 0x030000000001),
    ],
)
def test_hex_is_taken_as_it_is_given(tmp_path: Path, spec: str, value: int) -> None:
    assert chosen(spec, tmp_path / "none", no_netlink) == Node(value, "given")


# A digit of another script, which int() would take, and what is no UTF-8.
NO_NUMBERS = ("", " ", "0x", "0xg1", "0x1_0", "0x1\n", "0x٣", "-0x1", "-1", "17", "\udcff")
NO_OCTETS = (
    "448899365732",
    "44:88:99:36:57",
    "44:88:99:36:57:32:00",
    "44:88-99:36-57:32",
    "4:8:9:3:5:3",
)
NO_WORDS = ("eth0", "Random", "MAC", "ip:10.0.0.5", "random:eth0")


@pytest.mark.parametrize("spec", [*NO_NUMBERS, *NO_OCTETS, *NO_WORDS])
def test_what_is_no_node_is_refused_with_the_forms_there_are(net: Path, spec: str) -> None:
    line = refused(spec, net, adapter("eth0", "10.0.0.5"))
    assert "not a node; it is one of random, mac, mac:IFACE, a number like 0x" in line


def test_more_than_48_bits_are_refused(net: Path) -> None:
    assert "a node has 48 bits" in refused("0x1000000000000", net)


@pytest.mark.parametrize("index", [10, None])
def test_mac_goes_by_the_kernels_index(net: Path, index: int | None) -> None:
    folder(net, "aaa0", OTHER, index=index)
    assert chosen("mac", net, lists()) == Node(GOOD_VALUE, "mac eth0")


def test_mac_goes_by_name_without_an_index(tmp_path: Path) -> None:
    for name, mac in (("c0", OTHER), ("b0", GOOD), ("d0", OTHER)):
        folder(tmp_path, name, mac, index=None)
    assert chosen("mac", tmp_path, lists()) == Node(GOOD_VALUE, "mac b0")


def test_mac_needs_no_netlink(net: Path) -> None:
    """Where a sandbox hides the addresses, the folder alone has the MACs."""
    assert chosen("mac", net, no_netlink) == Node(GOOD_VALUE, "mac eth0")


# The kernel allows control characters in a name; a source and a list are plain text.
@pytest.mark.parametrize(("name", "source"), [("eth1", "mac eth1"), ("e\x1b0", r"mac e\x1b0")])
def test_mac_of_a_named_interface(net: Path, name: str, source: str) -> None:
    folder(net, name, OTHER, index=3)
    assert chosen(f"mac:{name}", net, lists()) == Node(OTHER_VALUE, source)
    assert f"{source.removeprefix('mac ')} (" in refused("mac:no0", net)


def test_mac_with_no_usable_interface_tells_why_of_each(tmp_path: Path) -> None:
    # The name lo is refused also where the type cannot be read.
    folder(tmp_path, "lo", GOOD, index=1)
    folder(tmp_path, "eth0", LOCAL, index=2)
    line = refused("mac", tmp_path)
    assert f"lo (loopback), eth0 ({LOCAL} is locally administered); use --node random" in line
    assert "there are: none;" in refused("mac", tmp_path / "none")


@pytest.mark.parametrize(
    ("adapters", "more"),
    [
        ([adapter("eth0", "10.0.0.5"), adapter("tun0", "10.1.0.1")], ", tun0 (no MAC)"),
        # An alias is an adapter of its own to ifaddr, and no interface.
        ([adapter("eth0", "10.0.0.4"), adapter("eth0:1", "10.0.0.5")], ""),
    ],
)
def test_an_unknown_interface_is_answered_with_those_there_are(
    net: Path, adapters: list[Adapter], more: str
) -> None:
    # The bonding driver's file in /sys/class/net is no interface.
    (net / "bonding_masters").write_text("bond0\n")
    line = refused("mac:eth7", net, *adapters)
    assert "no such interface" in line
    assert line.endswith(f"there are: lo (loopback), eth0 ({GOOD}, usable){more}")


@pytest.mark.parametrize("name", ["../outside", "..", ".", "", "eth0/../eth0", "eth0\0", "eth0 "])
def test_a_name_cannot_leave_the_folder(net: Path, name: str) -> None:
    folder(net.parent, "outside", OTHER, index=1)
    assert "no such interface" in refused(f"mac:{name}", net)


def test_a_name_from_ifaddr_cannot_leave_the_folder(net: Path) -> None:
    """An address's label is free text."""
    folder(net.parent, "outside", OTHER, index=1)
    assert "(no MAC)" in refused("mac:../outside", net, adapter("../outside", "10.0.0.5"))


@pytest.mark.parametrize(
    ("mac", "kind", "fault"),
    [
        (LOCAL, 1, f"odd0 ({LOCAL} is locally administered) cannot give the node"),
        ("01:00:5e:00:00:01", 1, "is multicast"),
        ("00:00:00:00:00:00", 1, "no MAC, all zero"),
        *((none, 1, "odd0 (no MAC)") for none in (None, "", "é")),
        *((more, 1, "is not 6 octets") for more in ("0a:00:00:01", f"{GOOD}:00:01")),
        (":".join(["80"] * 20), 1, "is not 6 octets"),
        (GOOD, 772, "odd0 (loopback)"),
    ],
)
def test_a_mac_that_is_not_one_hosts_alone_is_refused(
    net: Path, mac: str | None, kind: int, fault: str
) -> None:
    folder(net, "odd0", mac, index=7, kind=kind)
    line = refused("mac:odd0", net)
    assert fault in line
    assert "use --node random (the default), or give the node itself with --node 0x" in line


def test_this_hosts_loopback_is_refused() -> None:
    assert "lo (loopback) cannot give the node" in refusal(choose, "mac:lo")


@pytest.mark.process
def test_importing_node_does_not_import_ifaddr() -> None:
    """Only a node of an interface costs the 49 ms that ifaddr takes."""
    code = "import sys, uuidd.node as n; n.choose('random'); sys.exit('ifaddr' in sys.modules)"
    assert run(sys.executable, "-c", code, cwd=Path(uuidd.__file__).parents[1]).returncode == 0

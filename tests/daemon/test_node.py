from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from uuid import UUID

import pytest
from ifaddr import IP, Adapter

import uuidd
from tests.tools import in_private_mounts, need
from uuidd.clock import Clock
from uuidd.core.ids.ticks import UNIX_EPOCH
from uuidd.core.timeline.state import Node
from uuidd.libuuid_clock import libuuid_clock_seq, libuuid_mark
from uuidd.node import NodeError, choose
from uuidd.server import events, startup
from uuidd.server.settings import Settings
from uuidd.store import FolderStore

GOOD = "44:88:99:36:57:32"
GOOD_VALUE = 0x448899365732
OTHER = "00:16:3e:00:00:01"
OTHER_VALUE = 0x00163E000001
LOCAL = "02:fc:00:00:00:01"

CLOCK_FILE = b"clock: 1261 tv: 0000001795232089 00833877 adj: 00000000\n"


def folder(net: Path, name: str, mac: str | None, *, index: int | None, kind: int = 1) -> None:
    """Make what Linux shows of an interface in /sys/class/net."""
    (net / name).mkdir(parents=True)
    (net / name / "type").write_text(f"{kind}\n")
    if mac is not None:
        (net / name / "address").write_text(f"{mac}\n")
    if index is not None:
        (net / name / "ifindex").write_text(f"{index}\n")


def adapter(name: str, *addresses: str) -> Adapter:
    """Make what ifaddr gives for an interface: an IPv6 address comes with a flow and a scope."""
    ips = [IP((each, 0, 4) if ":" in each else each, 24, name) for each in addresses]
    return Adapter(name, name, ips)


def lists(*adapters: Adapter) -> Callable[[], Iterable[Adapter]]:
    return lambda: adapters


def no_netlink() -> Iterable[Adapter]:
    raise OSError(97, "Address family not supported by protocol")


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """A host with a loopback, and eth0 with a MAC that can be a node."""
    net = tmp_path / "net"
    folder(net, "lo", "00:00:00:00:00:00", index=1, kind=772)
    folder(net, "eth0", GOOD, index=2)
    return net


def refusal(spec: str, net: Path, *adapters: Adapter) -> str:
    """Return the one line with which *spec* is refused."""
    with pytest.raises(NodeError) as caught:
        choose(spec, net=net, adapters=lists(*adapters))
    line = str(caught.value)
    assert line.isprintable()
    assert line.startswith(f"--node {spec!r}: ")
    return line


def fault_of(net: Path, mac: str | None, *, kind: int = 1) -> str:
    folder(net, "odd0", mac, index=7, kind=kind)
    return refusal("mac:odd0", net)


# random, and a node that is given


def test_random_is_left_to_the_state(net: Path) -> None:
    """No fixed node is chosen for ``random``: the state draws one."""
    assert choose("random", net=net, adapters=lists()) is None


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
    """48 bits may be a number or six octets, with any bit set, and need no interface."""
    assert choose(spec, net=tmp_path / "none", adapters=no_netlink) == Node(value, "given")


def test_more_than_48_bits_are_refused(net: Path) -> None:
    """One bit too many is refused, not cut off."""
    assert "a node has 48 bits" in refusal("0x1000000000000", net)


@pytest.mark.parametrize(
    "spec",
    [
        "",
        " ",
        "0x",
        "0xg1",
        "0x1_0",
        "0x1\n",
        "0x٣",  # a digit of another script, which int() would take
        "-0x1",
        "-1",
        "17",
        "448899365732",
        "44:88:99:36:57",
        "44:88:99:36:57:32:00",
        "44:88-99:36-57:32",
        "4:8:9:3:5:3",
        "eth0",
        "Random",
        "MAC",
        "ip",
        "random:eth0",
        "\udcff",
    ],
)
def test_what_is_no_node_is_refused_with_the_forms_there_are(net: Path, spec: str) -> None:
    """Any other text, with no leniency, is refused, and the line says what would have been one."""
    line = refusal(spec, net, adapter("eth0", "10.0.0.5"))
    assert "not a node; it is one of random, mac, mac:IFACE, ip:ADDR, a number like 0x" in line


# mac


@pytest.mark.parametrize("index", [10, None])
def test_mac_goes_by_the_kernels_index(net: Path, index: int | None) -> None:
    """Index 2 comes before 10, and before an unknown one, whatever the names are."""
    folder(net, "aaa0", OTHER, index=index)
    assert choose("mac", net=net, adapters=lists()) == Node(GOOD_VALUE, "mac eth0")


def test_mac_goes_by_name_without_an_index(tmp_path: Path) -> None:
    """Interfaces whose index cannot be read are sorted by name."""
    for name, mac in (("c0", OTHER), ("b0", GOOD), ("d0", OTHER)):
        folder(tmp_path, name, mac, index=None)
    assert choose("mac", net=tmp_path, adapters=lists()) == Node(GOOD_VALUE, "mac b0")


def test_mac_with_no_usable_interface_tells_why_of_each(tmp_path: Path) -> None:
    """Every interface is listed with what is wrong with it, and the way out."""
    folder(tmp_path, "lo", "00:00:00:00:00:00", index=1, kind=772)
    folder(tmp_path, "eth0", LOCAL, index=2)
    line = refusal("mac", tmp_path)
    assert f"lo (loopback), eth0 ({LOCAL} is locally administered); use --node random" in line
    assert "there are: none;" in refusal("mac", tmp_path / "none")


def test_mac_needs_no_netlink(net: Path) -> None:
    """Where a sandbox hides the addresses, the folder alone has the MACs."""
    assert choose("mac", net=net, adapters=no_netlink) == Node(GOOD_VALUE, "mac eth0")


def test_a_plain_file_among_the_interfaces_is_none(net: Path) -> None:
    """The bonding driver's file in /sys/class/net is not shown as an interface."""
    (net / "bonding_masters").write_text("bond0\n")
    assert "bonding_masters" not in refusal("mac:no0", net)


# mac:IFACE


def test_mac_of_a_named_interface(net: Path) -> None:
    """The named interface is taken, though another comes first."""
    folder(net, "eth1", OTHER, index=3)
    assert choose("mac:eth1", net=net, adapters=lists()) == Node(OTHER_VALUE, "mac eth1")


def test_an_unknown_interface_is_answered_with_those_there_are(net: Path) -> None:
    """The list says of each whether it has a usable MAC, also of those only ifaddr knows."""
    line = refusal("mac:eth7", net, adapter("eth0", "10.0.0.5"), adapter("tun0", "10.1.0.1"))
    assert "no such interface" in line
    assert line.endswith(f"there are: lo (loopback), eth0 ({GOOD}, usable), tun0 (no MAC)")


@pytest.mark.parametrize("name", ["../outside", "..", ".", "", "eth0/../eth0", "eth0\0", "eth0 "])
def test_a_name_cannot_leave_the_folder(net: Path, name: str) -> None:
    """Only names that exist are looked up, so a path is an unknown interface."""
    folder(net.parent, "outside", OTHER, index=1)
    assert "no such interface" in refusal(f"mac:{name}", net)


def test_a_name_from_ifaddr_cannot_leave_the_folder(net: Path) -> None:
    """An address's label is free text; it too is never made part of a path."""
    folder(net.parent, "outside", OTHER, index=1)
    assert "(no MAC)" in refusal("mac:../outside", net, adapter("../outside", "10.0.0.5"))


def test_a_locally_administered_mac_is_refused(net: Path) -> None:
    """A MAC made up by software may be another host's too."""
    line = fault_of(net, LOCAL)
    assert f"odd0 ({LOCAL} is locally administered) cannot give the node" in line
    assert "use --node random (the default), or give the node itself with --node 0x" in line


@pytest.mark.parametrize(
    ("mac", "kind", "fault"),
    [
        ("01:00:5e:00:00:01", 1, "is multicast"),
        ("00:00:00:00:00:00", 1, "no MAC, all zero"),
        (None, 1, "odd0 (no MAC)"),
        ("", 1, "odd0 (no MAC)"),
        ("é", 1, "odd0 (no MAC)"),
        ("0a:00:00:01", 1, "is not 6 octets"),
        (f"{GOOD}:00:01", 1, "is not 6 octets"),
        (":".join(["80"] * 20), 1, "is not 6 octets"),
        (GOOD, 772, "odd0 (loopback)"),
    ],
)
def test_a_mac_that_is_not_one_hosts_alone_is_refused(
    net: Path, mac: str | None, kind: int, fault: str
) -> None:
    """A group's, none, a tunnel's IP address, InfiniBand's 20 octets, a loopback's."""
    assert fault in fault_of(net, mac, kind=kind)


def test_lo_is_a_loopback_whatever_its_type(tmp_path: Path) -> None:
    """The name lo is refused also where the type cannot be read."""
    folder(tmp_path, "lo", GOOD, index=1)
    assert "lo (loopback)" in refusal("mac:lo", tmp_path)


def test_an_unprintable_name_is_escaped(net: Path) -> None:
    """The kernel allows control characters in a name; a source and a list are plain text."""
    folder(net, "e\x1b0", OTHER, index=3)
    assert r"e\x1b0 (" in refusal("mac:no0", net)
    assert choose("mac:e\x1b0", net=net, adapters=lists()) == Node(OTHER_VALUE, r"mac e\x1b0")


# ip:ADDR


def test_ip_takes_the_interface_that_has_it(net: Path) -> None:
    """An IPv4 address stands for its interface, which the source names."""
    folder(net, "eth1", OTHER, index=3)
    hosts = lists(adapter("eth0", "10.0.0.4"), adapter("eth1", "10.0.0.5", "10.0.0.6"))
    assert choose("ip:10.0.0.5", net=net, adapters=hosts) == Node(OTHER_VALUE, "ip 10.0.0.5 eth1")


@pytest.mark.parametrize(
    "text", ["fe80::5", "FE80:0:0:0::5", "fe80:0000:0000:0000:0000:0000:0000:0005", "fe80::5%eth0"]
)
def test_an_ipv6_address_has_many_spellings(net: Path, text: str) -> None:
    """Spellings of one IPv6 address are equal, with or without a scope; the source has one."""
    hosts = lists(adapter("eth0", "10.0.0.5", "fe80:0::0:5"))
    assert choose(f"ip:{text}", net=net, adapters=hosts) == Node(GOOD_VALUE, "ip fe80::5 eth0")


def test_an_address_under_a_label_is_the_interfaces(net: Path) -> None:
    """An alias ``eth0:1`` is an adapter of its own to ifaddr; its MAC is eth0's."""
    hosts = lists(adapter("eth0", "10.0.0.4"), adapter("eth0:1", "10.0.0.5"))
    assert choose("ip:10.0.0.5", net=net, adapters=hosts) == Node(GOOD_VALUE, "ip 10.0.0.5 eth0")


def test_an_address_on_two_interfaces_takes_the_usable_one(net: Path) -> None:
    """A link-local address may be on several; one whose MAC cannot be a node is passed over."""
    folder(net, "aaa0", LOCAL, index=1)
    hosts = lists(adapter("aaa0", "fe80::5"), adapter("eth0", "fe80::5"))
    assert choose("ip:fe80::5", net=net, adapters=hosts) == Node(GOOD_VALUE, "ip fe80::5 eth0")


def test_an_address_that_no_interface_has_is_answered_with_those_there_are(net: Path) -> None:
    """The addresses of the host are listed with their interfaces."""
    line = refusal("ip:10.0.0.9", net, adapter("lo", "127.0.0.1"), adapter("eth0", "fd00::5"))
    assert line.endswith("there are: 127.0.0.1 (lo), fd00::5 (eth0)")
    assert refusal("ip:10.0.0.9", net).endswith("there are: none")


def test_an_address_on_an_interface_that_sys_does_not_show_is_refused(net: Path) -> None:
    """Where /sys is another namespace's, the interface is known but its MAC is not."""
    assert "tun0 (no MAC)" in refusal("ip:10.1.0.1", net, adapter("tun0", "10.1.0.1"))


@pytest.mark.parametrize(
    "text",
    ["", "x", "10.0.0", "10.0.0.05", "10.0.0.5/24", "10.0.0.5%eth0", "[fd00::5]", "167772165"],
)
def test_what_is_no_address_is_refused(net: Path, text: str) -> None:
    """A number, a network or half an address is no address."""
    assert "one IPv4 or IPv6 address" in refusal(f"ip:{text}", net, adapter("eth0", "10.0.0.5"))


def test_addresses_that_cannot_be_listed_are_an_error_with_a_way_out(net: Path) -> None:
    """Without netlink no address can be found, and the line says why and what else to do."""
    with pytest.raises(NodeError, match=r"Address family not supported.*mac:IFACE"):
        choose("ip:10.0.0.5", net=net, adapters=no_netlink)


# The real thing


def test_this_hosts_loopback_address_is_refused() -> None:
    """The real ifaddr and the real /sys know 127.0.0.1 for the loopback's."""
    with pytest.raises(NodeError, match=r"lo \(loopback\) cannot give the node"):
        choose("ip:127.0.0.1")


@pytest.mark.process
def test_importing_node_does_not_import_ifaddr() -> None:
    """Only those who ask for an interface pay the 49 ms that ifaddr costs."""
    code = "import sys, uuidd.node as n; n.choose('random'); sys.exit('ifaddr' in sys.modules)"
    root = Path(uuidd.__file__).parents[1]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


# libuuid's clock file


def clock_file(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "clock.txt"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "clock_seq"),
    [
        (CLOCK_FILE, 0x1261),
        (b"clock: 3fff tv: 1795232089 8 adj: 0\n", 0x3FFF),
        (b"clock: 0000 tv: 1795232089 8 adj: -3", 0),
        (CLOCK_FILE + b"left over from a longer one\n", 0x1261),
    ],
)
def test_the_clock_sequence_is_read(tmp_path: Path, content: bytes, clock_seq: int) -> None:
    """The first is a file as libuuid 2.38.1 wrote it; the numbers may be padded or not."""
    assert libuuid_clock_seq(clock_file(tmp_path, content)) == clock_seq


def test_the_variant_is_masked_off(tmp_path: Path) -> None:
    """A clock sequence has 14 bits, whatever stands above them in the file."""
    path = clock_file(tmp_path, CLOCK_FILE.replace(b"1261", b"D261"))
    assert libuuid_clock_seq(path) == 0x1261


@pytest.mark.parametrize(
    "content",
    [
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
    ],
)
def test_a_file_of_another_form_has_no_clock_sequence(tmp_path: Path, content: bytes) -> None:
    """An empty, torn or foreign file is None, not a guess."""
    assert libuuid_clock_seq(clock_file(tmp_path, content)) is None


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
    """A FIFO that holds a well-formed line is no clock file, and keeps the line."""
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
    """The file is closed again, whether it was a clock file or not."""
    path = clock_file(tmp_path, CLOCK_FILE)
    before = set(os.listdir("/proc/self/fd"))
    libuuid_clock_seq(path)
    libuuid_clock_seq(tmp_path)
    assert set(os.listdir("/proc/self/fd")) == before


# libuuid's mark

CLOCK_MARK = UNIX_EPOCH + 1795232089 * 10**7 + 833877 * 10 + 1
CONT_FILE = b"cont: 00017952320898338770                   \n"
"""As libuuid 2.41 writes it: 20 digits, and blanks over a longer one."""


@pytest.mark.parametrize(
    ("content", "mark"),
    [
        (CLOCK_FILE, CLOCK_MARK),
        (CLOCK_FILE.replace(b"adj: 00000000", b"adj: 00000009"), CLOCK_MARK + 9),
        (b"clock: 3fff tv: 1795232089 833877 adj: -3", CLOCK_MARK - 3),
        (CONT_FILE, UNIX_EPOCH + 17952320898338770),
        (b"cont: 17952320898338770", UNIX_EPOCH + 17952320898338770),
        (b"cont: 0\n", UNIX_EPOCH),
    ],
)
def test_libuuids_mark_is_read(tmp_path: Path, content: bytes, mark: int) -> None:
    """It is the tick after the last one used, or the first one that is not reserved."""
    assert libuuid_mark(clock_file(tmp_path, content)) == mark


@pytest.mark.parametrize(
    ("content", "mark"),
    [
        (b"cont: " + b"9" * 4000, (1 << 60) - 1),
        (b"clock: 3fff tv: " + b"9" * 4000 + b" 0 adj: 0\n", (1 << 60) - 1),
        (b"clock: 3fff tv: -" + b"9" * 4000 + b" 0 adj: 0\n", 0),
    ],
)
def test_a_mark_beyond_all_ticks_is_the_last_tick(
    tmp_path: Path, content: bytes, mark: int
) -> None:
    """However many digits stand there, it is a tick."""
    assert libuuid_mark(clock_file(tmp_path, content)) == mark


@pytest.mark.parametrize(
    "content",
    [b"", b"cont: ", b"cont: -5\n", b"cont: 12x\n", b" " + CONT_FILE, CLOCK_FILE[:20], b"\0" * 56],
)
def test_a_file_of_another_form_has_no_mark(tmp_path: Path, content: bytes) -> None:
    """An empty, torn or foreign file is None, not a guess."""
    assert libuuid_mark(clock_file(tmp_path, content)) is None


def test_a_file_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    """There is no file, or a folder, or a NUL in the path: no error."""
    for path in (tmp_path / "none", tmp_path, Path("clock\0.txt")):
        assert libuuid_mark(path) is libuuid_clock_seq(path) is None


@pytest.mark.process
def test_libuuids_own_file_has_a_mark_past_its_last_uuid() -> None:
    """What ``uuidgen -t`` gives without a daemon lies before the mark that it leaves."""
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
    """Each mark comes with its file, as ticks past now; a file that is not there has none."""
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
    """Whichever file has the later one, unless it lies more than a day ahead of now."""
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
    """The file, how far its mark lies from now, and whether the mark counts."""
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
mark = unix + 4 * 10**7
(folder / "clock-cont.txt").write_text(f"cont: {mark:020d}\\n")
with Daemon("--node=0x448899365732") as daemon, daemon.connect() as line:
    print(*[said for said in daemon.lines if "what libuuid has used" in said], sep="\\n")
    nodes, block = [], {}
    while block.get("node") != bytes.fromhex("448899365732"):
        block = line.call("take", "utc", 1000)
        nodes.append(block["node"])
    print(len(set(nodes)), block["first"] - 0x01B21DD213814000 >= mark, block["clock_seq"] >> 4)
"""


@pytest.mark.system
def test_a_daemon_repeats_nothing_of_libuuids() -> None:
    """What util-linux reserved ahead of now is waited for; then half the ring away it begins."""
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
    assert last == f"2 True {(0x1261 >> 4) + 512}"

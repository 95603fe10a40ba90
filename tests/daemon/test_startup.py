"""What a start makes of the state, of libuuid's files, and of what the host tells."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import uuidd
from tests.daemon.test_checking import NoWatches
from tests.daemon.test_libuuid_clock import CLOCK_FILE, CLOCK_MARK
from tests.daemon.test_statefile import STATE, kept
from tests.rig import Daemon
from tests.tools import in_private_mounts, output, refusal
from uuidd import cli
from uuidd.clock import Clock
from uuidd.core.ids.snowflake import of_place, places
from uuidd.core.ids.ticks import TICKS_PER_MS, TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.core.timeline.page import HORIZON_AT, MAGIC_AT, PAGE_MAGIC
from uuidd.core.timeline.state import Node
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.privileges import User
from uuidd.refused import Refused
from uuidd.server import events, startup
from uuidd.server.page import Page, PageError
from uuidd.server.reset import reset_steady
from uuidd.server.settings import Settings
from uuidd.server.trust import Quality
from uuidd.statefile import encode, machine_hash
from uuidd.store import FolderStore

FIXED = Node(0x123456789ABC, "given")

DAY = 24 * 3600 * TICKS_PER_SECOND
YEAR = 365 * DAY


def begin(
    folder: Path,
    node: Node | None = None,
    *,
    page: Page | None = None,
    product: str = "",
    utc: int | None = None,
    machine: str = "here",
    **chosen: Any,
) -> tuple[Timelines, Reading]:
    """Start the timelines in *folder*, at the nanosecond *utc* or now."""
    clock = Clock() if utc is None else Clock(utc=lambda: utc)
    settings = Settings(None, folder, **chosen)
    with contextlib.closing(FolderStore(folder, machine=machine)) as store:
        return startup.begin_timelines(settings, node, store, clock, page, product)


def keep(folder: Path, **changed: Any) -> None:
    """Leave a state with some *changed* fields, as the last run."""
    (folder / "state").write_bytes(encode(replace(STATE, **changed)))


def test_a_start_without_a_package_of_the_daemons_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ifaddr", None)
    words = ["-F", "-P", f"--socket={tmp_path}/s", f"--state={tmp_path}", "--node=mac"]
    assert cli.main(words) == 1
    assert capsys.readouterr().err == (
        f"uuidd: this command needs the package ifaddr; run {sys.prefix}/bin/pip install uuidd\n"
    )


@pytest.fixture
def signals() -> Iterator[None]:
    """A start blocks the signals that the daemon handles; the tests go on with them."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def test_the_first_horizon_is_saved_before_the_daemon_serves(tmp_path: Path) -> None:
    """So a crash right after the first id repeats none."""
    _, at = begin(tmp_path)
    state = kept(tmp_path)
    assert state.marks[state.generation] > at.now
    assert state.steady > at.now


def test_a_start_far_ahead_adds_nothing_to_its_lead_until_a_reset(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ahead = Clock().now() + YEAR
    keep(tmp_path, steady=ahead, machine=machine_hash())
    for _ in range(2):
        timelines, at = begin(tmp_path, machine=machine_hash())
        assert kept(tmp_path).steady == timelines.steady.next == ahead
        events.steady_at_start(timelines.steady, at)
    line = caplog.messages[-1]
    assert "are 3153" in line
    assert line.endswith(" s ahead of UTC (--max-lead 3600, --rollback slew)")
    reset_steady(tmp_path)
    timelines, at = begin(tmp_path, machine=machine_hash())
    assert timelines.steady.lead(now=at.now, elapsed=at.elapsed) < TICKS_PER_SECOND


@pytest.mark.parametrize("found", [b"junk", None], ids=["damaged", "gone"])
def test_after_a_lost_state_steady_is_held_back(
    tmp_path: Path, found: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    begin(tmp_path)
    (tmp_path / "state").unlink()
    if found is not None:
        (tmp_path / "state").write_bytes(found)
    timelines, at = begin(tmp_path)
    events.steady_at_start(timelines.steady, at)
    assert caplog.messages[-1] == (
        "the state was lost, so v7, Snowflakes and the other steady kinds begin in 20 s"
    )


SOON = 7 * TICKS_PER_SECOND


@pytest.mark.parametrize(
    ("lost", "node", "leases", "seconds"),
    [
        (False, None, None, 0),
        # The folder of an earlier state with this node may be gone, while programs hold leases.
        (False, FIXED, None, 20),
        # Holders of the last run may have used all before it.
        (False, None, SOON, 7),
        # No horizon that holders saw was further ahead.
        (True, None, None, 20),
    ],
    ids=["first", "first with a fixed node", "with a mark of leases", "after a lost state"],
)
def test_for_how_long_a_start_leases_nothing(
    tmp_path: Path, lost: bool, node: Node | None, leases: int | None, seconds: int
) -> None:
    if lost:
        (tmp_path / "state").write_bytes(b"junk")
    utc = time.time_ns()
    if leases is not None:
        keep(tmp_path, leases=UNIX_EPOCH + utc // 100 + leases)
    timelines, at = begin(tmp_path, node, utc=utc)
    held_for = (timelines.utc.leases.floor - at.now) / TICKS_PER_SECOND
    assert max(0.0, held_for) == seconds


def test_a_start_marks_the_page(tmp_path: Path) -> None:
    with contextlib.closing(Page()) as page:
        begin(tmp_path, page=page)
        assert (page.words[MAGIC_AT], page.words[HORIZON_AT]) == (PAGE_MAGIC, 0)


@pytest.mark.usefixtures("signals")
def test_the_end_of_a_daemon_closes_the_page(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a process that starts one daemon after the other keeps none of their descriptors."""
    page = Page()
    monkeypatch.setattr(startup, "Page", lambda: page)
    with startup.started(Settings(place / "s", place)):
        os.fstat(page.fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(page.fd)


@pytest.mark.usefixtures("signals")
def test_a_refused_start_leaves_no_signal_blocked(tmp_path: Path) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with pytest.raises(Refused), startup.started(Settings(tmp_path / "none" / "s", tmp_path)):
        pass
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


@pytest.mark.usefixtures("signals", "as_root")
def test_the_user_that_root_becomes_must_have_watches_left_too(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel counts them by user."""
    monkeypatch.setattr(
        startup, "become", lambda _: monkeypatch.setattr(select, "epoll", NoWatches)
    )
    (place / "state").mkdir(0o700)
    settings = Settings(place / "s", place / "state", user=User("nobody", 65534, 65534))
    told = pytest.raises(Refused, match="the kernel watches no more descriptors for this user")
    with told, startup.started(settings):
        pass


@pytest.mark.usefixtures("signals")
def test_a_start_without_a_page_says_so_and_goes_on(
    place: Path, monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture
) -> None:
    no_page = partial(Page, pointer_bytes=4)
    with pytest.raises(PageError):
        no_page()
    monkeypatch.setattr(startup, "Page", no_page)
    with startup.started(Settings(place / "s", place)):
        pass
    assert [said for said in log.messages if "lease" in said] == [
        "no leases, so all clients use blocks: a machine of 32 bits does not write 64 bits at once"
    ]


@pytest.mark.parametrize("started", [True, False])
def test_only_a_daemon_that_has_started_leaves_a_witness(tmp_path: Path, started: bool) -> None:
    socket = f"{tmp_path}/s"
    with contextlib.ExitStack() as forget:
        assert startup.earlier_run(socket, forget) == ""
        if started:
            forget.pop_all()
    found = [path.name for path in tmp_path.iterdir()]
    assert found == (["s.used"] if started else [])
    told = startup.earlier_run(socket, contextlib.ExitStack())
    assert told == (f"{socket}.used shows that ids were made here before" if started else "")


@pytest.mark.parametrize(
    ("socket", "told"),
    [
        ("/nowhere/s", "/nowhere/s.used cannot be made, to show that no ids were made before: No "),
        (b"\0uuidd", "a socket without a path cannot show that no ids were made here before"),
        ("", "a socket without a path cannot show that no ids were made here before"),
    ],
)
def test_where_no_witness_can_be_ids_may_have_been_made(socket: str | bytes, told: str) -> None:
    """So a start without a state waits as if it was lost."""
    assert startup.earlier_run(socket, contextlib.ExitStack()).startswith(told)


@pytest.mark.process
@pytest.mark.parametrize(
    ("option", "left"),
    [("--worker=5", True), ("--node=0x448899365732", True), ("--epoch=0", False)],
)
def test_a_daemon_whose_ids_may_repeat_without_its_state_leaves_a_witness(
    option: str, left: bool
) -> None:
    """Snowflakes hold a number that was set by hand, and Flakes a node; other ids are random."""
    with Daemon(option) as daemon:
        assert daemon.stop() == 0
        assert Path(f"{daemon.socket}.used").exists() == left


EPOCH = 1_420_070_400_000
LATER = EPOCH + 1000


@pytest.mark.parametrize(
    ("starts", "epochs"),
    [
        ([(5, EPOCH)], {5: EPOCH}),
        ([(5, EPOCH), (5, EPOCH)], {5: EPOCH}),
        # Its Snowflakes are higher than those so far; the way back is one to a later epoch.
        ([(5, LATER), (5, EPOCH)], {5: EPOCH}),
        ([(5, EPOCH), (6, LATER)], {5: EPOCH, 6: LATER}),
        # No Snowflake is made with it.
        ([(5, EPOCH), (None, LATER)], {5: EPOCH}),
        ([(None, LATER)], {}),
    ],
    ids=["first", "the same", "earlier", "of another number", "without a number", "never a number"],
)
def test_the_first_save_has_the_earliest_epoch_of_each_number(
    tmp_path: Path, starts: list[tuple[int | None, int]], epochs: dict[int, int]
) -> None:
    for worker, epoch in starts:
        begin(tmp_path, worker=worker, epoch=epoch)
    assert kept(tmp_path).epochs == epochs


def test_a_start_with_a_later_epoch_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    begin(tmp_path, worker=5, epoch=EPOCH)
    begin(tmp_path, worker=6, epoch=LATER)
    before = (tmp_path / "state").read_bytes()
    assert refusal(begin, tmp_path, worker=5, epoch=LATER) == (
        "--epoch 1420070401000 (2015-01-01T00:00:01.000Z): Snowflakes of worker number 5 were made"
        " with 1420070400000 (2015-01-01T00:00:00.000Z), and a later epoch repeats those of the"
        " past, for 0:00:01; keep --epoch 1420070400000, name a --worker that was never used, or"
        " accept repeats with uuidd --reset-epoch"
    )
    assert (tmp_path / "state").read_bytes() == before


@pytest.mark.parametrize("synchronised", [False, True])
def test_a_clock_before_the_epoch_is_a_reason_only_if_it_is_trusted(synchronised: bool) -> None:
    """v1 and v4 are served on a host that starts in 1970, until a time daemon has set its clock."""
    settings = Settings(None, Path("/none"), worker=5, require_sync=0.5)
    refused = pytest.raises(Refused, match="and it is 1970-01-01T00:00:00")
    with refused if synchronised else contextlib.nullcontext():
        startup.check_epoch(settings, UNIX_EPOCH, lambda: Quality(synchronised, 0.1))


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 8), st.integers(0, 3), st.integers(1, 20_000)),
        max_size=30,
    )
)
def test_no_snowflake_comes_twice_whatever_epochs_are_asked_for(
    starts: list[tuple[int, int, int, int]],
) -> None:
    """Each start has a number, an epoch, time that passed, and ticks that it gives out."""
    state, tick = replace(STATE, epochs={}), UNIX_EPOCH + 1_000_000 * TICKS_PER_MS
    made: set[int] = set()
    for machine, epoch, gone, count in starts:
        settings = Settings(None, Path("/none"), worker=machine, epoch=epoch)
        try:
            state = replace(state, epochs=startup.epochs_with(settings, state))
        except Refused:
            continue
        tick += gone * TICKS_PER_MS
        first, end = places(tick, count)
        tick += count
        # The ends tell of all between, and every thousandth is looked at besides.
        for place in {*range(first, end, 1000), end - 1} if end > first else ():
            value = of_place(place, machine, epoch=epoch)
            assert value not in made
            made.add(value)


@pytest.mark.parametrize(
    ("products", "changes"),
    [
        (["here", "there", "there"], [True, False]),
        # The user of a start may not be allowed to read it. The next start compares with the last
        # that was.
        (["here", "", "there"], [False, True]),
        (["", "here"], [False]),
    ],
)
def test_a_state_of_another_machine_gets_another_node(
    tmp_path: Path, products: list[str], changes: list[bool]
) -> None:
    states = []
    for product in products:
        begin(tmp_path, product=product)
        states.append(kept(tmp_path))
    assert [one.node != other.node for one, other in pairwise(states)] == changes
    assert not list(tmp_path.glob("state.unusable-*"))
    assert states[-1].product == products[-1]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    clock, cont = tmp_path / "clock.txt", tmp_path / "clock-cont.txt"
    monkeypatch.setattr(startup, "LIBUUID_CLOCK", clock)
    monkeypatch.setattr(startup, "LIBUUID_CONT", cont)
    return clock, cont


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
    timelines, _ = begin(tmp_path, FIXED, utc=(now - UNIX_EPOCH) * 100)
    assert kept(tmp_path).floor == now + floor
    assert timelines.utc.node.fixed


IMPORTING = """
import time
from pathlib import Path
from tests.rig import Daemon

unix = time.time_ns() // 100
folder = Path("/var/lib/libuuid")
(folder / "clock.txt").write_text(f"clock: 1261 tv: {unix // 10**7:016d} 00000000 adj: 00000000\\n")
mark = unix + 5 * 10**7
(folder / "clock-cont.txt").write_text(f"cont: {mark:020d}\\n")
with Daemon("--node=0x448899365732") as daemon, daemon.connect() as line:
    print(*[said for said in daemon.lines if "what libuuid has used" in said], sep="\\n")
    block = {}
    while block.get("node") != bytes.fromhex("448899365732"):
        block = line.call("take", "utc", 1000)
    print(block["first"] - 0x01B21DD213814000 >= mark, block["clock_seq"] >> 8)
"""


@pytest.mark.system
def test_a_daemon_repeats_nothing_of_libuuids() -> None:
    command = in_private_mounts(sys.executable, "-c", IMPORTING)
    clock, cont, last = output(*command, cwd=Path(uuidd.__file__).parents[1]).splitlines()
    assert clock.startswith(
        "uuidd: INFO: beginning after what libuuid has used: file=/var/lib/libuuid/clock.txt"
    )
    assert "file=/var/lib/libuuid/clock-cont.txt, " in cont
    assert last == f"True {(0x1261 >> 8) + 32}"


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_during_the_start_leaves_nothing_behind(
    tmp_path: Path, number: signal.Signals
) -> None:
    script = """
import os, select, sys
from uuidd.cli import main

def pause(*_):
    # After the socket and the pid file were made, and before the state is saved.
    select.select = lambda *_: ([], [], [])
    os.kill(os.getpid(), int(sys.argv[1]))

select.select = pause
sys.exit(main(sys.argv[2:]))
"""
    (tmp_path / "state").mkdir()
    paths = [f"--socket={tmp_path}/s", f"--pid={tmp_path}/pid", f"--state={tmp_path}/state"]
    words = [sys.executable, "-c", script, str(int(number)), "-F", *paths]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, "stopped: state saved" in done.stderr) == (0, True), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["state"]

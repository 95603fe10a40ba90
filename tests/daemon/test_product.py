"""The product UUID, and what a start does on another machine than the one that saved the state."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from tests.daemon.test_statefile import CLAIM
from tests.rig import Daemon
from uuidd.clock import Clock
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.fence import Shared
from uuidd.core.timeline.state import Node, State
from uuidd.fleet.fences import begin_fence
from uuidd.product import product_hash
from uuidd.server import events
from uuidd.server.settings import Settings
from uuidd.server.startup import begin_timelines
from uuidd.statefile import decode, encode
from uuidd.store import FolderStore

HERE = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
THERE = "0e6cd2a9-4f86-4d49-9a0c-2a5c1a4b6f11"
STATE = State(Node(0x9F6BDECED846, "random"), "", 3, {3: 5}, 0, 7, worker=CLAIM, product="here")


def hash_of(path: Path, content: str | bytes) -> str:
    """Return the hash of what a file with this content tells."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return product_hash([path])


@pytest.mark.parametrize("content", [f"{HERE}\n", HERE.upper(), f"{HERE}\0", f" {HERE} \n"])
def test_a_product_uuid_has_one_hash_however_it_is_written(tmp_path: Path, content: str) -> None:
    """SMBIOS ends it with a newline, a device tree with a zero byte."""
    path = tmp_path / "uuid"
    assert hash_of(path, content) == hash_of(path, HERE) != hash_of(path, THERE)


def test_the_hash_hides_the_product_uuid(tmp_path: Path) -> None:
    """All users can read the state, and only root the UUID."""
    found = hash_of(tmp_path / "uuid", HERE)
    assert len(found) == 64
    assert HERE.replace("-", "") not in found


def test_a_firmware_that_turns_its_first_fields_round_is_no_other_machine(tmp_path: Path) -> None:
    """SMBIOS 2.6 settled their order, so an update of the firmware may change it."""
    path = tmp_path / "uuid"
    assert hash_of(path, HERE) == hash_of(path, "10b8a76b-ad9d-d111-80b4-00c04fd430c8")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "unknown",
        "<denied>\n",
        b"\xff\xfe",
        "Not Settable\n",
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "fefefefe-fefe-fefe-fefe-fefefefefefe",
        "03000200-0400-0500-0006-000700080009",
        "00020003-0004-0005-0006-000700080009",
        "12345678-1234-5678-90ab-cddeefaabbcc",
        HERE * 100,
    ],
)
def test_what_tells_no_machine_from_another_counts_as_none(
    tmp_path: Path, content: str | bytes
) -> None:
    """A board may have no UUID, or one that its vendor gives to all."""
    assert hash_of(tmp_path / "uuid", content) == ""


def test_the_first_place_that_tells_one_counts(tmp_path: Path) -> None:
    """A place that cannot be read, or has none, is passed over."""
    places = [tmp_path / name for name in ("gone", "none", "first", "second")]
    for path, content in zip(places[1:], ("unknown", HERE, THERE), strict=True):
        path.write_text(content)
    assert product_hash(places) == product_hash(places[2:3]) != ""
    assert product_hash(places[:2]) == ""


def test_the_credential_of_the_service_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only root can read the file of SMBIOS, so systemd passes it."""
    path = tmp_path / "product-uuid"
    path.write_text(HERE)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert product_hash() == product_hash([path])


@pytest.mark.parametrize(("before", "after"), [("", "here"), ("here", ""), ("", "")])
def test_a_product_that_is_not_known_is_no_other(before: str, after: str) -> None:
    """The user of a start may not be allowed to read it, and earlier formats had none."""
    state = replace(STATE, product=before)
    assert not state.copied_to(after)
    assert state.copied_to("there") == bool(before)


def test_the_claim_of_another_machine_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    """That machine may still make Snowflakes with it."""
    assert begin_fence(STATE, None, in_fleet=True, product="there").kept is None
    assert caplog.messages == [
        "the claim to worker number 17 was another machine's, so another number is claimed"
    ]


@pytest.mark.parametrize(
    ("kept", "product", "had"), [(5, "here", 5), (5, "there", None), (Shared(5), "here", None)]
)
def test_a_fleet_goes_on_with_what_the_state_has_of_a_number_set_by_hand(
    kept: int | Shared, product: str, had: int | None
) -> None:
    """That of a copied disk is the original's, and one that a clone has too stays in the state."""
    fence = begin_fence(replace(STATE, worker=kept), None, in_fleet=True, product=product)
    assert (fence.had, fence.kept) == (had, had or (kept if isinstance(kept, Shared) else None))


@pytest.mark.parametrize(
    ("worker", "product", "lines"), [(5, "there", 1), (6, "there", 0), (5, "here", 0), (5, "", 0)]
)
def test_a_number_set_by_hand_is_used_and_the_log_warns(
    caplog: pytest.LogCaptureFixture, worker: int, product: str, lines: int
) -> None:
    """It was set for this start; whether the other machine still runs cannot be known."""
    caplog.set_level(logging.WARNING)
    fence = begin_fence(replace(STATE, worker=5), worker, in_fleet=False, product=product)
    assert fence.number == worker
    assert [
        "the machine that saved the state has worker number 5 too; if it still runs, start uuidd"
        " here with another --worker, or Snowflakes repeat"
    ] * lines == caplog.messages


# --- a start


def start(folder: Path, product: str, node: Node | None = None) -> State:
    """Start on the machine with this *product*; return the state that is kept."""
    with contextlib.closing(FolderStore(folder, machine="here")) as store:
        timelines, *_ = begin_timelines(
            Settings(None, folder), node, store, Clock(), product=product
        )
    events.openings(timelines.utc)
    return decode((folder / "state").read_bytes())


def test_a_copied_state_gets_another_node(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The machine-id is the same, and the log says which rule has told the two apart."""
    before, after = start(tmp_path, "here"), start(tmp_path, "there")
    assert after.node != before.node
    assert after.generation != before.generation
    [line] = [said for said in caplog.messages if "another machine saved the state" in said]
    assert line == (
        "another machine saved the state: the machine-id is the same, and the product UUID differs;"
        " the clock sequence was changed, and so was the node unless it is fixed:"
        f" clock_seq={after.generation << 8} node=0x{after.node.value:012x}"
    )
    # From here on it is this machine's.
    assert start(tmp_path, "there").node == after.node
    assert len([said for said in caplog.messages if "another machine saved the state" in said]) == 1


def test_a_copied_state_gets_another_generation_of_a_fixed_node(tmp_path: Path) -> None:
    node = Node(0x9F6BDECED846, "given")
    before, after = start(tmp_path, "here", node), start(tmp_path, "there", node)
    assert after.node == before.node
    assert (after.generation - before.generation) % 64 not in (0, 1)


def test_steady_stays_ahead_of_the_mark_of_a_copied_state(tmp_path: Path) -> None:
    """Unlike that of another host, whose state is set aside: nothing is held, nor goes back."""
    state = start(tmp_path, "here")
    ahead = state.steady + 100 * TICKS_PER_SECOND
    (tmp_path / "state").write_bytes(encode(replace(state, steady=ahead)))
    after = start(tmp_path, "there")
    assert after.steady >= ahead
    assert after.marks.items() >= state.marks.items()
    assert not list(tmp_path.glob("state.unusable-*"))


def test_a_start_that_may_not_read_it_keeps_the_node_and_what_is_stored(tmp_path: Path) -> None:
    """The next one that may compares with what the last one saw."""
    before = start(tmp_path, "here")
    assert start(tmp_path, "").node == before.node
    assert start(tmp_path, "there").node != before.node


def test_a_first_start_that_may_read_it_keeps_the_node(tmp_path: Path) -> None:
    before = start(tmp_path, "")
    after = start(tmp_path, "here")
    assert (after.node, after.product) == (before.node, "here")


@pytest.mark.process
def test_a_daemon_compares_the_credential_that_systemd_passes(tmp_path: Path) -> None:
    credential = tmp_path / "product-uuid"
    credential.write_text(f"{HERE}\n")
    with Daemon(environment={"CREDENTIALS_DIRECTORY": str(tmp_path)}) as daemon:
        before = daemon.call("take", "utc", 1)
        daemon.stop()
        assert decode((daemon.state / "state").read_bytes()).product == product_hash([credential])
        credential.write_text(THERE)
        daemon.start()
        assert daemon.call("take", "utc", 1)["node"] != before["node"]


# --- a number that a clone has too


def test_a_restart_refuses_the_number_that_a_clone_has_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A crash must not bring it back. The log says what to do, and the state keeps it."""
    fence = begin_fence(replace(STATE, worker=Shared(5)), 5, in_fleet=False)
    assert (fence.number, fence.kept) == (None, Shared(5))
    assert caplog.messages == [f"Snowflakes are refused: {fence.why}"]
    assert "start uuidd with another --worker, or with --after-clone go-on" in fence.why


@pytest.mark.parametrize(
    ("worker", "go_on", "kept", "lines"),
    [(6, False, 6, 0), (5, True, 5, 1), (None, False, Shared(5), 0), (None, True, Shared(5), 0)],
)
def test_another_number_or_the_administrators_word_ends_that(
    caplog: pytest.LogCaptureFixture,
    worker: int | None,
    go_on: bool,
    kept: int | Shared,
    lines: int,
) -> None:
    state = replace(STATE, worker=Shared(5))
    fence = begin_fence(state, worker, in_fleet=False, go_on_after_clone=go_on)
    assert (fence.number, fence.kept) == (worker, kept)
    assert len(caplog.messages) == lines

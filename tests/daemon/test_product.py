"""The product UUID, and the worker number of a state that another machine saved."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from tests.daemon.test_statefile import CLAIM, kept
from tests.rig import Daemon
from uuidd.core.timeline.fence import Shared
from uuidd.core.timeline.state import Node, State
from uuidd.fleet.fences import begin_fence
from uuidd.product import product_hash

HERE = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
THERE = "0e6cd2a9-4f86-4d49-9a0c-2a5c1a4b6f11"
STATE = State(Node(0x9F6BDECED846, "random"), "", 3, {3: 5}, 0, 7, worker=CLAIM, product="here")


def hash_of(path: Path, content: str) -> str:
    path.write_bytes(content.encode(errors="surrogateescape"))
    return product_hash([path])


@pytest.mark.parametrize(
    "content",
    [
        # SMBIOS ends it with a newline, a device tree with a zero byte.
        *(f"{HERE}\n", HERE.upper(), f"{HERE}\0", f" {HERE} \n"),
        # SMBIOS 2.6 settled the order in its first fields, so an update of the firmware may turn
        # them round.
        "10b8a76b-ad9d-d111-80b4-00c04fd430c8",
    ],
)
def test_a_product_uuid_has_one_hash_however_it_is_written(tmp_path: Path, content: str) -> None:
    path = tmp_path / "uuid"
    assert hash_of(path, content) == hash_of(path, HERE) != hash_of(path, THERE)


def test_the_hash_hides_the_product_uuid(tmp_path: Path) -> None:
    found = hash_of(tmp_path / "uuid", HERE)
    assert len(found) == 64
    assert HERE.replace("-", "") not in found


@pytest.mark.parametrize(
    "content",
    [
        "",
        "unknown",
        "<denied>\n",
        "\udcff\udcfe",
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
def test_what_tells_no_machine_from_another_counts_as_none(tmp_path: Path, content: str) -> None:
    """A board may have no UUID, or one that its vendor gives to all."""
    assert hash_of(tmp_path / "uuid", content) == ""


def test_the_first_place_that_tells_one_counts(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("gone", "none", "first", "second")]
    for path, content in zip(places[1:], ("unknown", HERE, THERE), strict=True):
        path.write_text(content)
    assert product_hash(places) == product_hash(places[2:3]) != ""
    assert product_hash(places[:2]) == ""


@pytest.mark.process
def test_a_daemon_compares_the_credential_that_systemd_passes(tmp_path: Path) -> None:
    """Only root can read the file of SMBIOS, so systemd passes it."""
    credential = tmp_path / "product-uuid"
    credential.write_text(f"{HERE}\n")
    with Daemon(environment={"CREDENTIALS_DIRECTORY": str(tmp_path)}) as daemon:
        before = daemon.call("take", "utc", 1)
        daemon.stop()
        assert kept(daemon.state).product == product_hash([credential])
        credential.write_text(THERE)
        daemon.start()
        assert daemon.call("take", "utc", 1)["node"] != before["node"]


def test_the_credential_of_the_service_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "product-uuid"
    path.write_text(HERE)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert product_hash() == product_hash([path])


IN_USE = (
    "the machine that saved the state has worker number 5 too; if it still runs, start uuidd here"
    " with another --worker, or Snowflakes repeat"
)
LEFT = "the claim to worker number 17 was another machine's, so another number is claimed"
NO_URL = "the state has a claim to worker number 17 of a fleet, and --worker is no URL now"
SHARED = Shared(5)


@pytest.mark.parametrize(
    ("kept", "worker", "product", "fence", "lines"),
    [
        # That machine may still make Snowflakes with its claim.
        (CLAIM, None, "there", (None, None, None), [LEFT]),
        (CLAIM, 5, "there", (5, None, 5), []),
        (CLAIM, 5, "here", (5, None, 5), [NO_URL]),
        # A fleet goes on with what the state has of a number that was set by hand. That of a
        # copied disk is the original's, and one that a clone has too stays in the state.
        (5, None, "here", (None, 5, 5), []),
        (5, None, "there", (None, None, None), []),
        (SHARED, None, "here", (None, None, SHARED), []),
        # It was set for this start; whether the other machine still runs cannot be known.
        (5, 5, "there", (5, None, 5), [IN_USE]),
        (5, 6, "there", (6, None, 6), []),
        (5, 5, "here", (5, None, 5), []),
        (5, 5, "", (5, None, 5), []),
    ],
)
def test_a_number_of_a_state_is_gone_on_with_on_the_same_machine(
    caplog: pytest.LogCaptureFixture,
    kept: object,
    worker: int | None,
    product: str,
    fence: tuple[object, ...],
    lines: list[str],
) -> None:
    caplog.set_level(logging.WARNING)
    state = replace(STATE, worker=kept)  # type: ignore[arg-type]
    found = begin_fence(state, worker, in_fleet=worker is None, product=product)
    assert (found.number, found.had, found.kept) == fence
    assert caplog.messages == lines


def test_a_restart_refuses_the_number_that_a_clone_has_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A crash must not bring it back."""
    fence = begin_fence(replace(STATE, worker=SHARED), 5, in_fleet=False)
    assert (fence.number, fence.kept) == (None, SHARED)
    assert caplog.messages == [f"Snowflakes are refused: {fence.why}"]
    assert "start uuidd with another --worker, or with --after-clone go-on" in fence.why


@pytest.mark.parametrize(
    ("worker", "go_on", "kept", "lines"),
    [(6, False, 6, 0), (5, True, 5, 1), (None, False, SHARED, 0), (None, True, SHARED, 0)],
)
def test_another_number_or_the_administrators_word_ends_that(
    caplog: pytest.LogCaptureFixture,
    worker: int | None,
    go_on: bool,
    kept: int | Shared,
    lines: int,
) -> None:
    state = replace(STATE, worker=SHARED)
    fence = begin_fence(state, worker, in_fleet=False, go_on_after_clone=go_on)
    assert (fence.number, fence.kept) == (worker, kept)
    assert len(caplog.messages) == lines

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uuidd.core.ids.snowflake import EPOCH_BITS
from uuidd.core.timeline.fence import Claim, Shared
from uuidd.core.timeline.state import Node, State
from uuidd.statefile import UnusableError, decode, encode, machine_hash

STATE = State(
    node=Node(0x9F6BDECED846, "random"),
    machine="here",
    generation=51,
    marks={51: 0x1EC9414C232AB00, 0: 1},
    floor=0,
    steady=0x1EC9414C232AB01,
)
WITH_EPOCHS = replace(STATE, epochs={5: 1288834974657, 0: 0})
WITH_LEASES = replace(WITH_EPOCHS, leases=0x1EC9414C232AB02)
NEXT = State(Node(1, "mac eth0"), "here", 52, {52: 5, **STATE.marks}, 7, 6)
GOLDEN = b"""\
uuidd-state 1 sha256:c7c06a4402d07e5a6990699bd7eb9029bfcc89a326f036830120ea2d1293a4ff
{
 "node": "0x9f6bdeced846",
 "node_source": "random",
 "machine": "here",
 "generation": 828,
 "floor": 0,
 "steady": 138648505420000001,
 "marks": {
  "0": 1,
  "827": 138648505419956224,
  "828": 138648505420000000
 }
}
"""
"""STATE, as format 1 had it, in which two of 1,024 generations are part of one of 64."""

GOLDEN_2 = b"""\
uuidd-state 2 sha256:e51daff9413f9bc7bf6b8033f77eaff86d2beefbc55cc56c0a15cf8b55cf2b12
{
 "node": "0x9f6bdeced846",
 "node_source": "random",
 "machine": "here",
 "generation": 828,
 "floor": 0,
 "steady": 138648505420000001,
 "epochs": {
  "0": 0,
  "5": 1288834974657
 },
 "marks": {
  "0": 1,
  "827": 138648505419956224,
  "828": 138648505420000000
 }
}
"""
"""WITH_EPOCHS, as format 2 had it."""

GOLDEN_3 = b"""\
uuidd-state 3 sha256:e94386bff6f669860ec68ce8af435072a3e37aa88e58940a70d06042f044bc3e
{
 "node": "0x9f6bdeced846",
 "node_source": "random",
 "machine": "here",
 "generation": 51,
 "floor": 0,
 "steady": 138648505420000001,
 "leases": 138648505420000002,
 "epochs": {
  "0": 0,
  "5": 1288834974657
 },
 "marks": {
  "0": 1,
  "51": 138648505420000000
 }
}
"""
"""WITH_LEASES, as format 3 had it."""

CLAIM = Claim("prod", 17, "c1", 0x1EC9414C232AB00, 0x1EC9414C232AB03)
CLAIMED = replace(WITH_LEASES, worker=CLAIM)
GOLDEN_4 = b"""\
uuidd-state 4 sha256:5c29505899ab18956fe10dca29b682f9bd33bd736232d99cc9f95a8128b84b70
{
 "node": "0x9f6bdeced846",
 "node_source": "random",
 "machine": "here",
 "generation": 51,
 "floor": 0,
 "steady": 138648505420000001,
 "leases": 138648505420000002,
 "worker": {
  "namespace": "prod",
  "number": 17,
  "token": "c1",
  "begin": 138648505420000000,
  "until": 138648505420000003
 },
 "epochs": {
  "0": 0,
  "5": 1288834974657
 },
 "marks": {
  "0": 1,
  "51": 138648505420000000
 }
}
"""
"""CLAIMED, as format 4 had it."""

PLACED = replace(CLAIMED, product="there")
GOLDEN_5 = b"""\
uuidd-state 5 sha256:af188df011cbaa9918d506206cf29ea2c0532fad043c9be54f021ac711efd57f
{
 "node": "0x9f6bdeced846",
 "node_source": "random",
 "machine": "here",
 "product": "there",
 "generation": 51,
 "floor": 0,
 "steady": 138648505420000001,
 "leases": 138648505420000002,
 "worker": {
  "namespace": "prod",
  "number": 17,
  "token": "c1",
  "begin": 138648505420000000,
  "until": 138648505420000003
 },
 "epochs": {
  "0": 0,
  "5": 1288834974657
 },
 "marks": {
  "0": 1,
  "51": 138648505420000000
 }
}
"""
"""PLACED, as format 5 had it."""

TIMED = replace(PLACED, now=0x1EC9414C232AB03, elapsed=36000000000)
GOLDEN_6 = b"""\
uuidd-state 6 sha256:d6f8d9729d10b1c7c8d524c09b4d6153cf6ee1e5dfbd38df161c568088164048
{
 "node": "0x9f6bdeced846",
 "node_source": "random",
 "machine": "here",
 "product": "there",
 "generation": 51,
 "floor": 0,
 "steady": 138648505420000001,
 "leases": 138648505420000002,
 "now": 138648505420000003,
 "elapsed": 36000000000,
 "worker": {
  "namespace": "prod",
  "number": 17,
  "token": "c1",
  "begin": 138648505420000000,
  "until": 138648505420000003
 },
 "epochs": {
  "0": 0,
  "5": 1288834974657
 },
 "marks": {
  "0": 1,
  "51": 138648505420000000
 }
}
"""
"""TIMED, as format 6 has it."""

GENERATIONS = st.integers(0, 63)
WORKERS = st.integers(0, 1023)
TICKS = st.integers(0, 2**60 - 1)
STATES = st.builds(
    State,
    node=st.builds(Node, st.integers(0, 2**48 - 1), st.text()),
    machine=st.text(),
    generation=GENERATIONS,
    marks=st.dictionaries(GENERATIONS, TICKS, max_size=20),
    floor=TICKS,
    steady=TICKS,
    epochs=st.dictionaries(WORKERS, st.integers(0, 2**EPOCH_BITS - 1), max_size=5),
    leases=TICKS,
    worker=st.none()
    | WORKERS
    | st.builds(Claim, st.text(), WORKERS, st.text(), begin=TICKS, until=TICKS),
    product=st.text(),
    now=TICKS,
    elapsed=TICKS,
)


def signed(body: bytes, version: int = 6) -> bytes:
    """Return a state file of *body* whose checksum is right."""
    digest = hashlib.sha256(body).hexdigest()
    return f"uuidd-state {version} sha256:{digest}\n".encode() + body


def changed(**fields: object) -> bytes:
    """Return the file of STATE with other *fields*, and the right checksum."""
    body: dict[str, object] = json.loads(encode(STATE).partition(b"\n")[2])
    return signed(json.dumps({**body, **fields}).encode())


@given(STATES)
def test_any_state_comes_back_as_it_was(state: State) -> None:
    """Every state that there can be is read as it was written."""
    assert decode(encode(state)) == state


def test_the_format_is_what_it_was() -> None:
    """A state is written in the bytes in which format 6 was first written."""
    assert encode(TIMED) == GOLDEN_6


def test_a_file_of_format_1_is_read() -> None:
    """It contains neither epochs nor a mark of leases."""
    assert decode(GOLDEN) == STATE
    assert (decode(GOLDEN).epochs, decode(GOLDEN).leases) == ({}, 0)


def test_a_file_of_format_2_is_read() -> None:
    """It contains no mark of leases, for there were none."""
    assert decode(GOLDEN_2) == WITH_EPOCHS


def test_a_file_of_format_3_is_read() -> None:
    """It contains no worker number."""
    assert decode(GOLDEN_3) == WITH_LEASES


def test_a_file_of_format_4_is_read() -> None:
    """It contains no product."""
    assert decode(GOLDEN_4) == CLAIMED


def test_a_file_of_format_5_is_read() -> None:
    """It does not say what the clocks said."""
    assert decode(GOLDEN_5) == PLACED


@pytest.mark.parametrize(
    "worker",
    [
        "5",
        -1,
        1024,
        True,
        {},
        {**asdict(CLAIM), "number": 1024},
        {**asdict(CLAIM), "until": 2**60},
        {**asdict(CLAIM), "begin": None},
        {**asdict(CLAIM), "token": 7},
        {**asdict(CLAIM), "more": 0},
        {"shared": 1024},
        {"shared": None},
        {"shared": 5, "number": 5},
    ],
)
def test_a_worker_number_that_cannot_be_is_damage(worker: object) -> None:
    """It is a number of 10 bits, or a claim with all that a claim has."""
    with pytest.raises(UnusableError, match=r"^it is damaged: "):
        decode(changed(worker=worker))


def test_a_number_that_a_clone_has_too_is_kept() -> None:
    """So that a restart does not use it."""
    state = replace(PLACED, worker=Shared(5))
    assert decode(encode(state)) == state


@pytest.mark.parametrize("version", [1, 2])
def test_16_generations_of_an_earlier_format_are_one(version: int) -> None:
    """A clock sequence is in the same generation as before; the highest mark of 16 counts."""
    body: dict[str, object] = json.loads(GOLDEN_2.partition(b"\n")[2])
    body |= {"generation": 33, "marks": {"15": 9, "16": 3, "31": 8, "24": 5, "1023": 7}}
    state = decode(signed(json.dumps(body).encode(), version))
    assert (state.generation, state.marks) == (2, {0: 9, 1: 8, 63: 7})


def test_earlier_formats_have_1024_generations() -> None:
    """A number past them is damage, as in any format."""
    body: dict[str, object] = json.loads(GOLDEN_2.partition(b"\n")[2])
    last, past = (json.dumps(body | {"marks": {key: 1}}).encode() for key in ("1023", "1024"))
    assert decode(signed(last, 2)).marks == {63: 1}
    with pytest.raises(UnusableError, match=r"^it is damaged"):
        decode(signed(past, 2))


def test_a_changed_version_is_damage() -> None:
    """No version but its own reads a file, so that no generation counts for another."""
    for data in (GOLDEN_2.replace(b" 2 ", b" 3 ", 1), GOLDEN_3.replace(b" 3 ", b" 2 ", 1)):
        with pytest.raises(UnusableError, match=r"^it is damaged: KeyError 'leases'$"):
            decode(data)


def test_every_shorter_file_is_damaged() -> None:
    """A file torn after any byte is noticed, an empty one too."""
    data = encode(STATE)
    for end in range(len(data)):
        with pytest.raises(UnusableError, match=r"^it is damaged"):
            decode(data[:end])


@pytest.mark.parametrize("flip", [1, 2, 4, 8, 16, 32, 64, 128, 255])
def test_every_changed_byte_is_noticed(flip: int) -> None:
    """No byte of the file, of its first line or the rest, can change unseen."""
    data = encode(STATE)
    for at in range(len(data)):
        with pytest.raises(UnusableError):
            decode(data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :])


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)
FIELDS = (
    "node",
    "node_source",
    "machine",
    "generation",
    "floor",
    "steady",
    "leases",
    "now",
    "elapsed",
    "worker",
    "product",
    "epochs",
    "marks",
)


@given(
    JSON.map(lambda value: json.dumps(value).encode())
    | st.fixed_dictionaries(dict.fromkeys(FIELDS, JSON)).map(
        lambda value: json.dumps(value).encode()
    )
    | st.binary(max_size=60)
)
def test_any_signed_body_is_a_state_or_unusable(body: bytes) -> None:
    """With the right checksum, any body gives a state that can be saved, or UnusableError."""
    try:
        state = decode(signed(body))
    except UnusableError:
        return
    assert decode(encode(state)) == state


BAD_FIELDS: dict[str, tuple[object, ...]] = {
    "node": ("0x1000000000000", "-0x1", "x", None),
    "generation": (64, -1, "5", True, 5.0),
    "floor": (2**60, -1, False),
    "steady": (2**60, None),
    "leases": (2**60, -1, None),
    "now": (2**60, -1, None),
    "elapsed": (2**60, -1, None),
    "marks": ([], None, *({key: 1} for key in ("64", "-1", "x"))),
    "epochs": ([], None, {"1024": 1}, {"1": -1}),
}
BAD_MARKS = (2**60, "1", True)


@pytest.mark.parametrize(
    "data",
    [
        *(changed(**{name: value}) for name, values in BAD_FIELDS.items() for value in values),
        *(changed(marks={"1": value}) for value in BAD_MARKS),
        *map(signed, (b"", b"{}", b"[]", b"null", b"\xff")),
        signed(encode(STATE).partition(b"\n")[2][:-3]),
    ],
)
def test_a_field_out_of_range_is_damage(data: bytes) -> None:
    """A body that tells of no state is damaged, whatever its checksum says."""
    with pytest.raises(UnusableError, match=r"^it is damaged"):
        decode(data)


def test_a_newer_format_is_told_as_such() -> None:
    """A file of a later version is not taken for damage."""
    with pytest.raises(UnusableError, match=r"^it has format '7', and this version reads 1 to 6$"):
        decode(signed(b"{}\n", version=7))


@pytest.mark.parametrize("content", [b"", b"\n", b" \n", b"\xff\xfe", b"uninitialized\n"])
def test_a_host_without_a_machine_id_has_an_empty_hash(tmp_path: Path, content: bytes) -> None:
    """An image has an empty one, or "uninitialized", before its first start (machine-id(5))."""
    path = tmp_path / "machine-id"
    path.write_bytes(content)
    assert machine_hash(path) == ""


def test_a_machine_id_is_hashed(tmp_path: Path) -> None:
    """The hash is the same at every start, with or without a newline, and hides the id."""
    path = tmp_path / "machine-id"
    path.write_text("0123456789abcdef0123456789abcdef\n")
    digest = hashlib.sha256(b"uuidd 0123456789abcdef0123456789abcdef").hexdigest()
    assert machine_hash(path) == digest
    path.write_text("0123456789abcdef0123456789abcdef")
    assert machine_hash(path) == digest
    assert "0123456789abcdef0123456789abcdef" not in digest

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
from uuidd.statefile import FORMAT, UnusableError, decode, encode, machine_hash

STATE = State(
    node=Node(0x9F6BDECED846, "random"),
    machine="here",
    generation=51,
    marks={51: 0x1EC9414C232AB00, 0: 1},
    floor=0,
    steady=0x1EC9414C232AB01,
)
WITH_EPOCHS = replace(STATE, epochs={5: 1288834974657, 0: 0})
NEXT = State(Node(1, "mac eth0"), "here", 52, {52: 5, **STATE.marks}, 7, 6)
CLAIM = Claim("prod", 17, "c1", 0x1EC9414C232AB00, 0x1EC9414C232AB03)
FULL = replace(
    WITH_EPOCHS,
    leases=0x1EC9414C232AB02,
    worker=CLAIM,
    product="there",
    now=0x1EC9414C232AB03,
    elapsed=36000000000,
)
GOLDEN = b"""\
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
"""FULL, as format 6 has it."""

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


def signed(body: bytes, version: int = FORMAT) -> bytes:
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
    assert encode(FULL) == GOLDEN


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
    state = replace(FULL, worker=Shared(5))
    assert decode(encode(state)) == state


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


@pytest.mark.parametrize("version", [FORMAT - 1, FORMAT + 1])
def test_another_format_is_told_as_such(version: int) -> None:
    """A file of an earlier or later version is not taken for damage."""
    body = encode(FULL).partition(b"\n")[2]
    told = f"^it has format '{version}', and this version reads format {FORMAT}$"
    with pytest.raises(UnusableError, match=told):
        decode(signed(body, version))


@pytest.mark.parametrize("name", json.loads(encode(FULL).partition(b"\n")[2]))
def test_a_state_that_lacks_a_field_is_damaged(name: str) -> None:
    """No field has a default, so that none is lost unseen."""
    body: dict[str, object] = json.loads(encode(FULL).partition(b"\n")[2])
    del body[name]
    with pytest.raises(UnusableError, match=f"^it is damaged: KeyError '{name}'$"):
        decode(signed(json.dumps(body).encode()))


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

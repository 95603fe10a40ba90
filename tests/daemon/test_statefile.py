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
    | st.builds(Shared, WORKERS)
    | st.builds(Claim, st.text(), WORKERS, st.text(), begin=TICKS, until=TICKS),
    product=st.text(),
    now=TICKS,
    elapsed=TICKS,
)


def kept(folder: Path) -> State:
    return decode((folder / "state").read_bytes())


def signed(body: bytes, version: int = FORMAT) -> bytes:
    digest = hashlib.sha256(body).hexdigest()
    return f"uuidd-state {version} sha256:{digest}\n".encode() + body


def changed(**fields: object) -> bytes:
    """Return the file of STATE with other *fields*, and the right checksum."""
    body: dict[str, object] = json.loads(encode(STATE).partition(b"\n")[2])
    return signed(json.dumps({**body, **fields}).encode())


@given(STATES)
def test_any_state_comes_back_as_it_was(state: State) -> None:
    assert decode(encode(state)) == state


def test_the_format_is_what_it_was() -> None:
    assert encode(FULL) == GOLDEN


def test_every_shorter_file_is_damaged() -> None:
    data = encode(STATE)
    for end in range(len(data)):
        with pytest.raises(UnusableError, match=r"^it is damaged"):
            decode(data[:end])


@pytest.mark.parametrize("flip", [1, 2, 4, 8, 16, 32, 64, 128, 255])
def test_every_changed_byte_is_noticed(flip: int) -> None:
    data = encode(STATE)
    for at in range(len(data)):
        with pytest.raises(UnusableError):
            decode(data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :])


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)
FIELDS = json.loads(encode(FULL).partition(b"\n")[2])


@given(
    JSON.map(lambda value: json.dumps(value).encode())
    | st.fixed_dictionaries(dict.fromkeys(FIELDS, JSON)).map(
        lambda value: json.dumps(value).encode()
    )
    | st.binary(max_size=60)
)
def test_any_signed_body_is_a_state_or_unusable(body: bytes) -> None:
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
    "marks": (
        *([], None, *({key: 1} for key in ("64", "-1", "x"))),
        *({"1": value} for value in (2**60, "1", True)),
    ),
    "epochs": ([], None, {"1024": 1}, {"1": -1}),
    # A number of 10 bits, or a claim with all that a claim has.
    "worker": (
        *("5", -1, 1024, True, {}, {"shared": 1024}, {"shared": None}, {"shared": 5, "number": 5}),
        {**asdict(CLAIM), "number": 1024},
        {**asdict(CLAIM), "until": 2**60},
        {**asdict(CLAIM), "begin": None},
        {**asdict(CLAIM), "token": 7},
        {**asdict(CLAIM), "more": 0},
    ),
}


@pytest.mark.parametrize(
    "data",
    [
        *(changed(**{name: value}) for name, values in BAD_FIELDS.items() for value in values),
        *map(signed, (b"", b"{}", b"[]", b"null", b"\xff")),
        signed(encode(STATE).partition(b"\n")[2][:-3]),
    ],
)
def test_a_field_out_of_range_is_damage(data: bytes) -> None:
    with pytest.raises(UnusableError, match=r"^it is damaged"):
        decode(data)


@pytest.mark.parametrize("name", FIELDS)
def test_a_state_that_lacks_a_field_is_damaged(name: str) -> None:
    """No field has a default, so that none is lost unseen."""
    body = {field: value for field, value in FIELDS.items() if field != name}
    with pytest.raises(UnusableError, match=f"^it is damaged: KeyError '{name}'$"):
        decode(signed(json.dumps(body).encode()))


HOST = b"0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        # An image has an empty one, or "uninitialized", before its first start (machine-id(5)).
        *((none, "") for none in (b"", b"\n", b" \n", b"\xff\xfe", b"uninitialized\n")),
        *((one, hashlib.sha256(b"uuidd " + HOST).hexdigest()) for one in (HOST, HOST + b"\n")),
    ],
)
def test_a_machine_id_is_hashed(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "machine-id"
    path.write_bytes(content)
    assert machine_hash(path) == told

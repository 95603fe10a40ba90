"""The records that an engine keeps: what they hold, and that garbage is one clear error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uuidd.fleet.record import Meta, Record, decode, encode
from uuidd.refused import Refused

META = Meta("0123456789abcdef", 1288834974657, 3, 900)
RECORD = Record("fedcba9876543210", 139, held=True, host="db1", machine="ab", at=138, version="0.2")


def changed(what: Meta | Record, **fields: object) -> bytes:
    """Return its JSON with other values."""
    return json.dumps({**json.loads(encode(what)), **fields}).encode()


def test_people_can_read_a_register() -> None:
    """With zkCli, etcdctl or psql. What was encoded is decoded."""
    assert decode(Meta, encode(META), "here") == META
    assert decode(Record, encode(RECORD), "here") == RECORD
    assert encode(RECORD) == (
        b'{"v": 1, "claim": "fedcba9876543210", "until": 139, "held": true, "reserved": false,'
        b' "host": "db1", "machine": "ab", "at": 138, "version": "0.2"}'
    )


def test_unknown_fields_are_kept() -> None:
    data = changed(RECORD, colour=["red"])
    assert encode(decode(Record, data, "here")) == data


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"v": 2}, "its format is 2, and this version reads 1"),
        ({"v": True}, "its format is True"),
        ({"claim": "fedcba987654321"}, "claim is 'fedcba987654321', not 16 hex digits"),
        ({"claim": 5}, "claim is 5, not 16 hex digits"),
        ({"until": -1}, "until is -1, not a whole number"),
        ({"until": 1 << 60}, "not a whole number below 1152921504606846976"),
        ({"until": 1.0}, "until is 1.0, not"),
        ({"until": True}, "until is True, not"),
        ({"held": 1}, "held is 1, not true or false"),
        ({"host": "a\nb"}, "host is 'a\\nb', not a short text"),
        ({"host": "h" * 254}, "not a short text"),
    ],
)
def test_a_value_that_cannot_be_is_named(fields: dict[str, object], error: str) -> None:
    """With the place of the record. So is a namespace whose lowest number is above the highest."""
    with pytest.raises(Refused, match=r"^here is .* low 901 is above high 900"):
        decode(Meta, changed(META, low=901), "here")
    with pytest.raises(Refused, match=r"^here is no record of uuidd: ") as caught:
        decode(Record, changed(RECORD, **fields), "here")
    assert error in str(caught.value)


@given(
    st.binary() | st.text().map(str.encode) | st.builds(lambda n: b"[" * n, st.integers(1, 9999))
)
def test_any_bytes_are_a_record_or_one_error(data: bytes) -> None:
    with pytest.raises(Refused) as caught:
        decode(Record, data, "here")
    assert "\n" not in str(caught.value)

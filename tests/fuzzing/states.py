"""Target: the bytes of a state file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from random import Random

from tests.fuzzing import corpus
from tests.fuzzing.mutations import Mutations
from tests.fuzzing.spans import of_words
from tests.fuzzing.target import Broken, Target
from uuidd.statefile import FORMAT, UnusableError, decode, encode

_BARE = b"!"
"""Before an input that is the whole file; to any other a head with the right checksum is given."""

_PARTS = [
    *(
        b"0",
        b"-1",
        b"1",
        b"63",
        b"64",
        b"1023",
        b"1024",
        b"1152921504606846975",
        b"1152921504606846976",
    ),
    *(b"1e400", b"1.5", b"NaN", b"-Infinity", b"9" * 5000, b"null", b"true", b'"', b'"0x1"'),
    *(b"[]", b"{}", b"{", b"]", b'{"0": 1}', b"\\ud800", b"\\u0000", b"\xff", b"\xc3\xbc"),
    *(b"0x", b"0xffffffffffff", b"0x1000000000000", b"1_0", b" 1 ", b"+1", b"\xd9\xa3"),
    *(b"node", b"marks", b"machine", b"floor", b"steady", b"generation", b"node_source", b"epochs"),
    b"leases",
    *(b"[" * 100, b"[" * 2000, b"uuidd-state", b"sha256:", b"\n"),
]


def states(data: bytes) -> Sequence[str]:
    """Decode a state file: what comes of it is written and decoded as the same again."""
    if data.startswith(_BARE):
        data = data[1:]
    else:
        digest = hashlib.sha256(data).hexdigest()
        data = f"uuidd-state {FORMAT} sha256:{digest}\n".encode() + data
    try:
        state = decode(data)
    except UnusableError as unusable:
        str(unusable).encode("utf-8", "replace")
        return ("UnusableError",)
    if decode(encode(state)) != state:
        raise Broken("a state is decoded as it was encoded")
    return ("ok",)


def _inputs(random: Random) -> Iterator[bytes]:
    # The others are shorter, so they would come up more often.
    seeds = [data for data, outcome in corpus.STATES if outcome == "ok"]
    return iter(Mutations(random, seeds, _PARTS, of_words))


TARGETS = (Target("states", states, _inputs),)

"""Targets: the text of any id, read by all that reads one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

from tests.core.test_families import WRITINGS
from tests.fuzzing import corpus
from tests.fuzzing.mutations import Mutations
from tests.fuzzing.spans import of_words
from tests.fuzzing.target import Broken, Target
from uuidd.core.ids import uuids, versions
from uuidd_client.fields import INSPECTED_KINDS, ORDER
from uuidd_client.readings import ALIASES, inspect

_ASKED = (None, *INSPECTED_KINDS, *ALIASES, "v9", "")
_EPOCHS = (None, 0, 1_288_834_974_657, (1 << 48) - 1)

_REFUSED = ("ValueError",)

Parser = tuple[Callable[[str], int], Callable[[int], str] | None]
"""What reads a text, and what writes it again."""


PARSERS: tuple[Parser, ...] = (
    *((writing.from_text, writing.to_text) for writing in WRITINGS.values()),
    (versions.namespace, uuids.to_text),
)

_PARTS = [
    *(b"0", b"9", b"f", b"z", b"Z", b"-", b"_", b".", b"{", b"}", b":", b"urn:uuid:", b"0x", b" "),
    *(b"0" * 12, b"f" * 12, b"F" * 8, b"1ec", b"7cc3", b"e000", b"0" * 32, b"z" * 22),
    *(b"\0", b"\n", b"\xc3\x9f", b"\xc5\xbf", b"\xd9\xa3", b"\xed\xa0\x80", b"\xff", b"\xc2\xb2"),
    *(b"18446744073709551615", b"9223372036854775807", b"9223372036854775808", b"dns", b"URL"),
    *(str(1 << bits).encode() for bits in (63, 64, 96, 127, 128, 160)),
]


def _text(data: bytes) -> str:
    # What is no UTF-8 comes as lone surrogates, just as it does on a command line.
    return data.decode("utf-8", "surrogateescape")


def texts(data: bytes) -> Sequence[str]:
    """Read a text as each kind that it may be, or as the one that its first byte asks for."""
    told = data[0] if data else 0
    kind, epoch = _ASKED[told % 32 % len(_ASKED)], _EPOCHS[(told >> 5) % 4]
    text = _text(data[1:])
    try:
        found = inspect(text, kind=kind, epoch=epoch)
    except ValueError:
        return _REFUSED
    if not found:
        raise Broken("a text has a reading, or an error")
    for reading in found:
        if not reading.fields.keys() <= _NAMES:
            raise Broken("all fields have a place in their order")
        if reading.kind in _OTHERWISE:
            continue
        written = reading.text
        if reading.value not in [again.value for again in inspect(written, kind=reading.kind)]:
            raise Broken("what a kind writes it reads")
    return ("ok",)


_NAMES = set(ORDER)

_OTHERWISE = ("unknown", "guid")
"""Kinds whose text is read as something else: the bytes of a GUID are not in its text's order."""


def spellings(data: bytes) -> Sequence[str]:
    """Read a text by the parser that its first byte names: what it writes it reads again."""
    if not data:
        return ("not put",)
    read, write = PARSERS[data[0] % len(PARSERS)]
    try:
        value = read(_text(data[1:]))
    except ValueError:
        return _REFUSED
    if write is not None and read(write(value)) != value:
        raise Broken("what is written is read as the same")
    return ("ok",)


def _inputs(random: Random) -> Iterator[bytes]:
    seeds = [data[1:] for data, _ in corpus.TEXTS]
    dice = random.random
    for text in Mutations(random, seeds, _PARTS, of_words):
        # The first byte says how it is read: half of the time in any way.
        yield (b"\0" if dice() < 0.5 else bytes([int(dice() * 256)])) + text


def _spelled(random: Random) -> Iterator[bytes]:
    seeds = [data[1:] for data, _ in corpus.TEXTS]
    dice = random.random
    for text in Mutations(random, seeds, _PARTS, of_words):
        yield bytes([int(dice() * len(PARSERS))]) + text


TARGETS = (
    Target("texts", texts, _inputs),
    Target("spellings", spellings, _spelled),
)

"""The ids of a client that is given several blocks are bit for bit what ``tests/kinds.py`` says.

``test_cutter_bits.py`` has those of one block.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import kinds
from tests.client.draws import EPOCH, formed, seen
from tests.client.fakes import START, Time, Unleased, set_random
from tests.kinds import FORMS, GREGORIAN, KINDS, MS, SECOND, TIMED, UNLEASED
from uuidd.core.ids.places import Origin
from uuidd.core.timeline import Block, SteadyBlock
from uuidd_client import Client, channel
from uuidd_client.life import Watch

if TYPE_CHECKING:
    from uuidd_client.client import Form, Kind

pytestmark = pytest.mark.usefixtures("implementation")

TIMED_FORMS = [(kind, form) for kind, form in FORMS if kind in TIMED]
UTC_FORMS = [(kind, form) for kind, form in FORMS if kind in GREGORIAN]


class Fill(NamedTuple):
    """What fills an id's fields beside the time: an origin, and bytes for what is random."""

    origin: Origin
    byte: int

    def random(self, count: int) -> bytes:
        """Return so many bytes, all alike."""
        return bytes([self.byte]) * count


ZEROS = Fill(Origin(0, 0, 0, EPOCH), 0)
ONES = Fill(Origin((1 << 48) - 1, 0x3FFF, 1023, EPOCH), 0xFF)
"""A field that runs into another shows with all its neighbours zeros, or all ones."""


class Stretch(NamedTuple):
    """The ticks ``first .. first + size``, half open."""

    first: int
    size: int


def _around(tick: int, before: int, after: int) -> Stretch:
    return Stretch(tick - before, before + after)


WRAP = (START | 0xFFFF_FFFF) + 1
EACH_FORM = pytest.mark.parametrize(("kind", "form"), TIMED_FORMS)


class Told(Unleased):
    """A daemon that gives the stretches told to it in turn, each under its origin."""

    def __init__(self, *told: tuple[Stretch, Origin]) -> None:
        self.left = list(told)

    def take(
        self, timeline: str, _: int, *, wait: bool = False
    ) -> tuple[Block | SteadyBlock, Watch]:
        """Return the next as a block of *timeline*."""
        (first, size), origin = self.left.pop(0)
        if timeline == "utc":
            return Block(first, size, origin.clock_seq, origin.node), self.watch
        return SteadyBlock(first, size, origin.node, origin.worker, origin.epoch), self.watch


@contextlib.contextmanager
def client_of(source: Any, random: Callable[[int], bytes] = os.urandom) -> Iterator[Client]:
    """Return a client that draws from *source* and *random*, under a clock that stands still.

    UTC stands before all blocks, so each is taken as it comes, also one that is earlier than that
    before it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(channel, "Connection", lambda *_, **__: source)
        set_random(patch, random)
        with Client("/nowhere", _clock=Time()) as client:
            yield client


@cache
def places(kind: str, stretch: Stretch) -> Sequence[int]:
    """Return the places on a stretch: its ticks, or for Snowflakes the slots on them."""
    ticks = range(stretch.first, stretch.first + stretch.size)
    if KINDS[kind].timeline != "snowflake":
        return ticks
    # No tick has two slots.
    first, last = ((tick - kinds.UNIX) * kinds.SLOTS // MS for tick in (ticks[0], ticks[-1]))
    return [place for place in range(first, last + 1) if kinds.tick_of_place(kind, place) in ticks]


def ids_of(kind: str, form: str, stretch: Stretch, fill: Fill) -> list[Any]:
    """Return the ids of a stretch as they are to be."""
    return [formed(kind, form, value) for value in bits_of(kind, stretch, fill)]


@cache
def bits_of(kind: str, stretch: Stretch, fill: Fill) -> list[int]:
    """Return the bits of the ids of a stretch."""
    random = int.from_bytes(fill.random(kinds.random_size(kind)), "big")
    return [kinds.made(kind, place, fill.origin, random) for place in places(kind, stretch)]


def drawn(client: Client, kind: Kind, form: Form, count: int) -> list[Any]:
    """Return the next *count* ids of an iterator."""
    ids = client.iter(kind, form)
    return [seen(next(ids)) for _ in range(count)]


def made(client: Client, kind: Kind, form: Form, count: int) -> list[Any]:
    """Return *count* ids made at once; packed ones are cut."""
    found = client.make(kind, count, form)
    if isinstance(found, bytes):
        size = KINDS[kind].size
        return [found[at : at + size] for at in range(0, len(found), size)]
    return [seen(id) for id in found]


@pytest.mark.parametrize(("kind", "form"), UTC_FORMS)
@pytest.mark.parametrize("way", [drawn, made])
@pytest.mark.parametrize("second", [2000, 5 * SECOND, -SECOND], ids=["next", "later", "earlier"])
def test_each_id_has_the_clock_sequence_of_its_own_block(
    kind: str, form: str, way: Callable[..., list[Any]], second: int
) -> None:
    """Between two blocks it may change, and the time may step back with it."""
    blocks = [
        (Stretch(WRAP - 1000, 2000), Origin(1, 0x3FFF)),
        (Stretch(WRAP - 1000 + second, 1500), Origin(1, 0)),
        (Stretch(WRAP - 1000 + second, 1500), Origin(2, 1)),
    ]
    expected = [
        id for stretch, origin in blocks for id in ids_of(kind, form, stretch, Fill(origin, 0))
    ]
    with client_of(Told(*blocks)) as client:
        assert way(client, kind, form, 5000) == expected


@EACH_FORM
@pytest.mark.parametrize("way", [drawn, made])
def test_blocks_that_follow_each_other_leave_no_seam(
    kind: str, form: str, way: Callable[..., list[Any]]
) -> None:
    """However the ticks are cut into blocks, the ids are the same, over a wrap of time_low."""
    stretch = _around(WRAP, 600, 600)
    expected = ids_of(kind, form, stretch, ZEROS)
    end = stretch.first + stretch.size
    ends = [*range(stretch.first, end, 97), end]
    cut = [Stretch(first, end - first) for first, end in pairwise(ends)]
    with client_of(Told(*((part, ZEROS.origin) for part in cut)), ZEROS.random) as client:
        assert way(client, kind, form, len(expected)) == expected


@pytest.mark.parametrize("kind", UNLEASED)
@pytest.mark.parametrize("way", [drawn, made])
def test_ids_of_another_node_or_worker_go_on_at_the_next_millisecond(
    kind: str, way: Callable[..., list[Any]]
) -> None:
    """They are its ids from there on, for the node comes before the sequence."""
    first, rest = Stretch(START, 500), Stretch(START + MS, 700)
    expected = [*ids_of(kind, "int", first, ONES), *ids_of(kind, "int", rest, ZEROS)]
    blocks = (first, ONES.origin), (Stretch(START + 500, MS + 200), ZEROS.origin)
    with client_of(Told(*blocks)) as client:
        assert way(client, kind, "int", len(expected)) == expected


@given(
    st.sampled_from(TIMED),
    st.sampled_from([START - 5, WRAP - 60, START + 7 * MS - 60, START + 3 * SECOND - 60]),
    st.lists(st.integers(3, 400), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(1, 90)), max_size=12),
)
def test_forms_and_ways_in_any_turn_give_each_place_once(
    kind: Kind, first: int, sizes: list[int], turns: list[tuple[int, bool, int]]
) -> None:
    """What one leaves of a block is what the next begins with, but for what was made ahead."""
    whole = Stretch(first, sum(sizes))
    ends = [first + sum(sizes[:number]) for number in range(len(sizes) + 1)]
    told = [(Stretch(begin, end - begin), ONES.origin) for begin, end in pairwise(ends)]
    bits = bits_of(kind, whole, ONES)
    spent, left = 0, iter(bits)
    with client_of(Told(*told), ONES.random) as client:
        for number, at_once, wanted in turns:
            form: Any = KINDS[kind].forms[number % len(KINDS[kind].forms)]
            count = min(wanted, (len(bits) - spent) // 2)
            # Fewer are made ahead than have been drawn in a row.
            spent += 2 * count
            for id in (made if at_once else drawn)(client, kind, form, count):
                assert any(formed(kind, form, value) == id for value in left)

"""Snowflakes: their slots and places, and the two halves of a worker number."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import kinds
from uuidd.core.ids import snowflake
from uuidd.core.ids.kinds import FORMATS
from uuidd.core.ids.ticks import TICKS_PER_MS, UNIX_EPOCH

TWITTER = snowflake.TWITTER_EPOCH
FIELD = snowflake.time_field()
TICKS = st.integers(FIELD.epoch, FIELD.end - 1)
PLACES = st.integers(TWITTER << 12, (TWITTER + (1 << 41) << 12) - 1)


def test_each_slot_is_on_the_tick_that_it_begins_in() -> None:
    """Slot s of a millisecond is on its tick ceil(s * 10000 / 4096), so no two share one."""
    first = TWITTER << 12
    ticks = [snowflake.tick_of_place(first + slot) - FIELD.epoch for slot in range(4097)]
    assert ticks == [(slot * 10_000 + 4095) // 4096 for slot in range(4097)]
    assert len(set(ticks)) == 4097
    assert ticks[-1] == TICKS_PER_MS


def test_the_slot_before_the_first_past_a_tick_is_the_last_one_up_to_it() -> None:
    slots = [snowflake.place_from(UNIX_EPOCH + rest + 1) - 1 for rest in range(TICKS_PER_MS)]
    # Published: RFC 9562, 6.2, method 3.
    assert slots[4567] == 0x74E
    assert slots[0] == 0
    assert slots[-1] == snowflake.SLOTS - 1
    for slot in range(snowflake.SLOTS):
        tick = snowflake.tick_of_place(slot) - UNIX_EPOCH
        assert slots[tick] == slot
        assert tick == 0 or slots[tick - 1] == slot - 1


@given(TICKS)
def test_the_place_from_a_tick_is_the_first_one_not_before_it(tick: int) -> None:
    place = snowflake.place_from(tick)
    assert snowflake.tick_of_place(place - 1) < tick <= snowflake.tick_of_place(place)


@given(PLACES)
def test_a_place_is_found_at_its_tick(place: int) -> None:
    tick = snowflake.tick_of_place(place)
    assert snowflake.place_from(tick) == place
    assert snowflake.places(tick, 1) == (place, place + 1)


@given(TICKS, st.integers(0, 100_000), st.integers(0, 100_000))
def test_places_of_neighbouring_runs_of_ticks_neither_meet_nor_leave_a_gap(
    first: int, count: int, more: int
) -> None:
    begin, middle = snowflake.places(first, count)
    again, end = snowflake.places(first + count, more)
    assert begin <= middle == again <= end
    assert snowflake.places(first, count + more) == (begin, end)


def test_one_tick_fewer_may_hold_one_place_fewer() -> None:
    for count in (1, 2, 3, 4096, 4097):
        ticks = snowflake.ticks_for(count) - 1
        found = [snowflake.places(UNIX_EPOCH + first, ticks) for first in range(TICKS_PER_MS)]
        assert min(end - begin for begin, end in found) < count


def test_the_halves_of_a_worker_number_are_its_high_and_its_low_bits() -> None:
    assert snowflake.worker_from_halves(31, 1) == 0b11111_00001


@pytest.mark.parametrize(
    ("datacenter", "worker", "name"),
    [(-1, 0, "datacenter"), (32, 0, "datacenter"), (0, -1, "worker"), (0, 32, "worker")],
)
def test_a_half_out_of_range_is_refused(datacenter: int, worker: int, name: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name} is (-1|32); it must be 0 to 31 "):
        snowflake.worker_from_halves(datacenter, worker)


def test_the_range_of_milliseconds_goes_with_the_epoch() -> None:
    for ms in (999, 1000 + (1 << 41)):
        message = f"^ms is {ms}; with epoch 1000 it must be 1000 to {999 + (1 << 41)}$"
        with pytest.raises(ValueError, match=message):
            snowflake.of_place(ms << 12, 0, epoch=1000)


@pytest.mark.parametrize("epoch", [True, 1.0])
def test_an_epoch_that_is_no_int_is_refused(epoch: int) -> None:
    with pytest.raises(TypeError, match=f"^epoch is {epoch}; it must be an int$"):
        snowflake.of_place(TWITTER << 12, 0, epoch=epoch)


@pytest.mark.parametrize("worker", [True, 1.0, None])
def test_a_worker_that_is_no_int_is_refused(worker: Any) -> None:
    with pytest.raises(TypeError, match=f"^worker is {worker}; it must be an int$"):
        snowflake.of_place(TWITTER << 12, worker)


@pytest.mark.parametrize("worker", [0, 1023])
@pytest.mark.parametrize("since", [0, (1 << 41 + 12) - 1])
def test_a_place_fits_up_to_the_ends_of_the_time(worker: int, since: int) -> None:
    made = snowflake.of_place((TWITTER << 12) + since, worker)
    fields = {"time": since >> 12, "worker": worker, "rest": since % 4096}
    assert kinds.fields("snowflake", made) == fields


@pytest.mark.parametrize("text", ["-1", "+1", " 1", "1_000", "1.0", "1e3", "0x1", "\u0663"])
def test_a_decimal_is_digits_alone(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a Snowflake: .* is not in 0123456789$"):
        FORMATS["snowflake"].from_text(text)

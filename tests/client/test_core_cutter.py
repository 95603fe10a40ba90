"""The rules by which the C extension makes an id: each of them, broken, would repeat one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID, SafeUUID

import pytest

from tests.client.cutters import BLOCK, FOREVER, Hand, core
from tests.client.fakes import START
from tests.client.lanes import Lanes
from tests.client.raw import raw_fork
from tests.kinds import LANED, UNLEASED, places
from uuidd.core.ids import versions
from uuidd.core.ids.layouts import Origin
from uuidd.core.ids.ticks import UNIX_EPOCH
from uuidd.core.timeline.page import HORIZON_AT
from uuidd_client.fork_guard import ForkGuard
from uuidd_client.watch import NO_EPOCHS

LAG = 50
"""Ticks that an id may lag behind UTC, if it follows another."""


@pytest.fixture
def lanes() -> Iterator[Lanes]:
    """Return what leases lanes, without an end."""
    lanes = Lanes(FOREVER)
    lanes.begin = 0
    yield lanes
    lanes.close()


def tick(id: UUID | None) -> int:
    """Return the tick of an id."""
    assert id is not None
    if id.version == 7:
        return versions.v7_tick(id.int)
    return versions.gregorian_fields(id.int).tick


# --- of a lane


def test_without_a_lease_and_a_block_there_is_none() -> None:
    """Python has to get one of them."""
    assert Hand().one() is None


@pytest.mark.parametrize("kind", ["v1", "v6", "v7"])
def test_an_id_has_the_tick_of_now(lanes: Lanes, kind: str) -> None:
    """And it is marked as safe."""
    hand = Hand(kind).hold(lanes)
    id = hand.one()
    assert (tick(id), id.is_safe) == (hand.now, SafeUUID.safe)
    hand.now += 1000
    assert tick(hand.one()) == hand.now


def test_an_id_has_what_its_lease_says(lanes: Lanes) -> None:
    """Another lease has another lane."""
    hand = Hand()
    for _ in range(2):
        hand.hold(lanes)
        hand.now += 1000
        assert hand.leased is not None
        fields = versions.gregorian_fields(hand.one().int)
        origin = hand.leased.origin
        assert (fields.clock_seq, fields.node) == (origin.clock_seq, origin.node)


def test_no_tick_is_used_twice(lanes: Lanes) -> None:
    """While the clock stands still, or steps back, there is no id."""
    hand = Hand().hold(lanes)
    assert hand.one()
    assert hand.one() is None
    hand.now -= 1
    assert hand.one() is None
    hand.now += 2
    assert hand.one()


def test_a_clock_that_stands_still_is_read_only_so_often(lanes: Lanes) -> None:
    """No call hangs; one that has stepped back is not waited for at all."""
    hand = Hand().hold(lanes)
    hand.one()
    hand.readings = 0
    hand.one()
    assert 8 <= hand.readings <= 100
    hand.readings = 0
    hand.now -= 1
    hand.one()
    assert hand.readings == 1


def test_an_id_waits_for_the_next_tick(lanes: Lanes) -> None:
    """It does not have one that is to come."""
    hand = Hand().hold(lanes)
    before = tick(hand.one())
    hand.readings = 0

    def go_on() -> None:
        if hand.readings == 3:
            hand.now += 1

    hand.between = go_on
    assert tick(hand.one()) == before + 1
    assert hand.readings == 4


@pytest.mark.parametrize("lag", [1, 2, LAG])
def test_ids_in_a_row_have_ticks_in_a_row(lanes: Lanes, lag: int) -> None:
    """As many as have passed since; then they wait."""
    hand = Hand().hold(lanes)
    first = tick(hand.one())
    hand.now += lag
    assert [tick(hand.one()) for _ in range(lag)] == [*range(first + 1, hand.now + 1)]
    assert hand.one() is None


def test_no_id_lags_further(lanes: Lanes) -> None:
    """It has the tick of now instead."""
    hand = Hand().hold(lanes)
    hand.one()
    hand.now += LAG + 1
    assert tick(hand.one()) == hand.now


def test_without_any_age_no_id_lags(lanes: Lanes) -> None:
    """So ids are in the order of all processes that wait for one another."""
    hand = Hand(max_age=0).hold(lanes)
    hand.one()
    hand.now += 2
    assert tick(hand.one()) == hand.now


def test_no_tick_of_what_is_reserved_is_used(lanes: Lanes) -> None:
    """A list has it."""
    hand = Hand().hold(lanes)
    hand.used.raise_to(hand.now + 1)
    assert hand.one() is None
    hand.now += 1
    assert tick(hand.one()) == hand.now
    assert hand.used.end == hand.now + 1


@pytest.mark.parametrize("lagging", [False, True])
def test_no_tick_before_that_of_a_block_is_used(lanes: Lanes, lagging: bool) -> None:
    """The block may be of a clock that is ahead."""
    hand = Hand().hold(lanes)
    if lagging:
        hand.one()
    hand.cutter.floor = hand.now + 2
    hand.now += 1
    assert hand.one() is None
    hand.now += 1
    assert tick(hand.one()) == hand.now


@pytest.mark.parametrize("lagging", [False, True])
def test_no_tick_before_the_begin_of_the_lease_is_used(lanes: Lanes, lagging: bool) -> None:
    """The last holder of the lane may have used it."""
    hand = Hand()
    if lagging:
        hand.used.raise_to(hand.now)
    lanes.begin = hand.now + 2
    hand.hold(lanes)
    hand.now += 1
    assert hand.one() is None
    hand.now += 1
    assert tick(hand.one()) == hand.now


def test_none_is_made_at_the_horizon(lanes: Lanes) -> None:
    """The last one is that before it."""
    hand = Hand().hold(lanes)
    lanes.words[HORIZON_AT] = hand.now
    assert hand.one() is None
    lanes.words[HORIZON_AT] = hand.now + 1
    assert hand.one()


@pytest.mark.parametrize("token", [0, 1, 1 << 63])
def test_no_tick_is_used_after_the_lease_has_ended(lanes: Lanes, token: int) -> None:
    """The token is that of another holder, or none."""
    hand = Hand().hold(lanes)
    assert hand.leased is not None
    lanes.words[hand.leased.at] ^= token or lanes.words[hand.leased.at]
    assert hand.one() is None


def test_a_token_may_have_all_64_bits(lanes: Lanes) -> None:
    """It is compared as a whole."""
    hand = Hand().hold(lanes)
    lease = hand.leased
    assert lease is not None
    lanes.words[lease.at] = token = (1 << 64) - 1
    assert hand.one() is None
    hand.cutter.hold(lease.page, lease.at, token, 0, FOREVER, FOREVER, lease.origin)
    assert hand.one()


def test_the_page_is_read_after_the_clock(lanes: Lanes) -> None:
    """A lease that ends meanwhile has ended: the horizon of before may be too far."""
    hand = Hand().hold(lanes)
    hand.between = lanes.revoke
    assert hand.one() is None


def test_the_lease_is_that_of_after_the_clock_is_read(lanes: Lanes) -> None:
    """What reads the clock may draw, and so lease another lane."""
    hand = Hand().hold(lanes)

    def change() -> None:
        hand.between = lambda: None
        hand.hold(lanes)

    hand.between = change
    fields = versions.gregorian_fields(hand.one().int)
    assert hand.leased is not None
    assert fields.clock_seq == hand.leased.origin.clock_seq


def test_a_tick_that_is_used_while_the_clock_is_read_is_not_used_again(lanes: Lanes) -> None:
    """By a signal handler, whose id is drawn first, and is the lower one."""
    hand = Hand().hold(lanes)
    inner: list[UUID] = []

    def draw() -> None:
        hand.between = lambda: None
        inner.append(hand.one())
        hand.now += 1

    hand.between = draw
    assert tick(hand.one()) == tick(inner[0]) + 1


def test_none_is_made_while_the_daemon_has_to_be_told(lanes: Lanes) -> None:
    """Python does that."""
    hand = Hand()
    hand.hold(lanes, tell_at=hand.now + 1)
    assert hand.one()
    hand.now += 1
    assert hand.one() is None


def test_none_is_made_past_the_end_of_the_time_field(lanes: Lanes) -> None:
    """Python raises an error."""
    hand = Hand()
    hand.hold(lanes, end=hand.now + 1)
    assert hand.one()
    hand.now += 1
    assert hand.one() is None


@pytest.mark.parametrize("kind", LANED)
@pytest.mark.parametrize("lagging", [False, True])
def test_none_is_made_before_the_time_field(lanes: Lanes, kind: str, lagging: bool) -> None:
    """It would be read as a time far in the future. Nor does an id lag behind UTC into it."""
    hand = Hand(kind).hold(lanes)
    begin, _ = places(kind)
    hand.now = begin - 1
    assert hand.one("text") is None
    hand.used.end = begin - 1 if lagging else 0
    hand.now = begin
    hand.one("text")
    assert hand.used.end == begin + 1


def test_no_steady_tick_before_the_latest_is_used(lanes: Lanes) -> None:
    """As after the fallback has led UTC. Another kind may have used the tick of now."""
    hand = Hand("v7").hold(lanes)
    hand.latest.raise_to(hand.now + 2)
    assert hand.one() is None
    hand.now += 1
    assert hand.one()
    assert hand.latest.end == hand.now + 1


def test_each_steady_id_raises_the_latest_of_all_kinds(lanes: Lanes) -> None:
    """So the next id of another kind is later, also if this one lags."""
    hand = Hand("v7").hold(lanes)
    for later in (0, 2, LAG + 1):
        hand.now += later
        ticks = tick(hand.one())
        assert hand.latest.end == ticks + 1


def test_ticks_are_rounded_down(lanes: Lanes) -> None:
    """Before 1970, too: an id is never ahead of its clock."""
    for nanoseconds, ticks in (
        (199, 1),
        (100, 1),
        (99, 0),
        (0, 0),
        (-1, -1),
        (-100, -1),
        (-101, -2),
    ):
        hand = Hand(clock=lambda now=nanoseconds: now).hold(lanes)  # type: ignore[misc]
        assert tick(hand.one()) == UNIX_EPOCH + ticks


def test_a_clock_before_1970_makes_ids_of_before_1970(lanes: Lanes) -> None:
    """It may be set so."""
    hand = Hand().hold(lanes)
    hand.now = UNIX_EPOCH - 1
    assert tick(hand.one()) == UNIX_EPOCH - 1


@pytest.mark.parametrize("year", [-10_000, 10_000])
@pytest.mark.parametrize("kind", ["v1", "v7"])
def test_a_clock_in_another_age_is_left_to_python(lanes: Lanes, kind: str, year: int) -> None:
    """Its nanoseconds do not fit into 64 bits; a test may have set it."""
    hand = Hand(kind).hold(lanes)
    hand.now += year * 365 * 86_400 * 10_000_000
    assert hand.one() is None
    hand.now = UNIX_EPOCH + 10
    assert hand.one()


# --- of a run


def test_places_that_are_lent_are_used_in_their_order(lanes: Lanes) -> None:
    """Once each, with the origin and the mark of their block, and before the lane's."""
    hand = Hand().hold(lanes)
    hand.lend(START, 3, safe=False)
    ids = [hand.one() for _ in range(3)]
    assert [tick(id) for id in ids] == [START, START + 1, START + 2]
    assert {versions.gregorian_fields(id.int).clock_seq for id in ids} == {BLOCK.clock_seq}
    assert {id.is_safe for id in ids} == {SafeUUID.unknown}
    assert tick(hand.one()) == hand.now


@pytest.mark.parametrize("drawn", [0, 1, 3, 5])
def test_what_is_left_can_be_taken_back(drawn: int) -> None:
    """From then on it is Python's."""
    hand = Hand()
    hand.lend(START, 3)
    for _ in range(drawn):
        hand.one()
    assert hand.cutter.take_back() == START + min(drawn, 3)
    assert hand.one() is None
    assert hand.cutter.take_back() == 0


def test_places_are_used_in_their_span_of_utc() -> None:
    """It ends before the deadline, and with a step back to before its begin."""
    hand = Hand()
    begin = (hand.now - START) / 1e7 + 1_700_000_000
    hand.lend(START, 10, begin=begin, seconds=1.0)
    hand.now -= 10
    assert hand.one() is None
    hand.now += 10
    assert hand.one()
    hand.now += 10_000_000
    assert hand.one() is None
    hand.now -= 10
    assert hand.one()


def test_places_end_when_their_deadline_is_cleared() -> None:
    """Python does that to drop a block."""
    hand = Hand()
    deadline = hand.lend(START, 10)
    deadline[0] = 0.0
    assert hand.one() is None


def test_places_end_with_their_epoch() -> None:
    """A clone has them too; those of a block that was lent after it count."""
    epochs = memoryview(bytearray(8)).cast("Q")
    hand = Hand()
    hand.lend(START, 10, epochs=epochs)
    assert hand.one()
    epochs[0] += 1
    assert hand.one() is None
    hand.lend(START + 20, 10, epochs=epochs, epoch=1)
    assert tick(hand.one()) == START + 20


def test_an_epoch_is_one_word() -> None:
    """Anything else is refused, and lends nothing."""
    hand = Hand()
    for epochs in (memoryview(bytes(16)).cast("Q"), memoryview(bytes(16))[1:9]):
        with pytest.raises(ValueError, match="one aligned word"):
            hand.lend(START, 10, epochs=epochs)
        with pytest.raises(ValueError, match="one aligned word"):
            core.watch(epochs)
    assert hand.one() is None


def test_places_end_when_an_id_of_the_lane_was_made(lanes: Lanes) -> None:
    """They are older than that one."""
    hand = Hand().hold(lanes)
    begin = (hand.now - START) / 1e7 + 1_700_000_000
    hand.lend(START, 10, begin=begin)
    hand.now -= 10
    assert tick(hand.one()) == hand.now
    hand.now += 10
    assert tick(hand.one()) > START + 10


@pytest.mark.parametrize("kind", UNLEASED)
def test_kinds_without_a_lane_are_made_of_blocks(kind: str) -> None:
    """There is no room for the lane's number in them."""
    hand = Hand(kind)
    hand.lend(places(kind)[0] + 10**12, 2)
    ids = [hand.one("int") for _ in range(3)]
    assert ids[1] == ids[0] + 1
    assert ids[2] is None


# --- forks


@pytest.mark.parametrize("source", ["lane", "run", "random"])
def test_none_is_made_in_a_forks_child(lanes: Lanes, source: str) -> None:
    """Its memory is empty there."""
    hand = Hand("v4" if source == "random" else "v1")
    if source == "lane":
        hand.hold(lanes)
    if source == "run":
        hand.lend(START, 10)
    assert hand.one()
    hand.now += 1000
    hand.guard.wipe()
    assert hand.one() is None


@pytest.mark.parametrize("form", ["uuid", "text"])
@pytest.mark.parametrize("kind", ["v1", "v4", "v7"])
def test_a_fork_while_the_clock_is_read_is_noticed(lanes: Lanes, kind: str, form: str) -> None:
    """The last look comes after all that could fork."""
    hand = Hand(kind)
    if kind != "v4":
        hand.hold(lanes)
    hand.between = hand.guard.wipe
    assert hand.one(form) is None


def test_a_fork_while_random_bytes_are_read_is_noticed(lanes: Lanes) -> None:
    """As above."""
    guards: list[ForkGuard] = []

    def read(count: int) -> bytes:
        for guard in guards:
            guard.wipe()
        return bytes(count)

    hand = Hand("v7", random=read).hold(lanes)
    guards.append(hand.guard)
    assert hand.one() is None


def test_a_fork_while_a_uuid_is_constructed_is_noticed(lanes: Lanes) -> None:
    """Where UUIDs are made by calling their class."""
    guards: list[ForkGuard] = []

    class Forking(UUID):
        def __init__(self, **fields: Any) -> None:
            super().__init__(**fields)
            for guard in guards:
                guard.wipe()

    hand = Hand("v1", uuid=Forking).hold(lanes)
    assert hand.one()
    hand.now += 1000
    guards.append(hand.guard)
    assert hand.one() is None


@pytest.mark.process
@pytest.mark.parametrize("fork", [os.fork, raw_fork])
@pytest.mark.parametrize("source", ["lane", "run", "random"])
def test_a_child_draws_nothing_of_its_parents(
    lanes: Lanes, fork: Callable[[], int], source: str
) -> None:
    """However it was forked."""
    hand = Hand("v4" if source == "random" else "v1")
    if source == "lane":
        hand.hold(lanes)
    if source == "run":
        hand.lend(START, 10)
    pid = fork()
    if not pid:
        os._exit(hand.one() is not None)
    assert os.waitpid(pid, 0)[1] == 0
    assert hand.one()


# --- what is refused


def test_places_whose_time_does_not_fit_are_refused() -> None:
    """Otherwise ids would begin anew at 0."""
    hand = Hand()
    with pytest.raises(ValueError, match="time that fits"):
        hand.lend((1 << 60) - 5, 6)
    hand.lend((1 << 60) - 5, 5)


@pytest.mark.parametrize(
    ("field", "value"),
    [("node", 1 << 48), ("clock_seq", 1 << 14), ("worker", 1024), ("lane", 256), ("epoch", -1)],
)
def test_fields_that_do_not_fit_are_refused(field: str, value: int) -> None:
    """They would run into others; the error names the value and the rule."""
    hand = Hand()
    with pytest.raises(ValueError, match=f"{field} is {value}; it must be 0 to "):
        hand.lend(START, 1, origin=BLOCK._replace(**{field: value}))


@pytest.mark.parametrize("origin", [(None, *BLOCK[1:]), BLOCK[:4], 5])
def test_what_is_no_origin_is_refused(origin: Any) -> None:
    """Nothing is read past its end."""
    with pytest.raises(TypeError):
        Hand().cutter.many("uuid", START, 1, origin, True)


def test_a_snowflake_needs_a_worker() -> None:
    """As without the extension."""
    with pytest.raises(ValueError, match="a Snowflake needs a worker number"):
        Hand("snowflake").cutter.many("int", 1 << 52, 1, Origin(0), True)


def test_a_deadline_has_to_be_in_the_memory_that_a_child_finds_empty() -> None:
    """Otherwise a child would go on with the block."""
    hand = Hand()
    slot = memoryview(bytearray(8)).cast("d")
    with pytest.raises(ValueError, match="in the memory of the cutter"):
        hand.cutter.lend(START, START + 1, 0.0, slot, 0, BLOCK, True, NO_EPOCHS, 0)
    with pytest.raises(ValueError, match="in the memory of the cutter"):
        hand.cutter.lend(START, START + 1, 0.0, hand.guard.alive, 0, BLOCK, True, NO_EPOCHS, 0)


@pytest.mark.parametrize("at", [-1, 0, 1, 512])
def test_a_token_has_to_be_in_the_page(lanes: Lanes, at: int) -> None:
    """Nothing is read outside of it."""
    hand = Hand().hold(lanes)
    assert hand.leased is not None
    with pytest.raises(ValueError, match="a token"):
        hand.cutter.hold(lanes.page, at, 1, 0, FOREVER, FOREVER, hand.leased.origin)


@pytest.mark.parametrize("kind", ["", "v5", "v11"])
def test_an_unknown_kind_is_refused(kind: str) -> None:
    """So is an unknown form."""
    with pytest.raises(ValueError, match=f"no kind '{kind}'"):
        Hand(kind)
    with pytest.raises(ValueError, match="no form 'hex'"):
        Hand().one("hex")
    with pytest.raises(ValueError, match="no form 'hex'"):
        core.Draw("hex", int)

"""The lane that a connection leases: when it is asked for, used, told of, and let go."""

from __future__ import annotations

from typing import cast

import pytest

from tests.client.fakes import Time
from tests.client.lanes import Lanes
from uuidd.core.timeline.page import DUE_AT, HORIZON_AT
from uuidd.core.wire.methods import MOST_ASK_AGAIN
from uuidd_client.connection import Connection
from uuidd_client.errors import DaemonUnavailable
from uuidd_client.lease import Holding
from uuidd_client.own_lane import NO_LEASE_SECONDS, TELL_TICKS, OwnLane
from uuidd_client.source import LatestSteady
from uuidd_client.transport import LATER

# --- when a lease is asked for


def test_the_first_call_asks_for_no_lease(lanes: Lanes, time: Time) -> None:
    """A program that makes a few ids, and ends, takes no lane from the others."""
    lane = OwnLane(cast(Connection, lanes), None)
    assert (lane.now(), lanes.asked) == (0, 0)
    assert (lane.now(), lanes.asked) == (time.utc, 1)


def test_a_lease_is_asked_for_once(lanes: Lanes, time: Time) -> None:
    """Then the lane is there, without a request."""
    lane = lanes.own_lane()
    for _ in range(5):
        time.move(10)
        assert lane.now() == time.utc
    assert lanes.asked == 1


def test_a_refused_lease_is_asked_for_once_a_second(lanes: Lanes, time: Time) -> None:
    """Blocks serve meanwhile."""
    lane = OwnLane(cast(Connection, lanes), None)
    lanes.refusing = True
    found = []
    for _ in range(31):
        assert lane.now() == 0
        found.append(lanes.asked)
        time.move(NO_LEASE_SECONDS / 10)
    assert found == [0] + [1] * 10 + [2] * 10 + [3] * 10
    lanes.refusing = False
    time.move(NO_LEASE_SECONDS)
    assert lane.now() == time.utc


@pytest.mark.parametrize(
    ("cause", "seconds"),
    [
        ("no_lease: all 240 lanes are leased; ask again in 12.3 s", 12.3),
        ("no_lease: no lease before UTC; ask again in 0.2 s", NO_LEASE_SECONDS),
        ("no_lease: none; ask again in 1e9 s", NO_LEASE_SECONDS),
        ("no_lease: none; ask again in nan s", NO_LEASE_SECONDS),
        ("an unusable answer: a lease came without its page" + LATER, MOST_ASK_AGAIN),
    ],
)
def test_a_lease_is_asked_for_when_the_daemon_says(
    lanes: Lanes, time: Time, cause: str, seconds: float
) -> None:
    """But not in haste, nor never, whatever it says; and later if the page cannot be received."""
    lane = OwnLane(cast(Connection, lanes), None)
    lanes.refusing, lanes.error = True, DaemonUnavailable("/path", cause)
    assert [lane.now(), lane.now(), lanes.asked] == [0, 0, 1]
    time.move(seconds - 0.01)
    assert (lane.now(), lanes.asked) == (0, 1)
    time.move(0.01)
    assert (lane.now(), lanes.asked) == (0, 2)


def test_a_lease_that_has_ended_is_followed_by_another(lanes: Lanes, time: Time) -> None:
    """Under a lane of its own, after a call that uses none."""
    lane = lanes.own_lane()
    first = lane.origin
    time.move(NO_LEASE_SECONDS)
    lanes.revoke()
    assert lane.now() == 0
    assert lane.now() == time.utc
    assert lane.origin != first


def test_leases_that_end_at_once_are_asked_for_once_a_second(lanes: Lanes, time: Time) -> None:
    """A daemon that revokes all that it grants is not asked on and on."""
    lane = lanes.own_lane()
    for _ in range(50):
        lanes.revoke()
        lane.now()
        time.move(NO_LEASE_SECONDS / 10)
    assert lanes.asked == 1 + 4


# --- the ticks


def test_no_tick_at_the_horizon_is_used(lanes: Lanes, time: Time) -> None:
    """Nor one past it, until the daemon has saved; the lease is kept."""
    lane = lanes.own_lane()
    lanes.words[HORIZON_AT] = time.utc + 1
    assert lane.now() == time.utc
    time.move(1e-7)
    assert lane.now() == 0
    time.move(5)
    assert lane.now() == 0
    lanes.words[HORIZON_AT] = time.utc + 1
    assert lane.now() == time.utc
    assert lanes.asked == 1


def test_a_lease_tells_from_where_on_it_may_be_used(lanes: Lanes, time: Time) -> None:
    """Its last holder may have used what is before."""
    lanes.begin = time.utc + 5
    lane = OwnLane(cast(Connection, lanes), None)
    lane.now()
    lane.now()
    assert lane.begin == time.utc + 5


def test_the_lease_of_a_daemon_that_has_ended_lasts_up_to_its_horizon(
    lanes: Lanes, time: Time
) -> None:
    """Nobody raises that horizon again, so the next daemon is asked then."""
    lane = lanes.own_lane()
    ends = time.utc + 100
    lanes.words[HORIZON_AT] = ends
    next_one = Lanes()
    # The connection was opened again, to the next daemon.
    lanes.page = next_one.page
    time.utc = ends - 1
    assert lane.now() == time.utc
    time.move(NO_LEASE_SECONDS)
    assert lane.now() == 0
    assert lane.lease is None
    next_one.close()


def test_the_epoch_of_a_lane_is_read_before_its_token(
    lanes: Lanes, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease that ends just after it was checked is not taken for one of the new epoch."""
    lane = lanes.own_lane()
    allows = Holding.allows

    def renewed(lease: Holding, tick: int) -> bool:
        allowed = allows(lease, tick)
        lanes.renew()
        return allowed

    monkeypatch.setattr(Holding, "allows", renewed)
    assert lane.now() == time.utc
    assert lane.watch.moved


# --- what the daemon is told


def test_the_daemon_is_told_from_half_of_the_horizon_on(lanes: Lanes, time: Time) -> None:
    """Once for each horizon."""
    lanes.words[DUE_AT] = time.utc + 100
    lanes.words[HORIZON_AT] = time.utc + 200
    lane = lanes.own_lane()
    time.utc += 99
    lane.now()
    assert lanes.told == 0
    for _ in range(50):
        time.utc += 1
        lane.now()
    assert lanes.told == 1
    lanes.words[DUE_AT], lanes.words[HORIZON_AT] = time.utc + 100, time.utc + 1000
    for _ in range(200):
        time.utc += 1
        lane.now()
    assert lanes.told == 2


def test_a_holder_that_makes_nothing_tells_nothing(lanes: Lanes, time: Time) -> None:
    """So an idle host saves nothing."""
    lanes.words[DUE_AT] = time.utc + 1
    lane = lanes.own_lane()
    time.move(1)
    assert lanes.told == 0
    lane.now()
    assert lanes.told == 1


def test_after_a_restart_the_next_daemon_is_told_again_and_again(lanes: Lanes, time: Time) -> None:
    """It cannot raise the horizon that the holder sees, but it has one when that one is over."""
    lane = lanes.own_lane()
    next_one = Lanes()
    lanes.page = next_one.page
    lane.lease.tell_at = 0  # type: ignore[union-attr]  # it is there
    found = []
    for _ in range(4):
        lane.now()
        lane.now()
        found.append(lanes.told)
        time.utc += TELL_TICKS
    assert found == [1, 2, 3, 4]
    next_one.close()


# --- the steady kinds, and the end


def test_ticks_of_the_steady_kinds_are_noted(lanes: Lanes, time: Time) -> None:
    """Blocks and the fallback go on after them."""
    latest = LatestSteady()
    lanes.own_lane(latest).note(time.utc + 1)
    assert latest.end == time.utc + 1


@pytest.mark.parametrize("led", [0, 500])
def test_the_end_is_past_now_and_past_all_steady_ticks(lanes: Lanes, time: Time, led: int) -> None:
    """Those may lead UTC."""
    latest = LatestSteady()
    latest.note(time.utc + led)
    assert lanes.own_lane(latest).end() == time.utc + max(1, led)
    assert lanes.own_lane().end() == time.utc + 1


def test_a_lane_that_was_dropped_is_asked_for_anew(lanes: Lanes, time: Time) -> None:
    """As when the client was closed, and is used again."""
    lane = lanes.own_lane()
    lane.drop()
    time.move(NO_LEASE_SECONDS / 2)
    assert lane.now() == 0
    time.move(NO_LEASE_SECONDS / 2)
    assert lane.now() == time.utc
    assert lanes.asked == 2

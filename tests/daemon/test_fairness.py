from __future__ import annotations

from collections import Counter

import pytest

from uuidd.server.fairness import (
    CONTENDED,
    IDLE_CREDIT,
    MAX_CREDIT,
    OverShare,
    Shares,
    counting,
)

GREEDY, OTHER, THIRD = 1000, 1001, 1002


def take(shares: Shares, uid: int, *, asked: int, given: int, at: int) -> bool:
    """Take as the allocator does; the answer is whether the share allowed it."""
    if shares.contended:
        try:
            shares.check(uid, at=at)
        except OverShare:
            return False
    if shares.contended or given < asked:
        shares.draw(uid, asked=asked, given=given, at=at)
    shares.last = uid
    return True


def contended(lanes: int, *uids: int) -> Shares:
    """Return shares after each user in turn has got less than it asked for."""
    shares = Shares(lanes)
    for uid in (*uids, uids[0]):
        take(shares, uid, asked=2, given=1, at=0)
    return shares


def test_a_user_who_is_alone_has_no_bound() -> None:
    shares = contended(1, GREEDY, GREEDY)
    assert not shares.contended


def test_users_who_get_what_they_ask_for_have_no_bound() -> None:
    shares = Shares(1)
    for uid in (GREEDY, OTHER, GREEDY):
        take(shares, uid, asked=500, given=500, at=0)
    assert not shares.contended


def test_a_grant_that_failed_costs_nothing() -> None:
    shares = contended(1, GREEDY, OTHER)
    for at in range(IDLE_CREDIT, 100 * IDLE_CREDIT, IDLE_CREDIT):
        shares.draw(GREEDY, asked=2, given=0, at=at)
    assert take(shares, GREEDY, asked=2, given=2, at=100 * IDLE_CREDIT)


def test_a_shortage_is_forgotten_after_a_fifth_of_a_second() -> None:
    shares = contended(1, GREEDY, OTHER)
    shares.draw(GREEDY, asked=1, given=2 * CONTENDED, at=CONTENDED - 2)
    with pytest.raises(OverShare):
        shares.check(GREEDY, at=CONTENDED - 1)
    shares.check(GREEDY, at=CONTENDED)
    assert not shares.contended


def test_it_says_when_a_share_is_no_longer_overdrawn() -> None:
    shares = contended(15, GREEDY, OTHER)
    shares.draw(GREEDY, asked=14_998, given=14_998, at=0)
    with pytest.raises(OverShare) as caught:
        shares.check(GREEDY, at=0)
    wait = caught.value.wait
    with pytest.raises(OverShare):
        shares.check(GREEDY, at=wait - 1)
    shares.check(GREEDY, at=wait)
    assert (wait, caught.value.parts) == (2000, 2)


def test_an_account_gathers_for_a_hundredth_of_a_second() -> None:
    """So a user that pauses cannot take the ticks of a whole second at once."""
    shares = contended(15, GREEDY, OTHER)
    shares.check(GREEDY, at=CONTENDED - 1)
    shares.draw(GREEDY, asked=1, given=MAX_CREDIT * 15, at=CONTENDED - 1)
    with pytest.raises(OverShare):
        shares.check(GREEDY, at=CONTENDED - 1)


def test_what_a_user_has_overdrawn_is_not_forgotten_while_others_want_ticks() -> None:
    shares = contended(15, GREEDY, OTHER)
    shares.draw(GREEDY, asked=1, given=20 * MAX_CREDIT * 15, at=CONTENDED - 1)
    shares.draw(OTHER, asked=2, given=1, at=CONTENDED)
    with pytest.raises(OverShare):
        shares.check(GREEDY, at=CONTENDED + 1)


def test_a_user_who_wants_nothing_any_more_has_no_share() -> None:
    """The others have more, even while none of them is given anything."""
    shares = contended(15, GREEDY, OTHER, THIRD)
    shares.last = OTHER
    shares.draw(GREEDY, asked=10**9, given=10**8, at=CONTENDED // 2)
    for at, parts in ((CONTENDED // 2, 3), (CONTENDED + 1, 2)):
        with pytest.raises(OverShare) as caught:
            shares.check(GREEDY, at=at)
        assert caught.value.parts == parts


def test_what_was_drawn_before_a_shortage_does_not_count() -> None:
    shares = Shares(15)
    take(shares, GREEDY, asked=10**9, given=10**6, at=0)
    take(shares, OTHER, asked=2, given=1, at=0)
    assert shares.contended
    shares.check(GREEDY, at=0)


def test_a_user_who_waits_no_longer_takes_no_memory() -> None:
    """A host may have as many users as there are numbers."""
    waiting = Counter[int]()
    with counting(waiting, GREEDY), counting(waiting, GREEDY):
        assert waiting[GREEDY] == 2
    assert GREEDY not in waiting

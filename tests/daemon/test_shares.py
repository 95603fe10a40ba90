from __future__ import annotations

import pytest

from uuidd.server.shares import SAVED, WANTING, OverShare, Shares

GREEDY, OTHER, THIRD = 1000, 1001, 1002


def wanting(shares: Shares, *uids: int, at: int = 0) -> None:
    """Let each be given less than he asked for."""
    for uid in uids:
        shares.draw(uid, asked=2, given=1, at=at)


def drawn(shares: Shares, uid: int, *, ticks: int, each: int, since: int = 0) -> int:
    """Give what *uid* gets in so many ticks, of which he asks for *each* at any of them."""
    given = 0
    for at in range(since, since + ticks, 10):
        try:
            shares.check(uid, at=at)
        except OverShare:
            continue
        shares.draw(uid, asked=each, given=each, at=at)
        given += each
    return given


def test_a_user_who_is_alone_has_no_bound() -> None:
    """However much less than he asks for there is."""
    shares = Shares(1)
    wanting(shares, GREEDY)
    assert drawn(shares, GREEDY, ticks=1000, each=500) == 50_000
    assert not shares.contended


def test_users_who_get_what_they_ask_for_have_no_bound() -> None:
    """Nothing is counted for them."""
    shares = Shares(1)
    for uid in (GREEDY, OTHER):
        shares.draw(uid, asked=500, given=500, at=0)
    assert not shares.contended


@pytest.mark.parametrize(("rate", "users"), [(1, 2), (1, 3), (15, 2), (15, 3)])
def test_users_who_want_more_than_there_is_get_the_same(rate: int, users: int) -> None:
    """Each his share of the rate, but for the last grant."""
    shares = Shares(rate)
    uids = (GREEDY, OTHER, THIRD)[:users]
    wanting(shares, *uids)
    got = [drawn(shares, uid, ticks=SAVED, each=1000) for uid in uids]
    assert got == pytest.approx([SAVED * rate / users] * users, abs=1001)


def test_what_one_does_not_want_another_gets() -> None:
    """Who has not been wanting for a while has no share to keep free."""
    shares = Shares(1)
    wanting(shares, GREEDY, OTHER)
    wanting(shares, GREEDY, at=WANTING)
    shares.check(GREEDY, at=2 * WANTING - 1)
    assert not shares.contended


def test_it_says_when_a_share_is_no_longer_overdrawn() -> None:
    """And not before."""
    shares = Shares(1)
    wanting(shares, GREEDY, OTHER)
    shares.draw(GREEDY, asked=1000, given=1000, at=0)
    with pytest.raises(OverShare) as caught:
        shares.check(GREEDY, at=0)
    wait = caught.value.wait
    with pytest.raises(OverShare):
        shares.check(GREEDY, at=wait - 1)
    shares.check(GREEDY, at=wait)
    assert (wait, caught.value.parts) == (2000, 2)


def test_an_account_gathers_for_a_hundredth_of_a_second() -> None:
    """So who pauses does not have a second's worth at once."""
    shares = Shares(1)
    wanting(shares, GREEDY, OTHER)
    shares.check(GREEDY, at=WANTING - 1)
    shares.draw(GREEDY, asked=SAVED, given=SAVED, at=WANTING - 1)
    with pytest.raises(OverShare):
        shares.check(GREEDY, at=WANTING - 1)


def test_one_who_comes_anew_is_not_bound_by_what_he_drew_before() -> None:
    """Only what is drawn while two or more are wanting counts."""
    shares = Shares(1)
    wanting(shares, GREEDY)
    shares.draw(GREEDY, asked=10**9, given=10**6, at=0)
    wanting(shares, OTHER)
    shares.check(GREEDY, at=0)

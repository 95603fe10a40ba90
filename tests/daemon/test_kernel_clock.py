from __future__ import annotations

import errno
import os

import pytest

from uuidd.kernel_clock import (
    STA_UNSYNC,
    TIME_DEL,
    TIME_ERROR,
    TIME_INS,
    TIME_OOP,
    Adjtimex,
    Quality,
    Timex,
    UnknownError,
    quality,
)


def kernel(state: int = 0, *, status: int = 0, maxerror: int = 2500) -> Adjtimex:
    """A kernel that answers so; *maxerror* is in microseconds."""

    def adjtimex(timex: Timex) -> int:
        assert timex.modes == 0, "it would set the clock"
        timex.status, timex.maxerror = status, maxerror
        return state

    return adjtimex


def test_a_synchronised_clock_has_a_largest_error() -> None:
    """The kernel counts it in microseconds."""
    assert quality(kernel()) == Quality(True, 0.0025, None)


@pytest.mark.parametrize("told", [kernel(TIME_ERROR), kernel(status=STA_UNSYNC | 1)])
def test_either_sign_of_the_kernel_says_that_nothing_sets_the_clock(told: Adjtimex) -> None:
    """The state and the bit can differ for a moment, and one is enough."""
    assert not quality(told).synchronised


@pytest.mark.parametrize(
    ("state", "leap"), [(TIME_INS, "insert"), (TIME_DEL, "delete"), (TIME_OOP, "now")]
)
def test_a_leap_second_is_told_and_leaves_the_clock_synchronised(state: int, leap: str) -> None:
    """Time daemons tell the kernel of it up to a day before."""
    assert quality(kernel(state)) == Quality(True, 0.0025, leap)  # type: ignore[arg-type]


def test_a_kernel_that_must_not_be_asked_is_no_bad_clock() -> None:
    """As in a sandbox with systemd's ProtectClock=."""

    def adjtimex(timex: Timex) -> int:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    with pytest.raises(UnknownError, match=r"^adjtimex: Operation not permitted$"):
        quality(adjtimex)


def test_this_kernel_answers_or_says_why_not() -> None:
    """The structure is large enough for it, and the fields are where it writes them."""
    told = ""
    try:
        # The kernel never lets the error grow beyond 16 s.
        assert 0 <= quality().max_error <= 16.0
    except UnknownError as unknown:
        told = str(unknown)
    assert not told or told.startswith("adjtimex: ")


@pytest.mark.parametrize(
    ("clock", "lack"),
    [
        (Quality(True, 0.5), ""),
        (Quality(True, 0.501), "the clock may be wrong by 0.501 s"),
        (Quality(False, 0.0), "the clock is not synchronised"),
    ],
)
def test_what_a_clock_lacks_is_said_in_words(clock: Quality, lack: str) -> None:
    """Measured by half a second."""
    assert clock.lack(0.5) == lack

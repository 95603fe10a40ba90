"""Errors that leave the process in which they were raised."""

from __future__ import annotations

import copy

import pytest

from uuidd_client import DaemonUnavailable, NoWorkerId, RateExceeded, TimeOutOfRange


@pytest.mark.parametrize(
    "error",
    [
        DaemonUnavailable("/path", "silent for 1 s", late=True),
        NoWorkerId("/path"),
        RateExceeded("v1", 10, 3),
        TimeOutOfRange("ksuid", 10, 20, 30),
    ],
)
def test_an_error_comes_whole_out_of_another_process(error: Exception) -> None:
    """A pool of processes pickles what its workers raise; a copy is made in the same way."""
    told = copy.copy(error)
    assert type(told) is type(error)
    assert str(told) == str(error)
    assert vars(told) == vars(error)

"""What administrators and users say in the environment."""

from __future__ import annotations

import pytest

from uuidd_client import Client
from uuidd_client.system import default_timeout, may_fall_back


def test_the_time_out_is_a_fifth_of_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than that is a caller held up by a daemon that hangs."""
    monkeypatch.delenv("UUIDD_TIMEOUT")
    assert default_timeout() == 0.2


def test_a_command_may_have_a_longer_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person waits longer than a server's request."""
    monkeypatch.setenv("UUIDD_TIMEOUT", "")
    assert default_timeout(1.0) == 1.0


@pytest.mark.parametrize(("given", "seconds"), [("3", 3.0), ("0.05", 0.05), ("1e300", 3e7)])
def test_the_environment_sets_the_time_out(
    given: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UUIDD_TIMEOUT is in seconds; one beyond all clocks is as good as none."""
    monkeypatch.setenv("UUIDD_TIMEOUT", given)
    assert default_timeout() == seconds


@pytest.mark.parametrize("given", ["soon", "0", "-1", "nan", "inf", "0.2 s", " "])
def test_a_bad_time_out_in_the_environment_is_one_clear_error(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first id names the variable, its value and the rule, with a fallback and without."""
    monkeypatch.setenv("UUIDD_TIMEOUT", given)
    for fallback in (True, False):
        with pytest.raises(
            ValueError, match=f"UUIDD_TIMEOUT is {given!r}; it must be a number of seconds above 0"
        ):
            Client("/nowhere/s", fallback=fallback).uuid1()


def test_the_argument_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that says its own time-out is not asked for the environment's."""
    monkeypatch.setenv("UUIDD_TIMEOUT", "soon")
    with Client("/nowhere/s", timeout=0.1) as client:
        client.uuid1()


@pytest.mark.parametrize(
    ("wanted", "variable", "may"),
    [
        (True, None, True),
        (True, "1", True),
        (True, "", True),
        (True, "0", False),
        (False, None, False),
        (False, "1", False),
    ],
)
def test_the_fallback_takes_the_callers_and_the_administrators_consent(
    wanted: bool, variable: str | None, may: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either may forbid it, and neither can order what the other forbade."""
    monkeypatch.delenv("UUIDD_FALLBACK", raising=False)
    if variable is not None:
        monkeypatch.setenv("UUIDD_FALLBACK", variable)
    assert may_fall_back(wanted) is may

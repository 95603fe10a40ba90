"""The system's clock, and what administrators and users say in the environment."""

from __future__ import annotations

import pytest

from uuidd_client import Client
from uuidd_client.system import given_timeout, may_fall_back


@pytest.mark.parametrize(
    ("given", "seconds"),
    # An empty variable is as good as none, and a time-out beyond all clocks as the longest.
    [(None, None), ("", None), ("3", 3.0), ("0.05", 0.05), ("1e300", 3e7)],
)
def test_the_environment_sets_the_time_out(
    given: str | None, seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UUIDD_TIMEOUT")
    if given is not None:
        monkeypatch.setenv("UUIDD_TIMEOUT", given)
    assert given_timeout() == seconds


@pytest.mark.parametrize("given", ["soon", "0", "-1", "nan", "inf", "0.2 s", " "])
@pytest.mark.parametrize("fallback", [True, False])
def test_a_bad_time_out_in_the_environment_is_one_clear_error(
    given: str, fallback: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UUIDD_TIMEOUT", given)
    refusal = f"UUIDD_TIMEOUT is {given!r}; it must be a finite number of"
    with pytest.raises(ValueError, match=refusal):
        Client("/nowhere/s", fallback=fallback).uuid1()


def test_the_argument_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UUIDD_TIMEOUT", "soon")
    with Client("/nowhere/s", timeout=0.1) as client:
        client.uuid1()


@pytest.mark.parametrize(
    ("wanted", "variable", "may"),
    [
        *((True, None, True), (True, "1", True), (True, "", True), (True, "0", False)),
        *((False, None, False), (False, "1", False)),
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

"""What the log says, in words that a newcomer understands."""

from __future__ import annotations

import logging

import pytest

from tests.rig import Daemon
from uuidd.core.timeline.utc import Opening
from uuidd.server import events


def said(caplog: pytest.LogCaptureFixture, reason: str, back: int = 0) -> tuple[str, str]:
    """Give the level and the line with which an opening is told."""
    caplog.set_level(logging.INFO, logger="uuidd")
    events.opening(Opening(reason, 638, 0x448899365732, back))
    [record] = caplog.records
    return record.levelname, record.getMessage()


@pytest.mark.parametrize(
    ("reason", "back", "level", "words"),
    [
        ("no state", 0, "INFO", "there was no state, so a new one was made"),
        (
            "UTC stepped back",
            35_000_000,
            "WARNING",
            "the clock sequence was changed, because UTC is 3.500 s behind the last id",
        ),
        (
            "the saved mark lies past now",
            1_000_000,
            "WARNING",
            "the clock sequence was changed, because the last run did not stop cleanly, or UTC was"
            " set back since; ticks up to 0.100 s from now may have been used",
        ),
        ("node changed", 0, "WARNING", "the node and the clock sequence were changed"),
        (
            "no save within 0.8 s (100 % full)",
            0,
            "WARNING",
            "v1 and v6 come from a volatile node (no save within 0.8 s (100 % full))",
        ),
        (
            "saved again",
            0,
            "INFO",
            "the state can be saved again, so v1 and v6 come from the stored node again",
        ),
    ],
)
def test_an_opening_is_told_in_words(
    caplog: pytest.LogCaptureFixture, reason: str, back: int, level: str, words: str
) -> None:
    """What happened and what became of it, with units, and the clock sequence as ids have it."""
    assert said(caplog, reason, back) == (
        level,
        f"{words}: clock_seq=10208 node=0x448899365732",
    )


@pytest.mark.parametrize(
    ("nanoseconds", "line"),
    [
        (3_600_000_000_000, "UTC was set forward by 3600.000 s"),
        (-1_500_000_000, "UTC was set back by 1.500 s"),
    ],
)
def test_a_step_is_told_with_its_direction(
    caplog: pytest.LogCaptureFixture, nanoseconds: int, line: str
) -> None:
    """In words, for a sign is overlooked."""
    events.step(nanoseconds)
    assert caplog.messages == [line]


@pytest.mark.system
def test_a_first_start_puzzles_nobody() -> None:
    """It tells of the new state and of the start, each value with its name, and of nothing else."""
    with Daemon() as daemon:
        begun, *root, started = daemon.lines
        assert begun.startswith("uuidd: INFO: there was no state, so a new one was made: clock_seq")
        assert all("running as root" in line for line in root)
        assert f"socket={daemon.socket} state={daemon.state} node=0x" in started
        assert "None" not in "".join(daemon.lines)

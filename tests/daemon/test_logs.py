"""The log: its levels for the journal, and how much of it one event may fill."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rig import PATIENCE
from uuidd.cli import logs
from uuidd.cli.logs import BURST, SPAN, RateLimit, complaint

uuidd = logging.getLogger("uuidd")


def stream(path: Path | int, *, more: int = 0) -> str:
    found = os.stat(path)
    return f"{found.st_dev}:{found.st_ino + more}"


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    ("level", "priority"), [(10, 7), (20, 6), (25, 5), (30, 4), (40, 3), (50, 2)]
)
def test_the_journal_is_told_the_level(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, level: int, priority: int
) -> None:
    """By the prefix of sd-daemon(3). The journal takes each line for an entry of its own."""
    monkeypatch.setenv("JOURNAL_STREAM", stream(2))
    logs.to_stderr(logging.DEBUG)
    uuidd.log(level, "it failed: folder=%s", "one\ntwo")
    assert capsys.readouterr().err == f"<{priority}>it failed: folder=one\\ntwo\n"


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("found", ["", "1:2", "x", stream(Path(os.devnull), more=1)])
def test_a_journal_of_another_is_not_ours(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, found: str
) -> None:
    monkeypatch.setenv("JOURNAL_STREAM", found)
    logs.to_stderr(logging.INFO)
    uuidd.warning("something: number=%d folder=%s", 5, "one\ntwo")
    uuidd.debug("below the level")
    assert capsys.readouterr().err == "uuidd: WARNING: something: number=5 folder=one\\ntwo\n"


def test_the_line_that_ends_a_start_is_an_error_in_the_journal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that ``journalctl -p err`` shows it."""
    monkeypatch.setenv("JOURNAL_STREAM", stream(2))
    assert complaint("no folder one\ntwo") == "<3>no folder one\\ntwo"
    monkeypatch.delenv("JOURNAL_STREAM")
    assert complaint("no such folder") == "uuidd: no such folder"


@pytest.mark.system
def test_a_daemon_whose_standard_error_is_the_journals_writes_for_it(tmp_path: Path) -> None:
    """Each of its lines has a level, from the first on; the last says why it was refused."""
    read, write = os.pipe()
    environment = {**os.environ, "JOURNAL_STREAM": stream(write)}
    start = [sys.executable, "-m", "uuidd", "-F", "-P", f"-s{tmp_path / 's'}"]
    for state, last in ((tmp_path, "<6>stopped: state saved"), (tmp_path / "no", "<3>the state")):
        daemon = subprocess.Popen(
            [*start, f"--state={state}"], stderr=write, env=environment, stdin=subprocess.DEVNULL
        )
        said = b""
        try:
            if state == tmp_path:
                while b"started:" not in said:
                    said += os.read(read, 65536)
                daemon.terminate()
            daemon.wait(PATIENCE)
        finally:
            daemon.kill()
        said += os.read(read, 65536)
        lines = said.decode().splitlines()
        assert [line for line in lines if line[0] + line[2] != "<>"] == []
        assert lines[-1].startswith(last)
    os.close(read)
    os.close(write)


class Log:
    """A logger whose lines, and whose clock, are the test's."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self._out = io.StringIO()
        self._logger = logging.Logger("test")
        handler = logging.StreamHandler(self._out)
        handler.addFilter(RateLimit(lambda: self.seconds))
        self._logger.addHandler(handler)
        self.say = self._logger.info

    @property
    def lines(self) -> list[str]:
        """The lines since the last look."""
        lines = self._out.getvalue().splitlines()
        self._out.seek(0)
        self._out.truncate()
        return lines


def test_a_burst_of_lines_is_cut_and_no_other_event() -> None:
    """Each event has its own share, and is the same with other numbers in the same words."""
    log = Log()
    for number in range(100):
        log.say("event: number=%d", number)
    log.say("save failed: cause=%r", "x")
    burst = [f"event: number={number}" for number in range(BURST)]
    assert log.lines == [*burst, "save failed: cause='x'"]


def test_the_first_line_after_it_says_once_how_many_were_not_shown() -> None:
    log = Log()
    for _ in range(BURST + 7):
        log.say("event: number=%d", 1)
    log.seconds += SPAN - 0.001
    log.say("event: number=%d", 2)
    assert len(log.lines) == BURST
    log.seconds += 0.001
    log.say("event: number=%d", 3)
    log.say("event: number=%d", 4)
    assert log.lines == ["event: number=3 suppressed=8", "event: number=4"]


def test_a_burst_that_just_fits_is_shown_whole() -> None:
    log = Log()
    for _ in range(2):
        for _ in range(BURST):
            log.say("event")
        log.seconds += SPAN
    assert log.lines == ["event"] * 2 * BURST


def test_an_endless_stream_fills_the_log_no_faster_than_may_be() -> None:
    """And the numbers together say how many there were."""
    log = Log()
    for _ in range(10_000):
        log.say("event")
        log.seconds += SPAN / 1000
    lines = log.lines
    assert len(lines) <= 11 * BURST
    hidden = sum(int(line.split("suppressed=")[1]) for line in lines if "suppressed" in line)
    assert len(lines) + hidden > 10_000 - 1000


@pytest.mark.usefixtures("root")
def test_the_log_is_bounded_wherever_it_goes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JOURNAL_STREAM", raising=False)
    logs.to_stderr(logging.INFO)
    for _ in range(BURST + 5):
        uuidd.info("event")
    assert len(capsys.readouterr().err.splitlines()) == BURST


@pytest.mark.usefixtures("root")
def test_without_a_syslog_the_background_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "SYSLOG", tmp_path / "none")
    logs.prepare_syslog()
    logs.to_syslog(logging.INFO)
    uuidd.info("event")

"""``uuidd workers``, run over a folder: what each command does, says and refuses."""

from __future__ import annotations

import io
import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import time_machine
import trio

from uuidd.cli import listing, main
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.fleet.address import parse
from uuidd.fleet.record import Meta, Record
from uuidd.fleet.registers import connect

FAR = UNIX_EPOCH + 100 * 365 * 86400 * TICKS_PER_SECOND
"""A tick some fifty years ahead."""

HOUR = 3600 * TICKS_PER_SECOND


class Fleet:
    """A namespace in a folder, and the command."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.url = f"folder://{folder}/numbers"
        self._capsys = capsys

    def made(self, *words: str) -> Fleet:
        """Make the namespace, which no host ever had."""
        self.says(f"init --new {' '.join(words)}")
        return self

    def says(self, command: str) -> str:
        """Return what a command prints that succeeds."""
        name, *words = command.split()
        assert main(["workers", name, self.url, *words]) == 0
        return self._capsys.readouterr().out

    def refuses(self, command: str) -> str:
        """Return the line of a command that fails."""
        name, *words = command.split()
        assert main(["workers", name, self.url, *words]) == 1
        line = self._capsys.readouterr().err
        assert line.startswith("uuidd: ")
        assert line.count("\n") == 1
        return line

    def numbers(self) -> dict[int, dict[str, Any]]:
        """Return what ``list --json`` says of each number."""
        return {row["number"]: row for row in json.loads(self.says("list --json"))["numbers"]}

    def read(self, number: int) -> Record:
        """Return a register."""
        found = trio.run(self._register, number, None)
        assert found is not None
        return found

    def write(self, number: int, record: Record) -> None:
        """Write a register, as a host does."""
        trio.run(self._register, number, record)

    async def _register(self, number: int, record: Record | None) -> Record | None:
        async with connect(parse(self.url)) as registers:
            await registers.meta()
            found = await registers.read(number)
            if record is not None:
                await registers.write(number, record, found)
            return found


HELD = Record("fedcba9876543210", FAR, held=True, host="db1", other={"later": 1})


def of_now(left: int) -> Record:
    """Return the register of a host that has just renewed its number for so many ticks."""
    now = UNIX_EPOCH + time.time_ns() // 100
    return replace(HELD, at=now, until=now + left)


@pytest.fixture
def fleet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Fleet:
    """A folder in which no namespace was made."""
    return Fleet(tmp_path, capsys)


def test_a_namespace_is_made_once_with_its_numbers(fleet: Fleet) -> None:
    """Reserved ones are there from the beginning."""
    said = fleet.says("init --new --range 3-900 --reserve 3-4,7")
    assert "numbers 3 to 900" in said
    assert "they begin at once, because --new says that no host ever had one" in said
    assert "exists already" in fleet.refuses("init --reserve 5")
    rows = fleet.numbers()
    assert {number: row["state"] for number, row in rows.items()} == dict.fromkeys(
        (3, 4, 7), "reserved"
    )
    assert fleet.read(3).until == 0


@pytest.mark.parametrize(
    ("options", "least", "told"),
    [
        (
            "--worker-window=1h",
            4200,
            "use them, with a --worker-window of 3600s and a --worker-hold of 600s at most",
        ),
        # A host's clock may be ahead, however short the hold is.
        ("--worker-window=20s --worker-hold=1s", 80, "a --worker-hold of 1s at most"),
    ],
)
def test_numbers_begin_after_the_window_and_the_hold_of_hosts_that_may_have_them(
    fleet: Fleet, options: str, least: float, told: str
) -> None:
    """The engine may have lost the namespace; only ``--new`` says that it has not."""
    said = fleet.says(f"init --range 0-9 --reserve 3 {options}")
    rows = fleet.numbers()
    assert len(rows) == 10
    assert rows[3]["state"] == "reserved"
    assert all(least - 10 < row["until_in"] <= least for row in rows.values())
    assert told in said
    assert f"so they begin at {rows[0]['until']}; " in said


WITHOUT = dict.fromkeys(
    ("list", "raise", "reserve 1", "free 1"), "make it with uuidd workers init URL"
)


@pytest.mark.parametrize(
    ("command", "error"),
    [*WITHOUT.items(), ("init --range=0-9 --reserve=10", "number 10 is not in the fleet's 0 to 9")],
)
def test_what_cannot_be_done_without_a_namespace_is_refused(
    fleet: Fleet, command: str, error: str
) -> None:
    assert error in fleet.refuses(command)


LONGER = Record(
    "fedcba9876543210", UNIX_EPOCH + 10**16 + HOUR, held=True, host="db1", at=UNIX_EPOCH + 10**16
)
"""The register of a host with a window of an hour, which it renewed years ago."""


@pytest.mark.parametrize(
    ("record", "command", "error"),
    [
        # Nor any of those beside it.
        (HELD, "reserve 16-17", "number 17 is held by db1"),
        (HELD, "free 17", "Is its host gone for ever? Then add --yes"),
        (HELD, "free 16 --yes", "number 16 is free: no host ever had it"),
        # Its host goes on for longer than the command says.
        (
            LONGER,
            "raise --worker-window 20m",
            "uuidd: host 'db1' has reserved number 17 for 3600 s; run this with --worker-window"
            " 3600s, or free the number first\n",
        ),
        # It would reserve its number for the time of a restore.
        (
            of_now(HOUR),
            "raise --worker-window 1h",
            "uuidd: number 17 is held by db1, so hosts may reach the engine; cut off all of them,"
            " and then add --hosts-cut-off; nothing was changed\n",
        ),
    ],
)
def test_what_a_host_still_uses_is_not_changed(
    fleet: Fleet, record: Record, command: str, error: str
) -> None:
    fleet.made("--range 0-20").write(17, record)
    assert error in fleet.refuses(command)
    assert set(fleet.numbers()) == {17}
    assert fleet.read(17) == record


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (LONGER, "--worker-window 59m"),
        (of_now(HOUR), "--worker-window 1h --hosts-cut-off"),
        (of_now(0), "--worker-window 1h"),
    ],
    ids=["silent", "cut off", "ended"],
)
def test_numbers_are_raised_once_no_host_renews(fleet: Fleet, record: Record, words: str) -> None:
    fleet.made("--range 0-20").write(17, record)
    assert "raised 21 numbers" in fleet.says(f"raise {words}")


@pytest.mark.parametrize(
    ("options", "until"),
    [("", FAR), ("--used-until 2026-01-01T00:00:00Z", UNIX_EPOCH + 1767225600 * 10**7)],
)
def test_a_held_number_is_freed(fleet: Fleet, options: str, until: int) -> None:
    """From where it was used, or the administrator knows better. Fields of later versions stay."""
    fleet.made().write(17, HELD)
    fleet.says(f"free 17 --yes {options}")
    freed = fleet.read(17)
    assert (freed.held, freed.until, freed.other) == (False, until, {"later": 1})
    assert freed.claim != HELD.claim


def test_the_numbers_are_listed(fleet: Fleet) -> None:
    fleet.made("--epoch 2015-01-01T00:00:00Z")
    fleet.write(17, HELD)
    text = fleet.says("list")
    assert "epoch 2015-01-01T00:00:00.000Z; 1023 were never used" in text
    assert re.search(r"^ +17 +held +in [\d.]+ years .* db1$", text, re.MULTILINE)


def test_an_epoch_after_the_year_9999_is_listed(fleet: Fleet) -> None:
    fleet.made("--epoch 281474976710655")
    assert "epoch +10889-08-02T05:31:50.655Z; 1024 were never used" in fleet.says("list")


def test_a_register_that_cannot_be_read_is_listed(fleet: Fleet, tmp_path: Path) -> None:
    fleet.made("--reserve 5")
    (register,) = tmp_path.glob("numbers/*/0005")
    register.write_text("1\ngarbage\n")
    assert "0005 is no record of uuidd" in fleet.says("list")
    assert "0005 is no record of uuidd" in fleet.refuses("raise")


def test_a_free_number_is_reserved_and_freed_again(fleet: Fleet) -> None:
    fleet.made()
    assert "numbers reserved: 1; no new host gets them" in fleet.says("reserve 5")
    assert fleet.read(5).reserved
    assert "is free; it begins at 20" in fleet.says("free 5 --yes")
    assert not fleet.read(5).reserved
    assert 50 < fleet.numbers()[5]["until_in"] <= 60


@pytest.mark.parametrize(
    ("offset", "shown"), [(-0.04, "+0.0 s"), (0.04, "+0.0 s"), (-0.26, "-0.3 s"), (None, " ")]
)
def test_the_list_says_how_wrong_the_clock_of_a_host_is(offset: float | None, shown: str) -> None:
    """To a tenth of a second; what is rounded to zero has no minus sign."""
    row = {"number": 5, "state": "held", "reserved": False, "until_in": 600.0, "written_ago": 0.0}
    table = listing.as_table(
        Meta("0" * 16, 0, 0, 7), [{**row, "clock_offset": offset, "host": "db1"}]
    )
    assert table.endswith(f" {shown}  db1")


@pytest.mark.parametrize("typed", [b"n\n", b"", b"\xff\n", b"y\n"])
def test_only_a_yes_at_the_terminal_frees_a_number(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, typed: bytes
) -> None:
    """The terminal may have another encoding."""
    fleet.made().write(17, HELD)
    terminal = io.TextIOWrapper(io.BytesIO(typed), "utf-8")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    if typed == b"y\n":
        fleet.says("free 17")
    else:
        assert "nothing was changed" in fleet.refuses("free 17")
    assert fleet.read(17).held is (typed != b"y\n")


def test_a_freed_number_begins_after_the_answer_and_not_after_the_question(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is asked may end the number's host first, which made Snowflakes until then."""
    fleet.made("--reserve 17")
    terminal = io.StringIO()
    with time_machine.travel(1_800_000_000, tick=False) as clock:

        def answer(*_: object) -> str:
            clock.shift(3600)
            return "y\n"

        monkeypatch.setattr(terminal, "isatty", lambda: True)
        monkeypatch.setattr(terminal, "readline", answer)
        monkeypatch.setattr("sys.stdin", terminal)
        fleet.says("free 17")
    answered = UNIX_EPOCH + 1_800_003_600 * TICKS_PER_SECOND
    assert fleet.read(17).until == answered + 60 * TICKS_PER_SECOND


def test_after_a_restore_no_number_begins_early(fleet: Fleet) -> None:
    """Also those that were first claimed after the backup; a claim stays its host's."""
    fleet.made("--range 0-20").write(17, HELD)
    fleet.write(18, replace(HELD, until=UNIX_EPOCH))
    said = fleet.says("raise --worker-window 20m --hosts-cut-off")
    assert "raised 20 numbers; none begins before " in said
    rows = fleet.numbers()
    assert len(rows) == 21
    assert fleet.read(17) == HELD
    assert (fleet.read(18).claim, fleet.read(18).held) == (HELD.claim, True)
    assert all(row["until_in"] > 1190 for row in rows.values())


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("init --range 5-3", "5 is above 3"),
        ("init --range 0-1024", "'1024' is not a whole number from 0 to 1023"),
        ("reserve 1,,2", "'' is not a whole number"),
        ("init --worker-window 10", "'10' is not a span above 0 and up to 30d"),
        ("init --worker-window 31d", "'31d' is not a span"),
        ("free 5 --used-until tomorrow", "is neither a whole number of milliseconds"),
    ],
)
def test_wrong_usage_names_the_value(
    fleet: Fleet, command: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        fleet.says(command)
    assert error in capsys.readouterr().err


def test_an_engine_without_an_answer_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workers", "list", "etcd://127.0.0.1:1/uuidd"]) == 1
    assert capsys.readouterr().err.startswith(
        "uuidd: etcd 127.0.0.1:1 gives no answer: cannot connect"
    )

"""The command line of ``uuidd``: what it takes, what it chooses, and the line that refuses it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from uuidd import version
from uuidd.cli import arguments, main, options
from uuidd.server.settings import Limits, Settings

LEAST = {field.name: field.metadata["least"] for field in fields(Limits)}
WHOLE = [field.name for field in fields(Limits) if isinstance(field.default, int)]
SECONDS = [field.name for field in fields(Limits) if isinstance(field.default, float)]


def parsed(*words: str) -> dict[str, Any]:
    return vars(arguments.parser().parse_args(words))


def flag_of(name: str) -> str:
    return f"--max-{name.replace('_', '-')}"


TAKEN: dict[str, list[tuple[object, str]]] = {
    "pid": [(Path("/a/pid"), "-p /a/pid|-p/a/pid|--pid /a/pid|--pid=/a/pid")],
    "socket": [(Path("/a/s"), "-s /a/s|--socket /a/s|--socket=/a/s")],
    "timeout": [(60, "-T 60|-T60|--timeout 60|--timeout=60")],
    "uuids": [(5, "-n 5|-n5|--uuids 5|--uuids=5")],
    "kill": [(True, "-k|--kill")],
    "random": [(True, "-r|--random")],
    "time": [(True, "-t|--time")],
    "no_pid": [(True, "-P|--no-pid")],
    "no_fork": [(True, "-F|--no-fork|-C -F")],
    # The second is the line of util-linux's own uuidd.service.
    "socket_activation": [(True, "-S|--socket-activation --cont-clock|--socket-activation")],
    "cont_clock": [("7d", "-C7d|--cont-clock=7d")],
    "debug": [(True, "-d|--debug")],
    "quiet": [(True, "-q|--quiet")],
    "state": [(Path("/a/state"), "--state /a/state")],
    "node": [("mac:eth0", "--node mac:eth0")],
    "worker": [(0, "--worker 0"), (1023, "--worker=1023")],
    "datacenter": [(31, "--datacenter 31")],
    "epoch": [
        (0, "--epoch 0|--epoch 1970-01-01T00:00:00Z"),
        (1_420_070_400_000, "--epoch 1420070400000|--epoch 2015-01-01T00:00:00Z"),
        (1_420_070_400_000, "--epoch 2015-01-01T02:00:00+02:00"),
        (1_288_834_974_657, "--epoch 2010-11-04T01:42:54.657Z"),
        (2**48 - 1, "--epoch 281474976710655"),
    ],
    "max_lead": [(0.5, "--max-lead 0.5"), (1e9, "--max-lead 1e9")],
    "rollback": [(word, f"--rollback {word}") for word in ("slew", "wait", "refuse")],
    "reset_steady": [(True, "--reset-steady")],
    **{
        name: [
            (LEAST[name], f"{flag_of(name)} {LEAST[name]}"),
            (10**8 + 7, f"{flag_of(name)}=100000007"),
        ]
        for name in WHOLE
    },
    **{
        name: [(0.25, f"{flag_of(name)} 0.25"), (1000.0, f"{flag_of(name)} 1e3")]
        for name in SECONDS
    },
}


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (words, name, value)
        for name, cases in TAKEN.items()
        for value, ways in cases
        for words in ways.split("|")
    ],
)
def test_an_option_sets_what_it_names_and_nothing_else(
    words: str, name: str, value: object
) -> None:
    assert parsed(*words.split()) == {**parsed(), name: value}


def test_short_flags_can_stand_together() -> None:
    assert parsed("-FPdqkrtn7") == parsed("-F", "-P", "-d", "-q", "-k", "-r", "-t", "-n", "7")


FLAGS = [f"--{(f'max_{name}' if name in LEAST else name).replace('_', '-')}" for name in parsed()]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        *(([flag], [f"uuidd {version()}\n"]) for flag in ("-V", "--version")),
        *(([flag], FLAGS) for flag in ("-h", "--help")),
        (["install-units", "--help"], ["--undo"]),
    ],
)
def test_help_and_version_are_told(
    capsys: pytest.CaptureFixture[str], words: list[str], told: list[str]
) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        main(words)
    out, err = capsys.readouterr()
    assert err == ""
    assert [text for text in told if text not in out] == []


def test_without_flags_the_defaults_hold() -> None:
    """A bare uuidd serves where util-linux's does, forever; a step back of the clock is slewed."""
    defaults = {
        **dict.fromkeys(("pid", "socket", "uuids", "state", "worker", "datacenter")),
        "timeout": 0,
        "node": "random",
        "epoch": 1_288_834_974_657,
        "max_lead": 3600.0,
        "rollback": "slew",
        "reset_steady": False,
        **{field.name: field.default for field in fields(Limits)},
    }
    assert {name: parsed()[name] for name in defaults} == defaults
    assert str(arguments.SOCKET) == "/run/uuidd/request"
    assert str(arguments.PID_FILE) == "/run/uuidd/uuidd.pid"


def chosen(words: str) -> Settings:
    return options.settings(arguments.parser().parse_args(words.split()))


def test_the_settings_are_what_was_chosen() -> None:
    words = (
        "--socket=/a/s --pid=/a/pid --state=/a/state --node=0x1 -T60 --worker=5 --epoch=7"
        " --max-lead=7.5 --rollback=wait --require-sync=0.5 --after-clone=go-on --debug"
        " --max-pipelined=7 --max-reply-seconds=0.25"
    )
    assert chosen(words) == Settings(
        Path("/a/s"),
        Path("/a/state"),
        node="0x1",
        pid_file=Path("/a/pid"),
        idle_timeout=60,
        limits=Limits(pipelined=7, reply_seconds=0.25),
        worker=5,
        epoch=7,
        max_lead=7.5,
        rollback="wait",
        require_sync=0.5,
        go_on_after_clone=True,
    )


@pytest.mark.parametrize(
    ("word", "level"), [("-F", logging.INFO), ("-d", logging.DEBUG), ("-q", logging.ERROR)]
)
def test_the_level_of_the_log_can_be_chosen(word: str, level: int) -> None:
    assert options.level_of(options.parsed([word])) == level


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ("", None),
        ("--worker=0", 0),
        ("--worker=32", 32),
        ("--worker=1023", 1023),
        ("--datacenter=0 --worker=0", 0),
        ("--datacenter=0 --worker=31", 31),
        ("--datacenter=1 --worker=0", 32),
        ("--datacenter=31 --worker=31", 1023),
        ("--datacenter=3 --worker=5", 101),
    ],
)
def test_a_worker_number_is_chosen_whole_or_in_two_halves(words: str, number: int | None) -> None:
    assert (chosen(words).worker, chosen(words).fleet) == (number, None)


def test_a_datacenter_beside_a_url_has_32_numbers() -> None:
    words = "--worker=etcd://h1/uuidd --datacenter=3 --worker-window=1h --worker-hold=2h"
    fleet = chosen(words).fleet
    assert fleet is not None
    assert chosen(words).worker is None
    assert (fleet.low, fleet.high, fleet.window, fleet.hold) == (96, 127, 3600.0, 7200.0)


def test_the_path_of_a_secret_is_absolute() -> None:
    """A daemon in the background is in another folder."""
    fleet = chosen("--worker=zk://h1/u --worker-secret=./file").fleet
    assert fleet is not None
    assert fleet.address.files == {"secret": Path.cwd() / "file"}


@pytest.mark.parametrize(
    ("from_systemd", "words", "folder"),
    [
        (None, "", "/var/lib/uuidd"),
        ("", "", "/var/lib/uuidd"),
        ("/var/lib/private/uuidd", "", "/var/lib/private/uuidd"),
        ("/a:/b", "", "/a"),
        ("/a", "--state /b", "/b"),
    ],
)
def test_the_state_folder_is_the_chosen_one_systemds_or_ours(
    monkeypatch: pytest.MonkeyPatch, from_systemd: str | None, words: str, folder: str
) -> None:
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    if from_systemd is not None:
        monkeypatch.setenv("STATE_DIRECTORY", from_systemd)
    assert chosen(words).state == Path(folder)


# Digits of other scripts, which int() would take, among them.
NOT_WHOLE = ("", "x", "1.5", "1e3", " 1", "1 ", "+1", "0x10", "1_000", "\u0661", "\u00b2", "1\n")
NOT_SECONDS = ("0", "-1", "", "x", "nan", "inf", "-inf", "1e999", "1e302", "1000000001")
NOT_TIMES = (
    "",
    "x",
    "1.5",
    "+5",
    "\u0661",
    "2015-01-01T00:00:00",
    "2015-13-01T00:00:00Z",
    "9" * 16,
)

RANGES = {
    "-T/--timeout": (0, 10**9),
    "-n/--uuids": (0, 10**9),
    "--worker": (0, 1023),
    "--datacenter": (0, 31),
    **{flag_of(name): (int(LEAST[name]), 10**9) for name in WHOLE},
}


def wrong_usage() -> Iterator[tuple[list[str], str]]:
    """Yield wrong command lines, each with the line that refuses it."""
    for name, (least, most) in RANGES.items():
        for value in (*NOT_WHOLE, str(least - 1), str(most + 1), "9" * 5000):
            rule = f"{value[:40]!r} is not a whole number from {least} to {most}"
            yield [f"{name.split('/')[-1]}={value}"], f"argument {name}: {rule}"
    for value in NOT_SECONDS:
        rule = f"{value!r} is not a number of seconds above 0, 1000000000 at most"
        yield [f"--max-lead={value}"], f"argument --max-lead: {rule}"
    for flag in map(flag_of, SECONDS):
        for value in (*NOT_SECONDS, "0.09"):
            rule = f"{value!r} is not a number of seconds from 0.1 to 1000000000"
            yield [f"{flag}={value}"], f"argument {flag}: {rule}"
    for values, rule in (
        (
            NOT_TIMES,
            "is neither a whole number of milliseconds since 1970 nor a time with an offset,"
            " like 2015-01-01T00:00:00Z",
        ),
        (("1969-12-31T23:59:59.999Z", "0001-01-01T00:00:00+23:59"), "lies before 1970"),
        (
            ("281474976710656", "9" * 15),
            "has more than 48 bits; name 281474976710655 milliseconds since 1970 at most",
        ),
    ):
        yield from (([f"--epoch={it}"], f"argument --epoch: {it!r} {rule}") for it in values)
    for flag in ("-p/--pid", "-s/--socket", "-T/--timeout", "-n/--uuids", "--state", "--node"):
        yield [flag[:2] if flag[1] != "-" else flag], f"argument {flag}: expected one argument"
    # From a variable that is not set; it would mean the current folder.
    for flag in ("--state", "-p/--pid", "-s/--socket"):
        yield [flag.split("/")[-1], ""], f"argument {flag}: the path is empty"
    # In some versions of Python, argparse passes these on as an empty list.
    for flag in ("-s/--socket", "--node", "--worker", "--epoch"):
        yield [f"{flag.split('/')[-1]}=--"], f"argument {flag}: '--' is no value"
    words = ["workers", "reserve", "folder:///a", "--", "--"]
    yield words, "argument NUMBERS: '--' is no value"
    for words in (["-x"], ["--nope"], ["more"], ["-F", "more"]):
        yield words, f"unrecognized arguments: {words[-1]}"
    # A part of a name could mean another option in a later version.
    for words in (
        ["--stat=/a"],
        ["--no-pi"],
        ["install-units", "--pre=/a"],
        ["workers", "list", "folder:///a", "--js"],
    ):
        yield words, f"unrecognized arguments: {words[-1]}"
    why = "Redis may forget what it has confirmed, so a number could be two hosts'"
    yield ["install-units", "--wrong"], "unrecognized arguments: --wrong"
    yield ["--worker=redis://h"], f"argument --worker: redis://: {why}; use zk, etcd or postgresql"
    for value in ("", "Slew", "stop", "1"):
        rule = f"invalid choice: {value!r} (choose from 'slew', 'wait', 'refuse')"
        yield [f"--rollback={value}"], f"argument --rollback: {rule}"
    for one, other in (("--pid=/a", "--no-pid"), ("--random", "--time"), ("--debug", "--quiet")):
        yield [one, other], f"{one.split('=')[0]} and {other} exclude each other"


@pytest.mark.parametrize(("words", "line"), list(wrong_usage()))
def test_wrong_usage_is_refused_by_a_line_after_the_usage(
    capsys: pytest.CaptureFixture[str], words: list[str], line: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    *usage, last = err.splitlines()
    assert (out, usage[0][:12]) == ("", "usage: uuidd")
    assert last.partition(": error: ")[2] == line

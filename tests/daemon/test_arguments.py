from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from uuidd import __version__
from uuidd.cli import arguments, main, options
from uuidd.server.settings import LEAST, Limits


def parsed(*argv: str) -> dict[str, Any]:
    """Give what the command line says."""
    return vars(arguments.parser().parse_args(argv))


def refusal(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Give the last line with which wrong usage is refused; those before are the usage."""
    with pytest.raises(SystemExit) as caught:
        arguments.parser().parse_args(argv)
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    *usage, line = err.splitlines()
    assert usage[0].startswith("usage: uuidd ")
    assert all(other.startswith(" ") for other in usage[1:])
    return line


# --- util-linux's flags


@pytest.mark.parametrize(
    ("argv", "name", "value"),
    [
        (["-p", "/a/pid"], "pid", Path("/a/pid")),
        (["-p/a/pid"], "pid", Path("/a/pid")),
        (["--pid", "/a/pid"], "pid", Path("/a/pid")),
        (["--pid=/a/pid"], "pid", Path("/a/pid")),
        (["-s", "/a/s"], "socket", Path("/a/s")),
        (["--socket", "/a/s"], "socket", Path("/a/s")),
        (["--socket=/a/s"], "socket", Path("/a/s")),
        (["-T", "60"], "timeout", 60),
        (["-T0"], "timeout", 0),
        (["--timeout", "60"], "timeout", 60),
        (["--timeout=60"], "timeout", 60),
        (["-k"], "kill", True),
        (["--kill"], "kill", True),
        (["-r"], "random", True),
        (["--random"], "random", True),
        (["-t"], "time", True),
        (["--time"], "time", True),
        (["-n", "5"], "uuids", 5),
        (["-n0"], "uuids", 0),
        (["--uuids", "5"], "uuids", 5),
        (["--uuids=5"], "uuids", 5),
        (["-P"], "no_pid", True),
        (["--no-pid"], "no_pid", True),
        (["-F"], "no_fork", True),
        (["--no-fork"], "no_fork", True),
        (["-S"], "socket_activation", True),
        (["--socket-activation"], "socket_activation", True),
        (["-C"], "cont_clock", None),
        (["-C2"], "cont_clock", "2"),
        (["-C2h"], "cont_clock", "2h"),
        (["-C7d"], "cont_clock", "7d"),
        (["--cont-clock"], "cont_clock", None),
        (["--cont-clock=7d"], "cont_clock", "7d"),
        (["-C", "-F"], "no_fork", True),
        (["-d"], "debug", True),
        (["--debug"], "debug", True),
        (["-q"], "quiet", True),
        (["--quiet"], "quiet", True),
    ],
)
def test_util_linuxs_flags_are_taken(argv: list[str], name: str, value: object) -> None:
    """Each of util-linux's flags, short and long, sets what it names and nothing else."""
    assert parsed(*argv) == {**parsed(), name: value}


def test_short_flags_can_stand_together() -> None:
    """As with getopt, one dash is enough for several flags."""
    assert parsed("-FPdqkrtn7") == parsed("-F", "-P", "-d", "-q", "-k", "-r", "-t", "-n", "7")


def test_the_unit_of_util_linux_starts_ours() -> None:
    """The line of util-linux's own uuidd.service is taken as it is."""
    given = parsed("--socket-activation", "--cont-clock")
    assert given == {**parsed(), "socket_activation": True}


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_the_version_is_told(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    """The version goes to standard output, with status 0."""
    with pytest.raises(SystemExit) as caught:
        parsed(flag)
    assert caught.value.code == 0
    assert capsys.readouterr() == (f"uuidd {__version__}\n", "")


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_names_every_flag(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    """Help goes to standard output, with status 0, and leaves no flag out."""
    with pytest.raises(SystemExit) as caught:
        parsed(flag)
    assert caught.value.code == 0
    out, err = capsys.readouterr()
    assert err == ""
    for name in parsed():
        option = name if not hasattr(Limits(), name) else f"max_{name}"
        assert f"--{option.replace('_', '-')}" in out


def test_without_flags_the_defaults_hold() -> None:
    """A bare uuidd serves where util-linux's does, forever."""
    given = parsed()
    assert (given["pid"], given["socket"], given["uuids"]) == (None, None, None)
    assert (given["timeout"], given["node"], given["state"]) == (0, "random", None)
    assert str(arguments.SOCKET) == "/run/uuidd/request"
    assert str(arguments.PID_FILE) == "/run/uuidd/uuidd.pid"


def test_ours_are_taken() -> None:
    """The state folder and the node can be chosen."""
    given = parsed("--state", "/a/state", "--node", "mac:eth0")
    assert given == {**parsed(), "state": Path("/a/state"), "node": "mac:eth0"}


# --- bad values

NO_WHOLE = [
    "-1",
    "",
    "x",
    "1.5",
    "1e3",
    " 1",
    "1 ",
    "+1",
    "0x10",
    "1_000",
    "\u0661",
    "\u00b2",
    "1\n",
]


@pytest.mark.parametrize("value", NO_WHOLE)
@pytest.mark.parametrize("flag", ["-T", "--timeout", "-n", "--uuids"])
def test_what_is_no_whole_number_is_refused(
    capsys: pytest.CaptureFixture[str], flag: str, value: str
) -> None:
    """A count of seconds or ids takes plain digits; the line names flag and value."""
    names = "-T/--timeout" if "-T" in flag or "--timeout" in flag else "-n/--uuids"
    assert refusal(capsys, flag, value) == (
        f"uuidd: error: argument {names}: {value!r} is not a whole number from 0 to 1000000000"
    )


@pytest.mark.parametrize("flag", ["-p", "-s", "-T", "-n", "--state", "--node"])
def test_a_flag_without_its_value_is_refused(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    """A flag that takes a value needs one; the line names the flag."""
    line = refusal(capsys, flag)
    assert line.startswith("uuidd: error: argument ")
    assert flag in line
    assert line.endswith(": expected one argument")


@pytest.mark.parametrize("argv", [["-x"], ["--nope"], ["more"], ["-F", "more"]])
def test_an_unknown_argument_is_refused(
    capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    """What there is no flag for is named."""
    assert refusal(capsys, *argv) == f"uuidd: error: unrecognized arguments: {argv[-1]}"


def test_a_pid_file_and_none_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    """As with util-linux, --pid and --no-pid are wrong together."""
    with pytest.raises(SystemExit) as caught:
        main(["--pid", "/a/pid", "--no-pid"])
    assert caught.value.code == 2
    assert capsys.readouterr().err.endswith("uuidd: error: --pid and --no-pid exclude each other\n")


# --- limits

WHOLE = [field.name for field in fields(Limits) if isinstance(field.default, int)]
SECONDS = [field.name for field in fields(Limits) if isinstance(field.default, float)]


def flag_of(name: str) -> str:
    """Give the flag of a limit."""
    return f"--max-{name.replace('_', '-')}"


def limits(*argv: str) -> Limits:
    """Give the limits that a command line chooses."""
    return options.limits_of(arguments.parser().parse_args(argv))


def test_without_flags_the_limits_are_the_default_ones() -> None:
    """What is not chosen is as settings.py says."""
    assert limits() == Limits()


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("more", [0, 7, 10**8])
def test_a_limit_of_a_number_can_be_set(name: str, more: int) -> None:
    """Each count or size is set by its own flag, from its least value on, and no other is."""
    value = int(LEAST[name]) + more
    chosen = limits(flag_of(name), str(value))
    expected = {field.name: getattr(Limits(), field.name) for field in fields(Limits)}
    assert chosen == Limits(**{**expected, name: value})


@pytest.mark.parametrize("name", SECONDS)
@pytest.mark.parametrize(("text", "value"), [("1", 1.0), ("0.25", 0.25), ("1e3", 1000.0)])
def test_a_limit_of_seconds_can_be_set(name: str, text: str, value: float) -> None:
    """Each time is set by its own flag, in seconds and parts of them, and no other is."""
    chosen = limits(flag_of(name), text)
    expected = {field.name: getattr(Limits(), field.name) for field in fields(Limits)}
    assert chosen == Limits(**{**expected, name: value})


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("value", ["0", "00", "-1", "", "x", "1.5", "1e3", "inf"])
def test_a_limit_of_no_number_is_refused(
    capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    """The line names the flag, the value and the range of this flag."""
    assert refusal(capsys, flag_of(name), value) == (
        f"uuidd: error: argument {flag_of(name)}: {value!r} is not a whole number from"
        f" {LEAST[name]} to 1000000000"
    )


def test_a_request_is_allowed_the_bytes_that_each_needs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With a limit below 64 bytes no request, however short its numbers, would be served."""
    assert refusal(capsys, "--max-request-bytes=63") == (
        "uuidd: error: argument --max-request-bytes: '63' is not a whole number from 64 to"
        " 1000000000"
    )
    assert limits("--max-request-bytes=64").request_bytes == 64


@pytest.mark.parametrize("name", SECONDS)
@pytest.mark.parametrize(
    "value",
    ["0", "0.09", "-1", "", "x", "nan", "inf", "-inf", "1e999", "1e302", "1000000001"],
)
def test_a_limit_of_no_seconds_is_refused(
    capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    """A time is a tenth of a second or more, and finite; the line names flag, value and range."""
    line = refusal(capsys, f"{flag_of(name)}={value}")
    assert line == (
        f"uuidd: error: argument {flag_of(name)}: {value!r} is not a number of seconds from 0.1 to"
        " 1000000000"
    )


# --- the steady timeline


def test_without_flags_the_steady_defaults_hold() -> None:
    """No worker number, Twitter's epoch, a lead of an hour at most, and a step back is slewed."""
    given = parsed()
    names = ("worker", "datacenter", "epoch", "max_lead", "rollback", "reset_steady")
    assert {name: given[name] for name in names} == {
        "worker": None,
        "datacenter": None,
        "epoch": 1_288_834_974_657,
        "max_lead": 3600.0,
        "rollback": "slew",
        "reset_steady": False,
    }


@pytest.mark.parametrize(
    ("argv", "name", "value"),
    [
        (["--worker", "0"], "worker", 0),
        (["--worker=1023"], "worker", 1023),
        (["--datacenter", "31"], "datacenter", 31),
        (["--epoch", "0"], "epoch", 0),
        (["--epoch", "1420070400000"], "epoch", 1_420_070_400_000),
        (["--epoch", "2015-01-01T00:00:00Z"], "epoch", 1_420_070_400_000),
        (["--epoch", "2015-01-01T02:00:00+02:00"], "epoch", 1_420_070_400_000),
        (["--epoch", "2010-11-04T01:42:54.657Z"], "epoch", 1_288_834_974_657),
        (["--epoch", "1970-01-01T00:00:00Z"], "epoch", 0),
        (["--max-lead", "0.5"], "max_lead", 0.5),
        (["--max-lead", "1e9"], "max_lead", 1e9),
        (["--rollback", "slew"], "rollback", "slew"),
        (["--rollback", "wait"], "rollback", "wait"),
        (["--rollback", "refuse"], "rollback", "refuse"),
        (["--reset-steady"], "reset_steady", True),
    ],
)
def test_flags_of_the_steady_timeline_are_taken(argv: list[str], name: str, value: object) -> None:
    """Each sets what it names and nothing else."""
    assert parsed(*argv) == {**parsed(), name: value}


def worker(*argv: str) -> int | None:
    """Give the machine number that a command line chooses."""
    return options.worker_of(arguments.parser().parse_args(argv))


@pytest.mark.parametrize(
    ("argv", "number"),
    [
        ([], None),
        (["--worker=0"], 0),
        (["--worker=32"], 32),
        (["--worker=1023"], 1023),
        (["--datacenter=0", "--worker=0"], 0),
        (["--datacenter=0", "--worker=31"], 31),
        (["--datacenter=1", "--worker=0"], 32),
        (["--datacenter=31", "--worker=31"], 1023),
        (["--datacenter=3", "--worker=5"], 101),
    ],
)
def test_the_machine_number_is_chosen_whole_or_in_two_halves(
    argv: list[str], number: int | None
) -> None:
    """A worker alone is the whole number; beside a datacenter it is the low 5 bits."""
    assert worker(*argv) == number


BAD_WORKERS = [
    (["--datacenter=3"], "--datacenter 3 needs a --worker beside it, 0 to 31"),
    (["--datacenter=1", "--worker=32"], "--worker 32: beside --datacenter it must be 0 to 31"),
]


@pytest.mark.parametrize(("argv", "line"), BAD_WORKERS)
def test_a_machine_number_out_of_range_is_refused(
    argv: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line names the flag, its value and its range; status 1, and nothing was started."""
    with pytest.raises(ValueError, match=r"^--(worker|datacenter) \d+") as caught:
        worker(*argv)
    assert str(caught.value) == line
    assert main(["-F", *argv]) == 1
    assert capsys.readouterr() == ("", f"uuidd: {line}\n")


@pytest.mark.parametrize(("flag", "most"), [("--worker", 1023), ("--datacenter", 31)])
@pytest.mark.parametrize("value", [*NO_WHOLE, "five", "1024", "5000"])
def test_what_is_no_machine_number_is_refused(
    capsys: pytest.CaptureFixture[str], flag: str, most: int, value: str
) -> None:
    """They take plain digits; the line names the flag, the value and the range of this flag."""
    assert refusal(capsys, f"{flag}={value}") == (
        f"uuidd: error: argument {flag}: {value!r} is not a whole number from 0 to {most}"
    )


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x",
        "Twitter",
        "1.5",
        "+5",
        "\u0661",
        "2015-01-01",
        "2015-01-01T00:00:00",
        "2015-13-01T00:00:00Z",
        "9" * 16,
    ],
)
def test_what_is_no_epoch_is_refused(capsys: pytest.CaptureFixture[str], value: str) -> None:
    """Text, a naive time, or more digits than any time has: the line says what is wanted."""
    assert refusal(capsys, f"--epoch={value}") == (
        f"uuidd: error: argument --epoch: {value!r} is neither a whole number of milliseconds since"
        " 1970 nor a time with an offset, like 2015-01-01T00:00:00Z"
    )


@pytest.mark.parametrize(
    "value", ["1969-12-31T23:59:59.999Z", "1956-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59"]
)
def test_an_epoch_before_1970_is_refused(capsys: pytest.CaptureFixture[str], value: str) -> None:
    """An epoch is Unix milliseconds, of which there are none below zero."""
    assert refusal(capsys, "--epoch", value) == (
        f"uuidd: error: argument --epoch: {value!r} lies before 1970"
    )


@pytest.mark.parametrize("value", ["", "Slew", "stop", "1"])
def test_another_rollback_is_refused(capsys: pytest.CaptureFixture[str], value: str) -> None:
    """There are three; the line names them."""
    line = refusal(capsys, f"--rollback={value}")
    assert line.startswith(f"uuidd: error: argument --rollback: invalid choice: {value!r} ")
    assert [word in line for word in ("slew", "wait", "refuse")] == [True] * 3


@pytest.mark.parametrize("value", ["0", "-1", "", "x", "nan", "inf", "1e302", "1000000001"])
def test_a_max_lead_of_no_seconds_is_refused(
    capsys: pytest.CaptureFixture[str], value: str
) -> None:
    """A lead is above 0, and no more seconds than make sense."""
    assert refusal(capsys, f"--max-lead={value}") == (
        f"uuidd: error: argument --max-lead: {value!r} is not a number of seconds above 0,"
        " 1000000000 at most"
    )


# --- the state folder


def folder(*argv: str) -> Path:
    """Give the state folder that a command line chooses."""
    return options.state_folder(arguments.parser().parse_args(argv))


def test_the_state_folder_is_ours_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a flag or systemd the state is kept in /var/lib/uuidd."""
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    assert folder() == Path("/var/lib/uuidd")


def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """STATE_DIRECTORY without a value is as if it were not there."""
    monkeypatch.setenv("STATE_DIRECTORY", "")
    assert folder() == Path("/var/lib/uuidd")


def test_systemds_folder_comes_before_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that systemd made for the service is used."""
    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/private/uuidd")
    assert folder() == Path("/var/lib/private/uuidd")


def test_the_first_of_systemds_folders_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several, with colons between, the first one counts."""
    monkeypatch.setenv("STATE_DIRECTORY", "/a:/b")
    assert folder() == Path("/a")


def test_the_chosen_folder_comes_before_systemds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the administrator says on the command line counts."""
    monkeypatch.setenv("STATE_DIRECTORY", "/a")
    assert folder("--state", "/b") == Path("/b")


@pytest.mark.parametrize("digits", [10, 401, 5000])
def test_a_number_beyond_all_measure_is_refused(
    digits: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """A time-out that no clock could count is wrong usage, told in a short line."""
    with pytest.raises(SystemExit) as caught:
        arguments.parser().parse_args(["-T", "9" * digits])
    assert caught.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith("9' is not a whole number from 0 to 1000000000")
    assert len(last) < 150

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from uuidd import version
from uuidd.cli import arguments, main, options
from uuidd.refused import Refused
from uuidd.server.settings import Limits


def parsed(*argv: str) -> dict[str, Any]:
    """Return what the command line says."""
    return vars(arguments.parser().parse_args(argv))


def refusal(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Return the last line with which wrong usage is refused; those before are the usage."""
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


FLAGS = {
    "pid": (Path("/a/pid"), "-p /a/pid", "-p/a/pid", "--pid /a/pid", "--pid=/a/pid"),
    "socket": (Path("/a/s"), "-s /a/s", "--socket /a/s", "--socket=/a/s"),
    "timeout": (60, "-T 60", "-T60", "--timeout 60", "--timeout=60"),
    "uuids": (5, "-n 5", "-n5", "--uuids 5", "--uuids=5"),
    "kill": (True, "-k", "--kill"),
    "random": (True, "-r", "--random"),
    "time": (True, "-t", "--time"),
    "no_pid": (True, "-P", "--no-pid"),
    "no_fork": (True, "-F", "--no-fork", "-C -F"),
    "socket_activation": (True, "-S", "--socket-activation"),
    "cont_clock": ("7d", "-C7d", "--cont-clock=7d"),
    "debug": (True, "-d", "--debug"),
    "quiet": (True, "-q", "--quiet"),
}


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [(words, name, value) for name, (value, *ways) in FLAGS.items() for words in ways],
)
def test_util_linuxs_flags_are_taken(words: str, name: str, value: object) -> None:
    """Each of util-linux's flags, short and long, sets what it names and nothing else."""
    assert parsed(*words.split()) == {**parsed(), name: value}


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
    assert capsys.readouterr() == (f"uuidd {version()}\n", "")


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
    """A bare uuidd serves where util-linux's does, forever; a step back of the clock is slewed."""
    defaults = {
        **dict.fromkeys(("pid", "socket", "uuids", "state", "worker", "datacenter")),
        "timeout": 0,
        "node": "random",
        "epoch": 1_288_834_974_657,
        "max_lead": 3600.0,
        "rollback": "slew",
        "reset_steady": False,
    }
    assert {name: parsed()[name] for name in defaults} == defaults
    assert str(arguments.SOCKET) == "/run/uuidd/request"
    assert str(arguments.PID_FILE) == "/run/uuidd/uuidd.pid"


# --- bad values


@pytest.mark.parametrize("flag", ["-p", "-s", "-T", "-n", "--state", "--node"])
def test_a_flag_without_its_value_is_refused(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    """A flag that takes a value needs one; the line names the flag."""
    line = refusal(capsys, flag)
    assert line.startswith("uuidd: error: argument ")
    assert flag in line
    assert line.endswith(": expected one argument")


@pytest.mark.parametrize("flag", ["--state", "--pid", "--socket"])
def test_an_empty_path_is_refused(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    """It comes from a variable that is not set, and would mean the current folder."""
    assert refusal(capsys, flag, "").endswith(f"{flag}: the path is empty")


@pytest.mark.parametrize("argv", [["-x"], ["--nope"], ["more"], ["-F", "more"]])
def test_an_unknown_argument_is_refused(
    capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    """The line names the argument that is not known."""
    assert refusal(capsys, *argv) == f"uuidd: error: unrecognized arguments: {argv[-1]}"


@pytest.mark.parametrize(
    "argv",
    [
        ["--stat=/a/state"],
        ["--no-pi"],
        ["install-units", "--pre=/a"],
        ["workers", "list", "folder:///a", "--js"],
    ],
)
def test_a_part_of_an_options_name_is_refused(
    capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    """It could mean another option in a later version."""
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: unrecognized arguments: {argv[-1]}\n")


def test_a_pid_file_and_none_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    """As with util-linux, --pid and --no-pid are wrong together."""
    with pytest.raises(SystemExit) as caught:
        main(["--pid", "/a/pid", "--no-pid"])
    assert caught.value.code == 2
    assert capsys.readouterr().err.endswith("uuidd: error: --pid and --no-pid exclude each other\n")


# --- limits

LEAST = {field.name: field.metadata["least"] for field in fields(Limits)}
WHOLE = [field.name for field in fields(Limits) if isinstance(field.default, int)]
SECONDS = [field.name for field in fields(Limits) if isinstance(field.default, float)]


def flag_of(name: str) -> str:
    """Return the flag of a limit."""
    return f"--max-{name.replace('_', '-')}"


def limits(*argv: str) -> Limits:
    """Return the limits that a command line chooses."""
    return options.limits_of(arguments.parser().parse_args(argv))


def test_without_flags_the_limits_are_the_default_ones() -> None:
    """What is not chosen is as settings.py says."""
    assert limits() == Limits()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        *((name, str(LEAST[name]), LEAST[name]) for name in WHOLE),
        *((name, str(10**8 + 7), 10**8 + 7) for name in WHOLE),
        *((name, "0.25", 0.25) for name in SECONDS),
        *((name, "1e3", 1000.0) for name in SECONDS),
    ],
)
def test_a_limit_can_be_set(name: str, text: str, value: float) -> None:
    """Each by its own flag, from its least value on, times also in parts of seconds."""
    expected = {field.name: getattr(Limits(), field.name) for field in fields(Limits)}
    assert limits(flag_of(name), text) == Limits(**{**expected, name: value})


@pytest.mark.parametrize(
    ("flag", "name", "least", "most"),
    [
        ("-T", "-T/--timeout", 0, 10**9),
        ("--uuids", "-n/--uuids", 0, 10**9),
        ("--worker", "--worker", 0, 1023),
        ("--datacenter", "--datacenter", 0, 31),
        *((flag_of(name), flag_of(name), int(LEAST[name]), 10**9) for name in WHOLE),
    ],
)
def test_what_is_not_a_whole_number_in_range_is_refused(
    capsys: pytest.CaptureFixture[str], flag: str, name: str, least: int, most: int
) -> None:
    """A number takes plain digits; the line names the flag, the value and the range."""
    for value in (*NOT_WHOLE, str(least - 1), str(most + 1)):
        assert refusal(capsys, flag, value) == (
            f"uuidd: error: argument {name}: {value!r} is not a whole number from {least} to {most}"
        )
    # The value is cut where it is long.
    assert len(refusal(capsys, flag, "9" * 5000)) < 170


NOT_WHOLE = ("", "x", "1.5", "1e3", " 1", "1 ", "+1", "0x10", "1_000", "\u0661", "\u00b2", "1\n")


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


@pytest.mark.parametrize(
    ("argv", "name", "value"),
    [
        (["--state", "/a/state"], "state", Path("/a/state")),
        (["--node", "mac:eth0"], "node", "mac:eth0"),
        (["--worker", "0"], "worker", 0),
        (["--worker=1023"], "worker", 1023),
        (["--datacenter", "31"], "datacenter", 31),
        (["--epoch", "0"], "epoch", 0),
        (["--epoch", "1420070400000"], "epoch", 1_420_070_400_000),
        (["--epoch", "2015-01-01T00:00:00Z"], "epoch", 1_420_070_400_000),
        (["--epoch", "2015-01-01T02:00:00+02:00"], "epoch", 1_420_070_400_000),
        (["--epoch", "2010-11-04T01:42:54.657Z"], "epoch", 1_288_834_974_657),
        (["--epoch", "1970-01-01T00:00:00Z"], "epoch", 0),
        (["--epoch", "281474976710655"], "epoch", 2**48 - 1),
        (["--max-lead", "0.5"], "max_lead", 0.5),
        (["--max-lead", "1e9"], "max_lead", 1e9),
        (["--rollback", "slew"], "rollback", "slew"),
        (["--rollback", "wait"], "rollback", "wait"),
        (["--rollback", "refuse"], "rollback", "refuse"),
        (["--reset-steady"], "reset_steady", True),
    ],
)
def test_our_own_flags_are_taken(argv: list[str], name: str, value: object) -> None:
    """Each sets what it names and nothing else."""
    assert parsed(*argv) == {**parsed(), name: value}


def worker(*argv: str) -> int | None:
    """Return the machine number that a command line chooses."""
    number, fleet = options.worker_of(arguments.parser().parse_args(argv))
    assert fleet is None
    return number


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
    (["--datacenter=3"], "--datacenter 3 needs a --worker beside it, 0 to 31, or a URL"),
    (["--datacenter=1", "--worker=32"], "--worker 32: beside --datacenter it must be 0 to 31"),
]


def test_a_datacenter_beside_a_url_has_32_numbers() -> None:
    """Those whose high half it is."""
    words = ["--worker=etcd://h1/uuidd", "--datacenter=3", "--worker-window=1h", "--worker-hold=2h"]
    number, fleet = options.worker_of(arguments.parser().parse_args(words))
    assert number is None
    assert fleet is not None
    assert (fleet.low, fleet.high, fleet.window, fleet.hold) == (96, 127, 3600.0, 7200.0)


@pytest.mark.parametrize(("argv", "line"), BAD_WORKERS)
def test_a_machine_number_out_of_range_is_refused(
    argv: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line names the flag, its value and its range; status 1, and nothing was started."""
    with pytest.raises(Refused, match=r"^--(worker|datacenter) \d+") as caught:
        worker(*argv)
    assert str(caught.value) == line
    assert main(["-F", *argv]) == 1
    assert capsys.readouterr() == ("", f"uuidd: {line}\n")


@pytest.mark.parametrize(
    ("flag", "values", "rule"),
    [
        (
            "--epoch",
            (
                "",
                "x",
                "1.5",
                "+5",
                "\u0661",
                "2015-01-01T00:00:00",
                "2015-13-01T00:00:00Z",
                "9" * 16,
            ),
            "is neither a whole number of milliseconds since 1970 nor a time with an offset,"
            " like 2015-01-01T00:00:00Z",
        ),
        (
            "--epoch",
            ("1969-12-31T23:59:59.999Z", "0001-01-01T00:00:00+23:59"),
            "lies before 1970",
        ),
        (
            "--epoch",
            ("281474976710656", "9" * 15),
            "has more than 48 bits; name 281474976710655 milliseconds since 1970 at most",
        ),
        (
            "--max-lead",
            ("0", "-1", "", "x", "nan", "inf", "1e302", "1000000001"),
            "is not a number of seconds above 0, 1000000000 at most",
        ),
    ],
)
def test_a_value_out_of_its_range_is_refused(
    capsys: pytest.CaptureFixture[str], flag: str, values: tuple[str, ...], rule: str
) -> None:
    """An epoch is neither text nor a naive time, and a lead is above 0; the line says the rule."""
    for value in values:
        line = refusal(capsys, f"{flag}={value}")
        assert line == f"uuidd: error: argument {flag}: {value!r} {rule}"


@pytest.mark.parametrize("value", ["", "Slew", "stop", "1"])
def test_another_rollback_is_refused(capsys: pytest.CaptureFixture[str], value: str) -> None:
    """There are three; the line names them."""
    line = refusal(capsys, f"--rollback={value}")
    assert line.startswith(f"uuidd: error: argument --rollback: invalid choice: {value!r} ")
    assert [word in line for word in ("slew", "wait", "refuse")] == [True] * 3


# --- the state folder


def folder(*argv: str) -> Path:
    """Return the state folder that a command line chooses."""
    return options.state_folder(arguments.parser().parse_args(argv))


@pytest.mark.parametrize(
    ("from_systemd", "argv", "chosen"),
    [
        (None, [], "/var/lib/uuidd"),
        ("", [], "/var/lib/uuidd"),
        ("/var/lib/private/uuidd", [], "/var/lib/private/uuidd"),
        ("/a:/b", [], "/a"),
        ("/a", ["--state", "/b"], "/b"),
    ],
)
def test_the_state_folder_is_the_chosen_one_systemds_or_ours(
    monkeypatch: pytest.MonkeyPatch, from_systemd: str | None, argv: list[str], chosen: str
) -> None:
    """In this order; of several in STATE_DIRECTORY the first one counts."""
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    if from_systemd is not None:
        monkeypatch.setenv("STATE_DIRECTORY", from_systemd)
    assert folder(*argv) == Path(chosen)

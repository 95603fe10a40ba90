"""The file that the service's options come from."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uuidd.cli import arguments, options
from uuidd.cli.options import read_defaults, reread, with_defaults
from uuidd.refused import Refused
from uuidd.server.settings import RereadError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "default"


def refusal(path: Path) -> str:
    """Return the one line with which the file is refused."""
    with pytest.raises(Refused) as refused:
        with_defaults(path, [])
    (line,) = str(refused.value).splitlines()
    return line


# --- the file


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("# nothing\n\n   \n", []),
        ('UUIDD_OPTIONS=""\n', []),
        ("UUIDD_OPTIONS=\n", []),
        ('UUIDD_OPTIONS="--worker 5 --quiet"', ["--worker", "5", "--quiet"]),
        ("UUIDD_OPTIONS='--worker 5'\n", ["--worker", "5"]),
        ("UUIDD_OPTIONS=--quiet  # why not\n", ["--quiet"]),
        ("  UUIDD_OPTIONS=--quiet\r\n", ["--quiet"]),
        ("""UUIDD_OPTIONS="--state '/a b' --node mac" """, ["--state", "/a b", "--node", "mac"]),
        ("UUIDD_OPTIONS=-d\nUUIDD_OPTIONS=-q\n", ["-q"]),
    ],
)
def test_options_are_read_as_a_shell_reads_them(path: Path, text: str, found: list[str]) -> None:
    """Quotes hold together, comments are none, and of several lines the last counts."""
    path.write_text(text)
    assert read_defaults(path) == found


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, path: Path) -> None:
    """A folder, and bytes that are not UTF-8; but a missing file has no options."""
    assert read_defaults(path) == []
    assert refusal(tmp_path) == f"{tmp_path} cannot be read: Is a directory"
    path.write_bytes(b"UUIDD_OPTIONS=\xff\n")
    assert refusal(path).startswith(f"{path} cannot be read: ")


def test_the_file_that_comes_with_it_has_no_options() -> None:
    """What is put in place at first changes nothing."""
    assert read_defaults(Path(__file__).parents[2] / "systemd" / "default") == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("--quiet\n", "line 1: '--quiet' is not UUIDD_OPTIONS=\"...\""),
        ("# x\nOPTIONS=-q\n", "line 2: 'OPTIONS=-q' is not UUIDD_OPTIONS=\"...\""),
        (
            "UUIDD_OPTIONS=-q --debug\n",
            "line 1: 'UUIDD_OPTIONS=-q --debug' is not UUIDD_OPTIONS=\"...\"",
        ),
        (
            "export UUIDD_OPTIONS=-q\n",
            "line 1: 'export UUIDD_OPTIONS=-q' is not UUIDD_OPTIONS=\"...\"",
        ),
        ("UUIDD_OPTIONS='-q\n", "line 1: No closing quotation"),
        ("""UUIDD_OPTIONS="--state 'a" """, "line 1: No closing quotation"),
    ],
)
def test_another_line_is_refused(path: Path, text: str, said: str) -> None:
    """The refusal names the file, the line, and what is wrong with it."""
    path.write_text(text)
    assert refusal(path) == f"{path}, {said}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--wroker 5", "unrecognized arguments: --wroker 5"),
        ("foo", "unrecognized arguments: foo"),
        ("--worker x", "argument --worker: 'x' is not a whole number from 0 to 1023"),
        ("--worker", "argument --worker: expected one argument"),
        ("-V", "-h and -V cannot be set in a file"),
        ("-h", "-h and -V cannot be set in a file"),
        ("-k", "--kill cannot be set in a file"),
        ("-t", "--time cannot be set in a file"),
        ("-r", "--random cannot be set in a file"),
        ("--reset-steady", "--reset-steady cannot be set in a file"),
        ("--defaults /x", "--defaults cannot be set in a file"),
    ],
)
def test_what_is_not_an_option_of_a_start_is_refused(
    path: Path, capsys: pytest.CaptureFixture[str], words: str, said: str
) -> None:
    """The refusal names the file and the option; nothing is printed."""
    path.write_text(f'UUIDD_OPTIONS="{words}"\n')
    assert refusal(path) == f"{path}: {said}"
    assert capsys.readouterr() == ("", "")


@given(st.binary() | st.text().map(str.encode))
def test_any_file_is_read_or_refused(data: bytes) -> None:
    """Whatever is in it, there is no third thing."""
    with tempfile.NamedTemporaryFile() as file, contextlib.suppress(Refused):
        file.write(data)
        file.flush()
        assert isinstance(read_defaults(Path(file.name)), list)


# --- beside the command line


def test_the_command_line_comes_before_the_file(path: Path) -> None:
    """What it names counts, and what it does not name is the file's."""
    path.write_text('UUIDD_OPTIONS="--worker 5 --max-connections 7 --node mac"\n')
    given = with_defaults(path, ["--worker=6", "-q"])
    assert (given.worker, given.node, given.quiet) == (6, "mac", True)
    assert options.limits_of(given).connections == 7


def test_what_is_wrong_on_the_command_line_is_not_told_of_the_file(path: Path) -> None:
    """Only what the file says is told of it."""
    with pytest.raises(Refused) as refused:
        with_defaults(path, ["--worker", "x"])
    assert str(path) not in str(refused.value)


def test_limits_and_level_are_read_again(path: Path) -> None:
    """With the command line over them, as at the start."""
    path.write_text('UUIDD_OPTIONS="--max-connections 7 --max-pipelined 9 --debug"\n')
    begun = arguments.parser().parse_args([])
    found = reread(path, begun, ["--max-pipelined=3"])
    assert (found.limits.connections, found.limits.pipelined, found.level) == (7, 3, 10)
    assert found.restart_for == ()
    path.write_text('UUIDD_OPTIONS="--max-connections none"\n')
    with pytest.raises(RereadError, match="--max-connections: 'none' is not a whole number"):
        reread(path, begun, [])


def test_what_only_a_restart_takes_over_is_named(path: Path) -> None:
    """The daemon logs these names after a reload."""
    path.write_text('UUIDD_OPTIONS="--worker 6 --rollback wait -q --max-connections 7"\n')
    found = reread(path, arguments.parser().parse_args([]), [])
    assert found.restart_for == ("rollback", "worker")

"""What lies in uuidd/share: manual pages and completion, made from the parsers."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.packaging import generate
from tests.tools import need

AGAIN = "python -m tests.packaging.generate makes them anew"

MANUALS = ("man/uuidd.8", "man/uuidctl.1")


def kept() -> dict[str, str]:
    """Give the files of uuidd/share."""
    return {
        path.relative_to(generate.SHARE).as_posix(): path.read_text(encoding="utf-8")
        for path in generate.SHARE.rglob("*")
        if path.is_file()
    }


def actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Give the arguments of a parser and of its subcommands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from actions(command)
        else:
            yield action


def output(*command: str, **environment: str) -> str:
    """Give what a command writes to its standard output; it must not fail, nor complain."""
    done = subprocess.run(
        command,
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout


# --- all files


def test_the_files_are_those_of_todays_parsers(tmp_path: Path) -> None:
    """Each file is, byte for byte, what the parsers give, and there are no others."""
    generate.write(tmp_path)
    again = {
        path.relative_to(tmp_path).as_posix(): path.read_text(encoding="utf-8")
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    before = kept()
    assert sorted(again) == sorted(before), AGAIN
    assert [path for path in again if again[path] != before[path]] == [], AGAIN


def test_the_width_of_the_terminal_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are the same from a narrow terminal and from a wide one."""
    monkeypatch.setenv("COLUMNS", "30")
    narrow = generate.made()
    monkeypatch.setenv("COLUMNS", "300")
    assert generate.made() == narrow


@pytest.mark.parametrize("name", generate.PARSERS)
def test_each_argument_is_explained(name: str) -> None:
    """No option and no argument goes without a help that says more than its default."""
    parser, _ = generate.PARSERS[name]
    for action in actions(parser()):
        assert action.help, action
        assert not action.help.startswith("("), action


# --- manual pages


@pytest.mark.parametrize("name", generate.PARSERS)
def test_each_option_is_in_the_manual_page(name: str) -> None:
    """The page names every way to write every option."""
    parser, section = generate.PARSERS[name]
    page = kept()[f"man/{name}.{section}"].replace("\\-", "-")
    for action in actions(parser()):
        for option in action.option_strings:
            assert f"\\fB{option}\\fR" in page


@pytest.mark.parametrize(
    ("path", "only"),
    [("man/uuidd.8", ["SIGNALS"]), ("man/uuidctl.1", ["COMMANDS", "STATUS SCREEN"])],
)
def test_a_manual_page_has_the_usual_sections(path: str, only: list[str]) -> None:
    """Each page has what people look for in one, and no heading but these."""
    headings = [line[4:] for line in kept()[path].splitlines() if line.startswith(".SH ")]
    assert [heading for heading in headings if heading not in only] == [
        "NAME",
        "SYNOPSIS",
        "DESCRIPTION",
        "OPTIONS",
        "EXIT STATUS",
        "ENVIRONMENT",
        "FILES",
        "EXAMPLES",
        "SEE ALSO",
    ]
    assert [heading for heading in headings if heading in only] == only


@pytest.mark.process
@pytest.mark.parametrize("path", MANUALS)
def test_man_shows_a_page_without_a_warning(path: str, tmp_path: Path) -> None:
    """man-db and groff find nothing to warn of."""
    page = str(generate.SHARE / path)
    assert "SEE ALSO" in output(need("man"), "--warnings", "-l", page, HOME=str(tmp_path))


@pytest.mark.process
@pytest.mark.parametrize("path", MANUALS)
def test_mandoc_finds_no_fault_with_a_page(path: str) -> None:
    """The lint of mandoc has nothing to say of a page, from its advice on style up."""
    assert output(need("mandoc"), "-T", "lint", str(generate.SHARE / path)) == ""


# --- completion


def in_bash(line: str, folder: Path) -> list[str]:
    """Give what bash offers for the last word of *line* in *folder*."""
    words = line.split(" ")
    script = generate.SHARE / "bash" / words[0]
    return output(
        need("bash"),
        "--norc",
        "-c",
        f"source {shlex.quote(str(script))}; cd {shlex.quote(str(folder))};"
        # compopt is for a completion that the shell itself has asked for.
        " compopt() { :; };"
        f" COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1};"
        f' _shtab_{words[0]}; printf "%s\\n" "${{COMPREPLY[@]}}"',
    ).split()


def in_fish(line: str, folder: Path) -> list[str]:
    """Give what fish offers for the last word of *line* in *folder*."""
    script = generate.SHARE / "fish" / f"{line.split(' ')[0]}.fish"
    offered = output(
        need("fish"),
        "--no-config",
        "-c",
        f"cd {shlex.quote(str(folder))}; source {shlex.quote(str(script))};"
        f" complete -C {shlex.quote(line)}",
        HOME=str(folder),
    )
    return [row.split("\t")[0] for row in offered.splitlines()]


Offered = Callable[[str, Path], list[str]]
"""Gives what a shell offers for the last word of a line in a folder."""

SHELLS = pytest.mark.parametrize("offered", [in_bash, in_fish])


@pytest.mark.process
@SHELLS
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("uuidctl inspec", ["inspect"]),
        ("uuidctl new -k ul", ["ulid"]),
        ("uuidctl new --namespace d", ["dns"]),
        ("uuidctl inspect --kind sonyflake", ["sonyflake", "sonyflake2"]),
        ("uuidctl bounds cass", ["cassandra"]),
        ("uuidctl bounds v7 2022-02-22T19:22:22Z --unit m", ["ms"]),
        ("uuidd --rollback sl", ["slew"]),
        ("uuidd --node ran", ["random"]),
        ("uuidd --reset", ["--reset-epoch", "--reset-steady"]),
        ("uuidd --user roo", ["root"]),
        ("uuidctl inspect --js", ["--json"]),
    ],
)
def test_words_are_completed(
    offered: Offered, line: str, expected: list[str], tmp_path: Path
) -> None:
    """Commands, options, kinds and other choices are completed from their beginnings."""
    assert sorted(offered(line, tmp_path)) == expected


@pytest.mark.process
@SHELLS
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("uuidd --state here", ["here-a-folder"]),
        ("uuidd -p here", ["here-a-file", "here-a-folder"]),
        ("uuidd --socket here", ["here-a-file", "here-a-folder"]),
        ("uuidctl -s here", ["here-a-file", "here-a-folder"]),
    ],
)
def test_paths_are_completed(
    offered: Offered, line: str, expected: list[str], tmp_path: Path
) -> None:
    """A folder is completed where a folder is wanted, and files too where a file is."""
    (tmp_path / "here-a-folder").mkdir()
    (tmp_path / "here-a-file").touch()
    assert sorted(path.rstrip("/") for path in offered(line, tmp_path)) == expected


@pytest.mark.process
@SHELLS
def test_the_command_of_run_is_completed(offered: Offered, tmp_path: Path) -> None:
    """After ``uuidctl run --`` stands a command, as at the beginning of a line, and its files."""
    assert "printf" in offered("uuidctl run -- print", tmp_path)
    assert "printf" in offered("uuidctl run --worker 5 -- print", tmp_path)
    (tmp_path / "here-a-file").touch()
    assert offered("uuidctl run -- cat here", tmp_path) == ["here-a-file"]


@pytest.mark.process
@pytest.mark.parametrize("name", generate.PARSERS)
def test_bash_knows_what_completes_the_command(name: str) -> None:
    """Once its file was read, bash has a completion for the command."""
    script = shlex.quote(str(generate.SHARE / "bash" / name))
    told = output(need("bash"), "--norc", "-c", f"source {script}; complete -p {name}")
    assert told == f"complete -o bashdefault -F _shtab_{name} {name}\n"


@pytest.mark.process
@pytest.mark.parametrize("name", generate.PARSERS)
def test_zsh_can_read_its_file(name: str) -> None:
    """Zsh finds no fault with the file, which names its command where zsh looks for it."""
    script = generate.SHARE / "zsh" / f"_{name}"
    assert output(need("zsh"), "-n", str(script)) == ""
    assert script.read_text().startswith(f"#compdef {name}\n")


@pytest.mark.process
@pytest.mark.parametrize("name", generate.PARSERS)
def test_fish_can_read_its_file(name: str) -> None:
    """Fish finds no fault with the file."""
    script = generate.SHARE / "fish" / f"{name}.fish"
    assert output(need("fish"), "--no-config", "-n", str(script)) == ""

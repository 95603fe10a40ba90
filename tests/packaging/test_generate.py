"""The files in uuidd/share: manual pages and completion, made from the parsers."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.packaging import generate
from tests.tools import need, run

OUTDATED = "run python -m tests.packaging.generate"


def read(folder: Path) -> dict[str, str]:
    """Return the text of each file below *folder*, by its path."""
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file()
    }


def actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of a parser and of its subcommands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from actions(command)
        else:
            yield action


def shown(*command: object, **environment: str) -> str:
    """Return what a command writes to its standard output; it must not fail, nor complain."""
    basic = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}
    done = run(*command, env={**basic, **environment}, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout


def test_the_files_are_those_of_todays_parsers(tmp_path: Path) -> None:
    """Each file is, byte for byte, what the parsers make, and there are no others."""
    generate.write(tmp_path)
    made, kept = read(tmp_path), read(generate.SHARE)
    assert sorted(made) == sorted(kept), OUTDATED
    assert [path for path in made if made[path] != kept[path]] == [], OUTDATED


def test_the_width_of_the_terminal_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are the same from a narrow terminal and from a wide one."""
    monkeypatch.setenv("COLUMNS", "30")
    narrow = generate.made()
    monkeypatch.setenv("COLUMNS", "300")
    assert generate.made() == narrow


@pytest.mark.parametrize("name", generate.PARSERS)
def test_each_argument_is_explained(name: str) -> None:
    """No option and no argument goes without a help that says more than its default."""
    for action in actions(generate.whole(name)):
        assert action.help, action
        assert not action.help.startswith("("), action


MANUALS = {**generate.PARSERS, **generate.SUBCOMMANDS}


@pytest.mark.parametrize("name", MANUALS)
def test_each_option_is_in_the_manual_page(name: str) -> None:
    """The page names every way to write every option."""
    parser, section = MANUALS[name]
    page = (generate.SHARE / f"man/{name}.{section}").read_text().replace("\\-", "-")
    for action in actions(parser()):
        if action.dest == "help" and name in generate.SUBCOMMANDS:
            # Only a page with a section OPTIONS explains it.
            continue
        for option in action.option_strings:
            assert f"\\fB{option}\\fR" in page


@pytest.mark.parametrize(
    ("path", "only"),
    [("man/uuidd.8", ["SIGNALS"]), ("man/uuidctl.1", ["COMMANDS", "STATUS SCREEN"])],
)
def test_a_manual_page_has_the_usual_sections(path: str, only: list[str]) -> None:
    """Each page has what people look for in one, and no heading but these."""
    headings = [
        line[4:]
        for line in (generate.SHARE / path).read_text().splitlines()
        if line.startswith(".SH ")
    ]
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
@pytest.mark.parametrize("path", ["man/uuidd.8", "man/uuidctl.1"])
def test_man_and_mandoc_have_no_warning_for_a_page(path: str, tmp_path: Path) -> None:
    """Neither of man-db and groff, nor of mandoc's lint, from its advice on style up."""
    page = generate.SHARE / path
    assert "SEE ALSO" in shown(need("man"), "--warnings", "-l", page, HOME=str(tmp_path))
    assert shown(need("mandoc"), "-T", "lint", page) == ""


def in_bash(line: str, folder: Path) -> list[str]:
    """Return what bash offers for the last word of *line* in *folder*."""
    words = line.split(" ")
    script = generate.SHARE / "bash" / words[0]
    return shown(
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
    """Return what fish offers for the last word of *line* in *folder*."""
    script = generate.SHARE / "fish" / f"{line.split(' ')[0]}.fish"
    offered = shown(
        need("fish"),
        "--no-config",
        "-c",
        f"cd {shlex.quote(str(folder))}; source {shlex.quote(str(script))};"
        f" complete -C {shlex.quote(line)}",
        HOME=str(folder),
    )
    return [row.split("\t")[0] for row in offered.splitlines()]


IN_ZSH = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "source ${(q)2}"
zpty -r -m shell said '*<ready>*'
zpty -w -n shell "$1"$'\t'
zpty -r -m shell said '*<end>*'
print -r -- $said
"""
"""Types a line, and then a tab, into a zsh at a terminal, which completes nothing without one."""

PREPARED_ZSH = r"""
PROMPT= fpath=({share} $fpath)
autoload -Uz compinit
compinit -D -u
cd {folder}
compadd() {
  if (( ${@[(I)-[OAD]*]} )); then
    builtin compadd "$@"
  else
    local -a offered
    builtin compadd -O offered "$@"
    print -rl -- "<offered "${^offered}">"
    builtin compadd "$@"
  fi
}
offer() {
  _main_complete
  print "<"end">"
}
zle -C offer complete-word offer
bindkey '^I' offer
print "<"ready">"
"""
"""Lets that zsh print all that it offers. It prints this text too, which has no such marks."""


def in_zsh(line: str, folder: Path) -> list[str]:
    """Return what zsh offers for the last word of *line* in *folder*."""
    prepared = folder / ".prepared.zsh"
    share = shlex.quote(str(generate.SHARE / "zsh"))
    text = PREPARED_ZSH.replace("{share}", share).replace("{folder}", shlex.quote(str(folder)))
    prepared.write_text(text)
    zsh = need("zsh")
    said = shown(zsh, "-f", "-c", IN_ZSH, "zsh", line, prepared, HOME=str(folder), TERM="dumb")
    # It may try one way to complete after the other.
    return list(dict.fromkeys(re.findall(r"<offered ([^>]*)>", said)))


HERE = ["here-a-file", "here-a-folder"]


@pytest.mark.process
@pytest.mark.parametrize("offered", [in_bash, in_fish, in_zsh])
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("uuidctl inspec", ["inspect"]),
        ("uuidctl new -k ul", ["ulid"]),
        ("uuidctl new --namespace d", ["dns"]),
        ("uuidctl inspect --kind snow", ["snowflake"]),
        ("uuidctl bounds cass", ["cassandra"]),
        ("uuidctl bounds v7 2022-02-22T19:22:22Z --unit m", ["ms"]),
        ("uuidd --rollback sl", ["slew"]),
        ("uuidd --node ran", ["random"]),
        ("uuidd --reset", ["--reset-epoch", "--reset-steady"]),
        ("uuidd --user roo", ["root"]),
        ("uuidctl inspect --js", ["--json"]),
        ("uuidd work", ["workers"]),
        ("uuidd workers re", ["reserve"]),
        ("uuidd workers init --re", ["--reserve"]),
        ("uuidd workers init etcd://h1:2379/uuidd --ne", ["--new"]),
        ("uuidd workers list --js", ["--json"]),
        ("uuidd workers free --use", ["--used-until"]),
        ("uuidd workers raise --worker-w", ["--worker-window"]),
        ("uuidd install-units --coo", ["--coordinator"]),
        ("uuidd --state here", ["here-a-folder"]),
        ("uuidd -p here", HERE),
        ("uuidd --socket here", HERE),
        ("uuidctl -s here", HERE),
        ("uuidd workers list --worker-secret here", HERE),
        ("uuidctl run -- cat here", HERE),
        # Of commands of the machine there may be others that begin so.
        ("uuidctl run -- print", ["printf"]),
        ("uuidctl run --worker 5 -- print", ["printf"]),
    ],
)
def test_the_last_word_of_a_line_is_completed(
    offered: Callable[[str, Path], list[str]], line: str, expected: list[str], tmp_path: Path
) -> None:
    """A command, an option, a choice or a path; for a folder no file is offered."""
    (tmp_path / "here-a-folder").mkdir()
    (tmp_path / "here-a-file").touch()
    if offered is in_bash:
        # Which takes each colon of a URL for a word of its own.
        line = line.replace("etcd://h1:2379/", "etcd : //h1 : 2379/")
    words = sorted(word.rstrip("/") for word in offered(line, tmp_path))
    if line.startswith("uuidctl run") and "printf" in words:
        words = ["printf"]
    assert words == expected


@pytest.mark.process
@pytest.mark.parametrize("name", generate.PARSERS)
def test_each_shell_can_read_its_file(name: str) -> None:
    """Bash then has a completion for the command, and zsh finds the file by its first line."""
    bash, zsh, fish = (
        generate.SHARE / path for path in (f"bash/{name}", f"zsh/_{name}", f"fish/{name}.fish")
    )
    told = shown(
        need("bash"), "--norc", "-c", f"source {shlex.quote(str(bash))}; complete -p {name}"
    )
    assert told == f"complete -o bashdefault -F _shtab_{name} {name}\n"
    assert shown(need("zsh"), "-n", zsh) == ""
    assert zsh.read_text().startswith(f"#compdef {name}\n")
    assert shown(need("fish"), "--no-config", "-n", fish) == ""

"""Completion for shells, made from a parser by shtab."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator

import shtab

from uuidd.core.ids import versions
from uuidd_client import times

FILES = {"DIR": shtab.DIRECTORY, "FILE": shtab.FILE}
"""What completes a value, by the name that the help gives it."""

CHOICES: dict[tuple[str, str], Iterable[str]] = {
    ("uuidd", "node"): ("random", "mac"),
    ("uuidctl bounds", "kind"): times.BOUNDED_KINDS,
    ("uuidctl new", "namespace"): versions.NAMESPACES,
}
"""What is worth offering, by parser and argument, where the parser itself takes more than that."""

COMMANDS: shtab.CompleteType = {
    "bash": "_uuidd_compgen_commands",
    "zsh": "_uuidd_complete_command",
    "fish": "(_uuidd_complete_command)",
    "preamble": {
        "bash": """\
_uuidd_compgen_commands() {
  if [[ "${COMP_WORDS[COMP_CWORD - 1]}" == -- ]]; then
    compgen -c -- "$1"
  else
    compgen -f -- "$1"
  fi
}""",
        "zsh": """\
_uuidd_complete_command() {
  [[ $words[1] == -- ]] && shift words && (( CURRENT -= 1 ))
  _normal
}""",
        "fish": """\
function _uuidd_complete_command
  set -l words (commandline -opc)
  set -l end (contains -i -- -- $words); or return
  set -e words[1..$end]
  complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))
end""",
    },
}
"""What completes a command line inside ours."""

USERS: shtab.CompleteType = {
    "bash": "_uuidd_compgen_users",
    "zsh": "_users",
    "fish": "(__fish_complete_users)",
    "preamble": {"bash": '_uuidd_compgen_users() {\n  compgen -u -- "$1"\n}'},
}
"""What completes the name of a user."""


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the completion script of *parser* for bash, zsh or fish.

    The parser is changed, and of no further use.
    """
    for each, action in _actions(parser):
        if isinstance(action, argparse._SubParsersAction):
            for listed in action._choices_actions:
                # shtab would show the description, which is longer than a line of a list.
                action.choices[listed.dest].description = listed.help
        values = CHOICES.get((each.prog, action.dest))
        if values is not None:
            action.choices = list(values)
        elif action.nargs == argparse.REMAINDER:
            _complete_with(action, COMMANDS)
        elif (each.prog, action.dest) == ("uuidd", "user"):
            _complete_with(action, USERS)
        elif action.metavar in FILES:
            _complete_with(action, FILES[str(action.metavar)])
    return _tidy(shtab.complete(parser, shell))


def _actions(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[argparse.ArgumentParser, argparse.Action]]:
    """Yield each argument of *parser* and of its subcommands, with the parser that it is of."""
    for action in parser._actions:
        yield parser, action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)


def _complete_with(action: argparse.Action, how: shtab.CompleteType) -> None:
    # shtab looks for an attribute that argparse does not have.
    vars(action)["complete"] = how


def _tidy(text: str) -> str:
    """Return *text* without what it says to who installs it by hand, and without needless space."""
    text = re.sub(r"# Usage:\n(?:# .*\n)+", "", text, count=1)
    return "\n".join(line.rstrip() for line in text.splitlines()).rstrip() + "\n"

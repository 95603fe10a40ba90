"""Makes the files in uuidd/share from the parsers of both commands.

``python -m tests.packaging.generate`` writes them again; a test fails if they are out of date.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.packaging import completion, manual
from uuidd.cli import arguments, installing, workers
from uuidd_client import command

SHARE = Path(__file__).parents[2] / "uuidd" / "share"

PARSERS = {"uuidd": (arguments.parser, 8), "uuidctl": (command.parser, 1)}
"""The parser of each command, and the section that its manual page is in."""

COMMANDS = {
    workers.COMMAND: (workers.parser, "make, show and change the worker numbers of a fleet"),
    installing.COMMAND: (installing.parser, "install or remove the units for systemd"),
}
"""What may be the first word after ``uuidd``: its parser, and what a shell shows beside it."""

SUBCOMMANDS = {"uuidd-workers": (workers.parser, 8)}
"""Those with a manual page of their own."""


def made() -> dict[str, str]:
    """Return the text of each file, by its path below uuidd/share.

    It is the same whenever and wherever it is made.
    """
    found: dict[str, str] = {}
    for name, (parser, section) in {**PARSERS, **SUBCOMMANDS}.items():
        found[f"man/{name}.{section}"] = manual.page(_unwrapped(parser()), section)
    for name in PARSERS:
        # Each maker changes the parser that it is given.
        found[f"bash/{name}"] = completion.script(_unwrapped(whole(name)), "bash")
        found[f"zsh/_{name}"] = completion.script(_unwrapped(whole(name)), "zsh")
        found[f"fish/{name}.fish"] = completion.script(_unwrapped(whole(name)), "fish")
    return found


def whole(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command, with its first words that have parsers of their own.

    The command itself looks at its first word, and then asks only one of these parsers.
    """
    made = PARSERS[name][0]()
    if name == "uuidd":
        commands = made.add_subparsers()
        for word, (parser, what) in COMMANDS.items():
            commands.add_parser(word, help=what, parents=[parser()], add_help=False)
    return made


def write(folder: Path) -> None:
    """Write the files below *folder*."""
    for path, text in made().items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def _unwrapped(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Return *parser* with help that has no line breaks, whatever the width of the terminal is."""
    parser.formatter_class = _Unwrapped
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command_parser in action.choices.values():
                _unwrapped(command_parser)
    return parser


class _Unwrapped(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=100_000)


if __name__ == "__main__":
    write(SHARE)
    sys.exit(0)

"""Manual pages, made from a parser by argparse-manpage, and from the prose beside this file."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from argparse_manpage.manpage import Manpage

from uuidd import __version__

DATE = "2026-11-22"
"""When what the pages say last changed; set by hand, so that making them anew changes nothing."""

TITLES = {1: "User Commands", 8: "System Administration"}
"""What Debian calls the sections of the manual."""

USUAL_GROUPS = ("positional arguments", "options", "commands")

WIDTH = 80
"""Bytes of a line of roff: mandoc's advice. Readers see lines as wide as their terminal."""

_HELP = ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nshow the options and end"


def page(parser: argparse.ArgumentParser, section: int) -> str:
    """Return the manual page of *parser*, as roff, with the prose in the file of its name.

    The parser is changed, and of no further use.
    """
    name = parser.prog.replace(" ", "-")
    short = re.sub(r"^A ", "", parser.description or "").rstrip(".")
    # The prose says both in their place; argparse-manpage would call the epilog COMMENTS.
    parser.description = parser.epilog = None
    for commands in parser._actions:
        if isinstance(commands, argparse._SubParsersAction):
            _say_once(commands)
    groups = [
        group.title
        for group in parser._action_groups
        if group.title is not None and group.title not in USUAL_GROUPS
    ]
    made = Manpage(
        parser,
        {
            "date": DATE,
            "description": f"{short[:1].lower()}{short[1:]}",
            "include": str(Path(__file__).with_name(f"{name}.{section}.inc")),
            "manual_section": section,
            "manual_title": TITLES[section],
            "project_name": "uuidd",
            "version": __version__,
        },
        format="single-commands-section",
    )
    return "\n".join(_wrapped(_reads_well(str(made), groups))) + "\n"


def _say_once(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Let each subcommand be described once, after a usage that has all its arguments."""
    for listed in commands._choices_actions:
        command = commands.choices[listed.dest]
        said = listed.help or ""
        command.description = command.description or f"{said[:1].upper()}{said[1:]}."
        listed.help = None
        usage = command.format_usage().removeprefix("usage: ").rstrip()
        for action in command._actions:
            if action.nargs == argparse.REMAINDER and isinstance(action.metavar, str):
                # argparse shows dots for the rest of a line, whatever it is called.
                usage = f"{usage.removesuffix('...')}{action.metavar}"
        command.usage = usage.replace("%", "%%")


def _reads_well(text: str, groups: list[str]) -> str:
    """Return the page with all options in one section, and without the marks of a help text."""
    header, text = text.split("\n", 1)
    for title in groups:
        text = text.replace(f".SH {title.upper()}\n", f".SS {title[:1].upper()}{title[1:]}\n")
    text = text.replace(".SH OPTIONS\n", f".SH OPTIONS\n{_HELP}\n\n", 1)
    # A heading stands on its macro's own line.
    text = re.sub(r"^\.SH\n", ".SH ", text, flags=re.MULTILINE)
    text = re.sub(r"^usage: (.*)$", _usage, text, flags=re.MULTILINE)
    # The headings "arguments:" and "options:", and the step inwards after them.
    text = re.sub(r"^(?:arguments|options):\n\.RS 7\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\.RE\n", "", text, flags=re.MULTILINE)
    # Before a macro an empty line is one too many; between paragraphs there is a macro for it.
    text = re.sub(r"\n{2,}(?=\.)", "\n", text)
    text = re.sub(r"\n{2,}", "\n.PP\n", text)
    # A date is no option: its dashes are plain.
    # A page's title is one word.
    header = re.sub(r"^\.TH (\w+) (\w+)", r".TH \1-\2", header)
    text = re.sub(r"^(\.SH NAME\n\w+) (\w+)", r"\1-\2", text)
    return f"{header.replace(chr(92), '')}\n{text}".rstrip("\n")


def _usage(match: re.Match[str]) -> str:
    """Return a usage with its words in bold, and what stands for a value in italics."""
    text = re.sub(r"(?<![\w-])([A-Z]{1,10})(?![\w-])", r"\\fI\1\\fR", match[1])
    text = re.sub(r"(?<![\w-])((?:\\-)+(?:\w|\\-)*)", r"\\fB\1\\fR", text)
    return re.sub(r"^\w+ \w+", r"\\fB\g<0>\\fR", text)


def _wrapped(text: str) -> Iterator[str]:
    """Yield the lines of *text*, none longer than need be; roff joins them again."""
    before = ""
    for line in text.splitlines():
        if line.startswith(".") or before == ".TP" or before == ".SH NAME":
            yield line
        else:
            # Not at hyphens, where joining would leave a space.
            for part in textwrap.wrap(line, WIDTH, break_long_words=False, break_on_hyphens=False):
                # What begins with these would be a macro.
                yield rf"\&{part}" if part[0] in ".'" else part
        before = line

"""Options from a file: /etc/default/uuidd, which the service reads."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import NoReturn

NAME = "UUIDD_OPTIONS"


class DefaultsError(Exception):
    """The file, or an option in it, cannot be used; one line that names both."""


def options(path: Path) -> list[str]:
    """Give the options that *path* holds, none when there is no such file.

    It has lines as a shell reads them: ``UUIDD_OPTIONS="--worker 5"``, comments, and nothing else.
    Raises DefaultsError, naming the line, for anything else.
    """
    try:
        text = path.read_text()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DefaultsError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:  # also a NUL in the path
        raise DefaultsError(f"{path} cannot be read: {error}") from error
    found: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            words = shlex.split(line, comments=True)
            if not words:
                continue
            (word,) = words
            name, _, value = word.partition("=")
            if name != NAME:
                raise ValueError(f'{word[:60]!r} is no {NAME}="..."')
            found = shlex.split(value)
        except ValueError as error:
            raise DefaultsError(f"{path}, line {number}: {_plain(error, line)}") from error
    return found


def _plain(error: ValueError, line: str) -> str:
    text = str(error)
    return f'{line[:60]!r} is no {NAME}="..."' if "unpack" in text else text


class Parser(argparse.ArgumentParser):
    """A parser that raises DefaultsError where another ends the program."""

    def error(self, message: str) -> NoReturn:
        """Raise DefaultsError."""
        raise DefaultsError(message)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Raise DefaultsError: a file is no place to ask for help or the version."""
        raise DefaultsError(message or "-h and -V are not for a file")

    def print_help(self, file: object = None) -> None:
        """Print nothing."""

    def _print_message(self, message: str, file: object = None) -> None:
        """Print nothing."""

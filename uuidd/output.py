"""What both commands share: lines that can be shown, and their output, with errors of its own."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO


class OutputError(Exception):
    """Standard output cannot be written; one line that says why."""


def printable(text: str) -> str:
    """Return *text* as one line; a name in it, as of a file, may hold almost any characters."""
    return text if text.isprintable() else ascii(text)[1:-1]


class Output:
    """*stream*, of which ``write`` and ``flush`` raise OutputError in place of OSError.

    BrokenPipeError is raised as it is: the reader, as "head" is, needs no more.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write *text*, in which what the stream cannot encode is escaped.

        Raises OutputError or BrokenPipeError.
        """
        with _as_output_error():
            try:
                return self._stream.write(text)
            except UnicodeEncodeError as error:
                # Of a path, which may hold any bytes.
                escaped = text.encode(error.encoding, "backslashreplace")
                return self._stream.write(escaped.decode(error.encoding))

    def flush(self) -> None:
        """Write what is left in the buffer. Raises OutputError or BrokenPipeError."""
        with _as_output_error():
            self._stream.flush()


@contextlib.contextmanager
def _as_output_error() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"standard output cannot be written: {error.strerror}") from error


def give_up() -> None:
    """Keep the interpreter from writing the rest of the output, and failing, when it ends."""
    # This may fail if no descriptor is free.
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Parser(argparse.ArgumentParser):
    """A parser that takes whole names of options only.

    It raises OSError if its help cannot be written, which argparse ignores.
    """

    def __init__(self, **settings: Any) -> None:
        # A later option must not change what a script's shorter name means.
        super().__init__(allow_abbrev=False, **settings)

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        # Of "--node=--", for which older versions of Python return a list without a value.
        if action.nargs is None and arg_strings == ["--"]:
            raise argparse.ArgumentError(action, "'--' is no value")
        return super()._get_values(action, arg_strings)

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is sys.stdout:
            sys.stdout.write(message)
        else:
            super()._print_message(message, file)

"""The ``uuidd`` command: starts the daemon, or asks or ends the one that runs."""

from __future__ import annotations

import argparse
import contextlib
import gc
import signal
import sys
from collections.abc import Sequence

import uuidd
from uuidd.cli import arguments, background, logs, options
from uuidd.output import Output, OutputError, give_up
from uuidd.refused import Refused


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 0, 1 for a failure, 2 for wrong usage.

    After Ctrl-C it is 130. While the command runs, Ctrl-C raises KeyboardInterrupt, so that the
    command can clean up. Before and after, the script lets Ctrl-C end the process.
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        background.fill_standard_descriptors()
        if callable(before):
            signal.signal(signal.SIGINT, signal.default_int_handler)
        with contextlib.redirect_stdout(Output(sys.stdout)):
            try:
                status = _main(list(sys.argv[1:] if argv is None else argv))
            finally:
                # Also after --help, which raises SystemExit.
                sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader, as "head" is, needs no more.
        give_up()
        return 1
    except Refused as error:
        _complain(str(error))
        return 1
    except ModuleNotFoundError as error:
        # Where only the client is used, it may be installed without what the daemon needs.
        _complain(f"this command needs the package {error.name}; run {uuidd.installing()}")
        return 1
    except (OutputError, OSError) as error:
        _complain(str(error))
        give_up()
        return 1
    finally:
        if callable(before):
            signal.signal(signal.SIGINT, before)
    return status


def _main(words: list[str]) -> int:
    # Each command imports what it alone needs: callers may wait for a daemon that starts.
    if words[:1] == ["install-units"]:
        from uuidd.cli import installing

        return installing.main(words[1:])
    if words[:1] == ["workers"]:
        from uuidd.cli import workers

        return workers.main(words[1:])
    given = options.parsed(words)
    if given.check:
        return _check(given)
    if given.kill or given.random or given.time:
        return _ask(given)
    if given.reset_steady or given.reset_epoch:
        return _reset(given)
    return _start(given)


def _check(given: argparse.Namespace) -> int:
    """Print each reason to refuse a start with these options; return 0 if there is none."""
    from uuidd.server.checking import problems

    wrong = problems(options.settings(given))
    for line in wrong:
        _complain(line)
    return 1 if wrong else 0


def _ask(given: argparse.Namespace) -> int:
    from uuidd.cli import asking

    path = given.socket or arguments.SOCKET
    try:
        if given.kill:
            pid = asking.kill(path)
            if not given.quiet:
                print(f"Killed uuidd running at pid {pid}." if pid else f"No uuidd at {path}.")
        if given.time:
            print(asking.time_uuids(path, given.uuids))
        if given.random:
            for line in asking.random_uuids(path, given.uuids):
                print(line)
    except Refused as error:
        if not given.quiet:
            _complain(str(error))
        return 1
    return 0


def _reset(given: argparse.Namespace) -> int:
    from uuidd.server.reset import reset_epoch, reset_steady

    folder = options.state_folder(given)
    if given.reset_steady:
        print(reset_steady(folder))
    if given.reset_epoch:
        print(reset_epoch(folder))
    return 0


def _start(given: argparse.Namespace) -> int:
    from uuidd.server.startup import started

    settings = options.settings(given)
    logs.to_stderr(options.level_of(given))
    foreground = given.no_fork or given.socket_activation or given.debug
    behind = None if foreground else background.enter()
    if behind is not None:
        logs.prepare_syslog()
    with started(settings) as serve:
        # The garbage collector need not visit what was imported, which is never freed.
        gc.freeze()
        gc.enable()
        if behind is not None:
            behind()
            logs.to_syslog(options.level_of(given))
        return 0 if serve() else 1


def _complain(line: str) -> None:
    print(logs.complaint(line), file=sys.stderr)

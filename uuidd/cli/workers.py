"""``uuidd workers``: makes a fleet's worker numbers in an engine, shows and changes them."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from uuidd.cli import arguments
from uuidd.cli.options import reached
from uuidd.core.ids import times
from uuidd.core.ids.snowflake import TWITTER_EPOCH
from uuidd.core.ids.ticks import TICKS_PER_MS, TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.fleet.address import Address
from uuidd.fleet.record import NUMBERS, Meta, new_token, this_host
from uuidd.output import Parser
from uuidd.refused import Refused

COMMAND = "workers"

_number = arguments.whole(0, NUMBERS - 1)


def parser() -> argparse.ArgumentParser:
    """Return the parser of this command's options; it turns spans and --used-until into ticks."""
    made = Parser(
        prog=f"uuidd {COMMAND}", description="Make, show and change the worker numbers of a fleet."
    )
    commands = made.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", required=True
    )

    def add(name: str, what: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=what, description=f"{what.capitalize()}.")
        command.add_argument(
            "url",
            metavar="URL",
            type=arguments.address,
            help="that of the daemons' option --worker",
        )
        arguments.add_access(command)
        return command

    def add_span(command: argparse.ArgumentParser, name: str, what: str) -> None:
        command.add_argument(
            f"--worker-{name}",
            type=lambda text: int(arguments.span(text) * TICKS_PER_SECOND),
            default=int(arguments.WINDOW_SECONDS * TICKS_PER_SECOND),
            metavar="SPAN",
            help=f"{what} (default: 10m)",
        )

    listing = add(
        "list", "show each number: its host, how long it is reserved, and when that was written"
    )
    listing.add_argument("--json", action="store_true", help="print JSON")
    init = add("init", "make the namespace, once for the whole fleet")
    init.add_argument(
        "--epoch",
        type=arguments.unix_ms,
        default=TWITTER_EPOCH,
        metavar="TIME",
        help="the time from which the fleet's Snowflakes count, as the daemons' --epoch",
    )
    init.add_argument(
        "--range",
        type=_range,
        default=range(NUMBERS),
        metavar="LOW-HIGH",
        help=f"the numbers that hosts may claim (default: 0-{NUMBERS - 1}); two namespaces whose"
        " Snowflakes meet in one database must have different ones",
    )
    init.add_argument(
        "--reserve",
        type=numbers,
        default=(),
        metavar="NUMBERS",
        help="numbers that no new host gets, such as 0-15,20: those of hosts with --worker N, each"
        " of which keeps its own when it is started with the URL",
    )
    init.add_argument(
        "--new",
        action="store_true",
        help="no host ever had a number of this namespace: let all begin at once; without this,"
        " they begin later than hosts can go on whose namespace the engine has lost",
    )
    for name, more in (("window", ""), ("hold", "; at least a minute")):
        add_span(init, name, f"without --new: the longest --worker-{name} of the daemons{more}")
    reserve = add("reserve", "keep numbers from new hosts")
    reserve.add_argument("numbers", type=numbers, metavar="NUMBERS", help="such as 0-15,20")
    free = add("free", "let new hosts have a number, after its host has gone for ever")
    free.add_argument("number", type=_number, metavar="N", help="the number, such as 17")
    free.add_argument(
        "--used-until",
        type=lambda text: UNIX_EPOCH + arguments.unix_ms(text) * TICKS_PER_MS,
        metavar="TIME",
        help="the time up to which the number was used, if its register has a wrong one, such as"
        " one years ahead (default: what the register says, and at least a minute from now)",
    )
    free.add_argument("--yes", action="store_true", help="do not ask")
    raising = add(
        "raise", "let all numbers begin later, after the engine was restored from a backup"
    )
    add_span(
        raising, "window", "the daemons' --worker-window, the longest of all; a minute is added"
    )
    raising.add_argument(
        "--hosts-cut-off",
        action="store_true",
        help="no host reaches the engine, although one still holds a number",
    )
    return made


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    given = parser().parse_args(argv)
    # Imported here, so that wrong usage is told without waiting for it.
    import trio

    from uuidd.fleet.engines import Away

    try:
        print(trio.run(_run, reached(given.url, given), given))
    except Away as away:
        raise Refused(f"{given.url.name} gives no answer: {away}") from away
    return 0


async def _run(address: Address, given: argparse.Namespace) -> str:
    """Return what to print."""
    from uuidd.cli import listing
    from uuidd.fleet.administering import Administrator, standing
    from uuidd.fleet.registers import connect

    async with connect(address) as engine:
        administrator = Administrator(engine, this_host(), _now())
        match given.command:
            case "init":
                meta = Meta(new_token(), given.epoch, given.range[0], given.range[-1])
                window, hold = given.worker_window, given.worker_hold
                used = None if given.new else (window, hold)
                until = await administrator.init(meta, given.reserve, used=used)
                made = f"made the namespace {meta.id} with the numbers {meta.low} to {meta.high}; "
                if not until:
                    return f"{made}they begin at once, because --new says that no host ever had one"
                return (
                    f"{made}hosts of a lost namespace may still use them, with a --worker-window of"
                    f" {window / TICKS_PER_SECOND:.10g}s and a --worker-hold of"
                    f" {hold / TICKS_PER_SECOND:.10g}s at most, so they begin at"
                    f" {times.text(until, TICKS_PER_MS)}; if no host ever had one, make a namespace"
                    " at another URL with --new"
                )
            case "reserve":
                await administrator.reserve(given.numbers)
                return f"numbers reserved: {len(given.numbers)}; no new host gets them"
            case "free":
                await administrator.opened()
                found = await engine.read(given.number)
                if found is None:
                    raise Refused(f"number {given.number} is free: no host ever had it")
                _ask(given, found.host, standing(found, administrator.now))
                # Before the answer somebody may have ended the host, which used its number.
                administrator = replace(administrator, now=_now())
                record = await administrator.free(given.number, found, used_until=given.used_until)
                begins = times.text(record.until, TICKS_PER_MS)
                return f"number {given.number} is free; it begins at {begins}"
            case "raise":
                window, cut_off = given.worker_window, given.hosts_cut_off
                changed, until = await administrator.raise_all(window, cut_off=cut_off)
                begins = times.text(until, TICKS_PER_MS)
                return f"raised {changed} numbers; none begins before {begins}"
            case _:
                meta = await administrator.opened()
                rows = listing.rows(await engine.all(), administrator.now)
                if given.json:
                    return listing.as_json(engine.name, meta, rows)
                return listing.as_table(meta, rows)


def _now() -> int:
    return UNIX_EPOCH + time.time_ns() // 100


def _ask(given: argparse.Namespace, host: str, standing: str) -> None:
    """Ask whether the number's host is gone. Raises Refused if it is not."""
    if given.yes or standing == "released":
        return
    question = f"Number {given.number} is {standing} (host {host!r}). Is its host gone for ever?"
    if not sys.stdin.isatty():
        raise Refused(f"{question} Then add --yes; nothing was changed")
    try:
        answer = input(f"{question} [y/N] ")
    except (EOFError, UnicodeDecodeError):
        print()
        answer = ""
    if answer.strip().lower() not in ("y", "yes"):
        raise Refused("nothing was changed")


def numbers(text: str) -> tuple[int, ...]:
    """Return the numbers in a list such as ``0-15,20``, in order. Raises ArgumentTypeError."""
    return tuple(sorted({number for part in text.split(",") for number in _range(part)}))


def _range(text: str) -> range:
    low, dash, high = text.partition("-")
    first = _number(low)
    last = _number(high) if dash else first
    if last < first:
        raise argparse.ArgumentTypeError(f"{text!r:.40}: {first} is above {last}")
    return range(first, last + 1)

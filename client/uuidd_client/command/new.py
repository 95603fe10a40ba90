"""``uuidctl new``: makes ids."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterable
from functools import partial
from typing import Any

from uuidd.core.ids import uuids, versions
from uuidd.core.ids.kinds import KINDS
from uuidd_client.command.common import CommandError, client, complain, whole_number

NAME_BASED = {"v3": versions.v3, "v5": versions.v5}

FLAGS = {"-t": "v1", "-r": "v4", "-6": "v6", "-7": "v7"}
"""The short options of util-linux's ``uuidgen``, and the kinds that they choose."""

AT_ONCE = 10_000
"""Ids that are made and printed at a time, so that any number takes little memory."""


def add_to(commands: Any) -> None:
    """Add the command to an argparse parser's commands."""
    command = commands.add_parser(
        "new", help="make new ids, one per line", description="Make new ids, one per line."
    )
    command.add_argument(
        "-k",
        "--kind",
        choices=(*KINDS, *NAME_BASED),
        default="v1",
        metavar="KIND",
        help=f"the kind of id: {', '.join((*KINDS, *NAME_BASED))} (default: v1)",
    )
    for flag, kind in FLAGS.items():
        command.add_argument(
            flag, dest="kind", action="store_const", const=kind, help=f"as --kind {kind}"
        )
    count = partial(whole_number, least=1)
    command.add_argument(
        "-n", "-C", "--count", type=count, metavar="N", help="how many (default: 1)"
    )
    command.add_argument("--json", action="store_true", help="print one JSON array")
    command.add_argument(
        "--namespace",
        metavar="UUID",
        help="for v3 and v5: the namespace of the name: a UUID, or"
        f" {', '.join(versions.NAMESPACES)}",
    )
    command.add_argument("--name", help="for v3 and v5: the name that the id is made from")
    # Of a word that stands alone, argparse would say no more than that it does not know it.
    command.add_argument("alone", nargs="*", help=argparse.SUPPRESS)
    command.set_defaults(do=partial(_do, command))


def _do(command: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    warnings.showwarning = lambda message, *_, **__: complain(str(message))
    ids = _ids(command, given)
    if given.json:
        before = "["
        for some in ids:
            print(before + json.dumps(some)[1:-1], end="")
            before = ", "
        print("]")
    else:
        for some in ids:
            print("\n".join(some))
    return 0


def _ids(command: argparse.ArgumentParser, given: argparse.Namespace) -> Iterable[list[str]]:
    if given.alone:
        command.error(
            f"{given.alone[0]!r} belongs to no option; name the kind of id with -k"
            f" ({', '.join((*KINDS, *NAME_BASED))}), and how many with -n"
        )
    kind, namespace, name = given.kind, given.namespace, given.name
    if kind not in NAME_BASED:
        if namespace is not None or name is not None:
            command.error(f"--namespace and --name are for {' and '.join(NAME_BASED)}")
        asked, count = client(given.socket, fallback=True), given.count or 1
        parts = (min(count - made, AT_ONCE) for made in range(0, count, AT_ONCE))
        return (asked.make(kind, part, form="text") for part in parts)
    if namespace is None or name is None:
        command.error(f"a {kind} needs --namespace and --name")
    if given.count is not None:
        command.error(f"a {kind} is the same for the same name; -n would repeat it")
    try:
        return [[uuids.to_text(NAME_BASED[kind](versions.namespace(namespace), name))]]
    except UnicodeEncodeError:
        raise CommandError(f"--name {name!r} is not text in UTF-8") from None
    except ValueError as error:
        raise CommandError(f"--{error}") from error

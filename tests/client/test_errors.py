"""Errors as programs, and those who write programs, meet them."""

from __future__ import annotations

import copy
import os
import re
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, assert_type
from uuid import UUID

import pytest

from tests.client.fakes import Answer, Server, granted, in_turn
from tests.documents import text
from uuidd_client import Client, DaemonUnavailable, NoWorkerId, TimeOutOfRange
from uuidd_client.aio import AsyncClient
from uuidd_client.errors import CODES
from uuidd_client.testing import fixed_ids

NOBODY = 65534
"""The user id of nobody."""


@pytest.mark.parametrize(
    "error",
    [
        DaemonUnavailable("/path", "no answer yet", "silent"),
        NoWorkerId("/path", "it has none"),
        TimeOutOfRange("ksuid", 10, 20, 30),
    ],
)
def test_an_error_comes_whole_out_of_another_process(error: Exception) -> None:
    """A pool of processes pickles what its workers raise; a copy is made in the same way."""
    told = copy.copy(error)
    assert type(told) is type(error)
    assert str(told) == str(error)
    assert vars(told) == vars(error)


def unavailable(client: Client) -> DaemonUnavailable:
    """Return the error of a client that can make no v7."""
    with client, pytest.raises(DaemonUnavailable) as caught:
        client.uuid7()
    return caught.value


def answered(path: Path, *answers: Answer, timeout: float = 60) -> DaemonUnavailable:
    """Return the error at the last of these answers of a daemon, which it gives twice if asked."""
    with Server(path, in_turn(*answers, answers[-1])):
        client = Client(path, fallback=False, max_age=0, timeout=timeout)
        for _ in answers[1:]:
            client.uuid7()
        return unavailable(client)


def refusal(path: Path, code: str) -> DaemonUnavailable:
    with Server(path, f"{code}: in 3.2 s"):
        return unavailable(Client(path, fallback=False))


def nobody_listens(path: Path) -> DaemonUnavailable:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
    return unavailable(Client(path, fallback=False))


def no_access(path: Path) -> DaemonUnavailable:
    client = Client(path, fallback=False)
    user = os.geteuid()
    path.parent.chmod(0)
    try:
        if user == 0:
            os.seteuid(NOBODY)
        return unavailable(client)
    finally:
        os.seteuid(user)
        path.parent.chmod(0o700)


def behind(path: Path) -> DaemonUnavailable:
    return answered(path, granted(9, 1), granted(4, 1))


def fixed(path: Path) -> DaemonUnavailable:
    with fixed_ids() as client, pytest.raises(DaemonUnavailable) as caught:
        client.status()
    return caught.value


CAUSES: dict[str, Callable[[Path], DaemonUnavailable]] = {
    "no_socket": lambda path: unavailable(Client(path, fallback=False)),
    "no_access": no_access,
    "no_listener": nobody_listens,
    "system": lambda path: unavailable(Client(f"{path}{'x' * 120}", fallback=False)),
    "silent": lambda path: answered(path, b"", timeout=0.01),
    "closed": lambda path: answered(path, None),
    "unusable": lambda path: answered(path, b"\xc1"),
    "behind": behind,
    "fixed": fixed,
    **{code: partial(refusal, code=code) for code in CODES},
    "refused": lambda path: refusal(path, "of_a_later_version"),
}
"""How each reason comes about."""


@pytest.mark.parametrize("reason", CAUSES)
def test_an_unavailable_daemon_has_a_reason_for_programs(tmp_path: Path, reason: str) -> None:
    assert CAUSES[reason](tmp_path / "s").reason == reason


@pytest.mark.parametrize("reason", ["silent", "behind"])
def test_a_text_of_the_client_has_no_figures_that_change(tmp_path: Path, reason: str) -> None:
    """So a log or a metric has one text for each cause."""
    assert not re.search(r"[0-9]", CAUSES[reason](tmp_path / "s").cause)


def test_the_table_of_reasons_has_all_of_them() -> None:
    """Programs that compare a reason rely on it."""
    _, table = text("client/README.md").split("| `reason` | what happened |")
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \|", table.partition("\n\n")[0], re.MULTILINE)
    assert re.findall(r"[a-z_]+", " ".join(rows)) == list(CAUSES)


def test_the_codes_are_those_of_the_protocol() -> None:
    """A code that the client does not know would be told as one of a later daemon."""
    _, table = text("uuidd/protocol.md").split("| code | what it means | what to do |")
    rows = re.findall(r"^\| `([a-z_]+)` \|", table.partition("\n\n")[0], re.MULTILINE)
    assert sorted(rows) == sorted(CODES)


if TYPE_CHECKING:
    # Checked by mypy, for which an ignored line without an error is an error.
    from uuidd_client.client import Form, Kind

    async def typed(client: Client, ids: AsyncClient, kind: Kind, form: Form) -> None:
        """Type checkers know what each form returns, and refuse an unknown kind or form."""
        client.make(kind, 3)
        client.make(kind, 3, form)
        client.factory(kind, form)()
        assert_type(client.make("v7", 3), list[UUID])
        assert_type(client.make("v7", 3, "text"), list[str])
        assert_type(client.make("v7", 3, form="bytes"), bytes)
        assert_type(next(client.iter("snowflake")), int)
        assert_type(client.factory("ulid")(), str)
        assert_type(await ids.make("flake", 3), list[str])
        client.make("v9", 3)  # type: ignore[call-overload]
        client.make("v7", 3, form="hex")  # type: ignore[call-overload]
        client.iter("v9")  # type: ignore[call-overload]
        client.iter("v7", form="hex")  # type: ignore[call-overload]
        client.factory("v9")  # type: ignore[call-overload]
        client.factory("v7", form="hex")  # type: ignore[call-overload]
        await ids.make("v9", 3)  # type: ignore[call-overload]
        await ids.make("v7", 3, form="hex")  # type: ignore[call-overload]
        ids.iter("v9")  # type: ignore[call-overload]
        ids.factory("v7", form="hex")  # type: ignore[call-overload]

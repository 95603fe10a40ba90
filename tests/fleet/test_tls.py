"""Certificates and passwords, tried against the real engines."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.fleet.fleets import answered
from tests.fleet.servers import (
    PASSWORD,
    USER,
    Etcd,
    Postgresql,
    Server,
    Zookeeper,
    certificates,
    running,
)
from uuidd.fleet.address import Access, parse
from uuidd.fleet.engines import Away
from uuidd.fleet.record import Meta, Record
from uuidd.fleet.registers import connect

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

HOST = "127.0.0.1"
META = Meta("0123456789abcdef", 1288834974657)
RECORD = Record("fedcba9876543210", 139, held=True)

KINDS: dict[str, Callable[[Path], Server]] = {
    "etcd": lambda folder: Etcd(folder, 1, certificates(folder)),
    "zookeeper": lambda folder: Zookeeper(folder, 1, certificates(folder)),
    "postgresql": lambda folder: Postgresql(folder, certificates(folder)),
}


@pytest.fixture(scope="module", params=KINDS)
def secured(request: pytest.FixtureRequest) -> Iterator[tuple[str, Access]]:
    """The URL of a namespace in an engine that asks for a certificate and a password, and both."""
    with running(KINDS[request.param]) as engine:
        files, secret = engine.folder, engine.folder / "secret"
        for path, text in ((secret, PASSWORD), (files / "wrong", "wrong")):
            path.write_text(text)
            path.chmod(0o600)
        if isinstance(engine, Etcd):
            with_users(engine)
        access = Access(USER, secret, files / "ca.pem", files / "client.pem", files / "client.key")
        url = engine.url("uuidd/prod")
        trio.run(answered, partial(opened, url, access))
        yield url, access


def with_users(engine: Etcd) -> None:
    """Let etcd ask for a password; our user may use the keys below /uuidd/."""
    engine.etcdctl("user", "add", f"{USER}:{PASSWORD}")
    for command in (
        "user add root:secret",
        "user grant-role root root",
        f"role add {USER}",
        f"role grant-permission {USER} --prefix=true readwrite /uuidd/",
        f"user grant-role {USER} {USER}",
        "auth enable",
    ):
        engine.etcdctl(*command.split())


async def opened(url: str, access: Access) -> Meta:
    """Return the namespace; make it if there is none."""
    async with connect(parse(url), access) as registers:
        if await registers.meta() is None:
            await registers.create(META, {})
        return META


async def test_a_certificate_and_a_password_let_the_daemon_in(
    secured: tuple[str, Access],
) -> None:
    url, access = secured
    async with connect(parse(url), access) as registers:
        assert await answered(registers.meta) == META
        await registers.write(17, RECORD, None)
        found = await registers.read(17)
        assert found is not None
        assert found.record == RECORD


STRANGERS: dict[str, tuple[str, dict[str, str | None], str]] = {
    # Its authority is not the one that --worker-ca names.
    "the certificate of another authority": (HOST, {"ca": "other-ca.pem"}, "certificate verify"),
    "a certificate of another host": ("localhost", {}, ""),
    "no certificate of ours": (HOST, {"cert": None, "key": None}, ""),
    # The namespace is not ours then, and the line names the user.
    "another password": (HOST, {"secret": "wrong"}, USER),
}


@pytest.mark.parametrize(("host", "files", "words"), STRANGERS.values(), ids=STRANGERS)
async def test_an_engine_is_away_for_a_stranger(
    secured: tuple[str, Access], host: str, files: dict[str, str | None], words: str
) -> None:
    """And the other way round, in one line without the password."""
    url, access = secured
    assert access.ca is not None
    changed: dict[str, Any] = {
        option: name and access.ca.with_name(name) for option, name in files.items()
    }
    with pytest.raises(Away) as away:
        await opened(url.replace(HOST, host), replace(access, **changed))
    # kazoo leaves the socket of a handshake that failed to the garbage collector.
    gc.collect()
    line = str(away.value)
    assert words in line.lower()
    assert "\n" not in line
    assert PASSWORD not in line

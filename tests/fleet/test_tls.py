"""Certificates and passwords, tried against the real engines."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest
import trio

from tests.fleet.fleets import answered
from tests.fleet.servers import (
    KINDS,
    PASSWORD,
    USER,
    Etcd,
    running,
)
from uuidd.fleet.address import Address, parse
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


@pytest.fixture(scope="module", params=KINDS)
def secured(request: pytest.FixtureRequest) -> Iterator[Address]:
    """The URL of a namespace in an engine that asks for a certificate and a password, and both."""
    with running(KINDS[request.param], alone=True, tls=True) as engine:
        files, secret = engine.folder, engine.folder / "secret"
        for path, text in ((secret, PASSWORD), (files / "wrong", "wrong")):
            path.write_text(text)
            path.chmod(0o600)
        if isinstance(engine, Etcd):
            with_users(engine)
        ours = {"ca": "ca.pem", "cert": "client.pem", "key": "client.key", "secret": "secret"}
        address = replace(
            parse(engine.url("uuidd/prod")),
            user=USER,
            files={option: files / name for option, name in ours.items()},
        )
        trio.run(answered, partial(opened, address))
        yield address


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


async def opened(address: Address) -> Meta:
    """Return the namespace; make it if there is none."""
    async with connect(address) as registers:
        if await registers.meta() is None:
            await registers.create(META, {})
        return META


async def test_a_certificate_and_a_password_let_the_daemon_in(secured: Address) -> None:
    async with connect(secured) as registers:
        assert await answered(registers.meta) == META
        await registers.write(17, RECORD, None)
        found = await registers.read(17)
        assert found is not None
        assert found == RECORD


async def test_the_certificates_of_the_system_are_trusted_by_default(
    secured: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(secured.files["ca"]))
    files = {option: path for option, path in secured.files.items() if option != "ca"}
    query = "?sslmode=verify-full" if secured.engine == "postgresql" else ""
    address = replace(parse(f"{secured.url}{query}"), user=USER, files=files)
    assert await opened(address) == META


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
    secured: Address,
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    files: dict[str, str | None],
    words: str,
) -> None:
    """And the other way round, in one line without the password."""
    # Beside --worker-ca it does not count whom the system trusts.
    monkeypatch.setenv("SSL_CERT_FILE", str(secured.files["ca"]))
    folder = secured.files["ca"].parent
    given = {option: path.name for option, path in secured.files.items()} | files
    paths = {option: folder / name for option, name in given.items() if name is not None}
    with pytest.raises(Away) as away:
        await opened(replace(parse(secured.url.replace(HOST, host)), user=USER, files=paths))
    # kazoo leaves the socket of a handshake that failed to the garbage collector.
    gc.collect()
    line = str(away.value)
    assert words in line.lower()
    assert "\n" not in line
    assert PASSWORD not in line

"""Certificates and passwords, tried against the real engines."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fleet.nodes import Certificates
from tests.fleet.servers import (
    PASSWORD,
    USER,
    AnyEngine,
    Etcd,
    Postgresql,
    Zookeeper,
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

META = Meta("0123456789abcdef", 1288834974657)
RECORD = Record("fedcba9876543210", 139, held=True)

KINDS: dict[str, Callable[[Path], AnyEngine]] = {
    "etcd": lambda folder: Etcd(folder, 1, Certificates.made(folder)),
    "zookeeper": lambda folder: Zookeeper(folder, 1, Certificates.made(folder)),
    "postgresql": lambda folder: Postgresql(folder, Certificates.made(folder)),
}


@pytest.fixture(scope="module", params=KINDS)
def secured(request: pytest.FixtureRequest) -> Iterator[tuple[str, Access]]:
    """The URL of a namespace in an engine that asks for a certificate and a password, and both."""
    with running(KINDS[request.param]) as engine:
        files, secret = engine.certificates, engine.folder / "secret"
        assert files is not None
        secret.write_text(PASSWORD)
        secret.chmod(0o600)
        if isinstance(engine, Etcd):
            with_users(engine)
        access = Access(USER, secret, files["ca.pem"], files["client.pem"], files["client.key"])
        yield engine.url("uuidd/prod"), access


def with_users(engine: Etcd) -> None:
    """Let etcd ask for a password; our user may use the keys below /uuidd/."""
    for command in (
        "user add root:secret",
        "user grant-role root root",
        f"role add {USER}",
        f"role grant-permission {USER} --prefix=true readwrite /uuidd/",
        f"user grant-role {USER} {USER}",
    ):
        if command.startswith("user grant-role fleet"):
            engine.etcdctl("user", "add", f"{USER}:{PASSWORD}")
        engine.etcdctl(*command.split())
    engine.etcdctl("auth", "enable")


async def test_a_certificate_and_a_password_let_the_daemon_in(
    secured: tuple[str, Access],
) -> None:
    url, access = secured
    async with connect(parse(url), access) as engine:
        if await engine.meta() is None:
            await engine.create(META, {})
        assert await engine.meta() == META
        found = await engine.read(17)
        await engine.write(17, RECORD, found)
        found = await engine.read(17)
        assert found is not None
        assert found.record == RECORD


async def away(url: str, access: Access) -> str:
    """Return why the engine does not let us in, in one line without the password."""
    async with connect(parse(url), access) as engine:
        try:
            if await engine.meta() is None:
                await engine.create(META, {})
        except Away as error:
            line = str(error)
        else:
            pytest.fail("it lets us in")
    # kazoo leaves the socket of a handshake that failed to the garbage collector.
    gc.collect()
    assert "\n" not in line
    assert PASSWORD not in line
    return line


async def test_an_engine_with_the_certificate_of_another_is_refused(
    secured: tuple[str, Access],
) -> None:
    """Its authority is not the one that --worker-ca names."""
    url, access = secured
    assert access.ca is not None
    line = await away(url, replace(access, ca=access.ca.with_name("other-ca.pem")))
    assert "certificate verify failed" in line.lower()


async def test_an_engine_with_the_name_of_another_is_refused(secured: tuple[str, Access]) -> None:
    """Its certificate is for another host, though of the same authority."""
    url, access = secured
    await away(url.replace("127.0.0.1", "localhost"), access)


async def test_without_a_certificate_the_engine_refuses(secured: tuple[str, Access]) -> None:
    url, access = secured
    await away(url, replace(access, cert=None, key=None))


async def test_with_another_password_the_engine_refuses(
    secured: tuple[str, Access], tmp_path: Path
) -> None:
    """The namespace is not ours then, and the line names the user."""
    url, access = secured
    async with connect(parse(url), access) as engine:
        if await engine.meta() is None:
            await engine.create(META, {})
    (tmp_path / "secret").write_text("wrong")
    (tmp_path / "secret").chmod(0o600)
    assert USER in await away(url, replace(access, secret=tmp_path / "secret"))

"""The service of a booted Debian in a fleet, and beside a clock, with the README's commands."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

import pytest

from tests.documents import text
from tests.rig import until
from tests.system.booted import UUIDD, Booted
from tests.tools import need
from uuidd.server.trust import quality as kernels_quality

pytestmark = pytest.mark.thorough

FLEET = "etcd://127.0.0.1:2379/uuidd/test"
PASSWORD = "correct horse battery"  # noqa: S105 - of an engine that lives for one test
SECRET = "/etc/uuidd/fleet-password"  # noqa: S105 - a path


@pytest.fixture
def engine(service: Booted) -> Iterator[None]:
    """An etcd inside, on loopback, in which a fleet was made."""
    for program in ("etcd", "etcdctl"):
        shutil.copy(need(program), service.path(f"/usr/local/bin/{program}"))
    # The system has no /etc/hosts, so the name localhost would be looked up in the network.
    clients, peers = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
    service.run(
        *("systemd-run", "--unit=etcd", "--property=Type=notify", "/usr/local/bin/etcd"),
        *("--data-dir=/var/lib/etcd-test", f"--initial-cluster=default={peers}"),
        *(f"--listen-client-urls={clients}", f"--advertise-client-urls={clients}"),
        *(f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}"),
    )
    service.run(UUIDD, "workers", "init", FLEET, "--new")
    try:
        yield
    finally:
        service.run("systemctl", "stop", "etcd.service")
        service.run("rm", "-r", "/var/lib/etcd-test")


def commands(beginning: str, name: str = "systemd/fleet.md") -> str:
    _, found, rest = text(name).partition(beginning)
    assert found
    return rest.split("```sh\n")[1].split("```")[0]


def roll_out(service: Booted, allowed: str = "localhost") -> str:
    """Run the commands that let the service join a fleet; return the status that they show."""
    script = commands("**Roll it out.**")
    script = script.replace("10.0.0.0/24 localhost", allowed)
    return service.run("sh", "-euc", script)


def exposure(service: Booted) -> float:
    said = service.run("systemd-analyze", "security", "--no-pager", "uuidd.service")
    [rated] = re.findall(r"Overall exposure level for \S+: ([0-9.]+) ", said)
    return float(rated)


def reaches(service: Booted, state: str) -> str:
    until(lambda: service.status()["worker"]["state"] == state)
    why: str = service.status()["worker"]["why"]
    return why


@pytest.mark.usefixtures("engine")
def test_the_drop_in_lets_the_service_claim_a_number_and_nothing_else_does(
    service: Booted,
) -> None:
    alone = exposure(service)
    service.options(f"--worker {FLEET}")
    service.restart()
    assert "run uuidd install-units --coordinator" in reaches(service, "away")
    with service.connect() as connection:
        assert len(connection.call("make", "v7", 2)) == 2
    since = service.now()
    assert "worker" in roll_out(service)
    reaches(service, "held")
    service.logged(since, "claimed: worker=")
    with service.connect() as connection:
        assert len(connection.call("make", "snowflake", 2)) == 2
    told = re.findall(r"says (\S+) without the drop-in, (\S+) if", text("systemd/fleet.md"))
    assert told == [(f"{alone:g}", f"{exposure(service):g}")]
    service.run("systemctl", "stop", "uuidd.service")
    service.logged(since, "released: worker=")


@pytest.mark.usefixtures("engine")
def test_ipv6_can_be_forbidden(service: Booted) -> None:
    service.options(f"--worker {FLEET}")
    roll_out(service, allowed="localhost\nRestrictAddressFamilies=~AF_INET6")
    reaches(service, "held")
    assert service.shown("RestrictAddressFamilies") == "AF_INET AF_NETLINK AF_UNIX"


@pytest.mark.usefixtures("engine")
def test_the_password_is_a_credential_of_systemd(service: Booted) -> None:
    """Neither the service's user nor others can read the file that it comes from."""
    etcdctl = ("env", "ETCDCTL_API=3", "/usr/local/bin/etcdctl", "--endpoints=127.0.0.1:2379")
    for command in ("user add root:secret", "user grant-role root root"):
        service.run(*etcdctl, *command.split())
    service.run(*etcdctl, "user", "add", f"uuidd:{PASSWORD}")
    for command in (
        "role add fleet",
        "role grant-permission fleet readwrite /uuidd/ --prefix",
        "user grant-role uuidd fleet",
        "auth enable",
    ):
        service.run(*etcdctl, *command.split())
    service.options(f"--worker {FLEET}")
    roll_out(service)
    assert "user name is empty" in reaches(service, "away")

    service.path("/etc/uuidd").mkdir()
    service.path(SECRET).write_text(f"{PASSWORD}\n")
    service.options(f"--worker {FLEET} --worker-user uuidd --worker-secret fleet-password")
    service.run("sh", "-euc", commands("**If the engine has users,**"))
    reaches(service, "held")
    assert service.run("stat", "--format=%U %a", SECRET) == "root 600\n"

    # An administrator can check the options as the service sees them.
    [see] = re.findall(r"`(export CREDENTIALS_DIRECTORY=.*)`", text("systemd/fleet.md"))
    check = f". /etc/default/uuidd; {UUIDD} --check --user uuidd $UUIDD_OPTIONS"
    assert service.run("sh", "-euc", f"{see}; {check}") == ""
    given = ("--worker-user", "uuidd", "--worker-secret", SECRET)
    assert " held " in service.run(UUIDD, "workers", "list", FLEET, *given)

    service.run("rm", "-r", "/etc/uuidd")
    since = service.now()
    assert service.tried("systemctl", "restart", "uuidd.service").returncode == 1
    service.logged(since, "credentials")


def test_without_the_drop_in_no_clock_can_be_required(service: Booted) -> None:
    service.options("--require-sync 0.5")
    since = service.now()
    assert service.tried("systemctl", "restart", "uuidd.service").returncode == 1
    service.logged(since, "--require-sync", level="err")


def test_with_the_drop_in_the_steady_kinds_wait_for_a_good_clock(service: Booted) -> None:
    """The clock is as the kernel says outside too; v1 never waits."""
    service.options("--require-sync 0.5")
    service.run("sh", "-euc", commands("### A clock that is good enough", "systemd/README.md"))
    quality = kernels_quality()
    with service.connect() as connection:
        assert len(connection.call("make", "v1", 2)) == 2
        _, _, error, made = connection.ask("make", "v7", 2)
    lack = quality.lack(0.5)
    assert (made is None) == bool(lack)
    assert lack in str(error)
    assert service.status()["clock"]["synchronised"] == quality.synchronised

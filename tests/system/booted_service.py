"""The service of a booted system: in the place of util-linux's, with options and drop-ins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.booted import UUIDD, Booted

DEFAULTS = "/etc/default/uuidd"
DROP_INS = "/etc/systemd/system/uuidd.service.d"
DROP_IN = f"{DROP_INS}/test.conf"


@contextmanager
def running(booted: Booted) -> Iterator[Booted]:
    """Let our service run as it was installed, before the block, and after it whatever it did."""
    if not is_ours(booted):
        take_over(booted)
    booted.run("systemctl", "start", "uuidd.socket", "uuidd.service")
    try:
        yield booted
    finally:
        options(booted, "")
        booted.run("rm", "-rf", DROP_INS)
        booted.run("systemctl", "daemon-reload")
        booted.run("systemctl", "restart", "uuidd.service")


def is_ours(booted: Booted) -> bool:
    """Whether the unit that systemd knows is ours."""
    return booted.shown("FragmentPath").startswith("/etc/")


def take_over(booted: Booted) -> None:
    """Put our service in the place of util-linux's."""
    booted.follow(booted.run(UUIDD, "install-units"))


def give_back(booted: Booted) -> None:
    """Return util-linux's service its place back."""
    booted.follow(booted.run(UUIDD, "install-units", "--undo"))


def options(booted: Booted, words: str) -> None:
    """Write options into the service's file, for its next start."""
    booted.path(DEFAULTS).write_text(f'UUIDD_OPTIONS="{words}"\n')


def drop_in(booted: Booted, lines: str, *, restart: bool = True) -> None:
    """Change the service by a file of an administrator's, and start it so."""
    path = booted.path(DROP_IN)
    path.parent.mkdir(exist_ok=True)
    path.write_text(lines)
    booted.run("systemctl", "daemon-reload")
    if restart:
        booted.run("systemctl", "restart", "uuidd.service")

"""What all engines over a network share: patience, the right to a network, and TLS."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from errno import EAFNOSUPPORT
from typing import TypeVar

import trio

from uuidd.fleet.address import Access, AddressError
from uuidd.fleet.coordinator import ATTEMPT_SECONDS, Away, one_line

CONNECT_SECONDS = 0.7
"""For a TCP connection to one host, so that an attempt can go on to the next host."""

HOST_SECONDS = 2.0
"""For the answer of one host."""

_Answer = TypeVar("_Answer")


async def in_time(ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
    """Return what *ask* returns. Raises Away if that takes longer than ATTEMPT_SECONDS."""
    with trio.move_on_after(ATTEMPT_SECONDS):
        return await ask()
    raise Away(f"no answer within {ATTEMPT_SECONDS:g} s")


def check_network() -> None:
    """Check that this process may open a socket of IPv4 or IPv6. Raises Away with the way out.

    The sandbox of the service forbids both, and libraries of engines do not all pass that error on.
    """
    if not any(map(_is_allowed, (socket.AF_INET, socket.AF_INET6))):
        raise Away(
            f"this process may use no network: {os.strerror(EAFNOSUPPORT)}; if it is the service,"
            " run uuidd install-units --coordinator, systemctl daemon-reload and systemctl restart"
            " uuidd.service"
        )


def _is_allowed(family: int) -> bool:
    try:
        socket.socket(family).close()
    except OSError as error:
        # Other errors, as with no descriptor left, say nothing of the network.
        return error.errno != EAFNOSUPPORT
    return True


def tls_context(access: Access) -> ssl.SSLContext:
    """Return what checks the engine's certificate and its name. Raises AddressError."""
    try:
        context = ssl.create_default_context(cafile=access.ca)
    except (OSError, ValueError) as error:
        raise AddressError(
            f"--worker-ca: {access.ca} holds no certificates: {one_line(error)}"
        ) from error
    if access.cert is not None:
        try:
            # Without a password's function OpenSSL would ask for it at the terminal.
            context.load_cert_chain(access.cert, access.key, password=lambda: "")
        except (OSError, ValueError) as error:
            raise AddressError(
                f"--worker-cert: {access.cert} and --worker-key {access.key} are no certificate and"
                f" its key: {one_line(error)}"
            ) from error
    return context

"""The engines that keep a fleet's registers: what is asked of each, and how one is opened.

An engine keeps values under keys. It must be consistent: a value that was put and confirmed is
never forgotten, and a question sees all that was confirmed before it began. Nothing else is asked
of it, neither a clock nor leases.

The questions block, and are asked in a thread (``registers``). The methods of an engine are called
by one thread at a time, but for ``close``.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Mapping
from errno import EAFNOSUPPORT
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Protocol

from uuidd import installing
from uuidd.fleet.address import SCHEMES, Address, read_file, secret
from uuidd.refused import Refused

_PACKAGES = {"zookeeper": "kazoo", "postgresql": "psycopg"}
"""What an engine's extra installs; etcd and a folder need nothing."""

ATTEMPT_SECONDS = 3.0
"""How long one question to an engine may take in all; the engine counts as away then."""

HOST_SECONDS = 2.0
"""For the answer of one host, so that an attempt can go on to the next host."""


class Away(Exception):
    """The engine gave no answer that can be used; one line that says why, without its name.

    A value may have been put, and may even be put later: ask again to find out.
    """


class Changed(Exception):
    """What a write replaces, or what guards it, is not as it was read. Nothing was written."""


class Entry(NamedTuple):
    """A *value*, the *version* that only the engine can read, and when it was written.

    *written* is in Unix seconds, by the engine's clock; None if the engine does not know it.
    """

    value: bytes
    version: Any
    written: float | None = None


class Engine(Protocol):
    """Keeps values under keys such as ``/uuidd/prod/meta``.

    Each question may raise Away, or an error of the engine's library: then ``close`` is called.
    """

    def get(self, key: str) -> Entry | None:
        """Return what is kept under *key*, None if nothing is."""

    def list(self, prefix: str) -> Mapping[str, Entry]:
        """Return what is kept under the keys that begin with *prefix*, which ends with a slash."""

    def put(
        self, key: str, value: bytes, old: Entry | None, guard: tuple[str, bytes] | None
    ) -> None:
        """Replace what was read as *old*, None for nothing.

        Raises Changed if that is not there any more, or the key of *guard* has another value than
        *guard* says. The version is compared, and the value too, for an engine that was restored
        may come to a version once more. Without a guard, what the key needs, such as a folder, is
        made too.
        """

    def close(self) -> None:
        """End the connection, also while another thread waits for an answer. It does not block.

        The next question makes a connection again.
        """


def check(address: Address, *, unseen: Path | None = None) -> None:
    """Check that the engine's extra is installed, and that the files can be used.

    Raises Refused. Asks no engine. Files in the folder *unseen* are not looked at.
    """
    # Before --user, for afterwards the process may not be able to read it.
    module = _module(address)
    scheme, files = address.scheme, address.files
    of_tls = [name for name in files if name != "secret"]
    if of_tls and not address.tls:
        instead = f"; write {scheme}s:// for TLS" if f"{scheme}s" in SCHEMES else ""
        raise Refused(f"--worker-{of_tls[0]} is for TLS, and {scheme}:// has none{instead}")
    if ("cert" in files) != ("key" in files):
        raise Refused("--worker-cert and --worker-key must be given together")
    if "secret" in files and address.engine == "folder":
        raise Refused("--worker-secret is of no use with folder://; leave it out")
    if "secret" in files and not address.user:
        raise Refused("--worker-secret needs the name of its user; add --worker-user")
    if not address.user.isprintable():
        raise Refused(f"--worker-user: {address.user!r:.80} has characters that no name has")
    hidden = [name for name, path in files.items() if path.parent == unseen]
    for name in of_tls:
        if name not in hidden:
            read_file(f"--worker-{name}", files[name], secret=name == "key")
    if "secret" not in hidden:
        secret(address)
    if of_tls and not set(of_tls) & set(hidden):
        tls_context(address)
    if address.engine == "postgresql":
        module.check_query(address)


def opened(address: Address) -> Engine:
    """Return the engine at *address*, and import only that one. No question is asked.

    Raises Refused as ``check`` does. Call it in the process that goes on with the engine, as
    its user, and after the last fork.
    """
    check(address)
    # Its class has the name of its module.
    made = getattr(_module(address), address.engine.capitalize())
    engine: Engine = made(address, secret(address))
    return engine


def _module(address: Address) -> ModuleType:
    """Return the module of the engine, which needs what its extra installs. Raises Refused."""
    try:
        return import_module(f"uuidd.fleet.engines.{address.engine}")
    except ImportError as error:  # as of psycopg without the library of PostgreSQL
        raise Refused(
            f"{address.scheme}:// needs the package {_PACKAGES[address.engine]}"
            f" ({error}); install it with {installing(address.engine)}"
        ) from error


def tls_context(address: Address) -> ssl.SSLContext:
    """Return what checks the engine's certificate and its name. Raises Refused."""
    ca, cert, key = (address.files.get(name) for name in ("ca", "cert", "key"))
    try:
        context = ssl.create_default_context(cafile=ca)
    except (OSError, ValueError) as error:
        raise Refused(f"--worker-ca: {ca} holds no certificates: {one_line(error)}") from error
    if cert is not None:
        try:
            # Without a password's function OpenSSL would ask for it at the terminal.
            context.load_cert_chain(cert, key, password=lambda: "")
        except (OSError, ValueError) as error:
            raise Refused(
                f"--worker-cert: {cert} and --worker-key {key} are no certificate and its key:"
                f" {one_line(error)}"
            ) from error
    return context


def check_network() -> None:
    """Check that this process may open a socket of IPv4 or IPv6. Raises Away with the way out.

    The sandbox of the service forbids both, and libraries of engines do not all pass that error on.
    """
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.socket(family).close()
        except OSError as error:
            # Other errors, as with no descriptor left, say nothing of the network.
            if error.errno == EAFNOSUPPORT:
                continue
        return
    raise Away(
        f"this process may use no network: {os.strerror(EAFNOSUPPORT)}; if it is the service, run"
        " uuidd install-units --coordinator, systemctl daemon-reload and systemctl restart"
        " uuidd.service"
    )


def named(error: Exception) -> str:
    """Return an error of an engine's library as a line, with its name."""
    return f"{type(error).__name__}: {one_line(error)}".removesuffix(": ")


def one_line(text: object) -> str:
    """Return an engine's own words as a line that can be logged, of 200 characters at most."""
    words = " ".join(str(text).split())
    return "".join(each if each.isprintable() else "?" for each in words)[:200]

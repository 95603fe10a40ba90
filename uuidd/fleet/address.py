"""Where a fleet's engine is, and what the daemon shows it: the URL, and the files of secrets."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from uuidd.refused import Refused

SCHEMES = {
    "zk": ("zookeeper", 2181, False),
    "zks": ("zookeeper", 2181, True),
    "etcd": ("etcd", 2379, False),
    "etcds": ("etcd", 2379, True),
    "postgresql": ("postgresql", 5432, True),
    "folder": ("folder", 0, False),
}
"""The engine, its default port, and whether TLS can be had, by a URL's scheme."""

_FORGETFUL = ("redis", "rediss", "valkey", "valkeys")
_SEGMENT = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,64}")
_LABEL = r"[A-Za-z0-9_-]{1,63}"
_HOST = re.compile(rf"(?:\[([0-9A-Fa-f:.]+)\]|({_LABEL}(?:\.{_LABEL})*\.?))(?::(\d{{1,5}}))?")
_MAX_SECRET = 4096


@dataclass(frozen=True, slots=True)
class Address:
    """What the URL and the options say. *hosts* are pairs of host and port.

    *path* is the namespace's: ``/uuidd/prod``, a folder, or a name within the *database*. *query*
    are the parameters of a database's URL. *files* are those of the daemon's ``secret``, ``cert``
    and ``key``, and of the ``ca`` that it trusts, as far as they are given.
    """

    url: str
    engine: str
    hosts: tuple[tuple[str, int], ...]
    path: str
    tls: bool
    user: str = ""
    database: str = ""
    query: tuple[tuple[str, str], ...] = ()
    files: Mapping[str, Path] = field(default_factory=dict)

    @property
    def scheme(self) -> str:
        """What stands before ``://``."""
        return self.url.partition(":")[0]

    @property
    def name(self) -> str:
        """The engine and its hosts, for people."""
        if self.engine == "folder":
            return f"the folder {self.path}"
        shown = {"zookeeper": "ZooKeeper", "postgresql": "PostgreSQL"}.get(self.engine, self.engine)
        return f"{shown} {','.join(host_and_port(*each) for each in self.hosts)}".rstrip()


@dataclass(frozen=True, slots=True)
class Fleet:
    """Where to get a worker number: the engine at *address*.

    A claim reaches *window* seconds ahead, and a silent host keeps its number for *hold* seconds
    more. Only the numbers *low* to *high* are claimed.
    """

    address: Address
    window: float
    hold: float
    low: int
    high: int


def host_and_port(host: str, port: int) -> str:
    """Return ``h1:2379``, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse(url: str) -> Address:
    """Return what *url* says. Raises Refused, which never shows a password."""
    shown = _without_password(url)
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise Refused(f"{shown!r:.80} is neither a worker number nor a URL like zk://h1:2181/uuidd")
    if scheme in _FORGETFUL:
        raise Refused(
            f"{scheme}://: Redis may forget what it has confirmed, so a number could be two hosts';"
            " use zk, etcd or postgresql"
        )
    if scheme not in SCHEMES:
        raise Refused(
            f"{scheme!r:.40} is no engine that is known; use {', '.join(SCHEMES)} before ://"
        )
    if shown != url:
        raise Refused(
            f"{shown!r:.200}: a password in the URL would be seen by all users of this host; put it"
            " into a file, and name that with --worker-secret, or a key without one with"
            " --worker-key"
        )
    if not url.isprintable():
        raise Refused(f"{shown!r:.200} has characters that cannot be printed; leave them out")
    # Not by urlsplit, which takes one host: some versions of it refuse brackets in a list of hosts.
    rest, _, fragment = rest.partition("#")
    rest, _, parameters = rest.partition("?")
    authority, _, where = rest.partition("/")
    userinfo, _, netloc = authority.rpartition("@")
    if fragment or (parameters and scheme != "postgresql"):
        raise Refused(f"{shown!r:.200}: nothing can follow the path, such as ? or #")
    engine, port, tls = SCHEMES[scheme]
    if engine == "folder":
        path = unquote(f"/{where}")
        if netloc or userinfo or not where.strip("/") or not path.isprintable():
            raise Refused(f"{shown!r:.200} names no folder; write folder:///path/of/folder")
        return Address(url, engine, (), path, tls)
    query = tuple(parse_qsl(parameters, keep_blank_values=True))
    on_socket = any(name in ("host", "hostaddr", "service") for name, _ in query)
    if not netloc and not on_socket:
        raise Refused(f"{shown!r:.200} names no host; write {scheme}://h1:{port}/...")
    hosts = tuple(_host(each, port, shown) for each in netloc.split(",")) if netloc else ()
    segments = [unquote(each) for each in where.split("/") if each]
    if wrong := [each for each in segments if not _SEGMENT.fullmatch(each)]:
        raise Refused(
            f"{shown!r:.200}: {wrong[0]!r:.80} in the path is not 1 to 64 letters, digits and . _ -"
        )
    database = ""
    if engine == "postgresql":
        if not 1 <= len(segments) <= 2:
            raise Refused(
                f"{shown!r:.200} must name a database, and may name a namespace in it:"
                " postgresql://user@h1/database/prod"
            )
        database, segments = segments[0], segments[1:] or ["uuidd"]
    elif not segments:
        raise Refused(f"{shown!r:.200} names no namespace; write {scheme}://.../uuidd/prod")
    path = segments[0] if database else "/" + "/".join(segments)
    return Address(url, engine, hosts, path, tls, unquote(userinfo), database, query)


def secret(address: Address) -> str:
    """Return the secret in its file, without the end of the line; "" if there is none.

    Raises Refused if the file cannot be read, or others can read it too.
    """
    path = address.files.get("secret")
    if path is None:
        return ""
    # What is no UTF-8 becomes what is not printable.
    data = read_file("--worker-secret", path, secret=True)
    text = data.decode(errors="surrogateescape").removesuffix("\n")
    if not text or len(text) > _MAX_SECRET or not text.isprintable():
        raise Refused(f"--worker-secret: {path} does not hold one line of text")
    return text


def place(option: str, text: str, credentials: str | None) -> Path:
    """Return the path of a file that is given as *text*.

    One without a slash is one of systemd's credentials, in the folder *credentials*. Raises
    Refused, naming the option, if there are none, or the text is empty.
    """
    if not text or "\0" in text:
        raise Refused(f"{option}: {text!r:.40} is no path")
    if "/" in text:
        return Path(text)
    if not credentials:
        raise Refused(
            f"{option}: {text!r:.80} has no slash, so it is one of systemd's credentials, but"
            f" $CREDENTIALS_DIRECTORY is not set; write ./{text:.80} for a file here"
        )
    return Path(credentials, text)


def read_file(option: str, path: Path, *, secret: bool) -> bytes:
    """Return what is in the file of an *option*.

    Raises Refused if it cannot be read, or if others can read a *secret* one too.
    """
    try:
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise Refused(f"{option}: {path} is not a plain file")
            if secret and found.st_mode & stat.S_IRWXO:
                raise Refused(
                    f"{option}: all users can use {path} (mode {found.st_mode & 0o7777:04o});"
                    f" chmod o= {path}"
                )
            return file.read(1 << 20)
    except OSError as error:
        raise Refused(f"{option}: {path} cannot be read: {error.strerror}") from None


def _host(text: str, port: int, shown: str) -> tuple[str, int]:
    found = _HOST.fullmatch(text)
    if found is None:
        raise Refused(f"{shown!r:.200}: {text!r:.80} is no host, or host:port")
    six, name, given = found.groups()
    chosen = int(given or port)
    if not 0 < chosen < 1 << 16:
        raise Refused(f"{shown!r:.200}: {chosen} is no port; ports are 1 to 65535")
    return six or name, chosen


def _without_password(url: str) -> str:
    """Return *url* with dots in place of a password, or of what may be one."""
    start, mark, query = url.partition("?")
    start = re.sub(r"(://[^/@:]*):.*@", r"\1:...@", start)
    return start + mark + re.sub(r"(^|&)((?:ssl)?password=)[^&#]*", r"\1\2...", query)

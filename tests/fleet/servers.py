"""Engines in a temporary folder: the folder itself, and real servers on loopback."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import trustme

from tests.rig import until
from tests.tools import kept_port, need, output
from uuidd.fleet.address import Address, parse

STARTED_SECONDS = 60.0
"""For an engine's start, on a busy machine."""

NOBODY = 65534
USER, PASSWORD = "fleet", "correct horse battery"


def certificates(folder: Path) -> Path:
    """Return *folder*, with the PEM files of an authority, a server and a client in it.

    The server's certificate is for 127.0.0.1, not for localhost.
    """
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    trustme.CA().cert_pem.write_to_path(folder / "other-ca.pem")
    for name, subject in (("server", "127.0.0.1"), ("client", "daemon.example")):
        made = authority.issue_cert(subject)
        made.private_key_pem.write_to_path(folder / f"{name}.key")
        made.cert_chain_pems[0].write_to_path(folder / f"{name}.pem")
        (folder / f"{name}.key").chmod(0o600)
    return folder


class Server:
    """An engine with *count* nodes in *folder*; with *files* of certificates it has TLS.

    A node is a process, which can be ended and started again. The folder itself is the engine that
    has none.
    """

    scheme = "folder"
    nodes = 0

    def __init__(self, folder: Path, count: int, files: Path | None) -> None:
        self.folder, self.count, self.files = folder, count, files
        self._kept = [[kept_port() for _ in range(3)] for _ in range(count)]
        self.ports = [[port.getsockname()[1] for port in ports] for ports in self._kept]
        self.running: dict[int, subprocess.Popen[bytes]] = {}

    def url(self, namespace: str) -> str:
        """Return the URL of a namespace, such as ``uuidd/prod``."""
        if not self.count:
            return f"folder://{self.folder}/{namespace}"
        hosts = ",".join(f"127.0.0.1:{client}" for client, *_ in self.ports)
        return f"{self.scheme}{'s' if self.files else ''}://{hosts}/{namespace}"

    def address(self, namespace: str, folder: Path) -> Address:
        """Return that of a namespace; the files that it needs are written into *folder*."""
        return parse(self.url(namespace))

    def command(self, node: int) -> list[object]:
        """Return what starts a node."""
        raise NotImplementedError

    def ready(self) -> bool:
        """Tell whether it answers."""
        return not self.count

    def start(self, node: int, **options: Any) -> None:
        """Start a node, also one that was ended."""
        with open(self.folder / f"{node}.log", "ab") as log:
            self.running[node] = subprocess.Popen(
                [str(each) for each in self.command(node)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **options,
            )

    def power_cut(self, node: int) -> None:
        """End a node at once."""
        process = self.running.pop(node)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(STARTED_SECONDS)

    def close(self) -> None:
        """End all nodes."""
        for node in list(self.running):
            self.power_cut(node)
        for port in chain(*self._kept):
            port.close()

    def log(self) -> str:
        """Return the last lines of each node."""
        return "\n".join(path.read_text()[-1500:] for path in sorted(self.folder.glob("*.log")))


class Etcd(Server):
    """etcd."""

    scheme = "etcd"
    nodes = 3

    def command(self, node: int) -> list[object]:
        """See ``Server``."""
        client, peer, _ = (f"127.0.0.1:{port}" for port in self.ports[node])
        client = f"http{'s' if self.files else ''}://{client}"
        cluster = ",".join(
            f"n{each}=http://127.0.0.1:{ports[1]}" for each, ports in enumerate(self.ports)
        )
        tls: list[object] = []
        if self.files:
            tls = ["--cert-file", self.files / "server.pem", "--key-file"]
            tls += [self.files / "server.key", "--client-cert-auth"]
            tls += ["--trusted-ca-file", self.files / "ca.pem"]
        return [
            *(need("etcd"), "--name", f"n{node}", "--data-dir", self.folder / f"n{node}"),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", f"http://{peer}"),
            *("--initial-advertise-peer-urls", f"http://{peer}"),
            *("--initial-cluster", cluster, "--heartbeat-interval", "50"),
            *("--election-timeout", "500", "--log-level", "error", *tls),
        ]

    def etcdctl(self, *words: object) -> str:
        """Return what etcdctl says."""
        tls: list[object] = []
        if self.files:
            tls = ["--cacert", self.files / "ca.pem", "--cert", self.files / "client.pem"]
            tls += ["--key", self.files / "client.key"]
        endpoint = f"127.0.0.1:{self.ports[0][0]}"
        environment = {**os.environ, "ETCDCTL_API": "3"}
        return output(need("etcdctl"), "--endpoints", endpoint, *tls, *words, env=environment)

    def ready(self) -> bool:
        """Tell whether a majority answers."""
        try:
            self.etcdctl("get", "/")
        except AssertionError:
            return False
        return True


class Zookeeper(Server):
    """ZooKeeper."""

    scheme = "zk"
    nodes = 3

    def command(self, node: int) -> list[object]:
        """See ``Server``."""
        data = self.folder / f"n{node}"
        data.mkdir(exist_ok=True)
        (data / "myid").write_text(f"{node + 1}\n")
        name = "secureClientPort" if self.files else "clientPort"
        lines = ["tickTime=200", "initLimit=50", "syncLimit=25", "admin.enableServer=false"]
        lines += ["4lw.commands.whitelist=srvr", f"dataDir={data}", "maxClientCnxns=0"]
        lines += [f"{name}={self.ports[node][0]}", f"{name}Address=127.0.0.1"]
        if self.count > 1:
            lines += [
                f"server.{each}=127.0.0.1:{peer}:{election}"
                for each, (_, peer, election) in enumerate(self.ports, 1)
            ]
        (data / "zoo.cfg").write_text("\n".join(lines) + "\n")
        java = Path("/usr/share/java")
        jars = [java / "zookeeper.jar", *sorted(java.glob("netty-*.jar"))]
        return [
            *(need("java"), "-Xmx96m", "-XX:TieredStopAtLevel=1", *self._tls()),
            *("-cp", ":".join(map(str, jars))),
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            data / "zoo.cfg",
        ]

    def _tls(self) -> list[str]:
        if self.files is None:
            return []
        store, key = self.folder / "server-store.pem", self.files / "server.key"
        # Java reads no keys but those in PKCS #8.
        converted = output(need("openssl"), "pkcs8", "-topk8", "-nocrypt", "-in", key)
        store.write_text(converted + (self.files / "server.pem").read_text())
        return [
            "-Dzookeeper.serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
            f"-Dzookeeper.ssl.keyStore.location={store}",
            "-Dzookeeper.ssl.keyStore.type=PEM",
            f"-Dzookeeper.ssl.trustStore.location={self.files / 'ca.pem'}",
            "-Dzookeeper.ssl.trustStore.type=PEM",
            "-Dzookeeper.ssl.hostnameVerification=false",
        ]

    def ready(self) -> bool:
        """Tell whether all nodes serve; with TLS, whether they listen."""
        return all(self._serves(node) for node in self.running)

    def _serves(self, node: int) -> bool:
        with closing(socket.socket()) as asking:
            asking.settimeout(1)
            try:
                asking.connect(("127.0.0.1", self.ports[node][0]))
                if self.files:
                    return True
                asking.sendall(b"srvr")
                return b"Mode: " in b"".join(iter(lambda: asking.recv(4096), b""))
            except OSError:
                return False


class Postgresql(Server):
    """PostgreSQL, whose user has a password."""

    scheme = "postgresql"
    nodes = 1

    def __init__(self, folder: Path, count: int, files: Path | None) -> None:
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        self._programs = Path(found[-1] if found else need("initdb")).parent
        super().__init__(folder, count, files)
        self._options: dict[str, Any] = {"cwd": folder}
        if os.geteuid() == 0:
            self._options |= {"user": NOBODY, "group": NOBODY, "extra_groups": []}

    def url(self, namespace: str) -> str:
        """See ``Server``; TLS has no scheme of its own here."""
        name = namespace.replace("/", "-")
        return f"postgresql://{USER}@127.0.0.1:{self.ports[0][0]}/postgres/{name}"

    def address(self, namespace: str, folder: Path) -> Address:
        """See ``Server``."""
        (folder / "secret").write_text(PASSWORD)
        (folder / "secret").chmod(0o600)
        return replace(super().address(namespace, folder), files={"secret": folder / "secret"})

    def start(self, node: int, **options: Any) -> None:
        """See ``Server``."""
        if not (self.folder / "data").exists():
            self._make(self.folder / "data")
        super().start(node, **self._options)

    def _make(self, data: Path) -> None:
        password = self.folder / "password"
        password.write_text(PASSWORD + "\n")
        password.chmod(0o644)
        if os.geteuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
        output(
            *(self._programs / "initdb", "-D", data, "-U", USER, "-A", "scram-sha-256"),
            *("--pwfile", password, "-E", "UTF8", "--locale=C", "-N"),
            timeout=STARTED_SECONDS,
            **self._options,
        )
        if self.files:
            for name in ("server.pem", "server.key", "ca.pem"):
                shutil.copy(self.files / name, data / name)
                if os.geteuid() == 0:
                    os.chown(data / name, NOBODY, NOBODY)
            rules = "hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca\n"
            (data / "pg_hba.conf").write_text(rules)

    def command(self, node: int) -> list[object]:
        """See ``Server``."""
        options = ["listen_addresses=127.0.0.1", f"port={self.ports[0][0]}", "fsync=off"]
        options += [f"unix_socket_directories={self.folder}", "max_connections=400"]
        if self.files:
            options += ["ssl=on", "ssl_cert_file=server.pem", "ssl_key_file=server.key"]
            options += ["ssl_ca_file=ca.pem"]
        words = (word for option in options for word in ("-c", option))
        return [self._programs / "postgres", "-D", self.folder / "data", *words]

    def ready(self) -> bool:
        """See ``Server``."""
        program = self._programs / "pg_isready"
        done = subprocess.run(
            [program, "-q", "-h", "127.0.0.1", "-p", str(self.ports[0][0])], check=False
        )
        return done.returncode == 0

    def power_cut(self, node: int) -> None:
        """See ``Server``. SIGKILL of the first process would leave the others, and their memory."""
        process = self.running.pop(node)
        process.send_signal(signal.SIGQUIT)
        process.wait(STARTED_SECONDS)


KINDS: dict[str, type[Server]] = {
    "etcd": Etcd,
    "zookeeper": Zookeeper,
    "postgresql": Postgresql,
}
"""The real engines."""


def real(*names: str) -> list[Any]:
    """Return real engines, all of them without *names*, as parameters of the thorough tier."""
    return [pytest.param(name, marks=pytest.mark.thorough) for name in names or KINDS]


@contextmanager
def running(kind: type[Server], *, alone: bool = False, tls: bool = False) -> Iterator[Server]:
    """Start an engine in a new folder, and end it also if the block fails.

    It has one node if *alone*, else as many as its kind has *nodes*.
    """
    with TemporaryDirectory(prefix="uuidd-", dir="/tmp") as name:
        folder = Path(name)
        # PostgreSQL's user looks into it.
        folder.chmod(0o755)
        count = 1 if alone else kind.nodes
        engine = kind(folder, count, certificates(folder) if tls else None)
        try:
            for node in range(engine.count):
                engine.start(node)
            until(engine.ready, STARTED_SECONDS, instead=engine.log)
            yield engine
        finally:
            engine.close()

"""Real engines on loopback, in a temporary folder: etcd, ZooKeeper and PostgreSQL."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from tests.fleet.nodes import STARTED_SECONDS, Certificates, Nodes, free_port
from tests.rig import until
from tests.tools import need, output
from uuidd.fleet.address import Access

NOBODY = 65534
USER, PASSWORD = "fleet", "correct horse battery"


@dataclass
class Etcd:
    """A cluster of etcd."""

    folder: Path
    count: int = 1
    certificates: Certificates | None = None
    ports: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ports = self.ports or [(free_port(), free_port()) for _ in range(self.count)]
        self.nodes = Nodes(self.folder)

    def start(self, node: int) -> None:
        """Start a node, also one that was killed."""
        client, peer = self.ports[node]
        scheme = "https" if self.certificates else "http"
        cluster = ",".join(
            f"n{each}=http://127.0.0.1:{p}" for each, (_, p) in enumerate(self.ports)
        )
        tls: list[object] = []
        if self.certificates:
            files = self.certificates
            tls = ["--cert-file", files["server.pem"], "--key-file", files["server.key"]]
            tls += ["--client-cert-auth", "--trusted-ca-file", files["ca.pem"]]
        self.nodes.start(
            node,
            [
                *(need("etcd"), "--name", f"n{node}", "--data-dir", self.folder / f"n{node}"),
                *("--listen-client-urls", f"{scheme}://127.0.0.1:{client}"),
                *("--advertise-client-urls", f"{scheme}://127.0.0.1:{client}"),
                *("--listen-peer-urls", f"http://127.0.0.1:{peer}"),
                *("--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}"),
                *("--initial-cluster", cluster, "--heartbeat-interval", "50"),
                *("--election-timeout", "500", "--log-level", "error", *tls),
            ],
        )

    def etcdctl(self, *words: str, user: str = "") -> str:
        """Return what etcdctl says."""
        options: list[object] = ["--endpoints", f"127.0.0.1:{self.ports[0][0]}"]
        if self.certificates:
            files = self.certificates
            options += ["--cacert", files["ca.pem"], "--cert", files["client.pem"]]
            options += ["--key", files["client.key"]]
        if user:
            options += ["--user", user]
        environment = {**os.environ, "ETCDCTL_API": "3"}
        return output(need("etcdctl"), *options, *words, env=environment)

    def ready(self) -> bool:
        """Tell whether a majority answers."""
        try:
            self.etcdctl("get", "/")
        except AssertionError:
            return False
        return True

    def url(self, namespace: str) -> str:
        """Return the URL of a namespace, such as ``uuidd/prod``."""
        hosts = ",".join(f"127.0.0.1:{client}" for client, _ in self.ports)
        return f"etcd{'s' if self.certificates else ''}://{hosts}/{namespace}"

    def wipe(self, namespace: str) -> None:
        """Forget a namespace."""
        self.etcdctl("del", "--prefix", f"/{namespace}/")


@dataclass
class Zookeeper:
    """A cluster of ZooKeeper."""

    folder: Path
    count: int = 1
    certificates: Certificates | None = None

    def __post_init__(self) -> None:
        self.ports = [(free_port(), free_port(), free_port()) for _ in range(self.count)]
        self.nodes = Nodes(self.folder)

    def start(self, node: int) -> None:
        """Start a node, also one that was killed."""
        data = self.folder / f"n{node}"
        data.mkdir(exist_ok=True)
        (data / "myid").write_text(f"{node + 1}\n")
        client, _, _ = self.ports[node]
        lines = ["tickTime=200", "initLimit=50", "syncLimit=25", "admin.enableServer=false"]
        lines += ["4lw.commands.whitelist=srvr", f"dataDir={data}", "maxClientCnxns=0"]
        secure = "secureC" if self.certificates else "c"
        name = f"{secure}lientPort"
        lines += [f"{name}={client}", f"{name}Address=127.0.0.1"]
        if self.count > 1:
            lines += [
                f"server.{each + 1}=127.0.0.1:{peer}:{election}"
                for each, (_, peer, election) in enumerate(self.ports)
            ]
        (data / "zoo.cfg").write_text("\n".join(lines) + "\n")
        java = Path("/usr/share/java")
        jars = [java / "zookeeper.jar", *sorted(java.glob("netty-*.jar"))]
        self.nodes.start(
            node,
            [
                *(need("java"), "-Xmx96m", "-XX:TieredStopAtLevel=1", *self._tls()),
                *("-cp", ":".join(map(str, jars))),
                "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                data / "zoo.cfg",
            ],
        )

    def _tls(self) -> list[str]:
        if self.certificates is None:
            return []
        store, key = self.folder / "server-store.pem", self.certificates["server.key"]
        # Java reads no keys but those in PKCS #8.
        converted = output(need("openssl"), "pkcs8", "-topk8", "-nocrypt", "-in", key)
        store.write_text(converted + self.certificates["server.pem"].read_text())
        factory = "org.apache.zookeeper.server.NettyServerCnxnFactory"
        return [
            f"-Dzookeeper.serverCnxnFactory={factory}",
            f"-Dzookeeper.ssl.keyStore.location={store}",
            "-Dzookeeper.ssl.keyStore.type=PEM",
            f"-Dzookeeper.ssl.trustStore.location={self.certificates['ca.pem']}",
            "-Dzookeeper.ssl.trustStore.type=PEM",
            "-Dzookeeper.ssl.hostnameVerification=false",
        ]

    def mode(self, node: int) -> str:
        """Return "leader", "follower" or "standalone"; "" if the node does not serve."""
        with closing(socket.socket()) as asking:
            asking.settimeout(1)
            try:
                asking.connect(("127.0.0.1", self.ports[node][0]))
                asking.sendall(b"srvr")
                answer = b"".join(iter(lambda: asking.recv(4096), b""))
            except OSError:
                return ""
        _, _, mode = answer.decode().partition("Mode: ")
        return mode.split("\n")[0]

    def ready(self) -> bool:
        """Tell whether all nodes serve."""
        if self.certificates:
            return all(_listens(client) for client, _, _ in self.ports)
        return all(self.mode(node) for node in self.nodes.running)

    def url(self, namespace: str) -> str:
        """Return the URL of a namespace, such as ``uuidd/prod``."""
        hosts = ",".join(f"127.0.0.1:{client}" for client, _, _ in self.ports)
        return f"zk{'s' if self.certificates else ''}://{hosts}/{namespace}"


@dataclass
class Postgresql:
    """A PostgreSQL on TCP, whose user has a password."""

    folder: Path
    certificates: Certificates | None = None

    def __post_init__(self) -> None:
        self.port = free_port()
        self.nodes = Nodes(self.folder)
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        self._programs = Path(found[-1] if found else need("initdb")).parent
        self._options: dict[str, Any] = (
            {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        )

    def start(self, node: int) -> None:
        """Start it, also after it was killed."""
        data = self.folder / "data"
        if not data.exists():
            if os.geteuid() == 0:
                os.chown(self.folder, NOBODY, NOBODY)
            password = self.folder / "password"
            password.write_text(PASSWORD + "\n")
            password.chmod(0o644)
            output(
                *(self._programs / "initdb", "-D", data, "-U", USER, "-A", "scram-sha-256"),
                *("--pwfile", password, "-E", "UTF8", "--locale=C", "-N"),
                cwd=self.folder,
                timeout=STARTED_SECONDS,
                **self._options,
            )
            if self.certificates:
                for name in ("server.pem", "server.key", "ca.pem"):
                    shutil.copy(self.certificates[name], data / name)
                    if os.geteuid() == 0:
                        os.chown(data / name, NOBODY, NOBODY)
                rules = "hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca\n"
                (data / "pg_hba.conf").write_text(rules)
        options = ["-c", "listen_addresses=127.0.0.1", "-p", str(self.port), "-c", "fsync=off"]
        options += ["-c", f"unix_socket_directories={self.folder}", "-c", "max_connections=400"]
        if self.certificates:
            options += ["-c", "ssl=on", "-c", "ssl_cert_file=server.pem"]
            options += ["-c", "ssl_key_file=server.key", "-c", "ssl_ca_file=ca.pem"]
        self.nodes.start(
            node,
            [self._programs / "postgres", "-D", data, *options],
            cwd=self.folder,
            **self._options,
        )

    def ready(self) -> bool:
        """Tell whether it answers."""
        program = self._programs / "pg_isready"
        done = subprocess.run([program, "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False)
        return done.returncode == 0

    def url(self, namespace: str) -> str:
        """Return the URL of a namespace, such as ``uuidd/prod``."""
        name = namespace.replace("/", "-")
        return f"postgresql://{USER}@127.0.0.1:{self.port}/postgres/{name}"


AnyEngine = Etcd | Zookeeper | Postgresql


def power_cut(engine: AnyEngine, node: int) -> None:
    """End a node at once; ``start`` starts it again."""
    if isinstance(engine, Postgresql):
        # SIGKILL of its first process alone would leave the others, and their memory.
        engine.nodes.signal(node, signal.SIGQUIT)
        engine.nodes.running.pop(node).wait(STARTED_SECONDS)
    else:
        engine.nodes.kill(node)


KINDS: dict[str, Callable[[Path], AnyEngine]] = {
    "etcd": lambda folder: Etcd(folder, 3),
    "zookeeper": lambda folder: Zookeeper(folder, 3),
    "postgresql": Postgresql,
}
"""What makes each engine in a folder, with three nodes where it has nodes."""


def access_to(engine: AnyEngine, folder: Path) -> Access:
    """Return who we are to an engine; its files are written into *folder*."""
    if not isinstance(engine, Postgresql):
        return Access()
    (folder / "secret").write_text(PASSWORD)
    (folder / "secret").chmod(0o600)
    return Access(secret=folder / "secret")


_Engine = TypeVar("_Engine", bound=AnyEngine)


@contextmanager
def running(make: Callable[[Path], _Engine]) -> Iterator[_Engine]:
    """Start all nodes of what *make* makes in a new folder; end them also if the block fails."""
    with TemporaryDirectory(prefix="uuidd-", dir="/tmp") as name:
        folder = Path(name)
        # PostgreSQL's user looks into it.
        folder.chmod(0o755)
        engine = make(folder)
        try:
            for node in range(getattr(engine, "count", 1)):
                engine.start(node)
            until(engine.ready, STARTED_SECONDS, instead=engine.nodes.log)
            yield engine
        finally:
            engine.nodes.close()


def _listens(port: int) -> bool:
    with closing(socket.socket()) as asking:
        asking.settimeout(1)
        return asking.connect_ex(("127.0.0.1", port)) == 0

"""The processes of a real engine, its ports, and its certificates."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme

STARTED_SECONDS = 60.0
"""For an engine's start, on a busy machine."""


@dataclass(frozen=True, slots=True)
class Certificates:
    """The files of an authority, a server and a client, in PEM."""

    folder: Path

    @classmethod
    def made(cls, folder: Path) -> Certificates:
        """Write new ones into *folder*; the server's is for 127.0.0.1, not for localhost."""
        authority = trustme.CA()
        authority.cert_pem.write_to_path(folder / "ca.pem")
        trustme.CA().cert_pem.write_to_path(folder / "other-ca.pem")
        for name, subject in (("server", "127.0.0.1"), ("client", "daemon.example")):
            made = authority.issue_cert(subject)
            made.private_key_pem.write_to_path(folder / f"{name}.key")
            made.cert_chain_pems[0].write_to_path(folder / f"{name}.pem")
            (folder / f"{name}.key").chmod(0o600)
        return cls(folder)

    def __getitem__(self, name: str) -> Path:
        return self.folder / name


@dataclass
class Nodes:
    """Processes, one for each node, which can be killed and started again."""

    folder: Path
    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, node: int, command: Sequence[object], **options: Any) -> None:
        """Start a node; its output goes into a file."""
        with open(self.folder / f"{node}.log", "ab") as log:
            self.running[node] = subprocess.Popen(
                [str(each) for each in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **options,
            )

    def kill(self, node: int) -> None:
        """End a node as a power cut does."""
        process = self.running.pop(node)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(STARTED_SECONDS)

    def signal(self, node: int, what: signal.Signals) -> None:
        """Send a node a signal."""
        self.running[node].send_signal(what)

    def close(self) -> None:
        """End all nodes."""
        for node in list(self.running):
            self.kill(node)

    def log(self) -> str:
        """Return the last lines of each node."""
        return "\n".join(path.read_text()[-1500:] for path in sorted(self.folder.glob("*.log")))


def free_port() -> int:
    """Return a port of loopback that nothing uses."""
    with closing(socket.socket()) as asking:
        asking.bind(("127.0.0.1", 0))
        port: int = asking.getsockname()[1]
        return port

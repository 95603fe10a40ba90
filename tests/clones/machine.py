"""A virtual machine of QEMU: booted, written to a file while it runs, and resumed from it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from socket import AF_UNIX, socket
from typing import Any, NamedTuple, Self

from tests.rig import until

PORTS = ("console", "c", "python", "shell")
"""What is at the serial ports, in their order."""

MEMORY = "768M"

PATIENCE = 300.0
"""Seconds within which everything happens, on a busy machine that emulates each instruction."""


class Line(NamedTuple):
    """A line that a port has sent, and when it was received, as ``time.monotonic`` has it."""

    at: float
    text: str


class Port:
    """The lines that a serial port has sent so far."""

    def __init__(self, path: Path) -> None:
        self._sock = socket(AF_UNIX)
        _connect(self._sock, path)
        self._changed = threading.Condition()
        self._lines: list[Line] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        rest = b""
        while data := self._sock.recv(65536):
            at = time.monotonic()
            *lines, rest = (rest + data).split(b"\n")
            with self._changed:
                self._lines += [Line(at, line.decode(errors="replace").strip()) for line in lines]
                self._changed.notify_all()

    def lines(self) -> list[Line]:
        """Return the lines that were sent until now."""
        with self._changed:
            return list(self._lines)

    def wait(self, count: int) -> None:
        """Wait until so many lines have come. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._lines) >= count, PATIENCE):
                last = [line.text[:200] for line in self._lines[-20:]]
                raise TimeoutError(f"{len(self._lines)} of {count} lines have come, at last {last}")

    def send(self, line: str) -> None:
        """Send a line to whoever reads the port in the machine."""
        self._sock.sendall(line.encode() + b"\n")

    def close(self) -> None:
        """Read what was sent before the machine ended."""
        self._reader.join(PATIENCE)
        self._sock.close()


class Machine:
    """A machine that does not run before ``go_on``; its files are in *folder*, which is empty.

    *devices* are options of QEMU. With *snapshot*, it goes on where the machine was that wrote that
    file; it has to have the same devices.
    """

    def __init__(
        self,
        kernel: Path,
        initramfs: Path,
        folder: Path,
        devices: Sequence[str] = (),
        *,
        options: str = "",
        snapshot: Path | None = None,
    ) -> None:
        folder.mkdir()
        command = ["qemu-system-x86_64", "-accel", "tcg", "-m", MEMORY, "-nodefaults", "-S"]
        command += ["-icount", "shift=3,sleep=off"]
        command += ["-display", "none", "-no-reboot", "-kernel", str(kernel)]
        # Values with "=" reach the environment of the first process.
        command += ["-initrd", str(initramfs), "-append"]
        command += [f'console=ttyS0 quiet panic=-1 rdinit=/init UUIDD_OPTIONS="{options}"']
        command += ["-qmp", f"unix:{folder / 'qmp'},server=on,wait=off", *devices]
        for name in PORTS:
            command += ["-chardev", f"socket,id={name},path={folder / name},server=on,wait=on"]
            command += ["-serial", f"chardev:{name}"]
        if snapshot is not None:
            command += ["-incoming", f"exec:cat {snapshot}"]
        self._errors = folder / "errors"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(command, stderr=errors)
        self._control = socket(AF_UNIX)
        self.ports: dict[str, Port] = {}
        try:
            # QEMU waits for these, one after another. What it sent before would be lost.
            for name in PORTS:
                self.ports[name] = Port(folder / name)
            _connect(self._control, folder / "qmp")
            self._answers = self._control.makefile("rb")
            self._control.settimeout(PATIENCE)
            self._answers.readline()
            self._tell("qmp_capabilities")
            if snapshot is not None:
                self._await("query-migrate", "completed")
        except BaseException:
            self.end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def go_on(self) -> float:
        """Let the machine run; return the time before that."""
        now = time.monotonic()
        self._tell("cont")
        return now

    def stop(self) -> None:
        """Let the machine stand still."""
        self._tell("stop")

    def write(self, snapshot: Path) -> None:
        """Write the machine, which stands still, to a file."""
        self._tell("migrate", uri=f"exec:cat > {snapshot}")
        self._await("query-migrate", "completed")

    def end(self) -> None:
        """End the machine."""
        self._process.kill()
        self._process.wait()
        self._control.close()
        for port in self.ports.values():
            port.close()

    def _await(self, question: str, status: str) -> None:
        def told() -> str:
            found = str(self._tell(question).get("status"))
            if found == "failed":
                raise RuntimeError(f"{question} says {found}, not {status}")
            return found

        until(lambda: told() == status, PATIENCE, instead=told)

    def _tell(self, command: str, **arguments: Any) -> Any:
        request = json.dumps({"execute": command, "arguments": arguments}).encode()
        self._control.sendall(request + b"\n")
        while line := self._answers.readline():
            answer = json.loads(line)
            if "error" in answer:
                raise RuntimeError(f"QEMU refuses {command}: {answer['error']['desc']}")
            # All else are events.
            if "return" in answer:
                return answer["return"]
        raise RuntimeError(f"QEMU ended: {self._errors.read_text()}")


def _connect(sock: socket, path: Path) -> None:
    """Connect to a socket that QEMU is about to make."""

    def connects() -> bool:
        with contextlib.suppress(OSError):
            sock.connect(str(path))
            return True
        return False

    until(connects, PATIENCE)

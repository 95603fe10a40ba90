"""Faults of system calls, injected into a process that runs (strace)."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.rig import until
from tests.tools import need


@contextlib.contextmanager
def injected(pid: int, fault: str, *, calls: str) -> Iterator[None]:
    """Let each of the *calls* of process *pid* meet *fault* while the context lasts.

    Both are in strace's words.
    """
    command = [need("strace"), "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}"]
    command += ["-e", f"inject={calls}:{fault}", "-p", str(pid)]
    with subprocess.Popen(command) as tracer:
        try:
            until(lambda: tracer.poll() is not None or _tracers(pid) == {tracer.pid})
            assert tracer.poll() is None
            yield
        finally:
            # It lets go of the process, which goes on.
            tracer.terminate()


def _tracers(pid: int) -> set[int]:
    """Return the processes that trace the threads of *pid*; 0 means none."""
    return {
        int(path.read_text().split("TracerPid:")[1].split()[0])
        for path in Path(f"/proc/{pid}/task").glob("*/status")
    }

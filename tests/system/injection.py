"""Faults of system calls, injected into a process that runs (strace)."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator

from tests.rig import of_threads, until
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
            # 0 means that nobody traces a thread.
            traced = {tracer.pid}
            until(lambda: tracer.poll() is not None or {*of_threads(pid, "TracerPid")} == traced)
            assert tracer.poll() is None
            yield
        finally:
            # It lets go of the process, which goes on.
            tracer.terminate()

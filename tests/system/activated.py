"""A daemon on a socket to which attackers have connected before it starts, as systemd passes one.

Run as ``python -m tests.system.activated SOCKET ROUNDS COMMAND...``; it becomes the command. The
attackers' connections stay for as long as that runs.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from pathlib import Path

from tests.system.attacker import pass_descriptors

FIRST_FD = 3
"""Where systemd passes descriptors."""


def main(path: Path, rounds: int, command: list[str]) -> None:
    """Listen, let attackers connect, and become the daemon."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    path.chmod(0o666)
    listener.listen(512)
    ready, tell = os.pipe()
    ends, keep = os.pipe()
    if not os.fork():
        os.close(keep)
        with contextlib.ExitStack() as stack:
            told = pass_descriptors(stack, path, rounds, mib=1, watched=1)
            os.write(tell, b"1" if told["passed"] else b"0")
            os.read(ends, 1)
        return
    if os.read(ready, 1) != b"1":
        sys.exit("no descriptor could be passed")
    os.set_inheritable(keep, True)
    if listener.fileno() != FIRST_FD:
        os.dup2(listener.fileno(), FIRST_FD)
    os.set_inheritable(FIRST_FD, True)
    os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}
    os.execv(command[0], command)  # noqa: S606  (a daemon of this test)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
